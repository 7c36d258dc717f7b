"""What a companion compiles is what a run needs, for the types that the run has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from penstock.engine.kernels.ahead.announce import KernelJob, announce
from penstock.engine.programs.bfs import BFS
from penstock.storage.base import kernel_cache
from penstock.storage.companion import process
from support.faults import python

JOB = KernelJob(BFS(source=0), ("push", "pull"), True, "uint32", None, 2)
RUN = """
import sys, numpy as np
from numba.core import event
from penstock.engine import from_edges, run
from penstock.engine.kernels.ahead import announce as ahead
from penstock.storage.base import kernel_cache
from penstock.storage.companion import process
from penstock.storage.clocks.compile_times import compile_times

class Missing(event.Listener):
    names, depth = [], 0
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        if self.depth == 0 and function.__module__.startswith("penstock.engine.kernels"):
            self.names.append(function.__qualname__)
        self.depth += 1
    def on_end(self, event):
        self.depth -= 1
event.register("numba:compile", Missing())

announce = ahead.announce
def announced(*given):
    announce(*given)
    kernel_cache.tell_missing()
    process._Present.companions._processes[0].wait()
ahead.announce = announced

random = np.random.default_rng(1)
edges = (300 * random.random((2000, 2)) ** 3).astype(np.uint32)
weights = None if sys.argv[2] == "None" else random.integers(1, 9, len(edges)).astype(sys.argv[2])
graph = from_edges(edges, weights=weights, vertices=300)
run(sys.argv[1], graph, device="cpu", threads=2, **eval(sys.argv[3]))
print(compile_times().loaded, Missing.names)
"""


@pytest.mark.parametrize(
    ("name", "weights", "options"),
    [
        ("bfs", None, {"source": 0}),
        ("bfs", None, {"source": 0, "direction": "pull"}),
        ("sssp", "int64", {"source": 0}),
        ("pagerank", None, {"max_iter": 3, "tol": 0}),
        ("wcc", None, {}),
    ],
)
def test_what_it_compiles_is_what_a_run_needs(
    name: str, weights: str | None, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    child = python(RUN, name, str(weights), repr(options))
    assert child.returncode == 0, child.stderr
    loaded, _, missing = child.stdout.partition(" ")
    assert (int(loaded) >= 3, missing) == (True, "[]\n")


@pytest.mark.parametrize("why", ["one thread", "user's program", "attribute"])
def test_without_a_job_there_is_none(why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Own(BFS):
        """A user's program."""

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    job = JOB
    if why == "one thread":
        job = job._replace(threads=1)
    elif why == "user's program":
        job = job._replace(program=Own(source=0))
    else:
        program = BFS(source=0)
        program.opened = object()  # type: ignore[attr-defined]
        job = job._replace(program=program)
    announce(job, 0)
    kernel_cache.tell_missing()
    assert process._Present.companions is None
