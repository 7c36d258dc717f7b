"""Owns how ids become vertices 0 to n-1: as they occur, side by side, listed, or named; in a bitmap: input_ids.py.

Each mapping scans a batch in any thread, records what it found in the order of the input, and in the end assigns
vertices to all ids. With two sides (a bipartite graph) the targets' ids are a space of their own, shifted behind the
sources'. Refuses to log or to read; rename.py does.

Ids that are numbers are collected as sorted distinct arrays that are merged pair by pair, as in merge sort. A lookup
goes through a *guide*, where each of the ids' leading bit patterns begins, and ends with a binary search in what little
is left (nothing, where ids are dense). Eight bytes an id, and at most eight of guide; refuses more than its memory.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.convert.renumber.input_ids import AssignedIds, Unlisted
from penstock.storage.convert.renumber.name_store import NameStore
from penstock.storage.convert.renumber.name_table import NameRuns, NameTable, merged
from penstock.storage.convert.sort.spill_room import ArrayStore
from penstock.storage.convert.sort.workspace import Workspace
from penstock.storage.format.schema import vertex_dtype
from penstock.storage.ingest.core.edges import EdgeBatch

Ids = NDArray[np.uint64]
MERGE_BYTES = 24


def distinct(*parts: NDArray[Any] | None) -> Ids:
    """The ids of some arrays (None: of none), ascending, each once."""
    ids = np.concatenate([part for part in parts if part is not None])
    ids.sort()
    keep = np.ones(len(ids), bool)
    np.not_equal(ids[1:], ids[:-1], out=keep[1:])
    return ids[keep].astype(np.uint64)


class IdSet:
    """All ids that occur. ``limit_bytes`` bounds what collecting and merging them may hold; ``option`` wants them."""

    def __init__(self, limit_bytes: int, option: str = "--renumber") -> None:
        self._limit, self._option = limit_bytes, option
        self._levels: list[Ids] = []
        self._held = 0

    def add(self, ids: Ids) -> None:
        """Add ascending distinct ids.

        Raises:
            InputError: there are more than the memory can hold.
        """
        if len(ids) == 0:
            return
        self._levels.append(ids)
        self._held += len(ids)
        if self._held * MERGE_BYTES > self._limit:
            self.merged()
            self._check()
        while len(self._levels) > 1 and 2 * len(self._levels[-1]) > len(self._levels[-2]):
            self._merge()

    def merged(self) -> Ids:
        """All ids, ascending, each once."""
        while len(self._levels) > 1:
            self._merge()
        return self._levels[0] if self._levels else np.empty(0, np.uint64)

    def _merge(self) -> None:
        small, large = self._levels.pop(), self._levels.pop()
        merged = np.empty(len(small) + len(large), np.uint64)
        count = merge_distinct(small, large, merged)
        if count < len(merged):
            merged = merged[:count].copy()
        self._held += count - len(small) - len(large)
        self._levels.append(merged)

    def _check(self) -> None:
        needed = self._held * MERGE_BYTES
        if needed > self._limit:
            raise InputError(
                f"{self._option}: the map of {self._held} different ids and more needs at least "
                f"{format_bytes(needed)} while it is made, and may have "
                f"{format_bytes(self._limit)}; raise --host-memory"
            )


@jit
def merge_distinct(a: Ids, b: Ids, merged: Ids) -> int:
    """Merge two ascending arrays of distinct ids; return how many distinct ones there are."""
    i = 0
    j = 0
    count = 0
    while i < len(a) and j < len(b):
        left = a[i]
        right = b[j]
        merged[count] = min(left, right)
        count += 1
        if left <= right:
            i += 1
        if right <= left:
            j += 1
    while i < len(a):
        merged[count] = a[i]
        count += 1
        i += 1
    while j < len(b):
        merged[count] = b[j]
        count += 1
        j += 1
    return count


class IdMap:
    """From ids to positions in the ascending array ``ids``."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.dtype = np.dtype(np.uint32 if len(ids) <= 1 << 32 else np.uint64)
        spread = int(ids[-1] - ids[0]).bit_length() if len(ids) else 0
        guide_bits = min(spread, len(ids).bit_length())
        self._shift = spread - guide_bits
        slots = np.empty((1 << guide_bits) + 1, self.dtype if len(ids) else np.uint32)
        fill_guide(ids, self._shift, slots)
        self._guide = slots

    def __call__(self, values: NDArray[Any]) -> NDArray[Any]:
        """Positions of ``values``, each of which must be one of ``ids``."""
        found = np.empty(len(values), self.dtype)
        if len(values):
            look_up(values, self.ids, self._guide, self._shift, found)
        return found

    def narrow_ids(self) -> NDArray[Any]:
        """The ids, as uint32 where that holds all."""
        return self.ids.astype(vertex_dtype(int(self.ids[-1]) + 1 if len(self.ids) else 0), copy=False)

    def first_other(self, values: NDArray[Any]) -> int:
        """Return where the first value is that is none of ``ids``, or -1."""
        if len(values) == 0 or len(self.ids) == 0:
            return 0 if len(values) else -1
        others = (values < self.ids[0]) | (values > self.ids[-1])
        if not others.any():
            others = self.ids[self(values)] != values
        return int(np.argmax(others)) if others.any() else -1


@jit
def fill_guide(ids: Ids, shift: int, guide: NDArray[Any]) -> None:
    """``guide[p]`` = the first position whose id has leading pattern p or more."""
    move = np.uint64(shift)
    at = 0
    for pattern in range(len(guide) - 1):
        while at < len(ids) and (ids[at] - ids[0]) >> move < np.uint64(pattern):
            at += 1
        guide[pattern] = at
    guide[len(guide) - 1] = len(ids)


@jit
def look_up(values: NDArray[Any], ids: Ids, guide: NDArray[Any], shift: int, found: NDArray[Any]) -> None:
    """Positions of values in ascending ids."""
    move = np.uint64(shift)
    base = ids[0]
    for i in range(len(values)):
        value = np.uint64(values[i])
        pattern = (value - base) >> move
        low = np.int64(guide[pattern])
        high = np.int64(guide[pattern + np.uint64(1)])
        while high - low > 1:
            middle = (low + high) >> 1
            if ids[middle] <= value:
                low = middle
            else:
                high = middle
        found[i] = low


class IdMapping(Protocol):
    """How ids become vertices."""

    def scan(self, batch: EdgeBatch) -> Any:
        """What a batch's ids are; any thread may ask."""
        ...

    def record(self, batch: EdgeBatch, found: Any) -> EdgeBatch:
        """Note what `scan` found, batch by batch in order; return the batch as it is to be logged. Raises Unlisted."""
        ...

    def assign(self) -> AssignedIds:
        """Assign a vertex to every id that was recorded."""
        ...


def _ascending(vertices: IdMap) -> AssignedIds:
    """Ids by their places in a table; those that are 0 to n-1 stay."""
    count = len(vertices.ids)
    if count == 0 or int(vertices.ids[-1]) == count - 1:
        return AssignedIds(count)
    return AssignedIds(count, vertices, vertices, vertices.narrow_ids())


class TableIds:
    """The ids that occur, ascending, are 0 to n-1; with ``sides`` those of targets come behind those of sources."""

    def __init__(self, space: Workspace, *, sides: bool) -> None:
        self._found = [IdSet(space.share.id_bytes // (1 + sides)) for _ in range(1 + sides)]

    def scan(self, batch: EdgeBatch) -> list[Ids]:
        """The distinct ids, ascending, of both ends or of each side."""
        if len(self._found) == 1:
            return [distinct(batch.sources, batch.targets, batch.lone)]
        return [distinct(batch.sources, batch.lone), distinct(batch.targets)]

    def record(self, batch: EdgeBatch, found: list[Ids]) -> EdgeBatch:
        """Note them. Raises as `IdSet.add`."""
        for known, ids in zip(self._found, found, strict=True):
            known.add(ids)
        return batch

    def assign(self) -> AssignedIds:
        """Map them."""
        left, *others = (known.merged() for known in self._found)
        before = IdMap(left)
        if not others:
            return _ascending(before)
        right = others[0]
        vertices, behind = len(left) + len(right), IdMap(right)
        shift = vertex_dtype(vertices).type(len(left))
        return AssignedIds(
            vertices,
            lambda ids: before(ids).astype(shift.dtype, copy=False),
            lambda ids: behind(ids) + shift,
            np.concatenate([left, right]),
            len(left),
        )


class ListedIds:
    """Exactly the listed vertices exist (`--vertices`): an edge with any other id is refused, and named.

    The list is sorted in memory, 8 bytes an id and at most 8 of guide. Ids that are exactly 0 to n-1 stay; others
    become 0 to n-1, ascending.
    """

    def __init__(self, space: Workspace, blocks: Iterator[NDArray[Any]]) -> None:
        found = IdSet(space.share.id_bytes, "--vertices")
        for ids in blocks:
            found.add(np.unique(ids).astype(np.uint64))
        self._map = IdMap(found.merged())

    def scan(self, batch: EdgeBatch) -> Unlisted | None:
        """The first edge of a batch that has an id which is not listed."""
        ends = [(batch.sources, "source"), (batch.targets, "target")]
        found = [(self._map.first_other(ids), role, ids) for ids, role in ends]
        bad = [(at, role, ids) for at, role, ids in found if at >= 0]
        if bad:
            at, role, ids = min(bad, key=lambda one: one[0])
            return Unlisted(str(ids[at]), role, at)
        at = -1 if batch.lone is None else self._map.first_other(batch.lone)
        return None if at < 0 or batch.lone is None else Unlisted(str(batch.lone[at]), "vertex", None)

    def record(self, batch: EdgeBatch, found: Unlisted | None) -> EdgeBatch:
        """Return the batch. Raises Unlisted."""
        if found is not None:
            raise found
        return batch

    def assign(self) -> AssignedIds:
        """Map them."""
        return _ascending(self._map)


class NamedIds:
    """Names in the order of their bytes are 0 to n-1; of two sides, the sources' come first."""

    def __init__(self, space: Workspace, *, sides: bool) -> None:
        self._share, self._sides = space.share, sides
        self._table = NameTable(space.share.id_bytes)
        self._listed = False
        self._store = ArrayStore(space.room)
        self._runs = NameRuns(self._store, space.pool, space.share.name_run_bytes)

    def scan(self, batch: EdgeBatch) -> None:
        """Find nothing: a batch brings its names."""

    def record(self, batch: EdgeBatch, found: None) -> EdgeBatch:
        """Note the names; the batch is logged in their numbers. Raises as `NameTable.numbers`."""
        assert batch.names is not None, "a batch of a named source has names"
        numbers, new = self._table.numbers(batch.names.keys)
        if self._listed and len(new):
            raise _unlisted(batch, new)
        self._runs.add(batch.names, new)
        return EdgeBatch(numbers[batch.sources], numbers[batch.targets], batch.weights)

    def close_list(self) -> None:
        """Take no other names from now on than were taken."""
        self._listed = True

    def assign(self) -> AssignedIds:
        """Bring the names in order."""
        ranks = np.empty(self._table.count, np.uint32)
        runs = self._runs.finish()
        del self._table
        original = NameStore(self._store, sides=self._sides, block_bytes=self._share.name_bytes)
        at = left = 0
        for names, numbers in merged(runs, self._share.name_bytes):
            ranks[numbers] = np.arange(at, at + len(names), dtype=np.uint32)
            left += int(np.count_nonzero(names.text[names.ends - names.lengths] == 1)) if self._sides else 0
            at += len(names)
            original.add(names)
        for run in runs:
            run.forget()
        return AssignedIds(at, ranks.__getitem__, ranks.__getitem__, original, left if self._sides else None)


def _unlisted(batch: EdgeBatch, new: NDArray[np.int64]) -> Unlisted:
    """The first edge of a batch with one of these names."""
    assert batch.names is not None, "a batch of a named source has names"
    ends = np.isin(batch.sources, new), np.isin(batch.targets, new)
    at = int(np.argmax(ends[0] | ends[1]))
    role, ids = ("source", batch.sources) if ends[0][at] else ("target", batch.targets)
    (name,) = batch.names.names.taken(np.array([ids[at]], np.int64)).strings()
    return Unlisted(repr(name), role, at)
