"""What a companion compiles is what a run needs, for the types that the run has."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from penstock.engine.kernels.ahead import compile_ahead
from penstock.engine.kernels.ahead.announce import KernelJob, announce
from penstock.engine.program.program_description import describe_program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.triangles import Triangles
from penstock.storage.base import missing_code
from penstock.storage.companion import process
from penstock.storage.companion.claims import Claims
from penstock.storage.companion.job_compiler import JobCompiler
from support.faults import python

JOB = KernelJob(BFS(source=0), ("push", "pull"), True, "uint32", None, 2)
RUN = """
import json, sys, numpy as np
from numba.core import event
from penstock.engine import from_edges, run
from penstock.engine.kernels.ahead import announce as ahead
from penstock.storage.base import missing_code
from penstock.storage.companion import process
from penstock.storage.base.stage_clock import compile_times

missing_code.FEW = 0

class Compiled(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event):
        pass
event.register("numba:compile", Compiled())

asked, ask = [], process.Companion.ask
def asking(companion, request, patience):
    if "awaited" not in request and request.get("module", "").startswith("penstock.engine"):
        asked.append(request["name"])
    return ask(companion, request, patience)
process.Companion.ask = asking

announce = ahead.announce
def announced(*given):
    announce(*given)
    missing_code.tell_missing("none", "no entry")
    ask(process._Present.companion, {"awaited": "what never ends, so that the processes of the job do"}, 300)
ahead.announce = announced

random = np.random.default_rng(1)
edges = (300 * random.random((2000, 2)) ** 3).astype(np.uint32)
for name, weights, options in json.loads(sys.argv[1]):
    weights = None if weights is None else random.integers(1, 9, len(edges)).astype(weights)
    graph = from_edges(edges, weights=weights, vertices=300)
    before = compile_times().loaded
    run(name, graph, device="cpu", threads=2, **options)
    print(compile_times().loaded - before >= 3, Compiled.names, asked)
"""
RUNS: tuple[list[tuple[str, str | None, dict[str, Any]]], ...] = (
    [("pagerank", None, {"max_iter": 3, "tol": 0})],
    [("sssp", "int64", {"source": 0}), ("wcc", None, {}), ("bfs", None, {"source": 0, "direction": "pull"})],
)


@pytest.mark.parametrize("runs", [RUNS[0], pytest.param(RUNS[1], marks=pytest.mark.full)], ids=["sums", "frontiers"])
def test_what_it_compiles_is_what_a_run_needs(
    runs: list[tuple[str, str | None, dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    child = python(RUN, json.dumps(runs))
    assert child.returncode == 0, child.stderr
    assert child.stdout == len(runs) * "True [] []\n"


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
    given: list[Any] = []
    companion = SimpleNamespace(give=given.append, close=lambda: None)
    monkeypatch.setattr(process, "start", lambda: companion)
    monkeypatch.setattr(process, "is_possible", lambda processes: True)
    announce([job], "host", 0)
    missing_code.tell_missing("none", "no entry")
    assert given == []


@pytest.mark.parametrize(
    ("program", "weights", "kernels"),
    [(BFS(source=0), None, "push_list"), (SSSP(source=0), "uint8", "fused_iterations"),
     (Triangles(), None, "intersect"), (CDLP(), None, "apply_rows"),
     (CollaborativeFiltering(), "uint8", "pull_vectors")],
)  # fmt: skip
def test_it_says_first_which_kernels_the_run_needs(
    program: Any, weights: str | None, kernels: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = JOB._replace(program=program, weights=weights, apart=program.combine != "all")
    assert kernels in _said(job, tmp_path, monkeypatch)


@pytest.mark.parametrize(("edges", "fused"), [(9_000, True), (90_000, False)])
def test_of_many_searches_on_few_edges_it_compiles_what_fuses_them(
    edges: int, fused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = JOB._replace(program=SSSP(source=0), weights="int16", apart=False, phased=(1000, 1000, edges))
    names = _said(job, tmp_path, monkeypatch)
    assert "fused_buckets" in names
    assert {"push_list", "pull"}.isdisjoint(names) == fused


def _said(job: KernelJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that a job is said to need."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    names: list[str] = []
    asked: list[str] = []
    take = JobCompiler._take

    def taking(compiler: Any, name: str, *given: Any) -> bool:
        names.append(name)
        return take(compiler, name, *given)

    monkeypatch.setattr(JobCompiler, "_take", taking)
    monkeypatch.setattr(Claims, "take", lambda claims, name: asked.append(name))  # another process has them all
    told = {**job._asdict(), "program": describe_program(job.program), "number": 0}
    compile_ahead.compile_all(told, Claims(tmp_path))
    assert Claims(tmp_path).counts() == (0, len(set(asked)))
    return names


CONTRACT = """
import numpy as np
from penstock.engine import from_edges, run
from penstock.engine.programs import rows_in_memory
from penstock.storage.base.missing_code import when_asked
from penstock.storage.companion.process import request_for

asked, listed = [], []
when_asked(lambda entry, origin, signature: asked.append(request_for(origin, signature)))
rows_in_memory.offer = lambda describe, memory: listed.extend(describe()["listed"])
edges = np.random.default_rng(1).integers(0, 300, (2000, 2)).astype(np.uint32)
run("louvain", from_edges(edges, vertices=300, undirected=True), device="cpu", threads=2)
print(len(listed), [one for one in listed if one not in asked])
"""


def test_what_contracts_rows_is_listed_for_the_types_that_it_has() -> None:
    child = python(CONTRACT)
    assert (child.stdout, child.stderr) == ("3 []\n", "")


@pytest.mark.parametrize(("kinds", "threads", "processes"), [(1, 2, 1), (1, 3, 2), (1, 16, 5), (2, 2, 2)])
def test_where_cores_are_few_a_job_is_done_by_one_process_and_ends_the_one_before(
    kinds: int, threads: int, processes: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of phases of two kinds each has a process."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    given: list[Any] = []
    companion = SimpleNamespace(give=given.append, end_jobs=lambda: given.append("end"), has_job=False)
    monkeypatch.setattr(process, "start", lambda: companion)
    monkeypatch.setattr(process, "is_possible", lambda processes: True)
    announce([JOB._replace(threads=threads)] * kinds, "host", 0)
    missing_code.tell_missing("none", "no entry")
    *ended, job = given
    assert job["processes"] == processes
    assert ended == ["end"][: processes == 1]
