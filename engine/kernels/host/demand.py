"""What an iteration needs of the edges: counted per partition, marked per chunk; and of views, kept by window.

Counting only runs when edges may have to travel; a resident adjacency needs no count. Where the values of vertices are
not all in memory, kernels get the edges to those of a window. Rows stay in their order, and so do the edges of a row,
in two passes over the edges: one counts, one copies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.host.atomics import lowest_bit
from penstock.engine.kernels.host.device_functions import LOW, NONE, ONE, SIX, is_marked, row_start
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.kernels.interface import EdgeView
from penstock.engine.kernels.shared_functions import make_mark_blocks
from penstock.engine.program.bindings import Author
from penstock.storage.base import thread_atomics
from penstock.storage.base.slot_pool import ReservedArray
from penstock.storage.base.thread_atomics import atomic_add, atomic_or

if TYPE_CHECKING:
    from numpy.typing import DTypeLike
    from penstock.transfer.values.view import View

SPAN = np.uint64(4096)
STEP_ROWS = 1 << 12
"""Rows that a thread looks at together."""


@inline
def lowest_bit_of(word):  # type: ignore[no-untyped-def]
    """Position of the lowest set bit of a non-zero uint32, as uint64."""
    return lowest_bit(np.uint64(word))


@inline
def pop_count(word):  # type: ignore[no-untyped-def]
    """Number of set bits of a uint32, int64."""
    return np.int64(thread_atomics.pop_count(np.uint64(word)))


mark_blocks = inline(make_mark_blocks(atomic_add, atomic_or, lowest_bit_of, pop_count))


@inline
def count_row(start, end, sizes, table, chunks, columns):  # type: ignore[no-untyped-def]
    """Add row [start, end) to table (partition -> vertices, edges, lines: `columns` apart) and mark its chunks."""
    partition_edges, chunk_edges, line_edges = sizes
    for chunk in range(start // chunk_edges, (end - 1) // chunk_edges + 1):
        chunks[chunk] = 1
    for partition in range(start // partition_edges, (end - 1) // partition_edges + 1):
        low = max(start, partition * partition_edges)
        high = min(end, (partition + 1) * partition_edges)
        at = np.uint64(partition * columns)
        atomic_add(table, at, np.int64(1))
        atomic_add(table, at + ONE, high - low)
        atomic_add(table, at + np.uint64(2), (high - 1) // line_edges - low // line_edges + 1)


@inline
def count_wanted(start, end, sizes, table, chunks, blocks):  # type: ignore[no-untyped-def]
    """`count_row`; where `blocks` is not empty, mark the row's, and count the new ones as the fourth column."""
    count_row(start, end, sizes, table, chunks, 3 if len(blocks) == 0 else 4)
    if len(blocks) > 0:
        mark_blocks(start, end, sizes[0], table, blocks)


@loop_kernel("count_active", shares=1)
def count_active(  # type: ignore[no-untyped-def]
    first_step, end_step, active, active_summary, index, base, sizes, table, chunks, blocks
):
    """Count the marked vertices' rows (demand of a push)."""
    for over in range(first_step, end_step):
        upper = active_summary[over]
        while upper != 0:
            word = (np.uint64(over) << SIX) | lowest_bit(upper)
            upper &= upper - ONE
            left = active[word]
            while left != 0:
                v = ((word << SIX) | lowest_bit(left)) + base
                left &= left - ONE
                start = row_start(index, v)
                end = row_start(index, v + ONE)
                if end > start:
                    count_wanted(start, end, sizes, table, chunks, blocks)


def make_add_pending(author: Author) -> Any:
    """Kernel: add what the author calls pending of every marked vertex to the partition in which its row begins."""
    pending = author.calls["pending"]

    @loop_kernel(author.key, shares=1, counted=True)
    def add_pending(  # type: ignore[no-untyped-def]
        first_step, end_step, active, active_summary, index, fields, scalars, base, partition_edges, values
    ):
        for over in range(first_step, end_step):
            upper = active_summary[over]
            while upper != 0:
                word = (np.uint64(over) << SIX) | lowest_bit(upper)
                upper &= upper - ONE
                left = active[word]
                while left != 0:
                    v = ((word << SIX) | lowest_bit(left)) + base
                    left &= left - ONE
                    start = row_start(index, v)
                    end = row_start(index, v + ONE)
                    if end > start:
                        value = np.float64(pending(fields, scalars, v, end - start, base))
                        atomic_add(values, np.uint64(start // partition_edges), value)

    return add_pending


@loop_kernel("cache_row_prefixes")
def cache_row_prefixes(first_step, end_step, view, index, head_index, each, heads):  # type: ignore[no-untyped-def]
    """Copy what edges [e0, e1) hold of the first `each` edges of rows [v0, v1) (`engine/state/row_prefix_cache.py`)."""
    view = EdgeView(*view)
    for row in range(first_step, end_step):
        v = view.v0 + np.uint64(row)
        start = row_start(index, v)
        end = min(row_start(index, v + ONE), start + each)
        at = row_start(head_index, v)
        for e in range(max(start, view.e0), min(end, view.e1)):
            heads[at + e - start] = view.neighbors[e - view.e0]


def make_count_cond(author: Author, function: str = "cond") -> Any:
    """Kernel: count the rows of vertices that want messages (demand of a pull), or for which another function holds.

    skipped: how many of a row's edges were looked at before, and a bitmap of who found a message among them.
    """
    cond = author.calls[function]

    @loop_kernel(f"{author.key} {function}", shares=1)
    def count_cond(  # type: ignore[no-untyped-def]
        first_step, end_step, count, index, fields, scalars, base, skipped, sizes, table, chunks, blocks
    ):
        skip, matched = skipped
        for over in range(first_step, end_step):
            first = np.uint64(over) * SPAN
            for at in range(first, min(first + SPAN, count)):
                v = np.uint64(at) + base
                start = row_start(index, v) + skip
                end = row_start(index, v + ONE)
                found = skip > 0 and is_marked(matched, v - base)
                if end > start and not found and cond(fields, scalars, v, np.int64(0), base):
                    count_wanted(start, end, sizes, table, chunks, blocks)

    return count_cond


@inline
def rows_of(step, size, view):  # type: ignore[no-untyped-def]
    """The rows of a step: `size` ones, from the view's first one on."""
    first = view.v0 + np.uint64(step * size)
    return first, min(first + np.uint64(size), view.v1)


@inline
def next_wanted(wanted, v, last):  # type: ignore[no-untyped-def]
    """The first row from v on that is wanted, or `last`; words without one are passed over at once.

    wanted: a bitmap of vertices, which begins with vertex `base`, and whether all are meant; of compacted rows theirs.
    """
    marks, whole, base, vertices = wanted
    if vertices.shape[0] > 0:
        while v < last and not (whole or is_marked(marks, np.uint64(vertices[v]) - base)):
            v += ONE
        return v
    while not whole and v < last:
        left = marks[(v - base) >> SIX] >> ((v - base) & LOW)
        if left != NONE:
            return min(v + lowest_bit(left), last)
        v = min((((v - base) >> SIX) + ONE << SIX) + base, last)
    return v


@inline
def edges_of(index, v, view):  # type: ignore[no-untyped-def]
    """The edges of row v that the view holds, by their places in it."""
    return max(row_start(index, v), view.e0) - view.e0, min(row_start(index, v + ONE), view.e1) - view.e0


@inline
def is_taken(u, window):  # type: ignore[no-untyped-def]
    """Whether edges to vertex u are meant.

    window: the first and past the last vertex; values, of which those are meant that have `nothing`, no values: all;
    and a bitmap of others that are, or no words.
    """
    low, high, values, nothing, marks = window
    meant = u >= low and u < high and (values.shape[0] == 0 or values[u] == nothing)
    return meant or (marks.shape[0] > 0 and is_marked(marks, u))


@loop_kernel("pick_in_window", grain=1)
def pick_in_window(first_step, end_step, view, index, wanted, size, window, every, counts, weighted, picked):  # type: ignore[no-untyped-def]
    """Copy the edges of each step's rows to vertices of a window, from where its first one is in the view.

    wanted: of `next_wanted`; window: of `is_taken`. every: whether rows without such edges are noted, too. counts:
    int64 (steps, 2), of edges and rows. picked: neighbors; weights; rows, from the step's first one on, and their
    starts among the step's edges.
    """
    view = EdgeView(*view)
    neighbors, weights, rows, starts = picked
    vertices = wanted[3]
    for step in range(first_step, end_step):
        v, last = rows_of(step, size, view)
        first, row = edges_of(index, v, view)[0], step * size
        at = first
        v = next_wanted(wanted, v, last)
        while v < last:
            before = at
            begin, end = edges_of(index, v, view)
            for e in range(begin, end):
                if is_taken(np.uint64(view.neighbors[e]), window):
                    neighbors[at] = view.neighbors[e]
                    if weighted:
                        weights[at] = view.weights[e]
                    at += 1
            if every or at > before:
                rows[row] = vertices[v] if vertices.shape[0] > 0 else v
                starts[row] = before - first
                row += 1
            v = next_wanted(wanted, v + ONE, last)
        counts[step, 0] = at - first
        counts[step, 1] = row - step * size


@loop_kernel("pack_picked", grain=1)
def pack_picked(first_step, end_step, view, index, size, counts, weighted, picked, kept):  # type: ignore[no-untyped-def]
    """Put what steps have picked one behind the other, edges of step s from counts[s, 0] on, rows from counts[s, 1] on.

    kept: neighbors; weights; rows and their starts; and starts by vertex, where every row was noted. Of rows or starts
    by vertex one has no items, and is not written.
    """
    view = EdgeView(*view)
    neighbors, weights, rows, starts, by_vertex = kept
    for step in range(first_step, end_step):
        first, row = edges_of(index, view.v0 + np.uint64(step * size), view)[0], step * size
        at, to = counts[step, 0], counts[step, 1]
        for e in range(counts[step + 1, 0] - at):
            neighbors[at + e] = picked[0][first + e]
            if weighted:
                weights[at + e] = picked[1][first + e]
        for i in range(counts[step + 1, 1] - to):
            if by_vertex.shape[0] > 0:
                by_vertex[picked[2][row + i]] = at + picked[3][row + i]
            else:
                rows[to + i] = picked[2][row + i]
                starts[to + i] = at + picked[3][row + i]


class WindowRows:
    """What is kept of views: compacted rows for pushes; for pulls the starts of all rows, by vertex.

    vertices: of the graph; dtype: of their ids. Starts have their places in reserved address space, of which the rows
    of the last view take memory.
    """

    def __init__(self, vertices: int, dtype: DTypeLike) -> None:
        self._dtype, self._starts = np.dtype(dtype), ReservedArray(vertices + 1, np.uint32, huge=False)
        self._rows = 0, 0

    def narrowed(
        self, run: Callable[..., None], view: View, index: Any, wanted: Any, window: Any, *, compacts: bool
    ) -> View:
        """The edges of a view to the vertices of a window, valid until the next call; compacted ones stay.

        run: runs a kernel of so many steps. wanted, window: as `pick_in_window` takes them. compacts: as for pushes.
        """
        weighted, count, steps = view.weights is not None, view.v1 - view.v0, -(-(view.v1 - view.v0) // STEP_ROWS)
        weights = view.weights if view.weights is not None else np.zeros(1, np.uint8)
        edges = view.neighbors, weights, view.e0, view.e1, np.uint64(view.v0), np.uint64(view.v1)
        rooms = view.e1 - view.e0, view.e1 - view.e0 if weighted else 1, count, count
        kinds = view.neighbors.dtype, weights.dtype, self._dtype, self._dtype
        picked = tuple(np.empty(room, kind) for room, kind in zip(rooms, kinds, strict=True))
        counts = np.zeros((steps + 1, 2), np.int64)
        run(pick_in_window, steps, edges, index, wanted, STEP_ROWS, window, not compacts, counts[1:], weighted, picked)
        np.cumsum(counts, axis=0, out=counts)
        total, rows = counts[-1].tolist()
        neighbors, kept = np.empty(total, view.neighbors.dtype), np.empty(total if weighted else 1, weights.dtype)
        found = np.empty(rows if compacts else 0, self._dtype)
        starts = np.empty(rows + 1 if compacts else 1, self._dtype)
        by_vertex = self._starts.values[:0]
        if not compacts:
            self._starts.forget(*self._rows)
            self._rows, by_vertex = (view.v0, view.v1 + 1), self._starts.values
        packed = neighbors, kept, found, starts, by_vertex
        run(pack_picked, steps, edges, index, STEP_ROWS, counts, weighted, picked, packed)
        starts[-1] = total
        if not compacts:
            by_vertex[view.v1] = total
        return replace(
            view, e0=0, e1=total, neighbors=neighbors, weights=kept if weighted else None,
            rows=found if compacts else None, offsets=starts if compacts else by_vertex,
        )  # fmt: skip
