"""Runs whose row index is read by pages when rows are wanted give the answers of those that hold all of it.

Of every program that walks rows in order. Offsets that are not in memory are wrong numbers here, where they are zeros
otherwise, so that a kernel that asks for a row too many fails.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from penstock.engine import Graph, Program, Session
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.planning import requirements
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.engine.queries.neighbors import sample_neighbors
from penstock.engine.resources import edge_stream
from penstock.engine.resources.config import Config
from penstock.engine.resources.memory_plan import MemoryPlan, plan_memory
from penstock.storage.base.errors import BudgetError, InputError, RunError
from penstock.storage.format.frames import Frames
from penstock.storage.format.index import Index
from penstock.storage.format.row_pages import RowPages
from penstock.storage.format.schema import DEGREES
from support.catalogue_oracles import SOURCE
from support.covering import covering
from support.paged_graphs import CHUNK, answer, assert_equal, paged_graphs
from support.program_cases import CASES, ROWS

__all__ = ["paged_graphs"]

MAKERS = {name: make for name, (make, _) in CASES.items()} | {
    "bfs": lambda: BFS(SOURCE),
    "sssp": lambda: SSSP(SOURCE),
    "pagerank": lambda: PageRank(tol=0, max_iter=3),
    "wcc": WCC,
}
IN_ORDER = sorted(MAKERS.keys() - set(ROWS) - {"degrees"})
"""Programs on single edges; `degrees` reads no rows but those of the file."""
ALIKE = (
    *("betweenness", "diameter", "distances", "heat", "katz", "kcore", "mis", "neural", "pagerank", "php"),
    *("scc", "sssp", "wcc", "widest"),
)
"""Of these, programs that ask for rows as another one does."""
WAYS: dict[str, dict[str, Any]] = {
    "auto": {},
    "push": {"direction": "push"},
    "sync": {"mode": "sync"},
    "three threads": {"threads": 3},
}


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """First rows of the chunks or pages whose memory is given back."""
    forget, found = RowPages.forget, []

    def spoil(pages: RowPages, first: int, rows: int) -> None:
        forget(pages, first, rows)
        pages.offsets[first + 1 : first + rows] = 0xDEADBEEF
        found.append(first)

    monkeypatch.setattr(RowPages, "forget", spoil)
    return found


def short_of_room(graph: Graph, config: Any, needs: Any, device_bytes: int | None) -> MemoryPlan:
    """No budget has room for a whole index where rows are wanted in order."""
    if needs.in_order and not needs.page_threads:
        raise BudgetError("--host-memory", "the index is large", 1)
    return plan_memory(graph, config, needs, device_bytes)


def answer_of(
    graph: Graph, program: Program, *, whole: bool = False, **options: Any
) -> dict[str, np.ndarray[Any, Any]]:
    """What a run answers, with a whole index, or with pages of it where it may have them."""
    with mock.patch.object(requirements, "plan_memory", plan_memory if whole else short_of_room):
        return answer(graph, program, **options)


@covering("name, way, directed, budget", IN_ORDER, WAYS, (True, False), (None, 16), strength=1, rare=ALIKE)
def test_answers_are_those_of_a_whole_index(
    name: str, way: str, directed: bool, budget: int | None, paged_graphs: dict[bool, Graph], forgotten: list[int]
) -> None:
    graph, make = paged_graphs[directed], MAKERS[name]
    options = {"threads": 1} | WAYS[way]
    try:
        wanted = answer_of(graph, make(), whole=True, **options)
    except InputError as error:  # no such way for this program
        pytest.skip(str(error))
    assert not forgotten
    with mock.patch.object(Index, "arrays", None):  # what asks for any row at any time
        found = answer_of(graph, make(), **options, host_memory=None if budget is None else budget << 20)
    assert_equal(found, wanted)
    assert len(forgotten) > 0


@pytest.mark.parametrize("dense", [0, 1 << 60])
@pytest.mark.parametrize("name", ["bfs", "sssp"])
def test_rows_are_not_read_to_find_edges_that_a_dense_frontier_does_not_want(
    name: str, dense: int, paged_graphs: dict[bool, Graph], forgotten: list[int]
) -> None:
    graph, counted = (
        paged_graphs[True],
        mock.patch.object(HostKernels, "count_active", autospec=True, side_effect=HostKernels.count_active),
    )
    wanted = answer_of(graph, MAKERS[name](), whole=True, threads=1, direction="push")
    with mock.patch.object(edge_stream, "DENSE", dense), counted as count:
        found = answer_of(graph, MAKERS[name](), threads=1, direction="push")
    assert_equal(found, wanted)
    assert count.called == (dense > 0)


def test_other_programs_ask_for_a_whole_index(paged_graphs: dict[bool, Graph], forgotten: list[int]) -> None:
    graph = paged_graphs[True]
    for name in set(ROWS) - {"hyperball", "fastrp"}:  # vectors are combined as they come
        needs = requirements.requirements_within(graph, MAKERS[name](), requirements.RunSetting(Config()))[1].needs
        assert (name, needs.in_order) == (name, False)
    answer_of(graph, MAKERS["triangles"]())
    assert not forgotten


def test_other_runs_and_queries_have_a_whole_index(paged_graphs: dict[bool, Graph]) -> None:
    graph = paged_graphs[True]
    with mock.patch.object(requirements, "plan_memory", short_of_room), Session(graph) as session:
        session.run(WCC())
        assert not graph.out.index().whole
        assert sample_neighbors(graph, [SOURCE], [-1], direction="out").edges_per_hop[0] >= CHUNK
    with Session(graph) as session:
        session.run(WCC())
        assert graph.out.index().whole


def test_what_is_read_of_the_index_counts(paged_graphs: dict[bool, Graph], forgotten: list[int]) -> None:
    graph = paged_graphs[True]
    assert graph.out.degrees is not None
    with mock.patch.object(requirements, "plan_memory", short_of_room), Session(graph, threads=1) as session:
        result = session.run(WCC())
        came = sum(task.bytes_disk for record in result.records for task in record.tasks)
        index = result.bytes_read - came
        # what was read when the edges were cut into partitions is still there, and not of an iteration
        assert 0.5 * graph.out.degrees.lengths.sum() <= index <= session.bytes_read - came


def test_rows_that_cannot_be_read_end_the_run(paged_graphs: dict[bool, Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks are read once for the sums, and fail when they are wanted."""
    graph, reads = paged_graphs[True], [0]
    read = Frames.read

    def fail(frames: Frames, chunk: int) -> bytearray:
        reads[0] += frames.spec.path.endswith(DEGREES)
        if reads[0] > 22 and frames.spec.path.endswith(DEGREES):
            raise RunError(f"{frames.name(chunk)} cannot be read: Input/output error")
        return read(frames, chunk)

    monkeypatch.setattr(Frames, "read", fail)
    with pytest.raises(RunError, match="cannot be read"):
        answer_of(graph, WCC())
