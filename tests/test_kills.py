"""A run that is killed at any moment, again and again, ends with the answer of one that ran through.

A process forks the runs, so that they start in no time; each is really killed, by SIGKILL. PENSTOCK_KILLS=50 kills
fifty times for each program instead of five in all.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from penstock.engine import Program, run
from penstock.engine.programs.hits import HITS
from support.graphs import on_disk, shape
from support.oracles import EdgeList
from support.program_cases import program_of

KILLS = int(os.environ.get("PENSTOCK_KILLS", "0"))
PROGRAMS = ("bfs", "sssp", "sweeps", "wcc", "hits")
CHILD = """
import os, sys
from pathlib import Path
import numpy as np
sys.path.insert(0, sys.argv[1])
from penstock.engine import run
from test_kills import make
graph = Path(sys.argv[2])
run("bfs", graph, source=0, kernels="reference", threads=1)  # loads everything before the first fork
while line := sys.stdin.readline():
    name, folder, answer = line.split()
    child = os.fork()
    if child == 0:
        try:
            result = run(
                make(name), graph, kernels="reference", checkpoint=folder, checkpoint_every=1, resume=True, threads=1
            )
            values = next(iter(result.fields.values()))
            np.save(answer + ".partial.npy", values)
            os.rename(answer + ".partial.npy", answer)
            os._exit(0)
        except BaseException as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
    print(child, flush=True)
    sys.stdin.readline()  # until then the child, dead or alive, has its number to itself
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def edges_of(name: str) -> EdgeList:
    """A graph on which a program has enough iterations to be killed in."""
    if name == "bfs":
        return EdgeList(25, np.arange(24), np.arange(1, 25))
    return shape("skewed", weights="uint8")


def make(name: str) -> Program:
    """The program."""
    edges = edges_of(name)
    return HITS(tol=1e-7) if name == "hits" else program_of(name, edges)


@contextmanager
def forking(graph: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that runs a program for every line it reads, in a process of its own."""
    arguments = [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(graph)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def killed(process: subprocess.Popen[str], order: str, seconds: float | None) -> int:
    """Start a run, kill it after so many seconds (None: let it be); returns how it ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{order}\n")
    process.stdin.flush()
    child = int(process.stdout.readline())
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    process.stdin.write("\n")
    process.stdin.flush()
    return int(process.stdout.readline())


@pytest.mark.timeout(3600 if KILLS else 300)
@pytest.mark.parametrize("name", PROGRAMS if KILLS else ["bfs"])
def test_killed_at_random_moments_it_ends_with_the_same_answer(name: str, tmp_path: Path) -> None:
    """A run that ended before it was killed has had its answer written, and begins anew."""
    edges = edges_of(name)
    graph, kept, answer = on_disk(edges, tmp_path / "graph.h5"), tmp_path / "kept", tmp_path / "answer.npy"
    choose, order = random.Random(f"{name} {KILLS}"), f"{name} {kept} {answer}"
    tally: Counter[str] = Counter()
    with forking(tmp_path / "graph.h5") as process:
        began = time.perf_counter()
        assert killed(process, order, None) == 0
        lasts = time.perf_counter() - began  # on a machine that may be busier, or less, later
        answer.unlink()
        while tally["killed"] < (KILLS or 5):
            code = killed(process, order, choose.uniform(0, lasts))
            assert code in (0, -signal.SIGKILL)
            lasts *= 1.1 if code else 0.6
            tally["killed" if code else "ended before"] += 1
            tally["with a checkpoint"] += code != 0 and any(kept.glob("checkpoint-*"))
            tally["while writing one"] += any(kept.glob(".checkpoint-*"))
        assert killed(process, order, None) == 0
    print(f"{name}: {dict(tally)}")
    wanted = next(iter(run(make(name), graph, kernels="reference").fields.values()))
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(np.load(answer), wanted, rtol=1e-9)
    else:
        np.testing.assert_array_equal(np.load(answer), wanted, strict=True)
    assert list(kept.iterdir()) == []
