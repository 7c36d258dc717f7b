"""Arrays that an author's functions make are freed: most of the kernels' functions count no references.

First values by the threads of kernels: every item, of every type, wherever an array's pages begin.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys
from penstock.engine import Session, run
from penstock.engine.kernels.host import vertices
from penstock.engine.programs import wcc
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.programs.wcc import WCC
from support.graphs import in_memory, shape


def held() -> tuple[int, int]:
    """Blocks of memory, and arrays, that compiled code has made and not freed."""
    stats = rtsys.get_allocation_stats()
    return stats.alloc - stats.free, stats.mi_alloc - stats.mi_free


@pytest.mark.parametrize(("name", "direction"), [("bfs", "push"), ("bfs", "pull"), ("vectors", "pull")])
def test_nothing_is_held_after_a_run(name: str, direction: str) -> None:
    graph = in_memory(shape("skewed", weights="uint8"))
    _nrt_python.memsys_enable_stats()

    def once() -> tuple[int, int]:
        program = BFS(0) if name == "bfs" else CollaborativeFiltering(max_iter=3)
        result = run(program, graph, device="cpu", direction=direction, threads=1)
        assert all(np.isfinite(values).all() for values in result.fields.values())
        return held()

    first = once()
    assert once() == first


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vertices, "PAGE", 256)
    monkeypatch.setattr(vertices, "LARGE_BYTES", 0)


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("front", [0, 1, 64])
@pytest.mark.parametrize(
    ("dtype", "value"),
    [("u4", 2**32 - 1), ("f8", -np.inf), ("f4", np.nan), ("i8", -1), ("?", True), ("u2", 9.0), ("f8", 0.1)],
)
def test_every_item_and_no_other(dtype: str, value: Any, front: int, threads: int) -> None:
    for count in (0, 1, 64, 1000):
        around = np.zeros(front + count + 3, dtype)
        expected = around.copy()
        expected[front : front + count] = value
        vertices.fill(around[front : front + count], value, threads=threads)
        assert np.array_equal(around.view("u1"), expected.view("u1"))


def test_the_kernel_is_for_large_arrays_and_for_many(small_pages: None, monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[int] = []
    monkeypatch.setattr(vertices, "fill_pieces", lambda threads, steps, words, *_: filled.append(len(words)))
    monkeypatch.setattr(vertices, "LARGE_BYTES", 1 << 12)
    monkeypatch.setattr(vertices, "_SMALLER", itertools.count())
    for count in (1 << 9, *[1 << 7] * (vertices.PATIENCE + 1), 1 << 4):
        vertices.fill(np.empty(count, np.uint64), 1, threads=1)
    assert filled == [1 << 9, 1 << 7]


@pytest.mark.usefixtures("small_pages")
def test_rows_of_vectors() -> None:
    factors = np.zeros((70, 3), np.float32)
    vertices.fill(factors, 0.5, threads=2)
    assert (factors == 0.5).all()


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("make", [lambda: BFS(0), WCC])
def test_answers_are_those_of_small_arrays(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = in_memory(shape("skewed"))
    with Session(graph, kernels="reference") as session:
        expected = session.run(make()).fields
    monkeypatch.setattr(wcc, "ALONE", 0)
    with Session(graph, device="cpu", threads=2) as session:
        found = session.run(make()).fields
    for name, values in expected.items():
        assert np.array_equal(found[name], values)
