"""Graph files whose row index has six pages, for runs that read it, and values of vertices, by pages."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from _pytest.monkeypatch import MonkeyPatch
from penstock.engine import Graph, Program, Session
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.execution import union_find, windows
from penstock.engine.execution.loop import Loop
from penstock.engine.execution.windows import AHEAD, Windows, window_vertices
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.planning import requirements
from penstock.engine.program.program import Field, Start
from penstock.engine.programs import order_batches
from penstock.engine.resources import memory_plan
from penstock.engine.resources.memory_plan import MemoryPlan, budget_of, plan_memory
from penstock.storage.base.errors import BudgetError
from penstock.storage.checkpoint.state_pages import PagedValues, StatePages, Unit
from penstock.transfer.planning.host_budget import least_reading_bytes
from support.catalogue_oracles import SOURCE
from support.graphs import on_disk, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import Fields

CHUNK = 4096
"""Rows of a chunk, half a page: a span of a bitmap."""
VERTICES = 11 * CHUNK - 100
PAGE = 2 * CHUNK
"""Vertices of a page."""
InMemory = Callable[[Callable[[], Program], bool], Fields]
"""Returns the answer of the program that is made, by whether the graph is directed."""


class AllSend(Program):
    """Every vertex sends at first."""

    by_ranges = True

    def start(self, graph: Graph, state: dict[str, Any]) -> Start:
        return Start(everything=True)


class Shares(AllSend):
    """What a vertex gets where each shares a million among its edges."""

    share = Field(np.int64)
    combine = "sum"
    message = np.int64
    everywhere = True
    max_iter = 2
    by_ranges = True

    def edge(degree):  # type: ignore[no-untyped-def]
        return 1_000_000 // degree

    def vertex(incoming):  # type: ignore[no-untyped-def]
        return incoming


def edges(*, directed: bool, vertices: int = VERTICES) -> EdgeList:
    """Edges of which a third is skewed, so that coreness and coloring end soon."""
    random = np.random.default_rng(3)
    ends = random.integers(0, vertices, (2, 3 * vertices))
    ends[:, :vertices] = random.permutation(vertices)[skewed(vertices, vertices, 4)]
    ends[:, :CHUNK] = np.stack([np.full(CHUNK, SOURCE), random.integers(0, vertices, CHUNK)])
    return weighed(EdgeList(vertices, ends[0], ends[1], None, directed), "uint8")


@pytest.fixture(scope="module")
def paged_graphs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, Graph]]:
    """By whether it is directed, a graph of pages of two chunks."""
    with _made(tmp_path_factory.mktemp("rows")) as graphs:
        yield graphs


@pytest.fixture(scope="module")
def graphs_in_windows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, Graph]]:
    """The same with three windows of two pages each."""
    with _made(tmp_path_factory.mktemp("windows"), window_vertices=4 * CHUNK) as graphs:
        yield graphs


@contextmanager
def pages_of(rows: int, chunk: int = CHUNK) -> Iterator[None]:
    """Pages of indexes have so many rows within, a multiple of `chunk`: a power of two, CHUNK where cores walk them."""
    with MonkeyPatch.context() as patch:
        for name, value in {
            "adjacency_writer.CHUNK_VERTICES": chunk,
            "writer.CHUNK_VERTICES": chunk,
            "index.WIDEST_SHIFT": chunk.bit_length() - 1,
            "row_pages.PAGE_ROWS": rows,
            "graph.WIDEST_SHIFT": chunk.bit_length() - 1,
        }.items():
            patch.setattr(f"penstock.storage.format.{name}", value)
        yield


@contextmanager
def _made(folder: Path, **options: Any) -> Iterator[dict[bool, Graph]]:
    with pages_of(PAGE):
        yield {
            directed: on_disk(edges(directed=directed), folder / f"{directed}.h5", chunk_edges=1 << 13, **options)
            for directed in (True, False)
        }


@pytest.fixture(scope="module")
def in_memory(paged_graphs: dict[bool, Graph]) -> InMemory:
    """What programs answer that hold all values, each once a graph: however it runs, an answer is the same."""

    @cache
    def wanted(make: Callable[[], Program], directed: bool) -> Fields:
        with mock.patch.object(HostKernels, "can_fuse", return_value=False):  # a kernel more to compile
            return answer(paged_graphs[directed], make(), threads=1)

    return wanted


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> list[Unit]:
    """Pages whose memory is given back; what is there is wrong from then on, and what is read is not written to.

    Batches of an order have few edges.
    """
    give_back, add, read, found = StatePages.give_back, StatePages.add, PagedValues.__getitem__, []

    def leave(pages: StatePages, unit: Unit) -> None:
        give_back(pages, unit)
        spoil(pages.values(unit[0])[unit[1] * pages.rows :][: pages.rows])
        found.append(unit)

    def spoiled(pages: StatePages, *given: Any) -> Any:
        values = add(pages, *given)
        spoil(values)
        return values

    def closed(values: PagedValues, rows: Any) -> Any:
        part = read(values, rows)
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
        return part

    monkeypatch.setattr(order_batches, "EDGE_BYTES", 1 << 40)
    monkeypatch.setattr(order_batches, "FEWEST", 200)
    monkeypatch.setattr(StatePages, "give_back", leave)
    monkeypatch.setattr(StatePages, "add", spoiled)
    monkeypatch.setattr(PagedValues, "__getitem__", closed)
    return found


def spoil(values: Any) -> None:
    """Make values wrong, whatever they are."""
    values.view(np.uint8)[...] = 0xA7


@contextmanager
def counted_windows() -> Iterator[list[int]]:
    """Yield how many windows each walk had that has ended, or has linked the edges to one of them."""
    counts, walk, link = [], Windows.walk, union_find._link_by_windows

    def counted(self: Windows, *given: Any) -> Any:
        yield from walk(self, *given)
        counts.append(self.count)

    def linked(loop: Loop, windows: Windows) -> Any:
        for record in link(loop, windows):
            counts.append(windows.count)
            yield record

    with mock.patch.object(Windows, "walk", counted), mock.patch.object(union_find, "_link_by_windows", linked):
        yield counts


@contextmanager
def no_pages_left() -> Iterator[None]:
    """What runs within leaves no values of vertices behind, though no garbage is collected."""
    gc.collect()
    gc.disable()
    try:
        yield
        assert not [one for one in gc.get_objects() if isinstance(one, StatePages)]
    finally:
        gc.enable()


@contextmanager
def room_for(count: int, vertices: int, *, kept: bool = False) -> Iterator[list[int]]:
    """No budget has room for all values: there is some for so many windows; yields how many each walk had.

    kept: whether edges of small frontiers may be kept.
    """
    planned = requirements.in_windows

    def short_of_room(graph: Graph, config: Any, needs: Any, device_bytes: int | None) -> MemoryPlan:
        if needs.in_order and not needs.value_room:
            raise BudgetError("--host-memory", "the state is large", 1)
        return plan_memory(graph, config, needs, device_bytes)

    def in_windows(graph: Graph, setting: Any, program: Any, asks: Any, needs: Any) -> Any:
        found = planned(graph, setting, program, asks, needs)
        made = [(one.program, graph.vertices, graph.vertex_dtype) for one in asks]
        arrays = [requirements.value_bytes(*of, apart=one.apart) for of, one in zip(made, asks, strict=True)]
        each = max(sum(size // graph.vertices for size in sizes.values()) for sizes in arrays)
        return replace(found, value_room=each * (window + AHEAD * found.page_threads * PAGE))

    def window_in(room: int, beside: tuple[int, int], page: int, together: int) -> int:
        return min(window, window_vertices(room, beside, page, together))

    window = -(-vertices // PAGE // count) * PAGE
    with (
        mock.patch.object(requirements, "plan_memory", short_of_room),
        mock.patch.object(requirements, "in_windows", in_windows),
        mock.patch.object(windows, "window_vertices", window_in),
        mock.patch.object(windows, "KEPT_SHARE", 2 if kept else 1 << 40),
        mock.patch.object(requirements, "window_vertices", window_in),
        counted_windows() as counts,
    ):
        yield counts


@contextmanager
def no_edges_kept() -> Iterator[None]:
    """No budget has room for edges but those at hand."""

    def short(config: Any, needs: Any, *given: Any) -> Any:
        found = budget_of(config, needs, *given)
        least = least_reading_bytes(found, needs.adjacencies, with_weights=needs.weighted, one_by_one=True)
        return replace(found, host_memory=found.fixed + least)

    with mock.patch.object(memory_plan, "budget_of", short):
        yield


def unnamed(folder: Path) -> Iterator[str]:
    """Open files of a folder that have no name."""
    for handle in os.listdir("/dev/fd"):
        with suppress(OSError):
            link = os.readlink(f"/dev/fd/{handle}")
            if link.startswith(str(folder)) and link.endswith("(deleted)"):
                yield link


def answer(
    graph: Graph, program: Program, *, checkpoints: Callable[[int], Checkpoints | None] = lambda _rank: None,
    **options: Any,
) -> dict[str, np.ndarray[Any, Any]]:  # fmt: skip
    """What a run answers that finds no row index in memory."""
    for adjacency in graph.adjacencies:
        adjacency.drop_index()
    with Session(graph, **options) as session:
        return dict(session.run(program, checkpoints(0)).fields)


def in_two_parts(
    graph: Graph, make: Callable[[], Program], folder: Path,
    parts: Iterable[tuple[AbstractContextManager[list[int]], dict[str, Any]]],
) -> tuple[dict[str, np.ndarray[Any, Any]], list[list[int]]]:  # fmt: skip
    """What a run answers that ends after three iterations and goes on from its checkpoint, and windows of both parts.

    parts: what each runs in, which yields how many windows walks had, and its options.
    """
    counts = []
    for resume, (room, options) in enumerate(parts):
        for adjacency in graph.adjacencies:
            adjacency.drop_index()
        kept = Checkpoints(folder, 1, resume=bool(resume))
        with room as some, Session(graph, **options) as session:
            counts.append(some)
            if resume:
                found = dict(session.run(make(), kept).fields)
            else:
                steps = session.steps(make(), kept)
                for _ in range(3):  # HITS: in its third phase
                    next(steps)
                steps.close()
    assert kept.began == 3
    return found, counts


def assert_equal(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Integers to the bit, but for parents, of which there may be several; floats nearly."""
    assert found.keys() == wanted.keys()
    summed = {"embedding": 4e-6}  # of fastrp: thousands of terms of both signs may be added
    for name, values in wanted.items():
        if values.dtype.kind == "f":
            double = values.dtype.itemsize > 4
            np.testing.assert_allclose(
                found[name], values, rtol=1e-9 if double else 1e-5, atol=1e-12 if double else summed.get(name, 1e-6)
            )
        elif name != "parent":
            np.testing.assert_array_equal(found[name], values)
