"""The compiled steps of a conversion, each against plain numpy: packing, sorting, ids, degrees, orders."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from penstock.storage.base.errors import InputError
from penstock.storage.base.threads import ThreadPool
from penstock.storage.convert.renumber import id_mapping, vertex_order
from penstock.storage.convert.row_writer import RowSink
from penstock.storage.convert.sort import groups, radix
from penstock.storage.convert.sort.groups import (
    SortPlan,
    bucket_count,
    group_buckets,
    shares,
    sort_plan,
)
from penstock.storage.convert.sort.run import KeyPacking, KeyRange, pack_edges
from penstock.storage.convert.sort.sort_groups import Ordering, SortedRows, Sorter, make_rows, sort_group
from penstock.storage.convert.sort.spill import Spill
from penstock.storage.convert.sort.spill_room import SpillRoom
from penstock.storage.convert.sort.weights import from_ordered, narrow, to_ordered
from penstock.storage.ingest.core.edges import EdgeBatch
from support.covering import covering

KEYS = npst.arrays(np.uint64, st.integers(0, 300), elements=st.integers(0, (1 << 64) - 1))


@given(keys=KEYS, weighted=st.booleans(), mask=st.sampled_from([0, 7, (1 << 20) - 1, (1 << 64) - 1]))
def test_radix_sort_is_a_stable_sort(keys: Any, weighted: bool, mask: int) -> None:
    keys = keys & np.uint64(mask)
    weights = np.arange(len(keys) if weighted else 0, dtype=np.uint32)
    order = np.argsort(keys, kind="stable")
    found, moved = radix.sort_keys(keys.copy(), weights.copy(), radix.digits(0, mask.bit_length()))
    assert (found == keys[order]).all()
    assert (moved == weights[order]).all() if weighted else len(moved) == 0


@given(runs=st.lists(st.integers(1, 80), max_size=6), seed=st.integers(0, 99))
def test_ties_are_sorted_and_joined(runs: list[int], seed: int) -> None:
    keys = np.repeat(np.arange(len(runs), dtype=np.uint64), runs)
    values = np.random.default_rng(seed).integers(0, 9, len(keys)).astype(np.float64)
    weights = values.copy()
    radix.sort_ties(keys, weights)
    assert (weights == values[np.lexsort((values, keys))]).all()
    parts = np.split(values, np.cumsum(runs)[:-1]) if runs else []
    for rule, combine in (("first", lambda part: part[0]), ("sum", np.sum), ("min", np.min), ("max", np.max)):
        kept_keys, kept = keys.copy(), values.copy()
        count = radix.join_ties(kept_keys, kept, radix.RULES[rule])
        assert kept_keys[:count].tolist() == list(range(len(runs)))
        assert kept[:count].tolist() == [combine(part) for part in parts]


def edges_of(*batches: tuple[list[int], list[int]]) -> list[EdgeBatch]:
    return [EdgeBatch(np.array(one, np.uint64), np.array(two, np.uint64)) for one, two in batches]


def test_wide_ids_sort_like_narrow_ones(tmp_path: Any) -> None:
    """Ids from 2^32 on: runs of both kinds of keys meet in one spill, coarser than either alone."""
    big = (1 << 37) + 5
    batches = edges_of(([5, 3, 5, 70000], [1, 9, 0, 4]), ([big, 5, big - 1, big], [7, big, 2, 3]), ([0], [0]))
    spill = Spill(SpillRoom(1 << 20, tmp_path, lambda: None))
    for batch in batches:
        spill.add(pack_edges(batch, KeyPacking(buckets=64)))
    assert spill.wide
    vertices = big + 1
    ordering = Ordering(vertices=vertices, vertex_dtype=np.dtype(np.uint64), weight_dtype=None, rule=None, wide=True)
    counts = spill.histogram(-(-vertices >> spill.shift))
    found = []
    for group in group_buckets(counts, 1 << 20, single=True):
        keys, weights = spill.gather(spill.parts(group.first, group.last, 100)[0], group.first, None)
        base = group.first << spill.shift
        keys, weights = sort_group(keys, weights, KeyRange(0, (1 << 64) - 1, base), ordering)
        rows = make_rows(keys, weights, base, ordering)
        sources = np.repeat(rows.first + np.arange(len(rows.degrees)), rows.degrees)
        found += list(zip(sources.tolist(), rows.neighbors.tolist(), strict=True))
    given_edges = [
        pair for batch in batches for pair in zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
    ]
    assert found == sorted(given_edges)
    spill.free()


@given(bits=st.integers(1, 12), largest=st.one_of(st.integers(-1, 5000), st.integers(0, (1 << 32) - 1)))
def test_octaves_divide_all_ids(bits: int, largest: int) -> None:
    count = groups.octave_count(largest, bits)
    starts = [groups.octave_start(bucket, bits) for bucket in range(count + 1)]
    assert starts[0] == 0
    assert all(one < two for one, two in itertools.pairwise(starts))
    assert starts[count] > largest >= (starts[count - 1] if count else -1)
    edge = [v for start in starts for v in (start - 1, start, start + 1) if 0 <= v <= largest]
    loads = np.zeros(count, np.int64)
    groups.add_loads(np.array(edge, np.uint32), np.ones(len(edge), np.uint32), 0, bits, loads)
    assert loads.tolist() == np.histogram(edge, bins=starts)[0].tolist() if count else not edge


def test_octaves_are_chosen_where_buckets_of_equal_width_are_too_heavy() -> None:
    degrees = (1_000_000 / np.arange(1, 100_001)).astype(np.uint32)
    new = np.arange(len(degrees), dtype=np.uint32)

    def chosen(degrees: Any, buckets: int = 512) -> int | None:
        def load(shift: int, bits: int) -> int:
            return groups.largest_load(new, degrees.reshape(1, -1), shift, bits, 4096)

        return groups.chosen_bits(len(degrees), load, 8, buckets)

    assert chosen(degrees) == groups.most_bits(100_000, 512) == 5
    assert chosen(np.full_like(degrees, 3)) is None
    assert chosen(degrees, 2) is None
    assert groups.chosen_bits((1 << 32) + 1, lambda *_: 1, 8, 512) is None


@pytest.mark.parametrize("mirror", [False, True])
def test_runs_of_octaves_sort_like_others(tmp_path: Any, mirror: bool) -> None:
    vertices, bits = 3000, 2
    ends = (np.random.default_rng(2).pareto(0.5, (2, 4000)).clip(max=vertices - 1)).astype(np.uint32)
    packing = KeyPacking(buckets=groups.octave_count(vertices - 1, bits), octave_bits=bits, mirror=mirror)
    spill = Spill(SpillRoom(1 << 20, tmp_path, lambda: None))
    for first in range(0, 4000, 700):
        spill.add(pack_edges(EdgeBatch(*ends[:, first : first + 700]), packing))
    ordering = Ordering(vertices=vertices, vertex_dtype=np.dtype(np.uint32), weight_dtype=None, rule=None)
    with ThreadPool(2, "sort") as pool:
        sorter = Sorter(pool, SortPlan(2, 100, 300), SpillRoom(0, tmp_path, lambda: None), 8)
        found = [
            pair
            for rows in sorter.rows(spill, ordering)
            for pair in zip(
                np.repeat(rows.first + np.arange(len(rows.degrees)), rows.degrees).tolist(),
                rows.neighbors.tolist(),
                strict=True,
            )
        ]
    edges = list(zip(*ends.tolist(), strict=True))
    assert found == sorted(edges + [(v, u) for u, v in edges if u != v and mirror])
    spill.free()


@pytest.mark.parametrize("memory", [1 << 20, 10 << 20, 1 << 30])
@pytest.mark.parametrize("threads", [1, 2, 16])
def test_sorting_fits_its_memory(memory: int, threads: int) -> None:
    plan = sort_plan(memory, 24, threads)
    assert 1 <= plan.workers <= threads
    assert (plan.workers + 1) * plan.group_edges * 24 <= memory
    assert plan.held_edges * 24 <= memory


@covering("memory, threads, maps", [32, 48, 64, 200, 1024, 16384], [1, 2, 16], [False, True])
def test_shares_fit_the_budget(memory: int, threads: int, maps: bool) -> None:
    total = memory << 20
    share = shares(total, threads, maps=maps)
    writer = min(total // 4, 3 * (3 * threads + 10) << 20)
    assert share.spill_bytes + share.sort_bytes + writer <= total
    assert share.spill_bytes >= (total // 2 if total >= 4 << 30 and threads < 16 else 0)
    assert share.run_edges * 32 * (threads + 2) <= max(total // 4, 4096 * 32 * (threads + 2))
    for size in (None, 10**6, 10**9, 10**12):
        buckets = bucket_count(size, share, 1)
        assert buckets & (buckets - 1) == 0
        assert 512 <= buckets <= 4096


@pytest.mark.parametrize("edges", [1 << 24, 1 << 28, (1 << 29) - 1, 1 << 29, 3 << 28, 1 << 30])
def test_buckets_are_smaller_than_groups(edges: int) -> None:
    """With memory at hand: a bucket of a whole group's size could only be sorted nearly alone."""
    share = shares(89 << 30, 16, maps=False)
    assert share.group_edges == 1 << 20
    assert edges / bucket_count(8 * edges, share, 1) <= share.group_edges / 2


def test_too_many_ids_for_the_memory() -> None:
    found = id_mapping.IdSet(1000)
    for _ in range(9):
        found.add(np.arange(40, dtype=np.uint64))
    with pytest.raises(InputError, match=r"--renumber: .*--host-memory"):
        found.add(np.arange(40, 80, dtype=np.uint64))


@given(degrees=st.lists(st.one_of(st.integers(0, 5), st.integers((1 << 16) - 2, (1 << 32) - 1)), max_size=60))
def test_falling_degrees(degrees: list[int]) -> None:
    new = vertex_order.by_degree(np.array(degrees, np.uint32))
    assert new.dtype == np.uint32
    assert vertex_order.inverse(new).tolist() == sorted(range(len(degrees)), key=lambda v: (-degrees[v], v))


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("copies", [1, 3])
def test_degrees_are_counted_in_several_threads(apart: bool, copies: int) -> None:
    vertices = vertex_order.RANGE + 77
    ends = np.random.default_rng(4).integers(0, vertices, (2, 5, 3000), np.uint32)
    with ThreadPool(3, "count") as pool:
        found = vertex_order.count_degrees(
            [EdgeBatch(*pair) for pair in zip(*ends, strict=True)],
            lambda batch: EdgeBatch(batch.sources, np.uint32(vertices - 1) - batch.targets),
            vertices,
            apart=apart,
            pool=pool,
            copies=copies,
        )
    out = np.bincount(ends[0].ravel(), minlength=vertices)
    into = np.bincount(ends[1].ravel(), minlength=vertices)[::-1]
    assert found.tolist() == ([out.tolist(), into.tolist()] if apart else [(out + into).tolist()])


def test_a_count_stops_where_it_does_not_fit() -> None:
    counts = np.array([(1 << 32) - 2], np.uint32)
    vertex_order.count_ids(np.zeros(3, np.uint64), counts)
    vertex_order.add_counts(counts, np.array([5], np.uint32))
    assert counts.tolist() == [(1 << 32) - 1]


@given(
    st.lists(st.one_of(st.integers(-5, 2**33), st.floats(allow_nan=False, allow_infinity=False, width=32)), max_size=9)
)
def test_narrow_loses_nothing(values: list[float]) -> None:
    given_weights = np.array(values, np.float64)
    narrowed, extent = narrow(given_weights, "x")
    assert (narrowed.astype(np.float64) == given_weights).all()
    assert narrowed.dtype == (extent.dtype() if values else np.uint8)
    whole = all(value >= 0 and value == int(value) and value < 2**32 for value in values)
    assert (narrowed.dtype.kind == "u") == whole
    one, two = narrow(given_weights[: len(values) // 2], "x")[1], narrow(given_weights[len(values) // 2 :], "x")[1]
    assert one.joined(two).dtype() == extent.dtype()


class Taken:
    """A writer of an adjacency that keeps degrees."""

    def __init__(self) -> None:
        self.degrees_of: list[int] = []

    def degrees(self, part: Any) -> None:
        assert len(part) > 0
        self.degrees_of += part.tolist()

    def append(self, *edges: Any) -> None: ...

    def finish(self) -> None: ...


def rows_of(first: int, degrees: Any) -> SortedRows:
    """Rows of which a sink asks for the degrees alone."""
    return SortedRows(first, np.asarray(degrees, np.uint32), np.empty(0, np.uint32), None)


def test_whole_numbers_that_float32_rounds_make_float64_beside_fractions() -> None:
    whole, part = (narrow(np.array(values), "x")[1] for values in (np.array([1 << 24 | 1], np.uint32), [0.5]))
    assert whole.dtype() == np.uint32
    assert whole.joined(part).dtype() == np.float64


@given(npst.arrays(np.float64, st.integers(0, 50), elements=st.floats(allow_nan=False)))
def test_weights_sort_as_integers(weights: Any) -> None:
    keys = to_ordered(weights)
    assert (from_ordered(keys, weights.dtype) == weights).all()
    assert (np.sort(weights) == from_ordered(np.sort(keys), weights.dtype)).all()


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=30),
    st.lists(st.integers(1, 9), max_size=20),
    st.integers(0, 70000),
)
def test_degrees_come_without_gaps(degrees: list[int], cuts: list[int], gap: int) -> None:
    """Pieces may cut a row in two, and rows without edges at either end of a piece are left out."""
    degrees = [*degrees, *[0] * gap, 2]
    rows = np.repeat(np.arange(len(degrees)), degrees)
    taken = Taken()
    sink = RowSink(taken, len(degrees) + 3, None)  # type: ignore[arg-type]
    at = 0
    for size in [*cuts, len(rows)]:
        piece = rows[at : at + size]
        at += len(piece)
        if len(piece):
            sink.put(rows_of(int(piece[0]), np.bincount(piece - piece[0])))
    sink.finish()
    assert taken.degrees_of == [*degrees, 0, 0, 0]


def test_a_row_may_have_more_than_32_bits_of_edges() -> None:
    taken = Taken()
    sink = RowSink(taken, 2, None)  # type: ignore[arg-type]
    for degree in (1 << 31, 1 << 31, 7):
        sink.put(rows_of(0, [degree]))
    sink.finish()
    assert taken.degrees_of == [(1 << 32) + 7, 0]
