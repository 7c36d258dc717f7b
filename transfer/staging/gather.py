"""Gathering: the active rows of a partition, copied one after another into a compacted buffer, and its layout.

The loop over marked rows is `gather_kernel.py`, compiled and free of Python's lock: one call fills what
`compacted_layout` planned for one partition, so that several threads fill one buffer at the same time. Rows that lie
side by side are copied in one piece; words of the bitmap without a mark are skipped whole. Only push is served: a pull
looks at every vertex that still accepts messages, and reads few edges of many rows. Refuses counts other than the
planned ones, and writes nothing outside a partition's place even then: a view over a wrong index would be a wrong
answer. HyTGraph's and Subway's compaction (Wang et al., ICDE 2023; Sabet et al., EuroSys 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from penstock.transfer.values.task import Partition


class BufferPlace(NamedTuple):
    """What one partition fills of a task's buffer: row parts [r0, r1) and packed edges [a0, a1)."""

    r0: int
    r1: int
    a0: int
    a1: int


@dataclass(frozen=True, slots=True, eq=False)
class CompactedLayout:
    """The plan of one task's buffer: int64[p + 1] running sums over its p partitions, in the order of the task.

    One array of the vertex type has everything but weights, so that one copy moves it:

        offsets (A + 1) | rows (A) | neighbors (a)

    for A row parts and a edges; `offsets` count from the first packed neighbor. An entry of the index so costs two
    words: d₂ = 8 bytes with uint32 ids (HyTGraph's Tec). Weights are a second array, item for item beside the
    neighbors.

    `row_starts`: row parts before each partition; `edge_starts`: edges before it. A row that is cut by the end of a
    partition is two row parts, one in each.
    """

    row_starts: NDArray[np.int64]
    edge_starts: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """A: row parts in all."""
        return int(self.row_starts[-1])

    @property
    def edges(self) -> int:
        """a: edges in all."""
        return int(self.edge_starts[-1])

    @property
    def words(self) -> int:
        """Items of the vertex type that offsets, rows and neighbors take together."""
        return self.edges + 2 * self.rows + 1

    def place(self, number: int) -> BufferPlace:
        """Return what the task's partition of this number (from 0) fills."""
        rows, edges = self.row_starts, self.edge_starts
        return BufferPlace(int(rows[number]), int(rows[number + 1]), int(edges[number]), int(edges[number + 1]))

    def slices(self, buffer: Any) -> tuple[Any, Any, Any]:
        """Cut offsets (A + 1,), rows (A,) and neighbors (a,) out of a one-dimensional buffer of any memory.

        Raises RuntimeError for a buffer of fewer than `words` items, or in whose type the offsets do not fit.
        """
        if len(buffer) < self.words:
            raise RuntimeError(f"{self.rows} rows with {self.edges} edges do not fit a buffer of {len(buffer)} words")
        if self.edges > np.iinfo(buffer.dtype).max:
            raise RuntimeError(f"offsets up to {self.edges} do not fit {buffer.dtype}")
        first, second = self.rows + 1, 2 * self.rows + 1
        return buffer[:first], buffer[first:second], buffer[second : self.words]


def compacted_layout(active_vertices: ArrayLike, active_edges: ArrayLike) -> CompactedLayout:
    """Plan the buffer of a task from the exact counts of its partitions, integers of shape (p,).

    `Demand.active_vertices` and `active_edges` of a frontier are exact; those of a whole sweep count rows without
    edges as well: ask `count_rows` there. Raises ValueError where counts cannot be right.
    """
    rows, edges = (np.asarray(counts, dtype=np.int64) for counts in (active_vertices, active_edges))
    if rows.shape != edges.shape or rows.ndim != 1 or np.any(rows < 0) or np.any(edges < rows):
        raise ValueError(f"{rows.tolist()} rows with {edges.tolist()} edges: every row part has at least one edge")
    return CompactedLayout(_starts(rows), _starts(edges))


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


EVERY_ROW = np.zeros(0, np.uint32)
NOWHERE = BufferPlace(0, 0, 0, 0)

Target = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any] | None]


@dataclass(frozen=True, slots=True)
class ActiveRows:
    """Which rows to gather, and where each one's edges begin.

    marks: bitmap words (uint32 or uint64, little-endian), bit k = vertex `first` + k; None: every row. index: bases
    int64, offsets uint32, shift, as `Index.arrays` of storage gives them.
    """

    marks: NDArray[Any] | None
    index: tuple[NDArray[np.int64], NDArray[np.uint32], int]
    first: int = 0


class GatherSource(NamedTuple):
    """Decoded edges in host memory: item 0 of `neighbors` (and of `weights`, where they are wanted) is edge s0."""

    neighbors: NDArray[Any]
    weights: NDArray[Any] | None
    s0: int


def gather_rows(active: ActiveRows, part: Partition, source: GatherSource, place: BufferPlace, target: Target) -> None:
    """Copy the part of every active row that is in the partition to its place in the target, ascending.

    target: offsets, rows, neighbors (`CompactedLayout.slices`) and weights (None without) of the whole task. Offsets
    are those of the starts of rows; the call that fills the end of `rows` writes the last one too. A call needs no lock
    beside others with other places. Raises RuntimeError where the source does not hold the partition, the target has no
    such place, or the rows found are not those counted.
    """
    offsets, rows, neighbors, weights = target
    s1 = source.s0 + len(source.neighbors)
    if source.s0 > part.e0 or s1 < part.e1 or (source.weights is None) != (weights is None):
        raise RuntimeError(
            f"partition {part.number} ({part.direction}) has edges {part.e0}..{part.e1}, what it is gathered from "
            f"{source.s0}..{s1}, weights {_said(source.weights)} and {_said(weights)} where they go"
        )
    room = min(len(neighbors), len(neighbors if weights is None else weights))
    if place.r1 > len(rows) or len(offsets) != len(rows) + 1 or place.a1 > room:
        raise RuntimeError(f"partition {part.number} has {place} in a buffer of {len(rows)} rows and {room} edges")
    given = source.neighbors, _unsigned(source.weights), source.s0
    found = _walk(active, part, given, place, (offsets, rows, neighbors, _unsigned(weights)))
    counted = place.r1 - place.r0, place.a1 - place.a0
    if found != counted:
        raise RuntimeError(
            f"partition {part.number} ({part.direction}) has {found[0]} active rows with {found[1]} edges, where "
            f"{counted[0]} with {counted[1]} were counted: gather with the marks that the demand was counted from"
        )
    if place.r1 == len(rows):
        offsets[-1] = place.a1


def count_rows(active: ActiveRows, part: Partition) -> tuple[int, int]:
    """Count the row parts and edges that `gather_rows` would copy, where no demand knows them exactly."""
    none = np.zeros(0, np.uint32)
    return _walk(active, part, (none, None, 0), NOWHERE, (none, none, none, None))


def _walk(active: ActiveRows, part: Partition, source: Any, place: BufferPlace, target: Any) -> tuple[int, int]:
    marks, first = EVERY_ROW, 0
    if active.marks is not None:
        marks, first = active.marks.view(np.uint32), active.first
        if first > part.v0 or first + 32 * len(marks) < part.v1:
            raise RuntimeError(
                f"partition {part.number} has rows {part.v0}..{part.v1}, the marks are of {len(marks)} words "
                f"from vertex {first} on"
            )
    bases, offsets, shift = active.index
    bounds = part.v0 - first, part.v1 - first, first, part.e0, part.e1
    from penstock.transfer.staging.gather_kernel import gather  # the compiler, only where something is gathered

    rows, edges = gather(marks, (bases, offsets, int(shift)), bounds, source, tuple(place), target)
    return int(rows), int(edges)


def _unsigned(weights: NDArray[Any] | None) -> NDArray[Any] | None:
    """The bits of weights: one compiled loop for every type of a size."""
    return None if weights is None else weights.view(f"u{weights.dtype.itemsize}")


def _said(weights: NDArray[Any] | None) -> str:
    return "absent" if weights is None else str(weights.dtype)
