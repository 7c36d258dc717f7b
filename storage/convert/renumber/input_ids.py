"""The ids of an input while it is read, and which of them become vertices: by default exactly those that occur.

They are noted in a bitmap beside the edges, which are packed, sorted or logged in the ids of the input; where some
below the largest do not occur, vertices are the ranks of those that do (`sort/seen_ids.py`). Where the first edges have
ids that a bitmap cannot hold, such as hashes, a log and a table take its place, as with ``--renumber``. Where later
ones do, the conversion must begin again (`convert.convert_opened`).
"""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain

import numpy as np
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError, brief
from penstock.storage.convert.renumber.name_store import NameStore, Original
from penstock.storage.convert.sort.run import MAX_VERTICES
from penstock.storage.convert.sort.seen_ids import OccurringIds, SeenIds
from penstock.storage.convert.sort.spill_filler import NewIds
from penstock.storage.convert.sort.spill_room import ArrayStore
from penstock.storage.convert.sort.workspace import Workspace
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.formats.graph_file import GraphFileSource
from penstock.storage.ingest.text.diagnose import bad_line
from penstock.storage.ingest.text.edge_list import TextSource

LEAST_BYTES, PER_INPUT_BYTE = 16 << 20, 12
"""A bitmap takes no more than this and so many bytes for each of the input, since a table takes less then."""


class Unlisted(Exception):  # noqa: N818
    """An id that `--vertices` does not list: the id, its role, and which edge of its batch has it (None: none)."""

    def __init__(self, name: str, role: str, edge: int | None) -> None:
        super().__init__(name, role, edge)
        self.name, self.role, self.edge = name, role, edge


class NeedsTable(InputError):  # noqa: N818
    """Ids of a batch behind the first that the bitmap does not hold, and a table (``renumber``) may."""


@dataclass(frozen=True, slots=True)
class AssignedIds:
    """What ids became: how many vertices there are, how logged ids of sources and of targets become theirs
    (None: they are), the original ids by vertex (None: the same), and of two sides how many sources."""

    vertices: int
    sources: NewIds | None = None
    targets: NewIds | None = None
    original: Original = None
    left: int | None = None


class InputIds:
    """The batches of a source, and the ids in them; ids 0 to ``named - 1`` are vertices whatever it says.

    Attributes
    ----------
    compacts : bool
        Whether only ids that occur, or that the source names, are vertices, and the bitmap says which.
    by_table : bool
        Whether a table says which ids are vertices.
    renames : bool
        Whether ids become vertices by a log.
    renumbered : bool
        Whether the ids that are vertices are not 0 to n-1; known when all batches have come.
    seen : SeenIds
        What `batches` and the steps of reading note.
    """

    def __init__(self, space: Workspace, named: int = 0) -> None:
        self._space, self._count = space, space.options.vertex_count
        self._named = max(named, self._count or 0)
        if self._count is not None and space.named:
            raise InputError(
                f"--vertices 0:{self._count} lists numbers, and {space.source.name} has ids that are strings; give a "
                "file with a name a line"
            )
        self.renames, self.compacts, self.by_table = space.renames, space.compacts, bool(space.options.renumber)
        self.renumbered = False
        self.seen = SeenIds(self._limit())
        self._first: EdgeBatch | None = None
        self._rest = space.source.batches()
        if self.compacts:
            self._look_ahead()

    def batches(self) -> Generator[EdgeBatch]:
        """Yield all batches, once. Raises InputError as the source, or for an id that ``--vertices`` does not list."""
        space = self._space
        with closing(self._rest):
            for batch in chain([] if self._first is None else [self._first], self._rest):
                self._first = None
                if self._count is not None:
                    self._check_listed(batch, space.read_edges)
                if batch.lone is not None:
                    space.saw_id(int(batch.lone.max()))
                    self.seen.name(batch.lone)
                space.read_edges += len(batch)
                yield batch

    def check(self) -> None:
        """Refuse more ids than the bitmap holds, unless the source may name all. Raises NeedsTable."""
        if self.compacts and self.seen.full and self._space.source.known_vertices is None:
            raise self._too_many()

    def numbering(self, largest: int) -> tuple[int, int | None, OccurringIds | None]:
        """When all batches have come, with ids up to ``largest``: how many vertices there are, and without an edge.

        None where the latter is unknown. Third, the ids that occur; None: 0 to n-1. Raises InputError.
        """
        self._space.saw_id(largest)
        named = max(self._space.source.known_vertices or 0, self._named)
        vertices, connected, ids = max(self._space.known_vertices, named), self.seen.with_edges, None
        if self.compacts and named < vertices:
            found = None if self.seen.full else self.seen.occurring(named)
            if found is None or self.seen.full:
                raise self._too_many()
            if isinstance(found, OccurringIds):
                vertices, ids, self.renumbered = found.count, found, True
        return vertices, None if connected is None else vertices - connected, ids

    def scan(self, batch: EdgeBatch) -> int:
        """Note the ids of a batch that is logged, as `id_mapping.IdMapping`; return the largest."""
        self.seen.see(batch, drop_loops=False)
        return max(int(batch.sources.max()), int(batch.targets.max())) if len(batch) else -1

    def record(self, batch: EdgeBatch, found: int) -> EdgeBatch:
        """Note the largest. Raises as `check`."""
        self._space.saw_id(found)
        self.check()
        return batch

    def assign(self) -> AssignedIds:
        """Say which ids are vertices."""
        vertices, _, found = self.numbering(-1)
        original, left = known_ids(self._space)
        return AssignedIds(vertices, found, found, found or original, left)

    def _look_ahead(self) -> None:
        """Read the first batch, and let a log and a table take the place of a bitmap that does not hold its ids."""
        self._first = next(self._rest, None)
        if self._first is not None:
            self.seen.see(self._first, drop_loops=self._space.options.drop_self_loops)
            if self._first.lone is not None:
                self.seen.name(self._first.lone)
        if self.seen.full and self._space.source.known_vertices is None:
            room = self._space.room
            room.reserve(min(room.free_bytes, self._space.share.seen_bytes))
            self.seen = SeenIds(0)
            self.compacts, self.renames, self.by_table, self.renumbered = False, True, True, True

    def _limit(self) -> int:
        """Bytes that the bitmap may take."""
        size = self._space.source.total_bytes
        share = self._space.share.seen_bytes // (1 if self.compacts else 2)
        return share if size is None else min(share, LEAST_BYTES + PER_INPUT_BYTE * size)

    def _check_listed(self, batch: EdgeBatch, begun: int) -> None:
        """Refuse a batch with an id from the number of listed vertices on; ``begun`` edges were before it."""
        for ids, role in ((batch.sources, "source"), (batch.targets, "target"), (batch.lone, "vertex")):
            if ids is not None and len(ids) and int(ids.max()) >= (self._count or 0):
                at = int(np.argmax(ids >= (self._count or 0)))
                raise refused(self._space, Unlisted(str(ids[at]), role, None if role == "vertex" else at), begun)

    def _too_many(self) -> NeedsTable:
        return NeedsTable(
            f"{self._space.source.name}: the bitmap of the ids that occur would take more than the "
            f"{format_bytes(self.seen.limit_bytes)} that it may, or one is {MAX_VERTICES} or more; --renumber numbers "
            "them by a table, --no-renumber makes every id up to the largest a vertex, and --host-memory allows more"
        )


def known_ids(space: Workspace) -> tuple[Original, int | None]:
    """Original ids of the vertices, and of two sides how many sources; None and None for other inputs."""
    source = space.source
    if not isinstance(source, GraphFileSource):
        return None, None
    ids = source.original_ids()
    if not isinstance(ids, StringArray):
        return ids, source.left
    names = NameStore(ArrayStore(space.room), sides=False, block_bytes=space.share.name_bytes)
    names.add(ids)
    return names, source.left


def refused(space: Workspace, other: Unlisted, begun: int) -> InputError:
    """What is wrong with an edge of a batch, and where it is as far as that can be found out.

    begun: how many edges were before the batch.
    """
    reason = (
        f"{other.role} {brief(str(other.name))} is not listed in {space.options.vertices_file}, and exactly the "
        "vertices listed there exist (--vertices); add it to the list, or leave the edge out"
    )
    if other.edge is None:
        return InputError(f"{space.source.name}: {reason}")
    edge = begun + other.edge
    place = space.source.place_of(edge) if isinstance(space.source, TextSource) else None
    if place is None:
        return InputError(f"{space.source.name}: edge {edge + 1} (from 1): {reason}")
    return bad_line(*place, reason)
