"""Runs whose values of vertices are in a file, and come by windows, give the answers of those that hold all of them.

Values that are not in memory are wrong numbers here, where they are zeros otherwise, so that a step that asks for a
vertex too many fails.
"""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from penstock.engine import Graph, Program, Session
from penstock.engine.execution.windows import AHEAD, Windows
from penstock.engine.planning import requirements
from penstock.engine.programs.bfs import BFS, BFSLevels
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.engine.resources.memory_plan import EdgeRoom, edge_room
from penstock.storage.base.errors import BudgetError, InputError, RunError
from penstock.storage.checkpoint.state_pages import StatePages, Unit
from support.catalogue_oracles import SOURCE
from support.covering import covering
from support.paged_graphs import paged_graphs
from support.program_cases import CASES

__all__ = ["paged_graphs"]

MAKERS = {name: CASES[name][0] for name in ("reachability", "widest", "kcore", "coreness", "heat")} | {
    "wcc": WCC,
    "bfs": lambda: BFS(SOURCE),
    "bfs levels": lambda: BFSLevels(SOURCE),
    "sssp": lambda: SSSP(SOURCE),
    "pagerank": lambda: PageRank(tol=0, max_iter=3, weight=None),
}
WAYS: dict[str, dict[str, Any]] = {
    "auto": {},
    "push": {"direction": "push"},
    "pull": {"direction": "pull"},
    "sync": {"mode": "sync"},
    "three threads": {"threads": 3},
}
WINDOWS = (1, 2, 6)


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> list[Unit]:
    """Pages whose memory is given back; what is there is wrong from then on."""
    give_back, add, found = StatePages.give_back, StatePages.add, []

    def spoil(pages: StatePages, unit: Unit) -> None:
        give_back(pages, unit)
        _spoil(pages.values(unit[0])[unit[1] * pages.rows :][: pages.rows])
        found.append(unit)

    def spoiled(pages: StatePages, *given: Any) -> Any:
        values = add(pages, *given)
        _spoil(values)
        return values

    monkeypatch.setattr(StatePages, "give_back", spoil)
    monkeypatch.setattr(StatePages, "add", spoiled)
    return found


def _spoil(values: Any) -> None:
    values.view(np.uint8)[...] = 0xA7


@contextmanager
def room_for(windows: int, vertices: int) -> Iterator[list[int]]:
    """No budget has room for all values, and what there is makes so many windows at least; yields their counts."""
    counts, walk = [], Windows.walk

    def short_of_room(graph: Graph, config: Any, needs: Any, device_bytes: int | None) -> EdgeRoom:
        if needs.in_order and not needs.value_room:
            raise BudgetError("--host-memory", "the state is large", 1)
        return edge_room(graph, config, needs, device_bytes)

    def cut(self: Windows, stream: Any, frontier: Any) -> Any:
        pages, together = self._state.pages, stream.index.pages.together
        assert pages is not None
        far, near = (
            sum(pages.values(name).itemsize for name in names)
            for names in self._steps.walked(self._state.messages, pushes=stream.direction == "push")
        )
        window = -(-vertices // pages.rows // windows) * pages.rows * far
        least = (AHEAD + 1) * together * sum(array.values.itemsize for array in pages._arrays.values())
        pages.room = max(window + AHEAD * near * together, least)
        yield from walk(self, stream, frontier)
        counts.append(self.count)

    with mock.patch.object(requirements, "edge_room", short_of_room), mock.patch.object(Windows, "walk", cut):
        yield counts


def answer(graph: Graph, program: Program, **options: Any) -> dict[str, np.ndarray[Any, Any]]:
    for adjacency in graph.adjacencies:
        adjacency.drop_index()
    with Session(graph, **options) as session:
        return dict(session.run(program).fields)


@covering("name, way, directed, windows", sorted(MAKERS), WAYS, (True, False), WINDOWS, strength=2)
def test_answers_are_those_of_all_values_in_memory(
    name: str, way: str, directed: bool, windows: int, paged_graphs: dict[bool, Graph], forgotten: list[Unit]
) -> None:
    graph, make, options = paged_graphs[directed], MAKERS[name], {"threads": 1} | WAYS[way]
    try:
        wanted = answer(graph, make(), **options)
    except InputError as error:  # no such way for this program
        pytest.skip(str(error))
    with room_for(windows, graph.vertices) as counts:
        found = answer(graph, make(), **options)
    assert counts
    assert found.keys() == wanted.keys()
    for field, values in wanted.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(found[field], values, rtol=1e-9, atol=1e-12)
        elif field != "parent":
            np.testing.assert_array_equal(found[field], values)


def unnamed(folder: Path) -> Iterator[str]:
    """Open files of a folder that have no name."""
    for handle in os.listdir("/dev/fd"):
        with suppress(OSError):
            link = os.readlink(f"/dev/fd/{handle}")
            if link.startswith(str(folder)) and link.endswith("(deleted)"):
                yield link


@pytest.mark.parametrize("call", ["posix_fallocate", "pwritev", "preadv"])
def test_a_disk_that_is_full_or_fails_ends_the_run_and_the_next_one_is_right(
    call: str, paged_graphs: dict[bool, Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, done = paged_graphs[True], getattr(os, call)
    calls = [0]

    def fail(handle: int, *given: Any) -> Any:
        calls[0] += "(deleted)" in os.readlink(f"/dev/fd/{handle}")  # the file without a name, and no other
        if calls[0] > (0 if call == "posix_fallocate" else 3):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return done(handle, *given)

    with room_for(6, graph.vertices), Session(graph, threads=1) as session, monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(RunError, match=r"the file for vertex state.*No space left"):
            session.run(SSSP(SOURCE))
        patch.undo()
        gc.collect()
        assert not list(unnamed(paged_graphs[True].files[0].parent))
        found = session.run(SSSP(SOURCE)).fields["distance"]
    np.testing.assert_array_equal(found, answer(graph, SSSP(SOURCE))["distance"])
