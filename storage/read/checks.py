"""What can be checked of edges, a chunk at a time, of rows and of lists; and whether ids repeat.

The sums compare adjacencies as multisets of edges whatever their order: every edge (source, target, bits of its weight)
is mixed to 64 bits and all are added up modulo 2^64, as in the incremental hashes of multisets of Clarke et al.
(ASIACRYPT 2003), here against accidents and not against adversaries.

Ids that rise are not sorted again: one comparison of neighbors is enough. Strings out of order are compared by 64-bit
hashes first (FNV-1a: Fowler, Noll and Vo), and by their bytes where two hashes are equal.
"""

import threading
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.storage.encoding.edge_keys import count_ends, sources_of_keys, spans_of, targets_of_keys
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.adjacency_writer import bounds_of
from penstock.storage.format.graph import Graph
from penstock.storage.format.index import Index
from penstock.storage.format.schema import LIST_BLOCK

_A = np.uint64(0x9E3779B97F4A7C15)
_B = np.uint64(0xC2B2AE3D27D4EB4F)
_C = np.uint64(0x165667B19E3779F9)
_S = np.uint64(31)


@jit
def _fill_rows(bases: Any, offsets: Any, shift: int, first: int, row: int, rows: Any) -> None:
    """Write the row of every edge from number ``first`` on, which is in ``row``."""
    end = bases[(row + 1) >> shift] + np.int64(offsets[row + 1])
    for i in range(len(rows)):
        while end <= first + i:
            row += 1
            end = bases[(row + 1) >> shift] + np.int64(offsets[row + 1])
        rows[i] = row


@jit
def _first_unsorted(rows: Any, neighbors: Any, weights: Any) -> int:
    """Return the first edge that belongs before the one before it, -1 if there is none."""
    for i in range(1, len(rows)):
        if rows[i] != rows[i - 1]:
            continue
        if neighbors[i] < neighbors[i - 1]:
            return i
        if len(weights) and neighbors[i] == neighbors[i - 1] and weights[i] < weights[i - 1]:
            return i
    return -1


@jit
def _mixed_sum(sources: Any, targets: Any, bits: Any) -> Any:
    """The sum modulo 2^64 of every edge mixed to 64 bits."""
    total = np.uint64(0)
    for i in range(len(sources)):
        value = np.uint64(sources[i]) * _A + np.uint64(targets[i]) * _B
        if len(bits):
            value += np.uint64(bits[i]) * _C
        value ^= value >> _S
        value *= _B
        total += value ^ (value >> _S)
    return total


@dataclass(frozen=True, slots=True)
class ChunkChecks:
    """Of one chunk: smallest and largest weight, and the edge that stays on its side (-1: none).

    Of rows: the first and last edge as (row, neighbor, weight), the edge that is out of order and the one that leads
    outside of its window, the column beside edges whose least or greatest value is not the one stated, sums of (row,
    neighbor) and of (neighbor, row), with weights, and with columns. Of a list: the block whose span is wrong, and the
    number of self-loops.
    """

    low: float
    high: float
    same_side: int = -1
    first: tuple[int, int, float] = (0, 0, 0.0)
    last: tuple[int, int, float] = (0, 0, 0.0)
    unsorted: int = -1
    outside: int = -1
    unbounded: int = -1
    hash_sum: int = 0
    reversed_hash_sum: int = 0
    kept_sum: int = 0
    reversed_kept_sum: int = 0
    wrong_span: int = -1
    self_loops: int = 0


def is_bounded(items: NDArray[Any], stated: NDArray[Any], *, nulls: bool) -> bool:
    """Whether these are the least and the greatest value of a chunk of a column (`bounds_of`)."""
    found = np.array(bounds_of(items, nulls=nulls))
    return np.array_equal(found, stated, equal_nan=items.dtype.kind == "f")


def check_edges(
    index: Index,
    first: int,
    items: tuple[NDArray[Any], ...],
    left: int | None,
    columns: tuple[NDArray[Any], ...] = (),
) -> ChunkChecks:
    """Look at the edges from number ``first`` on: ``items`` are neighbors, and weights if there are any.

    ``left``: how many vertices are sources of a bipartite graph. ``columns``: what is kept beside edges.
    """
    neighbors = items[0].astype(np.int64)
    weights = items[1] if len(items) > 1 else np.empty(0, np.uint8)
    rows = np.empty(len(neighbors), np.int64)
    _fill_rows(*index.arrays(), first, index.row_of(first), rows)
    kept = [column.view(f"u{column.itemsize}") for column in columns]
    bits, unsorted = weights.view(f"u{weights.itemsize}"), int(_first_unsorted(rows, neighbors, weights))
    values = weights if len(weights) else np.zeros(1, np.uint8)
    return ChunkChecks(
        first=_edge(rows, neighbors, values, 0),
        last=_edge(rows, neighbors, values, -1),
        unsorted=-1 if unsorted < 0 else first + unsorted,
        same_side=_first_on_one_side(rows, neighbors, left, first),
        hash_sum=int(_mixed_sum(rows, neighbors, bits)),
        reversed_hash_sum=int(_mixed_sum(neighbors, rows, bits)),
        kept_sum=sum(int(_mixed_sum(rows, neighbors, one)) for one in kept),
        reversed_kept_sum=sum(int(_mixed_sum(neighbors, rows, one)) for one in kept),
        low=float(values.min()),
        high=float(values.max()),
    )


def _edge(rows: NDArray[Any], neighbors: NDArray[Any], weights: NDArray[Any], at: int) -> tuple[int, int, float]:
    return int(rows[at]), int(neighbors[at]), float(weights[at])


def _first_on_one_side(sources: NDArray[Any], targets: NDArray[Any], left: int | None, first: int) -> int:
    """Return the first edge, from number ``first`` on, that leads not from one side to the other; -1: there is none."""
    return -1 if left is None else first_of((sources < left) == (targets < left), first)


def first_of(wrong: NDArray[np.bool_], first: int) -> int:
    """Return the number of the first that is wrong, counted from ``first`` on; -1 if none is."""
    return first + int(np.argmax(wrong)) if wrong.any() else -1


class ListInspection:
    """Chunks of a list under verification; threads check them, and their degrees are added up here.

    spans: those of the file. degrees: whether to count degrees, 5 or 9 bytes a vertex and direction.
    """

    def __init__(self, graph: Graph, spans: NDArray[np.uint32], *, degrees: bool) -> None:
        self._graph, self._spans = graph, spans
        kind = np.uint32 if 2 * graph.edges < 1 << 32 else np.uint64
        count = (2 if graph.directed else 1) if degrees else 0
        self.counts = [np.zeros(graph.vertices, kind) for _ in range(count)]
        self._low = [np.zeros(graph.vertices, np.uint8) for _ in range(count)]
        self._counting = threading.Lock()

    def look(self, chunk: int, items: tuple[NDArray[Any], ...]) -> ChunkChecks:
        """Check the keys of a chunk, and their weights if there are any."""
        keys, weights = items[0], items[1] if len(items) > 1 else np.zeros(1)
        sources, targets = (np.ascontiguousarray(part(keys)) for part in (sources_of_keys, targets_of_keys))
        first = chunk * self._graph.out.chunk_edges
        spans, loops = spans_of(keys, LIST_BLOCK)
        block = first // LIST_BLOCK
        if self.counts:
            with self._counting:
                count_ends(sources, targets, self._low, self.counts)
        return ChunkChecks(
            wrong_span=first_of((spans != self._spans[block : block + len(spans)]).any(axis=1), block),
            same_side=_first_on_one_side(sources, targets, self._graph.left, first),
            self_loops=loops,
            low=float(weights.min()),
            high=float(weights.max()),
        )

    def wrong_degrees(self, direction: int, first: int, items: NDArray[Any]) -> int:
        """The first vertex from ``first`` on whose degree is not the one stored, -1 if there is none."""
        some = slice(first, first + len(items))
        return first_of(np.add(self.counts[direction][some], self._low[direction][some]) != items, first)


_BASIS = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)


def repeated_number(ids: NDArray[Any]) -> int | None:
    """Return an id that occurs more than once, None if all are distinct."""
    if (ids[1:] > ids[:-1]).all():
        return None
    ordered = np.sort(ids)
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    return int(ordered[same[0]]) if len(same) else None


def repeated_name(names: StringArray, first: int, last: int) -> str | None:
    """Return a name that occurs more than once among those numbered first..last-1, None if all are distinct."""
    hashes = np.empty(last - first, np.uint64)
    _hash_names(names.text, names.ends, first, hashes)
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    for at in np.flatnonzero(ordered[1:] == ordered[:-1]).tolist():
        group = order[np.searchsorted(ordered, ordered[at]) : np.searchsorted(ordered, ordered[at], "right")]
        texts = sorted(_name(names, first + int(number)) for number in group)
        for one, other in pairwise(texts):
            if one == other:
                return one.decode(errors="replace")
    return None


def _name(names: StringArray, number: int) -> bytes:
    start = int(names.ends[number - 1]) if number else 0
    return names.text[start : int(names.ends[number])].tobytes()


@jit
def _hash_names(text: NDArray[np.uint8], ends: NDArray[np.int64], first: int, hashes: NDArray[np.uint64]) -> None:
    for i in range(len(hashes)):
        start = ends[first + i - 1] if first + i > 0 else 0
        value = _BASIS
        for j in range(start, ends[first + i]):
            value = (value ^ np.uint64(text[j])) * _PRIME
        hashes[i] = value
