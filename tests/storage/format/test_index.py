"""The index finds the rows that cumulative sums find, in at most 4.1 bytes a vertex."""

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from penstock.storage.base.errors import RunError
from penstock.storage.format import index
from penstock.storage.format.index import Index, from_chunks, from_degrees, from_offsets
from penstock.storage.format.row_pages import RowPages, held_pages


def index_of(degrees: list[int], widest: int = 16, split: int = 3) -> Index:
    array = np.array(degrees, np.uint64)
    pieces = [array[first : first + split] for first in range(0, len(array), split)]
    with mock.patch("penstock.storage.format.index.WIDEST_SHIFT", widest):
        return from_degrees(len(degrees), lambda: pieces)


def offsets_of(degrees: list[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.array(degrees, np.int64))])


@given(st.lists(st.integers(0, 5), max_size=70), st.integers(0, 6))
def test_index_equals_cumulative_sums(degrees: list[int], widest: int) -> None:
    index, offsets = index_of(degrees, widest), offsets_of(degrees)
    n = len(degrees)
    assert index.vertices == n
    assert index.edges == offsets[-1]
    assert np.array_equal(index.starts(0, n + 1), offsets)
    assert np.array_equal(index.degrees(n // 3, n), degrees[n // 3 :])
    assert np.array_equal(index.starts_of(np.arange(n, -1, -1)), offsets[::-1])
    bases, low, shift = index.arrays()
    assert bases.dtype == np.int64
    assert low.dtype == np.uint32
    vertices = np.arange(n + 1)
    assert np.array_equal(bases[vertices >> shift] + low, offsets)
    assert len(bases) == -(-n // (1 << shift)) + 1 or len(bases) == (n >> shift) + 2


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(0, 6))
def test_rows_of_names_the_row_that_holds_the_edge(degrees: list[int], widest: int) -> None:
    index = index_of(degrees, widest)
    rows = np.repeat(np.arange(len(degrees)), degrees)
    assert np.array_equal(index.rows_of(np.arange(index.edges)), rows)
    for edge in range(min(3, index.edges)):
        assert index.row_of(edge) == rows[edge]
    some = np.arange(len(degrees), dtype=np.uint32)[::-2]
    assert np.array_equal(index.lengths_of(some), np.array(degrees)[some])


@given(st.lists(st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**32, 2**40]), min_size=1, max_size=40))
def test_rows_beyond_32_bits_shrink_the_blocks(degrees: list[int]) -> None:
    index, offsets = index_of(degrees), offsets_of(degrees)
    assert np.array_equal(index.starts(0, len(degrees) + 1), offsets)
    for row, degree in enumerate(degrees):
        if degree:
            assert index.row_of(int(offsets[row])) == row
            assert index.row_of(int(offsets[row + 1]) - 1) == row


def test_index_costs_at_most_4_1_bytes_a_vertex() -> None:
    n = 1 << 20
    index = from_degrees(n, lambda: [np.full(n, 200, np.uint8)])
    assert index.nbytes <= 4.1 * n
    hubs = np.zeros(n, np.uint32)
    hubs[::997] = 2**32 - 1
    assert from_degrees(n, lambda: [hubs]).nbytes <= 4.1 * n


def test_index_from_offsets_equals_index_from_degrees() -> None:
    degrees = np.random.default_rng(3).integers(0, 9, 5000)
    offsets = np.concatenate([[0], np.cumsum(degrees)]).astype(np.uint64)
    one, other = from_offsets(offsets), from_degrees(5000, lambda: [degrees])
    assert one.shift == other.shift
    assert np.array_equal(one.bases, other.bases)
    assert np.array_equal(one.offsets, other.offsets)


def same(one: Index, other: Index) -> bool:
    equal = all(map(np.array_equal, one.arrays()[:2], other.arrays()[:2]))
    return equal and one.shift == other.shift


DEGREES = st.lists(st.sampled_from([0, 1, 3, 7, 2**31, 2**32 - 1, 2**32, 2**40]), max_size=60)


@given(DEGREES, st.integers(0, 4), st.sampled_from([1, 3, 4, 8, 16, 64]), st.integers(1, 3))
def test_an_index_from_chunks_equals_one_from_degrees(
    degrees: list[int], widest: int, chunk_rows: int, threads: int
) -> None:
    array = np.array(degrees, np.uint64)
    with mock.patch("penstock.storage.format.index.WIDEST_SHIFT", widest):
        chunks = [array[first : first + chunk_rows] for first in range(0, len(array), chunk_rows)]
        found = from_chunks(len(array), chunk_rows, chunks.__getitem__, threads)
        assert same(found, from_degrees(len(array), lambda: [array]))


PAGE = 1024
"""Rows of which the offsets take a page of memory that is not huge."""


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.storage.format.row_pages.PAGE_ROWS", PAGE)


@given(st.integers(1, 12), st.integers(-3, 3), st.integers(4, 10), st.integers(1, 3), st.data())
@settings(max_examples=30)
def test_rows_that_are_read_when_they_are_wanted_are_those_of_a_whole_index(
    chunks: int, more: int, widest: int, threads: int, data: st.DataObject
) -> None:
    count = max(1, chunks * PAGE + more)
    random = np.random.default_rng(count)
    degrees = random.choice(np.array([0, 1, 2, 9, 2**31], np.uint64), count, p=[0.4, 0.3, 0.2, 0.05, 0.05])
    held = RowPages(count, PAGE, threads)
    with mock.patch("penstock.storage.format.index.WIDEST_SHIFT", widest):
        index = from_chunks(count, PAGE, lambda chunk: degrees[chunk * PAGE : (chunk + 1) * PAGE], threads, held)
    offsets = np.concatenate([[0], np.cumsum(degrees.astype(np.int64))])
    assert (index.vertices, index.edges, index.nbytes) == (count, offsets[-1], index.bases.nbytes)
    v0, v1 = sorted(data.draw(st.tuples(*[st.integers(0, count + 1)] * 2)))
    assert np.array_equal(index.starts(v0, v1), offsets[v0:v1])
    assert np.array_equal(index.degrees(v0, min(v1, count)), np.diff(offsets)[v0:v1])
    rows = random.integers(0, count + 1, 50)
    assert np.array_equal(index.starts_of(rows), offsets[rows])
    some = random.integers(0, max(1, offsets[-1]), 50) if offsets[-1] else np.zeros(0, np.int64)
    assert np.array_equal(index.rows_of(some), np.searchsorted(offsets, some, "right") - 1)
    for parts in (list(index.parts(v0, v1)), list(held.ranges(v0, v1, held.together))):
        assert [row for first, last in parts for row in range(first, last)] == list(range(v0, v1))
        assert all(index.start_of_page(first) == offsets[first] for first, _ in parts[1:])
    assert index.nbytes <= index.bases.nbytes + 4 * PAGE * max(held_pages(threads), threads + 1)
    bases, low, shift = index.arrays()
    assert np.array_equal(bases[np.arange(count + 1) >> shift] + low, offsets)
    assert np.array_equal(index.starts(0, count + 1), offsets)


def test_rows_that_are_wanted_stay_while_others_are_read() -> None:
    degrees = np.arange(20 * PAGE, dtype=np.uint32) % 7
    held = RowPages(len(degrees), PAGE, 1)
    with mock.patch("penstock.storage.format.index.WIDEST_SHIFT", 10):
        index = from_chunks(len(degrees), PAGE, lambda chunk: degrees[chunk * PAGE : (chunk + 1) * PAGE], 1, held)
    wanted = np.concatenate([[0], np.cumsum(degrees, dtype=np.int64)])
    for first, last in index.parts(PAGE // 2, 3 * PAGE):
        assert np.array_equal(index.starts(0, len(degrees)), wanted[:-1])  # of all chunks, one after the other
        bases, rows = index.bases, np.arange(first, last)
        assert np.array_equal(bases[rows >> index.shift] + index.offsets[rows], wanted[rows])


def test_a_pass_over_rows_reads_as_many_pages_at_once_as_threads_and_each_once() -> None:
    loaded: list[int] = []

    def load(chunk: int) -> NDArray[np.uint8]:
        loaded.append(chunk)
        return np.ones(PAGE, np.uint8)

    held = RowPages(8 * PAGE, PAGE, 3)
    with mock.patch("penstock.storage.format.index.WIDEST_SHIFT", 10):
        index = from_chunks(8 * PAGE, PAGE, load, 3, held)
    loaded.clear()
    seen = []
    for first, _ in index.parts(0, 8 * PAGE):
        seen.append(len(loaded))
        assert held.nbytes <= 4 * PAGE * held_pages(3), first
    assert seen == [3, 3, 3, 6, 6, 6, 8, 8]
    assert sorted(loaded) == list(range(8))
    loaded.clear()
    for number in (2, 0):
        next(iter(index.parts(number * PAGE, (number + 1) * PAGE)))
    assert sorted(loaded) == [0, 2]


@pytest.mark.parametrize(("count", "left"), [(3 * PAGE, True), (9 * PAGE, False)])
def test_chunks_of_many_rows_are_not_left_to_python(count: int, left: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who goes over them is told by how long the array is in which their offsets are."""
    lengths, append = list[int](), index._append_degrees

    def noted(*given: Any) -> Any:
        lengths.append(len(given[-1]))
        return append(*given)

    monkeypatch.setattr(index, "FEW", few := 4 * PAGE)
    monkeypatch.setattr(index, "WIDEST_SHIFT", 10)
    monkeypatch.setattr(index, "_append_degrees", noted)
    from_chunks(count, PAGE, lambda _: np.ones(PAGE, np.uint8), 2, RowPages(count, PAGE, 2))
    assert {length <= few for length in lengths} == {left}


def test_a_chunk_that_cannot_be_read_is_read_when_it_is_wanted_again() -> None:
    degrees, broken = np.ones(4 * PAGE, np.uint8), [False]

    def load(chunk: int) -> NDArray[np.uint8]:
        if broken[0] and chunk == 1:
            raise RunError("cannot be read")
        return degrees[chunk * PAGE : (chunk + 1) * PAGE]

    held = RowPages(len(degrees), PAGE, 2)
    with mock.patch("penstock.storage.format.index.WIDEST_SHIFT", 10):
        index = from_chunks(len(degrees), PAGE, load, 2, held)
    broken[0] = True
    with pytest.raises(RunError, match="cannot be read"):
        index.starts(0, len(degrees))
    broken[0] = False
    assert np.array_equal(index.starts(0, len(degrees) + 1), np.arange(len(degrees) + 1))


def test_degrees_whose_sum_wraps_around_are_refused() -> None:
    rows = np.full(1 << 16, 1 << 46, np.int64)
    with pytest.raises(OverflowError, match=str(1 << 63)):
        from_chunks(2 << 16, 1 << 16, lambda _: rows, 1)


@pytest.mark.parametrize("vertices", [0, 1, 1 << 16, (1 << 16) + 1, 200_000])
@pytest.mark.parametrize("widest", [16, 5])
def test_clipped_rows_equal_rows_of_smaller_degrees(vertices: int, widest: int) -> None:
    degrees = np.random.default_rng(vertices).integers(0, 60, vertices) ** 2 // 40
    with mock.patch("penstock.storage.format.index.WIDEST_SHIFT", widest):
        index = from_degrees(vertices, lambda: [degrees])
    with mock.patch("penstock.storage.format.index.STEP", 1 << 16):
        for most in (1, 4, 32):
            expected = [np.minimum(degrees, most)]
            assert same(index.clipped(most, 2), from_degrees(vertices, expected.copy))
            counts = np.bincount(np.minimum(degrees, most).astype(np.int64), minlength=most + 1)
            assert np.array_equal(index.clipped_counts(most, 2), counts)


@pytest.mark.parametrize("vertices", [2, 4])
def test_a_wrong_number_of_degrees_is_refused(vertices: int) -> None:
    with pytest.raises(ValueError, match="degrees"):
        from_degrees(vertices, lambda: [np.ones(3, np.uint8)])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=70), st.integers(0, 6), st.data())
def test_other_rows_of_a_part_are_empty(degrees: list[int], widest: int, data: st.DataObject) -> None:
    index, offsets = index_of(degrees, widest), offsets_of(degrees)
    v0, v1 = sorted(data.draw(st.tuples(*[st.integers(0, len(degrees))] * 2)))
    origin = data.draw(st.integers(0, int(offsets[v0])))
    part = index.of_rows(v0, v1, origin)
    assert np.array_equal(part.starts(0, len(degrees) + 1), np.clip(offsets, offsets[v0], offsets[v1]) - origin)
    assert part.edges == offsets[v1] - origin
