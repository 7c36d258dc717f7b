"""Owns the walk from spilled keys to sorted rows, whatever the size of a range.

Groups of buckets that fit are gathered and sorted side by side in threads and come out in order.
A range that does not fit (a hub, a star) is spilled once more, by finer ranges of keys, until its
parts fit; the last resort is a single key (parallel edges without end), told apart by weight.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.convert import sort
from penstock.storage.convert.pack import NARROW_BITS, WIDE_BITS
from penstock.storage.convert.partition import Group, SortPlan, group_buckets
from penstock.storage.convert.room import Room, Scratch
from penstock.storage.convert.spill import Keys, Part, Run, Spill, pack_keys
from penstock.storage.convert.weights import bits, working_dtype
from penstock.storage.edges import EdgeBatch
from penstock.storage.ingest.ordered import ordered_map


@dataclass(frozen=True, slots=True)
class Rows:
    """Sorted edges of consecutive rows: ``degrees`` (uint32) from row ``first`` on, counting these
    edges only (the first and last row may have more elsewhere); ``reverse`` is the same edges with
    their ends exchanged, if asked for."""

    first: int
    degrees: NDArray[np.uint32]
    neighbors: NDArray[Any]
    weights: NDArray[Any] | None
    reverse: EdgeBatch | None = None


@dataclass(frozen=True, slots=True)
class Span:
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
    room: Room
    scratch: Scratch
    buckets: int

    def rows(self, spill: Spill, ordering: Ordering) -> Iterator[Rows]:
        """Yield all of a spill's edges as rows, ascending."""
        shift = spill.shift
        counts = spill.histogram(-(-ordering.vertices >> shift) if ordering.vertices else 0)

        def span(group: Group) -> Span:
            first = group.first << shift
            last = min(group.last << shift, ordering.vertices) - 1
            base = first if ordering.wide else 0
            low = (first - base) << ordering.target_bits
            return Span(low, ((last - base) << ordering.target_bits) + ordering.vertices - 1, base)

        def finish(keys: Keys, weights: NDArray[Any], span: Span) -> Rows:
            return make_rows(keys, weights, span.base, ordering)

        work = _Work(span, finish, ordering)
        yield from self._sorted(spill, counts, work)

    def _sorted(self, spill: Spill, counts: NDArray[np.int64], work: "_Work") -> Iterator[Rows]:
        groups = group_buckets(counts, self.plan.group_edges, single=spill.wide)

        def sorted_group(group: Group) -> Rows:
            part = spill.parts(group.first, group.last, group.edges)[0]
            keys, weights = spill.gather(part, group.first, work.ordering.working)
            span = work.span(group)
            return work.finish(*sort_group(keys, weights, span, work.ordering), span)

        for fits, part in groupby(groups, key=self._fits):
            if fits:
                yield from ordered_map(self.pool, sorted_group, part, fits)
            else:
                for group in part:
                    yield from self._split(spill, group, work)

    def _fits(self, group: Group) -> int:
        """How many groups of this size may be sorted at a time; 0: not even one."""
        if group.edges <= self.plan.group_edges:
            return self.plan.workers + 1
        return 1 if group.edges <= self.plan.alone_edges else 0

    def _split(self, spill: Spill, group: Group, work: "_Work") -> Iterator[Rows]:
        """Spill a range that does not fit once more, by finer ranges of its keys."""
        whole = work.span(group)
        if whole.low == whole.high:
            yield from self._same_key(spill, group, work)
            return
        spread = (whole.high - whole.low).bit_length()
        shift = max(0, spread - (self.buckets.bit_length() - 1))
        child = Spill(self.room, self.scratch)

        def pack(part: Part) -> Run:
            keys, weights = spill.gather(part, group.first, work.ordering.working)
            return pack_keys(
                keys,
                None if work.ordering.working is None else weights,
                whole.low,
                shift,
                self.buckets,
            )

        def span(part: Group) -> Span:
            low = whole.low + (part.first << shift)
            return Span(low, min(whole.high, whole.low + (part.last << shift) - 1), whole.base)

        parts = spill.parts(group.first, group.last, self.plan.group_edges)
        try:
            for run in ordered_map(self.pool, pack, parts, self.plan.workers + 1):
                child.add(run)
            counts = child.histogram(self.buckets)
            yield from self._sorted(child, counts, replace(work, span=span))
        finally:
            child.free()

    def _same_key(self, spill: Spill, group: Group, work: "_Work") -> Iterator[Rows]:
        """Parallel edges of one pair, too many to sort at once."""
        key = work.span(group)
        ordering = work.ordering
        parts = spill.parts(group.first, group.last, self.plan.group_edges)
        if ordering.rule is not None:
            yield self._joined(spill, parts, group, work, ordering.rule)
        elif ordering.working is None:
            for part in parts:
                edges = sum(end - start for _, start, end in part)
                keys = np.full(edges, key.low, np.uint64)
                yield work.finish(keys, np.empty(0, np.uint32), key)
        else:
            yield from self._by_weight(spill, group, work)

    def _joined(self, spill: Spill, parts: list[Part], group: Group, work: "_Work", rule: int) -> Rows:
        ordering = work.ordering
        key = work.span(group)
        left = np.empty(0, ordering.working or np.uint32)
        for part in parts if ordering.working is not None else []:
            left = np.concatenate([left, spill.gather(part, group.first, ordering.working)[1]])
            sort.join_ties(np.full(len(left), key.low, np.uint64), left, rule)
            left = left[:1].copy()
        return work.finish(np.array([key.low], np.uint64), left, key)

    def _by_weight(self, spill: Spill, group: Group, work: "_Work") -> Iterator[Rows]:
        """Sort the weights of one pair as keys of their own."""
        key = work.span(group)
        ordering = work.ordering
        working = ordering.working
        assert working is not None
        shift = 64 - (self.buckets.bit_length() - 1)
        child = Spill(self.room, self.scratch)

        def pack(part: Part) -> Run:
            weights = spill.gather(part, group.first, working)[1]
            return pack_keys(to_ordered(weights), None, 0, shift, self.buckets)

        def span(part: Group) -> Span:
            return Span(part.first << shift, (part.last << shift) - 1)

        def finish(keys: Keys, _: NDArray[Any], __: Span) -> Rows:
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
    """What a group is: its keys, and what becomes of them once sorted."""

    span: Callable[[Group], Span]
    finish: Callable[[Keys, NDArray[Any], Span], Rows]
    ordering: Ordering


def sort_group(keys: Keys, weights: NDArray[Any], span: Span, ordering: Ordering) -> tuple[Keys, NDArray[Any]]:
    """Sort one group's keys and weights; join or order parallel edges."""
    differ = (span.low ^ span.high).bit_length()
    low_bits = min(differ, max(1, (ordering.vertices - 1).bit_length()))
    parts = sort.digits(0, low_bits)
    if differ > ordering.target_bits:
        parts += sort.digits(ordering.target_bits, differ)
    keys, moved = sort.sort_keys(keys, bits(weights), parts)
    weights = moved.view(weights.dtype)
    if ordering.rule is not None:
        kept = sort.join_ties(keys, weights, ordering.rule)
        return keys[:kept], weights[:kept]
    if len(weights):
        sort.sort_ties(keys, weights)
    return keys, weights


def make_rows(keys: Keys, weights: NDArray[Any], base: int, ordering: Ordering) -> Rows:
    """Turn sorted keys into rows in the dtypes of the graph."""
    move = ordering.target_bits
    first, last = int(keys[0]) >> move, int(keys[-1]) >> move
    degrees = np.zeros(last - first + 1, np.uint32)
    neighbors = np.empty(len(keys), ordering.vertex_dtype)
    sort.split_keys(keys, move, neighbors, degrees)
    final = ordering.weight_dtype
    narrowed = None if final is None else weights.astype(final, copy=False)
    reverse = None
    if ordering.reverse:
        sources = np.empty_like(neighbors)
        sort.split_sources(keys, move, base, sources)
        reverse = EdgeBatch(neighbors, sources, narrowed)
    return Rows(base + first, degrees, neighbors, narrowed, reverse)


_SIGN = np.uint64(1 << 63)


def to_ordered(weights: NDArray[Any]) -> Keys:
    """Weights as integers that sort as they do."""
    if weights.dtype.kind == "u":
        return weights.astype(np.uint64)
    raw = weights.astype(np.float64).view(np.uint64)
    return np.where(raw & _SIGN, ~raw, raw | _SIGN)


def from_ordered(keys: Keys, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The weights again."""
    if dtype.kind == "u":
        return keys.astype(dtype)
    raw = np.where(keys & _SIGN, keys & ~_SIGN, ~keys)
    return raw.view(np.float64).astype(dtype)
