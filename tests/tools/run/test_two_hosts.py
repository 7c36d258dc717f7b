"""Two machines, each with its own copy of the graph, its own stripe folders and two ranks: the answer of one process.

A name space makes a host's name, so that MPI counts two hosts on one machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from penstock.tools.run import launch_ranks
from support.graphs import on_disk, shape
from support.launched_ranks import PATIENCE_SECONDS, needs_mpi

HOSTS = ("first", "second")
OWN_NAME = ("unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"')
"""Runs its arguments but the first on a host of that name."""


def _runs(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@needs_mpi
@pytest.mark.slow
def test_hosts_may_have_copies_and_stripes_of_their_own(tmp_path: Path) -> None:
    if not _runs(*OWN_NAME, "name", "true"):
        pytest.skip("this machine lets us name no hosts")
    parts: list[str] = []
    command = [sys.executable, "-m", "penstock.tools.main", "run", "wcc"]
    options = ["--json", "--threads", "2", "--host-memory", "1GiB"]
    for host in HOSTS:
        folder = tmp_path / host
        (folder / "made").mkdir(parents=True)
        graph = on_disk(shape("wide"), folder / "g.h5", chunk_edges=1024, stripes=(folder / "made",)).path
        (folder / "made").rename(folder / "moved")
        here = [*command, str(graph), "--stripe", str(folder / "moved"), "--device", "cpu", *options]
        parts += [*([":"] if parts else []), "-n", "2", *OWN_NAME, host, *here, "--output", str(folder / "parts.csv")]
    done = subprocess.run(
        [launch_ranks.find_mpiexec(), *parts], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert [(one["rank"], one["host"]) for one in told["ranks"]] == [
        (0, "first"), (1, "first"), (2, "second"), (3, "second")
    ]  # fmt: skip
    assert (tmp_path / "first/parts.csv").exists()
    assert not (tmp_path / "second/parts.csv").exists()  # rank 0 writes
    alone = [*command, str(tmp_path / "first/g.h5"), "--stripe", str(tmp_path / "first/moved"), "--device", "cpu"]
    one = subprocess.run([*alone, *options], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    assert json.loads(one.stdout)["fields"] == told["fields"]
