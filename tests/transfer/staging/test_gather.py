"""Gathering rows into a packed buffer equals a loop in Python, whoever fills which part; wrong counts are refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from penstock.storage.format.index import Index, from_degrees
from penstock.transfer.staging.gather import (
    ActiveRows,
    BufferPlace,
    CompactedLayout,
    GatherSource,
    compacted_layout,
    count_rows,
    gather_rows,
)
from penstock.transfer.values.task import Partition

KINDS = [("uint32", None), ("uint32", "uint8"), ("uint32", "float32"), ("uint64", "float64")]
POISON = 77


def index_of(degrees: list[int], shift: int = 2) -> Index:
    with mock.patch("penstock.storage.format.index.WIDEST_SHIFT", shift):
        return from_degrees(len(degrees), lambda: [np.array(degrees, np.int64)])


def parts_of(index: Index, size: int) -> list[Partition]:
    cuts = [(e0, min(e0 + size, index.edges)) for e0 in range(0, index.edges, size)]
    return [Partition("out", k, e0, e1, index.row_of(e0), index.row_of(e1 - 1) + 1) for k, (e0, e1) in enumerate(cuts)]


def bits_of(chosen: list[bool], word: str) -> NDArray[Any]:
    """The chosen rows as a bitmap of whole words."""
    per_word = np.dtype(word).itemsize * 8
    padded = np.zeros(-(-len(chosen) // per_word) * per_word, bool)
    padded[: len(chosen)] = chosen
    return np.packbits(padded, bitorder="little").view(word)


def buffers(plan: CompactedLayout, kind: str, weight: str | None) -> tuple[Any, ...]:
    buffer = np.full(plan.words, POISON, kind)
    return *plan.slices(buffer), None if weight is None else np.full(plan.edges, POISON, weight)


def expected(chosen: list[bool], index: Index, parts: list[Partition]) -> list[tuple[int, list[int]]]:
    """Row parts and the numbers of their edges, partition by partition."""
    found = []
    for part in parts:
        for v in range(part.v0, part.v1):
            start, end = (int(e) for e in index.starts(v, v + 2))
            edges = list(range(max(start, part.e0), min(end, part.e1)))
            if chosen[v] and edges:
                found.append((v, edges))
    return found


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    length = st.one_of(st.just(0), st.integers(0, 3), st.integers(0, 90))
    degrees = draw(st.lists(length, min_size=1, max_size=150))
    degrees[draw(st.integers(0, len(degrees) - 1))] += 1
    flags = st.lists(st.booleans(), min_size=len(degrees), max_size=len(degrees))
    none, every = st.just([False] * len(degrees)), st.just([True] * len(degrees))
    return {
        "degrees": degrees,
        "chosen": draw(st.one_of(flags, flags, none, every)),
        "word": draw(st.sampled_from(["uint32", "uint64"])),
        "size": draw(st.integers(1, 200)),
        "kind": draw(st.sampled_from(KINDS)),
        "threads": draw(st.integers(1, 3)),
        "all": draw(st.booleans()),
    }


@given(cases())
def test_equals_a_loop_in_python(case: dict[str, Any]) -> None:
    """Several threads, one buffer; each partition from an array of its own that holds nothing else."""
    (kind, weight), chosen = case["kind"], case["chosen"]
    index = index_of(case["degrees"])
    marks = None if case["all"] else bits_of(chosen, case["word"])
    chosen = [True] * len(chosen) if case["all"] else chosen
    random = np.random.default_rng(0)
    neighbors = random.integers(0, 2**31, index.edges).astype(kind)
    weights = None if weight is None else random.integers(0, 200, index.edges).astype(weight)
    active, parts = ActiveRows(marks, index.arrays()), parts_of(index, case["size"])[:40]
    counts = [count_rows(active, part) for part in parts]
    plan = compacted_layout([rows for rows, _ in counts], [edges for _, edges in counts])
    target = buffers(plan, kind, weight)

    def fill(number: int) -> None:
        part = parts[number]
        items = slice(part.e0, part.e1)
        source = GatherSource(neighbors[items], None if weights is None else weights[items], part.e0)
        gather_rows(active, part, source, plan.place(number), target)

    with ThreadPoolExecutor(case["threads"]) as pool:
        list(pool.map(fill, range(len(parts))))
    found = expected(chosen, index, parts)
    numbers = [e for _, edges in found for e in edges]
    assert target[1].tolist() == [v for v, _ in found]
    assert target[0].tolist() == [0, *np.cumsum([len(edges) for _, edges in found]).tolist()]
    assert target[2].tolist() == neighbors[numbers].tolist()
    if weights is not None:
        assert target[3].tolist() == weights[numbers].tolist()


def test_marks_of_a_window_begin_at_its_first_vertex() -> None:
    index = index_of([3] * 100)
    marks = bits_of([k == 5 for k in range(64)], "uint32")
    (part,) = (p for p in parts_of(index, 60) if p.v0 == 40)
    active = ActiveRows(marks, index.arrays(), first=40)
    plan = compacted_layout(*zip(count_rows(active, part), strict=True))
    target = buffers(plan, "uint32", None)
    gather_rows(active, part, GatherSource(np.arange(300, dtype=np.uint32), None, 0), plan.place(0), target)
    assert (plan.rows, plan.edges, plan.words) == (1, 3, 6)
    assert [array.tolist() for array in target[:3]] == [[0, 3], [45], [135, 136, 137]]


@pytest.mark.parametrize("counted", [(2, 12), (3, 20), (5, 20), (4, 19), (4, 21)])
def test_other_counts_than_planned_are_refused_and_nothing_outside_is_written(counted: tuple[int, int]) -> None:
    """Four rows of five edges; a partition of one row lies on either side."""
    index = index_of([5] * 6)
    active = ActiveRows(None, index.arrays())
    plan = compacted_layout([1, counted[0], 1], [5, counted[1], 5])
    target = buffers(plan, "uint32", "uint8")
    place = plan.place(1)
    source = GatherSource(np.arange(30, dtype=np.uint32), np.arange(30, dtype=np.uint8), 0)
    with pytest.raises(RuntimeError, match=r"partition 9 .* 4 active rows with 20 edges"):
        gather_rows(active, Partition("out", 9, 5, 25, 1, 5), source, place, target)
    for array, (first, last) in zip(target, [place[:2], place[:2], place[2:], place[2:]], strict=True):
        assert set(array[:first].tolist()) | set(array[last:].tolist()) == {POISON}


def test_a_source_a_place_or_marks_that_do_not_fit_are_refused() -> None:
    index = index_of([5] * 6)
    part, plan = Partition("out", 3, 5, 25, 1, 5), compacted_layout([4], [20])
    active, target = ActiveRows(None, index.arrays()), buffers(plan, "uint32", None)
    neighbors = np.arange(30, dtype=np.uint32)
    for source in (
        GatherSource(neighbors, None, 6),
        GatherSource(neighbors[:24], None, 0),
        GatherSource(neighbors, neighbors, 0),
    ):
        with pytest.raises(RuntimeError, match="partition 3"):
            gather_rows(active, part, source, plan.place(0), target)
    for place in (BufferPlace(0, 5, 0, 20), BufferPlace(0, 4, 1, 21)):
        with pytest.raises(RuntimeError, match="partition 3"):
            gather_rows(active, part, GatherSource(neighbors, None, 0), place, target)
    with pytest.raises(RuntimeError, match="marks"):
        count_rows(ActiveRows(np.zeros(1, np.uint32), index.arrays(), first=2), part)


def test_a_plan_refuses_counts_that_cannot_be_and_buffers_that_are_too_small() -> None:
    for counts in (([1], [0]), ([-1], [3]), ([1, 1], [1])):
        with pytest.raises(ValueError, match="row part"):
            compacted_layout(*counts)
    with pytest.raises(RuntimeError, match="do not fit"):
        compacted_layout([2], [3]).slices(np.zeros(7, np.uint32))
    with pytest.raises(RuntimeError, match="uint8"):
        compacted_layout([1], [256]).slices(np.zeros(300, np.uint8))
    assert compacted_layout([], []).words == 1
