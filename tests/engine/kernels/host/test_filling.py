"""First values by the threads of kernels: every item, of every type, wherever an array's pages begin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.engine import Session
from penstock.engine.kernels.host import filling
from penstock.engine.programs import wcc
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.wcc import WCC
from support.graphs import in_memory, shape


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "PAGE", 256)
    monkeypatch.setattr(filling, "LARGE_BYTES", 0)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("front", [0, 1, 63])
@pytest.mark.parametrize(
    ("dtype", "value"),
    [("u4", 2**32 - 1), ("f8", -np.inf), ("f4", np.nan), ("i8", -1), ("?", True), ("u2", 9.0), ("f8", 0.1)],
)
def test_every_item_and_no_other(dtype: str, value: Any, front: int, threads: int) -> None:
    for count in (0, 1, 64, 1000):
        around = np.zeros(front + count + 3, dtype)
        expected = around.copy()
        expected[front : front + count] = value
        filling.fill(around[front : front + count], value, threads=threads)
        assert np.array_equal(around.view("u1"), expected.view("u1"))


def test_rows_of_vectors() -> None:
    factors = np.zeros((70, 3), np.float32)
    filling.fill(factors, 0.5, threads=2)
    assert (factors == 0.5).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_numbers_are_places(dtype: Any, threads: int) -> None:
    for first, last in ((0, 0), (0, 1), (5, 900), (64, 128)):
        around = np.full(1000, 7, dtype)
        filling.number(around[first:last], threads=threads)
        assert np.array_equal(around[first:last], np.arange(last - first))
        assert (np.delete(around, np.s_[first:last]) == 7).all()


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
