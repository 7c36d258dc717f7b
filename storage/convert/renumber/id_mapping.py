"""Owns how ids become 0 to n-1, four ways: kept, renumbered, renumbered side by side, or named.

Each looks at a batch in any thread, takes what it saw in order, and in the end maps what was logged.
With two sides (a bipartite graph) the targets' ids are a space of their own, shifted behind the
sources'. Refuses to log or to read; rename.py does.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from penstock.storage.convert.renumber.id_sets import IdMap, Ids, IdSet, distinct
from penstock.storage.convert.renumber.name_table import KeptNames, NameRuns, NameTable, SpilledNames, merged
from penstock.storage.convert.sort.read import NewIds
from penstock.storage.convert.sort.workspace import Workspace
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.format.schema import vertex_dtype

NAME_RUN_SHARE = 32
"""One part in so many of the budget is a run of names: several are in memory while one is sorted."""


class NameStore:
    """The names of all vertices in the order of bytes, piece by piece; ``order`` numbers them anew."""

    def __init__(self, shelf: SpilledNames, sides: bool) -> None:
        self._shelf, self._sides = shelf, sides
        self._pieces: list[KeptNames] = []
        self.order: NDArray[Any] | None = None

    def add(self, names: StringArray) -> None:
        """Keep the next names."""
        self._pieces.append(self._shelf.keep(names, np.empty(0, np.uint32)))

    def pieces(self) -> Iterator[StringArray]:
        """Yield the names of the vertices from 0 on; with ``order`` the first ones are gathered from all pieces."""
        if self.order is None:
            for piece in self._pieces:
                yield self._names(piece)
            return
        falls = np.flatnonzero(self.order[1:] < self.order[:-1])
        yield from self._gathered(int(falls[-1]) + 1 if len(falls) else 0)

    def _gathered(self, ahead: int) -> Iterator[StringArray]:
        """Names of hubs (``order[:ahead]``, any order), then those of the others, which ascend."""
        assert self.order is not None
        hubs = np.sort(self.order[:ahead].astype(np.int64))
        parts, first = [], 0
        for piece in self._pieces:
            mine = hubs[(hubs >= first) & (hubs < first + piece.count)]
            parts.append(self._names(piece).taken(mine - first))
            first += piece.count
        yield _joined(parts).taken(np.searchsorted(hubs, self.order[:ahead]))
        first = 0
        for piece in self._pieces:
            stays = np.ones(piece.count, bool)
            stays[hubs[(hubs >= first) & (hubs < first + piece.count)] - first] = False
            yield self._names(piece).taken(np.flatnonzero(stays))
            first += piece.count

    def _names(self, piece: KeptNames) -> StringArray:
        lengths, _, text = _whole(piece)
        names = StringArray(text, np.cumsum(lengths.astype(np.int64) + 1))
        if not self._sides:
            return names
        keep = np.ones(len(text), bool)
        keep[names.ends - names.lengths] = False
        return StringArray(text[keep], names.ends - np.arange(1, len(names) + 1))


def _whole(piece: KeptNames) -> tuple[NDArray[Any], ...]:
    if piece.arrays is not None:
        text, lengths, numbers = piece.arrays
        return lengths, numbers, text
    lengths, text = np.empty(piece.count, np.uint16), np.empty(piece.text_bytes, np.uint8)
    assert piece.file is not None
    piece.file.read(piece.starts[1], lengths)
    piece.file.read(piece.starts[0], text)
    return lengths, np.empty(0, np.uint32), text


def _joined(parts: list[StringArray]) -> StringArray:
    bases = np.cumsum([0, *(len(names.text) for names in parts)])
    ends = [names.ends + base for names, base in zip(parts, bases, strict=False)]
    return StringArray(np.concatenate([names.text for names in parts]), np.concatenate(ends))


@dataclass(frozen=True, slots=True)
class Numbered:
    """What came of numbering: how many vertices, how logged ids of sources and of targets become theirs
    (None: they are), the original ids by vertex (None: the same), and of two sides how many sources."""

    vertices: int
    sources: NewIds | None = None
    targets: NewIds | None = None
    original: "NDArray[Any] | NameStore | None" = None
    left: int | None = None


class Unlisted(Exception):  # noqa: N818
    """An id that `--vertices` does not list: the id, its role, and which edge of its batch has it (None: none)."""

    def __init__(self, name: str, role: str, edge: int | None) -> None:
        super().__init__(name, role, edge)
        self.name, self.role, self.edge = name, role, edge


class Numbering(Protocol):
    """How ids become vertices."""

    def look(self, batch: EdgeBatch) -> Any:
        """What a batch's ids are; any thread may ask."""
        ...

    def take(self, batch: EdgeBatch, seen: Any) -> EdgeBatch:
        """Note it, in order; return the batch as it is to be logged. Raises Unlisted."""
        ...

    def finish(self) -> Numbered:
        """Number everything that was taken."""
        ...


class KeptIds:
    """Ids are vertices already."""

    def __init__(self, space: Workspace) -> None:
        self._space = space

    def look(self, batch: EdgeBatch) -> int:
        """The largest id."""
        ids = [ids for ids in (batch.sources, batch.targets, batch.lone) if ids is not None and len(ids)]
        return max((int(array.max()) for array in ids), default=-1)

    def take(self, batch: EdgeBatch, seen: int) -> EdgeBatch:
        """Note it."""
        self._space.saw_id(seen)
        return batch

    def finish(self) -> Numbered:
        """Say how many vertices there are."""
        return Numbered(self._space.known_vertices)


class Renumbered:
    """The ids that occur, ascending, are 0 to n-1."""

    def __init__(self, space: Workspace) -> None:
        self._found = IdSet(space.share.id_bytes)

    def look(self, batch: EdgeBatch) -> Ids:
        """The distinct ids of both ends, ascending."""
        return distinct(batch.sources, batch.targets, batch.lone)

    def take(self, batch: EdgeBatch, seen: Ids) -> EdgeBatch:
        """Note them. Raises as `IdSet.add`."""
        self._found.add(seen)
        return batch

    def finish(self) -> Numbered:
        """Map them."""
        ids = self._found.merged()
        names = IdMap(ids)
        return Numbered(len(ids), names, names, ids)


class TwoSides:
    """Ids of sources are 0 to s-1, ids of targets s to n-1, each side ascending."""

    def __init__(self, space: Workspace) -> None:
        self._found = IdSet(space.share.id_bytes // 2), IdSet(space.share.id_bytes // 2)

    def look(self, batch: EdgeBatch) -> tuple[Ids, Ids]:
        """The distinct ids of each side."""
        return distinct(batch.sources, batch.lone), distinct(batch.targets)

    def take(self, batch: EdgeBatch, seen: tuple[Ids, Ids]) -> EdgeBatch:
        """Note them. Raises as `IdSet.add`."""
        for found, ids in zip(self._found, seen, strict=True):
            found.add(ids)
        return batch

    def finish(self) -> Numbered:
        """Map them."""
        left, right = (found.merged() for found in self._found)
        vertices, before, behind = len(left) + len(right), IdMap(left), IdMap(right)
        shift = vertex_dtype(vertices).type(len(left))
        return Numbered(
            vertices,
            lambda ids: before(ids).astype(shift.dtype, copy=False),
            lambda ids: behind(ids) + shift,
            np.concatenate([left, right]),
            len(left),
        )


class Named:
    """Names in the order of their bytes are 0 to n-1; of two sides, the sources' come first."""

    def __init__(self, space: Workspace, *, sides: bool) -> None:
        self._memory, self._sides = space.options.host_memory, sides
        self._table = NameTable(space.share.id_bytes)
        self._listed = False
        self._shelf = SpilledNames(space.room, space.scratch)
        self._runs = NameRuns(self._shelf, space.pool, self._memory // NAME_RUN_SHARE)

    def look(self, batch: EdgeBatch) -> None:
        """See nothing: a batch brings its names."""

    def take(self, batch: EdgeBatch, seen: None) -> EdgeBatch:
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

    def finish(self) -> Numbered:
        """Bring the names in order."""
        count = self._table.count
        runs = self._runs.finish()
        del self._table
        ranks = np.empty(count, np.uint32)
        store = NameStore(self._shelf, self._sides)
        at = left = 0
        for names, numbers in merged(runs, self._memory // 8):
            ranks[numbers] = np.arange(at, at + len(names), dtype=np.uint32)
            left += int(np.count_nonzero(names.text[names.ends - names.lengths] == 1)) if self._sides else 0
            at += len(names)
            store.add(names)
        for run in runs:
            self._shelf.forget(run)
        new: Callable[[NDArray[Any]], NDArray[Any]] = lambda numbers: ranks[numbers]  # noqa: E731
        return Numbered(count, new, new, store, left if self._sides else None)


def _unlisted(batch: EdgeBatch, new: NDArray[np.int64]) -> Unlisted:
    """The first edge of a batch with one of these names."""
    assert batch.names is not None, "a batch of a named source has names"
    ends = np.isin(batch.sources, new), np.isin(batch.targets, new)
    at = int(np.argmax(ends[0] | ends[1]))
    role, ids = ("source", batch.sources) if ends[0][at] else ("target", batch.targets)
    (name,) = batch.names.names.taken(np.array([ids[at]], np.int64)).strings()
    return Unlisted(repr(name), role, at)


def numbering_for(space: Workspace) -> Numbering:
    """The numbering that the source and the options ask for."""
    if space.named:
        return Named(space, sides=space.options.bipartite)
    if space.options.bipartite:
        return TwoSides(space)
    return Renumbered(space) if space.options.renumber else KeptIds(space)
