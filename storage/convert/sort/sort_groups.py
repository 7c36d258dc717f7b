"""Owns the walk from spilled keys to sorted rows, whatever the size of a range.

Groups of buckets that fit are gathered and sorted side by side in threads and come out in order.
A range that does not fit (a hub, a star) is spilled once more, by finer ranges of keys, until its
parts fit; the last resort is a single key (parallel edges without end), told apart by weight.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.parallel_map import ordered_map, weighed_map
from penstock.storage.convert.sort import radix
from penstock.storage.convert.sort.buffers import SortBuffers
from penstock.storage.convert.sort.groups import SortGroup, SortPlan, group_buckets
from penstock.storage.convert.sort.key_pack import NARROW_BITS, WIDE_BITS
from penstock.storage.convert.sort.memory_quota import MemoryQuota, Scratch
from penstock.storage.convert.sort.run import KeyRun, Keys, pack_keys
from penstock.storage.convert.sort.spill import Part, Spill
from penstock.storage.convert.sort.weights import bits, from_ordered, to_ordered, working_dtype
from penstock.storage.format.edges import EdgeBatch

Item = TypeVar("Item")


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


@dataclass(frozen=True, slots=True)
class RowSpan:
    """Keys [low, high] of one group; sources are counted from vertex ``base``."""

    low: int
    high: int
    base: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """What sorted rows look like: vertex count and dtype, weights, the rule for parallel edges
    (None keeps them), and whether the exchanged edges are wanted too."""

    vertices: int
    vertex_dtype: np.dtype[Any]
    weight_dtype: np.dtype[Any] | None
    rule: int | None
    reverse: bool = False
    wide: bool = False

    @property
    def target_bits(self) -> int:
        """Bits of a key that hold the target."""
        return WIDE_BITS if self.wide else NARROW_BITS

    @property
    def working(self) -> np.dtype[Any] | None:
        """The dtype in which weights are sorted."""
        return None if self.weight_dtype is None else working_dtype(self.weight_dtype)

    @property
    def edge_bytes(self) -> int:
        """The most memory that one edge takes while its group is sorted."""
        weight = 0 if self.working is None else 2 * self.working.itemsize + 8
        reverse = self.vertex_dtype.itemsize if self.reverse else 0
        return 16 + 2 * self.vertex_dtype.itemsize + weight + reverse


@dataclass(frozen=True, slots=True)
class Sorter:
    """The means of sorting: threads, how much at a time, and room for ranges that do not fit."""

    pool: Executor
    plan: SortPlan
    room: MemoryQuota
    scratch: Scratch
    buckets: int

    def rows(self, spill: Spill, ordering: Ordering) -> Iterator[SortedRows]:
        """Yield all of a spill's edges as rows, ascending."""
        shift = spill.shift
        counts = spill.histogram(-(-(spill.largest + 1) >> shift))

        def span(group: SortGroup) -> RowSpan:
            first = group.first << shift
            last = min(group.last << shift, ordering.vertices) - 1
            base = first if ordering.wide else 0
            low = (first - base) << ordering.target_bits
            return RowSpan(low, ((last - base) << ordering.target_bits) + ordering.vertices - 1, base)

        yield from self._sorted(spill, counts, _Work(span, _finish(ordering), ordering))

    def long_row(
        self,
        vertex: int,
        pieces: Iterable[Item],
        load: Callable[[Item], tuple[NDArray[Any], NDArray[Any] | None]],
        ordering: Ordering,
    ) -> Iterator[SortedRows]:
        """Yield one vertex's row, whose neighbors and weights (or None) are loaded piece by piece in threads."""
        base = vertex if ordering.wide else 0
        low = (vertex - base) << ordering.target_bits
        whole = RowSpan(low, low + ordering.vertices - 1, base)

        def pack(piece: Item) -> KeyRun:
            neighbors, weights = load(piece)
            moved = None if weights is None else weights.astype(ordering.working)
            return pack_keys(neighbors | np.uint64(low), moved, low, self._shift(whole), self.buckets)

        runs = ordered_map(self.pool, pack, pieces, self.plan.workers + 1)
        yield from self._by_key(runs, whole, _Work(lambda _: whole, _finish(ordering), ordering))

    def _sorted(self, spill: Spill, counts: NDArray[np.int64], work: "_Work") -> Iterator[SortedRows]:
        groups = group_buckets(counts, self.plan.group_edges, single=spill.wide)
        buffers = SortBuffers(self.plan.group_edges)

        def sorted_group(group: SortGroup) -> SortedRows:
            part = spill.parts(group.first, group.last, group.edges)[0]
            span = work.span(group)
            with buffers.pair(group.edges) as (keys, spare):
                weights = spill.gather(part, group.first, work.ordering.working, keys)[1]
                return work.finish(*sort_group(keys, weights, span, work.ordering, spare), span)

        for fits, part in groupby(groups, key=lambda group: group.edges <= self.plan.held_edges):
            if fits:
                yield from weighed_map(self.pool, sorted_group, part, self.plan.weight, self.plan.held_edges)
            else:
                buffers.clear()
                for group in part:
                    yield from self._split(spill, group, work)

    def _split(self, spill: Spill, group: SortGroup, work: "_Work") -> Iterator[SortedRows]:
        """Spill a range that does not fit once more, by finer ranges of its keys."""
        whole = _tight(work.span(group), work.ordering)
        if whole.low == whole.high:
            yield from self._same_key(spill, group, work)
            return

        def pack(part: Part) -> KeyRun:
            keys, weights = spill.gather(part, group.first, work.ordering.working)
            moved = None if work.ordering.working is None else weights
            return pack_keys(keys, moved, whole.low, self._shift(whole), self.buckets)

        parts = spill.parts(group.first, group.last, self.plan.group_edges)
        yield from self._by_key(ordered_map(self.pool, pack, parts, self.plan.workers + 1), whole, work)

    def _shift(self, whole: RowSpan) -> int:
        """Bits of a range of keys when all are divided among the buckets."""
        return max(0, (whole.high - whole.low).bit_length() - (self.buckets.bit_length() - 1))

    def _by_key(self, runs: Iterable[KeyRun], whole: RowSpan, work: "_Work") -> Iterator[SortedRows]:
        """Spill runs of keys that lie in ``whole``, by ranges of keys, and sort those."""
        shift = self._shift(whole)
        child = Spill(self.room, self.scratch)

        def span(part: SortGroup) -> RowSpan:
            low = whole.low + (part.first << shift)
            return RowSpan(low, min(whole.high, whole.low + (part.last << shift) - 1), whole.base)

        try:
            for run in runs:
                child.add(run)
            yield from self._sorted(child, child.histogram(self.buckets), replace(work, span=span))
        finally:
            child.free()

    def _same_key(self, spill: Spill, group: SortGroup, work: "_Work") -> Iterator[SortedRows]:
        """Parallel edges of one pair, too many to sort at once."""
        key = work.span(group)
        ordering = work.ordering
        parts = spill.parts(group.first, group.last, self.plan.group_edges)
        if ordering.rule is not None:
            yield self._joined(spill, parts, group, work, ordering.rule)
        elif ordering.working is None:
            for part in parts:
                keys = np.full(part.edges, key.low, np.uint64)
                yield work.finish(keys, np.empty(0, np.uint32), key)
        else:
            yield from self._by_weight(spill, group, work)

    def _joined(self, spill: Spill, parts: list[Part], group: SortGroup, work: "_Work", rule: int) -> SortedRows:
        ordering = work.ordering
        key = work.span(group)
        left = np.empty(0, ordering.working or np.uint32)
        for part in parts if ordering.working is not None else []:
            left = np.concatenate([left, spill.gather(part, group.first, ordering.working)[1]])
            radix.join_ties(np.full(len(left), key.low, np.uint64), left, rule)
            left = left[:1].copy()
        return work.finish(np.array([key.low], np.uint64), left, key)

    def _by_weight(self, spill: Spill, group: SortGroup, work: "_Work") -> Iterator[SortedRows]:
        """Sort the weights of one pair as keys of their own."""
        key = work.span(group)
        ordering = work.ordering
        working = ordering.working
        assert working is not None
        shift = 64 - (self.buckets.bit_length() - 1)
        child = Spill(self.room, self.scratch)

        def pack(part: Part) -> KeyRun:
            weights = spill.gather(part, group.first, working)[1]
            return pack_keys(to_ordered(weights), None, 0, shift, self.buckets)

        def span(part: SortGroup) -> RowSpan:
            return RowSpan(part.first << shift, (part.last << shift) - 1)

        def finish(keys: Keys, _: NDArray[Any], __: RowSpan) -> SortedRows:
            same = np.full(len(keys), key.low, np.uint64)
            return work.finish(same, from_ordered(keys, working), key)

        parts = spill.parts(group.first, group.last, self.plan.group_edges)
        bare = replace(ordering, weight_dtype=None, vertices=1 << 63, wide=False)
        try:
            for run in ordered_map(self.pool, pack, parts, self.plan.workers + 1):
                child.add(run)
            counts = child.histogram(self.buckets)
            yield from self._sorted(child, counts, _Work(span, finish, bare))
        finally:
            child.free()


@dataclass(frozen=True, slots=True)
class _Work:
    """What a group is: its keys, and what becomes of them once sorted (rows that keep nothing of the keys)."""

    span: Callable[[SortGroup], RowSpan]
    finish: Callable[[Keys, NDArray[Any], RowSpan], SortedRows]
    ordering: Ordering


def _finish(ordering: Ordering) -> Callable[[Keys, NDArray[Any], RowSpan], SortedRows]:
    return lambda keys, weights, span: make_rows(keys, weights, span.base, ordering)


def _tight(span: RowSpan, ordering: Ordering) -> RowSpan:
    """The span without targets that are no vertices, as far as it has but one source."""
    source = span.high >> ordering.target_bits
    if span.low >> ordering.target_bits != source:
        return span
    return replace(span, high=min(span.high, (source << ordering.target_bits) + ordering.vertices - 1))


def sort_group(
    keys: Keys, weights: NDArray[Any], span: RowSpan, ordering: Ordering, spare: Keys | None = None
) -> tuple[Keys, NDArray[Any]]:
    """Sort one group's keys and weights, in the arrays given; join or order parallel edges."""
    differ = (span.low ^ span.high).bit_length()
    low_bits = min(differ, max(1, (ordering.vertices - 1).bit_length()))
    parts = radix.digits(0, low_bits)
    if differ > ordering.target_bits:
        parts += radix.digits(ordering.target_bits, differ)
    keys, moved = radix.sort_keys(keys, bits(weights), parts, spare)
    weights = moved.view(weights.dtype)
    if ordering.rule is not None:
        kept = radix.join_ties(keys, weights, ordering.rule)
        return keys[:kept], weights[:kept]
    if len(weights):
        radix.sort_ties(keys, weights)
    return keys, weights


def make_rows(keys: Keys, weights: NDArray[Any], base: int, ordering: Ordering) -> SortedRows:
    """Turn sorted keys into rows in the dtypes of the graph, which share no memory with the keys."""
    move = ordering.target_bits
    first, last = int(keys[0]) >> move, int(keys[-1]) >> move
    degrees = np.zeros(last - first + 1, np.uint32)
    neighbors = np.empty(len(keys), ordering.vertex_dtype)
    radix.split_keys(keys, move, neighbors, degrees)
    final = ordering.weight_dtype
    narrowed = None if final is None else weights.astype(final, copy=False)
    reverse = None
    if ordering.reverse:
        sources = np.empty_like(neighbors)
        radix.split_sources(keys, move, base, sources)
        reverse = EdgeBatch(neighbors, sources, narrowed)
    return SortedRows(base + first, degrees, neighbors, narrowed, reverse)
