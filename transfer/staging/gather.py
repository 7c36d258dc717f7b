"""Gathering: the active rows of a partition, copied one after another into a compacted buffer.

The loop over marked rows is `gather_kernel.py`, compiled and free of Python's lock: one call fills what
`compacted_layout.py` planned for one partition, so that several threads fill one buffer at the same time. Rows that lie
side by side are copied in one piece; words of the bitmap without a mark are skipped whole. Only push is served: a pull
looks at every vertex that still accepts messages, and reads few edges of many rows. Refuses counts other than the
planned ones, and writes nothing outside a partition's place even then: a view over a wrong index would be a wrong
answer. HyTGraph's and Subway's compaction (Wang et al., ICDE 2023; Sabet et al., EuroSys 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.staging.compacted_layout import BufferPlace
from penstock.transfer.values.task import Partition

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

    target: offsets, rows, neighbors (`Packed.slices`) and weights (None without) of the whole task. Offsets are those
    of the starts of rows; the call that fills the end of `rows` writes the last one too. A call needs no lock beside
    others with other places. Raises RuntimeError where the source does not hold the partition, the target has no such
    place, or the rows found are not those counted.
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
