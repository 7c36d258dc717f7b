"""What a run asks of the host and of a device: edges, row indexes, and bytes by what takes them.

Pure: independent of budgets and how they are divided (`memory_plan.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.program.vertex_ids import surely_in_original_order
from penstock.storage.format.row_pages import OFFSET_BYTES, held_pages, page_rows

if TYPE_CHECKING:
    from penstock.engine.resources.direction import Traversal
    from penstock.storage.format.graph import Adjacency, Graph
    from penstock.transfer.values.task import Direction as AdjacencyDirection

SMALL_CHANGE = 4 << 20
"""Bytes for what is too small to be counted one by one."""
STRING_ID_BYTES, SORTED_NAME_BYTES = 36, 8
"""Bytes for a vertex' original id that is a string, beside its text; what sorting it takes more than reading it."""
SORTING_BYTES = 4
"""Bytes for a vertex while numbers are sorted, an eighth of them at a time (`vertex_ranges.SORTED_PARTS`)."""


@dataclass(frozen=True)
class MemoryRequest:
    """What a run asks of its equipment: adjacencies whose edges it reads, their weights, and what else takes memory.

    indexed: adjacencies whose row index it reads. state_bytes: vertex state, and arrays that a run keeps beside it.
    working_bytes: what a program's own functions take on the host. id_bytes: original ids, on the host.
    heads: whether row heads would serve it (pulls that leave early). sweeps: whether every iteration walks every edge.
    plain: whether some kernels take plain edges only; else all of them decode what they read.
    one_pass: whether one walk is enough, which may leave out most rows where enough of the edges are at hand.
    all_rows: whether each rank reads all rows, not only its own. owned_edges: what a rank reads of its own; None: all.
    in_order: whether rows of an index are wanted in order, so that pages of it may be read when they are wanted.
    page_threads: how many threads then read pages side by side; 0: indexes are whole.
    value_room: bytes, of the state's, of pages of values of value_rows vertices, where the others are in a file; 0: all
    are in memory.
    device_held: bytes of a device, besides edges, where values come there in pages, device_room of them for these and
    those of indexes; 0: it has all. keeps_rows: whether host memory then keeps all rows of indexes.
    """

    adjacencies: tuple[Adjacency, ...]
    indexed: tuple[Adjacency, ...]
    weighted: bool
    state_bytes: int
    working_bytes: int
    id_bytes: int
    heads: bool = False
    sweeps: bool = False
    plain: bool = True
    one_pass: bool = False
    all_rows: bool = False
    owned_edges: int | None = None
    in_order: bool = False
    page_threads: int = 0
    value_room: int = 0
    value_rows: int = 0
    device_held: int = 0
    device_room: int = 0
    keeps_rows: bool = False

    @classmethod
    def of(
        cls,
        graph: Graph,
        walked: Iterable[Traversal],
        *,
        weighted: bool,
        names: bool,
        threads: int,
        state_bytes: int,
        working_bytes: int = 0,
        sending: AdjacencyDirection = "out",
    ) -> MemoryRequest:
        """The needs of these walks; an undirected graph has only one adjacency.

        sending: whose index has the degrees. names: whether values of the answer are vertices. threads: most that read
        ids.
        """
        wanted = [graph.out if walk.key == "out" else graph.into for walk in walked]
        stored = _united([adjacency for adjacency in wanted if adjacency is not None])
        sent = graph.into if sending == "in" and graph.into is not None else graph.out
        indexed = _united([*stored, graph.out, sent])
        ids = id_bytes(graph, names=names, threads=threads)
        return cls(stored, indexed, weighted, state_bytes, working_bytes, ids, plain=bool(stored))

    @property
    def edge_bytes(self) -> int:
        """Bytes of the edges that are read, decoded."""
        return sum(one.edges * one.edge_bytes(self.weighted) for one in self.adjacencies)

    @property
    def index_bytes(self) -> int:
        """Bytes of the row indexes."""
        return sum(index_bytes(one, self.page_threads) for one in self.indexed)

    @property
    def device_bytes(self) -> int:
        """What of a device's memory is taken besides edges."""
        return self.device_held or self.state_bytes + self.index_bytes + SMALL_CHANGE

    @property
    def fixed(self) -> int:
        """What of the host's memory is taken besides edges."""
        return self.state_bytes + self.index_bytes + SMALL_CHANGE + self.working_bytes + self.id_bytes

    def covers(self, other: MemoryRequest, spare: int = 0) -> bool:
        """Whether resources made for these needs, with `spare` bytes unused, suffice for the other's."""
        both = self.and_also(other)
        same = len(both.adjacencies) == len(self.adjacencies)
        same = same and (both.weighted, both.heads) == (self.weighted, self.heads)
        same = same and self.sweeps >= other.sweeps  # what serves frontiers may be slow for sweeps, hardly the reverse
        same = same and self.plain >= other.plain
        same = same and self.all_rows >= other.all_rows
        same = same and (self.page_threads, self.value_room) == (other.page_threads, other.value_room)
        same = same and self.value_rows == other.value_rows
        same = same and (self.device_held, self.device_room) == (other.device_held, other.device_room)
        return same and both.fixed <= self.fixed + spare

    def joined(self, other: MemoryRequest) -> MemoryRequest:
        """The least that covers both, one after the other; of values in a file this one has as many as it has room."""
        return replace(
            self.and_also(other),
            state_bytes=self.state_bytes if self.value_room else max(self.state_bytes, other.state_bytes),
            value_room=self.value_room,
            value_rows=self.value_rows,
            device_held=self.device_held,
            device_room=self.device_room,
            keeps_rows=self.keeps_rows,
            working_bytes=max(self.working_bytes, other.working_bytes),
            id_bytes=max(self.id_bytes, other.id_bytes),
        )

    def and_also(self, other: MemoryRequest) -> MemoryRequest:
        """The other's needs where what these read is kept as well."""
        in_order = self.in_order and other.in_order
        return replace(
            other,
            adjacencies=_united([*self.adjacencies, *other.adjacencies]),
            indexed=_united([*self.indexed, *other.indexed]),
            weighted=self.weighted or other.weighted,
            heads=self.heads or other.heads,
            sweeps=self.sweeps or other.sweeps,
            plain=self.plain or other.plain,
            one_pass=self.one_pass or other.one_pass,
            all_rows=self.all_rows or other.all_rows,
            in_order=in_order,
            page_threads=max(self.page_threads, other.page_threads) if in_order or other.value_room else 0,
        )


def _united(adjacencies: list[Adjacency]) -> tuple[Adjacency, ...]:
    """The same without repeats."""
    return tuple({id(adjacency): adjacency for adjacency in adjacencies}.values())


def index_bytes(adjacency: Adjacency, page_threads: int = 0) -> int:
    """Bytes of the row index of an adjacency; page_threads: as in `MemoryRequest`."""
    whole, degrees = row_index_bytes(adjacency.vertices), adjacency.degrees
    if adjacency.splice is not None:
        return whole + adjacency.splice.nbytes
    if not page_threads or degrees is None:
        return whole
    reading = page_threads * (degrees.spec.chunk_items * degrees.kind.itemsize + int(degrees.lengths.max(initial=0)))
    held = held_pages(page_threads) * OFFSET_BYTES * page_rows(degrees.spec.chunk_items)
    return min(whole, row_index_bytes(0) + adjacency.vertices // 8192 + held + reading)


def row_index_bytes(rows: int) -> int:
    """Bytes of an index of so many rows."""
    return 4 * rows + rows // 8192 + 4096


def name_bytes(graph: Graph) -> int:
    """Bytes of the ids of the input while they are read, or looked up (`VertexFinder`), from a file."""
    stored = graph.original
    if stored is None or isinstance(stored, np.ndarray):
        return 0
    size = sum(frames.spec.items * frames.kind.itemsize for frames in stored.arrays)
    if len(stored.arrays) == 1:
        return size
    text = stored.arrays[-1].spec.items
    sorted_bytes = SORTED_NAME_BYTES * graph.vertices + 5 * text // 4 if graph.reordered else 0
    return size + 2 * 8 * graph.vertices + sorted_bytes


def id_bytes(graph: Graph, *, names: bool, threads: int) -> int:
    """Original ids while results are translated, groups counted by them, and the table written in their order.

    Numbers in a file are read as they are written, two chunks for each thread and each range that waits; they are held
    where values of the answer are vertices (`names`), or where internal ids have another order, which then is, too.
    Strings are held as their bytes, and a range of them is NumPy's strings; all are where they have another order.
    """
    original, ordered = graph.original, surely_in_original_order(graph)
    if original is None:
        return 0
    texts = graph.id_dtype.kind == "T"
    if texts and not ordered:
        text = 0 if isinstance(original, np.ndarray) else 5 * original.arrays[-1].spec.items // 2
        return STRING_ID_BYTES * graph.vertices + text
    held, read = 0, 0
    if not isinstance(original, np.ndarray):
        held = sum(one.spec.items * one.kind.itemsize for one in original.arrays)
        chunks = 2 * (threads + 1) * original.arrays[0].spec.chunk_items
        read = held * min(graph.vertices, chunks) // max(1, graph.vertices)
    if ordered:
        return 2 * read + held + graph.vertices if texts else read + held if names else read
    order = graph.vertices * graph.vertex_dtype.itemsize
    return order + max(held, order, SORTING_BYTES * graph.vertices) + 2 * read  # the table, and groups' order by id
