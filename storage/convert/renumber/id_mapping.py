"""Owns how ids become vertices 0 to n-1: as they occur in a bitmap or a table, side by side, listed, or named.

Each mapping scans a batch in any thread, records what it found in the order of the input, and in the end assigns
vertices to all ids. With two sides (a bipartite graph) the targets' ids are a space of their own, shifted behind the
sources'. Refuses to log or to read; rename.py does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from penstock.storage.convert.renumber.id_sets import IdMap, Ids, IdSet, distinct
from penstock.storage.convert.renumber.input_ids import InputIds, Unlisted
from penstock.storage.convert.renumber.name_store import NameStore, Original
from penstock.storage.convert.renumber.name_table import NameRuns, NameTable, merged
from penstock.storage.convert.sort.memory_quota import ArrayStore
from penstock.storage.convert.sort.read import NewIds
from penstock.storage.convert.sort.workspace import Workspace
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.format.schema import vertex_dtype
from penstock.storage.ingest.formats.graph_file import GraphFileSource

NAME_RUN_SHARE = 32
"""One part in so many of the budget is a run of names: several are in memory while one is sorted."""


@dataclass(frozen=True, slots=True)
class AssignedIds:
    """What ids became: how many vertices there are, how logged ids of sources and of targets become theirs
    (None: they are), the original ids by vertex (None: the same), and of two sides how many sources."""

    vertices: int
    sources: NewIds | None = None
    targets: NewIds | None = None
    original: Original = None
    left: int | None = None


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


class SeenInLog:
    """Ids are vertices already, or those that occur in a bitmap are (`input_ids.py`)."""

    def __init__(self, space: Workspace, ids: InputIds) -> None:
        self._space, self._ids = space, ids

    def scan(self, batch: EdgeBatch) -> int:
        """The largest id."""
        self._ids.seen.see(batch, drop_loops=False)
        return max(int(batch.sources.max()), int(batch.targets.max())) if len(batch) else -1

    def record(self, batch: EdgeBatch, found: int) -> EdgeBatch:
        """Note it. Raises InputError for more ids than memory holds."""
        self._space.saw_id(found)
        self._ids.check()
        return batch

    def assign(self) -> AssignedIds:
        """Say which ids are vertices."""
        vertices, _, found = self._ids.numbering(-1)
        original, left = known_ids(self._space)
        return AssignedIds(vertices, found, found, found or original, left)


class CompactIds:
    """The ids that occur, ascending, are 0 to n-1."""

    def __init__(self, space: Workspace) -> None:
        self._found = IdSet(space.share.id_bytes)

    def scan(self, batch: EdgeBatch) -> Ids:
        """The distinct ids of both ends, ascending."""
        return distinct(batch.sources, batch.targets, batch.lone)

    def record(self, batch: EdgeBatch, found: Ids) -> EdgeBatch:
        """Note them. Raises as `IdSet.add`."""
        self._found.add(found)
        return batch

    def assign(self) -> AssignedIds:
        """Map them."""
        return _ascending(IdMap(self._found.merged()))


def _ascending(vertices: IdMap) -> AssignedIds:
    """Ids by their places in a table; those that are 0 to n-1 stay."""
    count = len(vertices.ids)
    if count == 0 or int(vertices.ids[-1]) == count - 1:
        return AssignedIds(count)
    return AssignedIds(count, vertices, vertices, vertices.narrow_ids())


class BipartiteIds:
    """Ids of sources are 0 to s-1, ids of targets s to n-1, each side ascending."""

    def __init__(self, space: Workspace) -> None:
        self._found = IdSet(space.share.id_bytes // 2), IdSet(space.share.id_bytes // 2)

    def scan(self, batch: EdgeBatch) -> tuple[Ids, Ids]:
        """The distinct ids of each side."""
        return distinct(batch.sources, batch.lone), distinct(batch.targets)

    def record(self, batch: EdgeBatch, found: tuple[Ids, Ids]) -> EdgeBatch:
        """Note them. Raises as `IdSet.add`."""
        for known, ids in zip(self._found, found, strict=True):
            known.add(ids)
        return batch

    def assign(self) -> AssignedIds:
        """Map them."""
        left, right = (known.merged() for known in self._found)
        vertices, before, behind = len(left) + len(right), IdMap(left), IdMap(right)
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
        self._memory, self._sides = space.options.host_memory, sides
        self._table = NameTable(space.share.id_bytes)
        self._listed = False
        self._store = ArrayStore(space.quota, space.scratch)
        self._runs = NameRuns(self._store, space.pool, self._memory // NAME_RUN_SHARE)

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
        original = NameStore(self._store, sides=self._sides, block_bytes=self._memory // 8)
        at = left = 0
        for names, numbers in merged(runs, self._memory // 8):
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


def known_ids(space: Workspace) -> tuple[Original, int | None]:
    """Original ids of the vertices, and of two sides how many sources; None and None for other inputs."""
    source = space.source
    if not isinstance(source, GraphFileSource):
        return None, None
    ids = source.original_ids()
    if not isinstance(ids, StringArray):
        return ids, source.left
    names = NameStore(ArrayStore(space.quota, space.scratch), sides=False, block_bytes=space.options.host_memory // 8)
    names.add(ids)
    return names, source.left
