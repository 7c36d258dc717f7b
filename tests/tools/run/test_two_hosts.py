"""One job on two hosts with a network between them: each has its own copy of the graph, on its own stripes."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from support.graphs import shape
from support.launched_ranks import needs_mpi
from support.simulated_hosts import HOSTS, possible, two_hosts


@needs_mpi
@pytest.mark.slow
@pytest.mark.skipif(not possible(), reason="hosts are namespaces, which only root makes")
def test_hosts_share_a_job_and_no_disk(tmp_path: Path) -> None:
    edges = shape("wide")
    np.savetxt(tmp_path / "edges.txt", np.stack([edges.sources, edges.targets], 1), "%d")
    penstock = (sys.executable, "-m", "penstock.tools.main")
    stripes = ("--stripe", "disk/one", "--stripe", "disk/two")
    with two_hosts(tmp_path) as hosts:
        for host in HOSTS:
            (tmp_path / host / "one").mkdir()
            (tmp_path / host / "two").mkdir()
            made = hosts.run(host, *penstock, "convert", "edges.txt", "disk/g.h5", *stripes, "--direction=both", "-q")
            assert made.returncode == 0, made.stderr
        assert not any((tmp_path / "disk").iterdir())
        job = ("run", "pagerank", "disk/g.h5", "--force", "--output")
        alone = hosts.run("b", *penstock, *job, "alone.csv", "-q")
        assert alone.returncode == 0, alone.stderr
        both = hosts.ranks(*job, "both.csv", "--json", "--direct-io")
        assert both.returncode == 0, both.stderr
        ranks = json.loads(both.stdout)["ranks"]
        assert [one["host"] for one in ranks] == ["penstock-a", "penstock-b"]
        assert all(one["bytes_disk"] for one in ranks)
        assert (tmp_path / "both.csv").read_text() == (tmp_path / "alone.csv").read_text()
        shutil.rmtree(tmp_path / "b" / "two")
        lost = hosts.ranks(*job, "lost.csv")
        assert lost.returncode == 2, lost.stderr
        assert "penstock-b" in lost.stderr
        assert not (tmp_path / "lost.csv").exists()
