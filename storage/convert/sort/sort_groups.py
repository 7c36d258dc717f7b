"""Owns the walk from spilled keys to sorted rows, whatever the size of a range.

Groups of buckets that fit are gathered and sorted side by side in threads and come out in order.
A range that does not fit (a hub, a star) is spilled once more, by finer ranges of keys, until its
parts fit; the last resort is a single key (parallel edges without end), told apart by weight.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.threads import ordered_map, weighed_map
from penstock.storage.convert.sort import radix
from penstock.storage.convert.sort.groups import BucketGroup, SortPlan, group_buckets, octave_start
from penstock.storage.convert.sort.run import NARROW_BITS, WIDE_BITS, KeyRange, KeyRun, Keys, pack_keys
from penstock.storage.convert.sort.seen_ids import OccurringIds
from penstock.storage.convert.sort.spill import Part, Spill
from penstock.storage.convert.sort.spill_room import SpillRoom
from penstock.storage.convert.sort.weights import bits, from_ordered, to_ordered, working_dtype
from penstock.storage.ingest.core.edge_columns import WEIGHT, StoredColumns, taken
from penstock.storage.ingest.core.edges import EdgeBatch


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Sorted edges of consecutive rows: ``degrees`` (uint32) from row ``first`` on, counting these
    edges only (the first and last row may have more elsewhere); ``reverse`` is the same edges with
    their ends exchanged, if asked for."""

    first: int
    degrees: NDArray[np.uint32]
    neighbors: NDArray[Any]
    weights: NDArray[Any] | None
    reverse: EdgeBatch | None = None
    columns: tuple[NDArray[Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """What sorted rows look like: weights, the rule for parallel edges (None keeps them), whether the exchanged edges
    are wanted too; how many ids keys may have, whose vertices are in ``ids`` (None: they are), and the vertices' dtype.
    With columns beside edges, ``records`` of them and weights are sorted in the place of weights.
    """

    vertices: int
    vertex_dtype: np.dtype[Any]
    weight_dtype: np.dtype[Any] | None
    rule: int | None
    reverse: bool = False
    wide: bool = False
    ids: OccurringIds | None = None
    records: np.dtype[Any] | None = None
    columns: StoredColumns | None = None

    @property
    def target_bits(self) -> int:
        """Bits of a key that hold the target."""
        return WIDE_BITS if self.wide else NARROW_BITS

    @property
    def working(self) -> np.dtype[Any] | None:
        """The dtype in which weights are sorted."""
        return self.records or (None if self.weight_dtype is None else working_dtype(self.weight_dtype))

    @property
    def ordered(self) -> bool:
        """Whether parallel edges have an order of their own: records without weights stay in that of the input."""
        return self.records is None or self.weight_dtype is not None

    @property
    def edge_bytes(self) -> int:
        """The most memory that one edge takes while its group is sorted."""
        weight = 0 if self.working is None else 2 * self.working.itemsize + 8
        reverse = self.vertex_dtype.itemsize if self.reverse else 0
        return 16 + 2 * self.vertex_dtype.itemsize + weight + reverse


class KeyBuffers:
    """Pairs of arrays of up to ``edges`` keys, as many as were in use at once, used again and again.

    Fresh memory comes page by page from the system, which takes as long as sorting does where many threads ask
    for it at once. While a group larger than usual is sorted, nothing is kept.
    """

    def __init__(self, edges: int) -> None:
        self._edges = edges
        self._free: list[tuple[Keys, Keys]] = []
        self._large = 0
        self._lock = threading.Lock()

    @contextmanager
    def pair(self, edges: int) -> Iterator[tuple[Keys, Keys]]:
        """Two arrays of ``edges`` keys with anything in them, to be left when the block ends."""
        large = edges > self._edges
        with self._lock:
            if large:
                self._large += 1
                self._free.clear()
            found = self._free.pop() if self._free else None
        size = max(edges, self._edges)
        one, two = found or (np.empty(size, np.uint64), np.empty(size, np.uint64))
        try:
            yield one[:edges], two[:edges]
        finally:
            with self._lock:
                self._large -= large
                if self._large == 0 and not large:
                    self._free.append((one, two))

    def clear(self) -> None:
        """Give back what is not in use."""
        with self._lock:
            self._free.clear()


@dataclass(frozen=True, slots=True)
class Sorter:
    """The means of sorting: threads, how much at a time, and room for ranges that do not fit."""

    pool: Executor
    plan: SortPlan
    room: SpillRoom
    buckets: int

    def rows(self, spill: Spill, ordering: Ordering) -> Iterator[SortedRows]:
        """Yield all of a spill's edges as rows, ascending."""
        last = (ordering.vertices - 1) << ordering.target_bits
        every = KeyRange(0, last + ordering.vertices - 1)
        vertices = _SpillSort(self, spill, every, spill.shift + ordering.target_bits, ordering)
        yield from vertices.rows(spill.buckets)

    def rows_of_runs(self, runs: Iterable[KeyRun], span: KeyRange, ordering: Ordering) -> Iterator[SortedRows]:
        """Yield keys that lie in ``span`` as rows, ascending; ``runs`` are packed by `key_shift`."""
        with self.spilled(runs) as spill:
            yield from _SpillSort(self, spill, span, self.key_shift(span), ordering).rows(self.buckets)

    def key_shift(self, span: KeyRange) -> int:
        """Bits of a range of keys when all of ``span`` are divided among the buckets."""
        return max(0, (span.high - span.low).bit_length() - (self.buckets.bit_length() - 1))

    @contextmanager
    def spilled(self, runs: Iterable[KeyRun]) -> Iterator[Spill]:
        """A spill of some runs, freed at the end."""
        spill = Spill(self.room)
        try:
            for run in runs:
                spill.add(run)
            yield spill
        finally:
            spill.free()


@dataclass
class _SpillSort:
    """One spill on its way to rows: its keys lie in ``whole``, 2^``shift`` to a bucket."""

    sorter: Sorter
    spill: Spill
    whole: KeyRange
    shift: int
    ordering: Ordering

    def __post_init__(self) -> None:
        self._buffers = KeyBuffers(self.sorter.plan.group_edges)

    def rows(self, buckets: int) -> Iterator[SortedRows]:
        """Yield all keys as rows: groups of buckets that fit side by side, the others one by one."""
        plan = self.sorter.plan
        groups = group_buckets(self.spill.histogram(buckets), plan.group_edges, single=self.spill.wide)
        for fits, part in groupby(groups, key=lambda group: group.edges <= plan.held_edges):
            if fits:
                yield from weighed_map(self.sorter.pool, self._sorted, part, plan.weight, plan.held_edges)
            else:
                self._buffers.clear()
                for group in part:
                    yield from self._split(group)

    def _span(self, group: BucketGroup) -> KeyRange:
        """The keys of a group; those of a wide spill count their sources from the bucket's first vertex."""
        low = self.whole.low + self._start(group.first)
        high = min(self.whole.high, self.whole.low + self._start(group.last) - 1)
        if not self.spill.wide:
            return KeyRange(low, high, self.whole.base)
        return KeyRange(0, high - low, low >> self.ordering.target_bits)

    def _start(self, bucket: int) -> int:
        """Where the keys of a bucket begin, from those of the first on."""
        bits = self.spill.octave_bits
        return (bucket if bits is None else octave_start(bucket, bits)) << self.shift

    def _sorted(self, group: BucketGroup) -> SortedRows:
        """Gather and sort one group."""
        (part,) = self.spill.parts(group.first, group.last, group.edges)
        span = self._span(group)
        with self._buffers.pair(group.edges) as (keys, spare):
            weights = self.spill.gather(part, group.first, self.ordering.working, keys)[1]
            return self._made(*sort_group(keys, weights, span, self.ordering, spare), span)

    def _made(self, keys: Keys, weights: NDArray[Any], span: KeyRange) -> SortedRows:
        """Rows of sorted keys, which keep nothing of them."""
        return make_rows(keys, weights, span.base, self.ordering)

    def _split(self, group: BucketGroup) -> Iterator[SortedRows]:
        """Sort a group that does not fit: spill it once more, by finer ranges of its keys."""
        parts = self.spill.parts(group.first, group.last, self.sorter.plan.group_edges)
        span = self._span(group).clipped(self.ordering.target_bits, self.ordering.vertices)
        if span.low == span.high:
            yield from self._same_key(parts, group, span)
            return
        with self.sorter.spilled(self._packed(partial(self._key_run, group=group, span=span), parts)) as finer:
            again = replace(self, spill=finer, whole=span, shift=self.sorter.key_shift(span))
            yield from again.rows(self.sorter.buckets)

    def _packed(self, pack: Callable[[Part], KeyRun], parts: list[Part]) -> Iterator[KeyRun]:
        return ordered_map(self.sorter.pool, pack, parts, self.sorter.plan.workers + 1)

    def _key_run(self, part: Part, group: BucketGroup, span: KeyRange) -> KeyRun:
        keys, weights = self.spill.gather(part, group.first, self.ordering.working)
        moved = None if self.ordering.working is None else weights
        return pack_keys(keys, moved, span.low, self.sorter.key_shift(span), self.sorter.buckets)

    def _weight_run(self, part: Part, group: BucketGroup) -> KeyRun:
        """The weights of one pair as keys."""
        weights = self.spill.gather(part, group.first, self.ordering.working)[1]
        return pack_keys(to_ordered(weights), None, 0, self.sorter.key_shift(_WEIGHTS), self.sorter.buckets)

    def _same_key(self, parts: list[Part], group: BucketGroup, pair: KeyRange) -> Iterator[SortedRows]:
        """Parallel edges of one pair, too many to sort at once."""
        ordering = self.ordering
        if ordering.rule is not None:
            yield self._joined(parts, group, pair, ordering.rule)
        elif ordering.working is None or not ordering.ordered:
            for part in parts:
                kind = ordering.records
                records = np.empty(0) if kind is None else self.spill.gather(part, group.first, kind)[1]
                yield self._made(np.full(part.edges, pair.low, np.uint64), records, pair)
        elif ordering.records is not None:
            raise InputError(
                f"{group.edges:,} edges lead from one vertex to another, more than are sorted with their columns in "
                "--host-memory; give more, or leave out --edge-properties or --weights"
            )
        else:
            bare = replace(ordering, weight_dtype=None, vertices=1 << 63, wide=False)
            with self.sorter.spilled(self._packed(partial(self._weight_run, group=group), parts)) as spill:
                weights = _WeightSort(
                    self.sorter, spill, _WEIGHTS, self.sorter.key_shift(_WEIGHTS), bare, pair, ordering
                )
                yield from weights.rows(self.sorter.buckets)

    def _joined(self, parts: list[Part], group: BucketGroup, pair: KeyRange, rule: int) -> SortedRows:
        working = self.ordering.working
        left = np.empty(0, working or np.uint32)
        for part in parts if working is not None else []:
            left = np.concatenate([left, self.spill.gather(part, group.first, working)[1]])
            same = np.full(len(left), pair.low, np.uint64)
            if self.ordering.records is not None:
                left = joined_records(same, taken(left, by_weight(left, rule)))[1]
            else:
                radix.join_ties(same, left, rule)
            left = left[:1].copy()
        return self._made(np.array([pair.low], np.uint64), left, pair)


_WEIGHTS = KeyRange(0, (1 << 64) - 1)
"""The keys that weights become."""


@dataclass
class _WeightSort(_SpillSort):
    """A spill whose keys are the weights of one ``pair`` of vertices; ``final`` says what its rows look like."""

    pair: KeyRange
    final: Ordering

    def _made(self, keys: Keys, weights: NDArray[Any], span: KeyRange) -> SortedRows:
        working = self.final.working
        assert working is not None
        same = np.full(len(keys), self.pair.low, np.uint64)
        return make_rows(same, from_ordered(keys, working), self.pair.base, self.final)


def sort_group(
    keys: Keys, weights: NDArray[Any], span: KeyRange, ordering: Ordering, spare: Keys | None = None
) -> tuple[Keys, NDArray[Any]]:
    """Sort one group's keys and weights, in the arrays given; join or order parallel edges."""
    differ = (span.low ^ span.high).bit_length()
    low_bits = min(differ, max(1, (ordering.vertices - 1).bit_length()))
    parts = radix.digits(0, low_bits)
    if differ > ordering.target_bits:
        parts += radix.digits(ordering.target_bits, differ)
    if ordering.records is not None:
        order = by_weight(weights, ordering.rule)
        keys[:] = keys[order]
        keys, order = radix.sort_keys(keys, order, parts, spare)
        records = taken(weights, order)
        return (keys, records) if ordering.rule is None else joined_records(keys, records)
    keys, moved = radix.sort_keys(keys, bits(weights), parts, spare)
    weights = moved.view(weights.dtype)
    if ordering.rule is not None:
        kept = radix.join_ties(keys, weights, ordering.rule)
        return keys[:kept], weights[:kept]
    if len(weights):
        radix.sort_ties(keys, weights)
    return keys, weights


def make_rows(keys: Keys, weights: NDArray[Any], base: int, ordering: Ordering) -> SortedRows:
    """Turn sorted keys, which may change, into rows in the dtypes of the graph, which share no memory with them."""
    move = ordering.target_bits
    neighbors = np.empty(len(keys), ordering.vertex_dtype)
    sources = np.empty(len(keys) if ordering.reverse else 0, ordering.vertex_dtype)
    if ordering.ids is None:
        first = int(keys[0]) >> move
        degrees = np.zeros((int(keys[-1]) >> move) - first + 1, np.uint32)
        radix.split_keys(keys, move, neighbors, degrees)
        radix.split_sources(keys[: len(sources)], move, base, sources)
        first += base
    else:
        first, degrees = ordering.ids.rows(keys, move, base, neighbors, sources)
    final, columns = ordering.weight_dtype, ordering.columns
    values = weights if columns is None or final is None else weights[WEIGHT]
    narrowed = None if final is None else values.astype(final, copy=False)
    reverse = EdgeBatch(neighbors, sources, weights if columns else narrowed) if ordering.reverse else None
    return SortedRows(first, degrees, neighbors, narrowed, reverse, columns.of(weights) if columns else ())


def by_weight(records: NDArray[Any], rule: int | None) -> NDArray[np.uint32]:
    """Places of records, those first that a rule for parallel edges keeps: of the least weight, or of the greatest.

    Without a rule by weight; else, and without weights, in the order of the input.
    """
    if rule == radix.FIRST or WEIGHT not in (records.dtype.names or ()):
        return np.arange(len(records), dtype=np.uint32)
    values = -records[WEIGHT] if rule == radix.MAX else records[WEIGHT]
    return np.argsort(values, kind="stable").astype(np.uint32)


def joined_records(keys: Keys, records: NDArray[Any]) -> tuple[Keys, NDArray[Any]]:
    """The first of equal keys, and its record."""
    first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return keys[first], taken(records, first.nonzero()[0])
