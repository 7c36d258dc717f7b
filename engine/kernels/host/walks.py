"""Kernels that advance random walkers along the rows that are in memory, and draw samples of their edges.

A walker is advanced until its walk is complete, or it needs a row that is not in memory, or no more steps of it fit.
Walkers are taken in groups, and their next rows and edges are loaded ahead, because both are anywhere in memory
(ThunderRW, VLDB 2021, interleaves steps likewise). How a step is chosen is in `../walk_steps.py`. Then the steps that
were found are put into the walks in order. Samples draw edges of rows, with or without replacement, alike or by weight.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from penstock.engine.kernels.host.atomics import prefetch
from penstock.engine.kernels.host.device_functions import ONE, row_start
from penstock.engine.kernels.host.jit import inline, kernel, loop_kernel
from penstock.engine.kernels.walk_arrays import Rule, Walkers, Window
from penstock.engine.kernels.walk_steps import GOLDEN, compile_steps

_32 = np.uint64(32)
GROUP = 64
ABOVE = 1.0 + 2.0**-40
"""Times a number is above it, however products and logarithms are rounded."""
TOGETHER = 32
"""Walkers that are looked at together for one that can advance, in vectors."""


class Found(NamedTuple):
    """What is written: further vertices of walkers, a row for each that is advanced.

    vertices: (rows, most). owner: int64, of each row the walker; gained: int32, how many vertices. used: int32, of each
    unit how many of its rows are used. more: set where a walker could go on. chosen, places: int64, for the kernel.
    """

    vertices: Any
    owner: Any
    gained: Any
    used: Any
    more: Any
    chosen: Any
    places: Any


@inline
def write(found, row, step, x):  # type: ignore[no-untyped-def]
    """Note the vertex that a walker has gained."""
    gained = found.gained[row]
    found.vertices[row, gained] = found.vertices.dtype.type(x)
    found.gained[row] = gained + 1


@inline
def has_room(found, row):  # type: ignore[no-untyped-def]
    """Return whether there is room for a further vertex; say that a walker could go on if not."""
    if found.gained[row] >= found.vertices.shape[1]:
        found.more[0] = 1
        return False
    return True


_STEPS = compile_steps(inline, prefetch=prefetch, row_start=row_start, write=write, has_room=has_room)
draw, is_here, propose, take = _STEPS.draw, _STEPS.is_here, _STEPS.propose, _STEPS.take
mark_row, drawn_edge = _STEPS.mark_row, _STEPS.drawn_edge


@inline
def choose_walkers(walkers, window, found, unit, sizes, span):  # type: ignore[no-untyped-def]
    """Give rows to the walkers of a unit that can advance in vertices span[0] .. span[1], as far as there are.

    Those at kept rows can, too: they had no more room.
    """
    size, rows, begun = sizes
    index = (window.bases, window.offsets, window.shift)
    at, low, high = walkers.at, walkers.at.dtype.type(span[0]), walkers.at.dtype.type(span[1])
    kept = at.dtype.type(window.kept_rows)
    row, end, last = unit * rows, (unit + 1) * rows, min((unit + 1) * size, len(walkers.at))
    for begin in range(unit * size, last, TOGETHER):
        if begin + TOGETHER <= last:
            hits = 0
            for i in range(begin, begin + TOGETHER):
                hits += ((low <= at[np.uint64(i)]) & (at[np.uint64(i)] <= high)) | (at[np.uint64(i)] < kept)
            if hits == 0:
                continue
        for i in range(begin, min(begin + TOGETHER, last)):
            v = np.uint64(at[np.uint64(i)])
            inside = (low <= v and v <= high) or v < kept
            if inside and is_here(window, v, row_start(index, v), row_start(index, v + ONE)):
                if row == end:
                    found.more[0] = 1
                    break
                found.owner[row] = i
                found.gained[row] = begun
                found.chosen[row] = row
                row += 1
    found.used[unit] = row - unit * rows


@loop_kernel("advance_walkers")
def advance_walkers(first, last, sizes, span, walkers, window, rule, found):  # type: ignore[no-untyped-def]
    """Advance the walkers of units first .. last - 1 that can in vertices span[0] .. span[1], the last included.

    sizes: walkers of a unit, rows that it has, and vertices that are in each of them already.
    """
    walkers, window, rule, found = Walkers(*walkers), Window(*window), Rule(*rule), Found(*found)
    for unit in range(first, last):
        choose_walkers(walkers, window, found, unit, sizes, span)
        low = unit * sizes[1]
        high = low + found.used[unit]
        for begin in range(low, high, GROUP):
            size = min(GROUP, high - begin)
            while size > 0:
                for k in range(begin, begin + size):
                    found.places[k] = propose(walkers, window, rule, found.owner[found.chosen[k]])
                left = begin
                for k in range(begin, begin + size):
                    row = found.chosen[k]
                    if take(walkers, window, rule, found, found.owner[row], row, found.places[k]):
                        found.chosen[left] = row
                        left += 1
                size = left - begin


@loop_kernel("mark_chunks")
def mark_chunks(first, last, walkers, window, wanted):  # type: ignore[no-untyped-def]
    """Mark the chunks of the rows that walkers first .. last - 1 need next, as `mark_row` does."""
    walkers, window = Walkers(*walkers), Window(*window)
    for i in range(first, last):
        mark_row(walkers, window, wanted, i)


@loop_kernel("sum_weights", grain=4096)
def sum_weights(first, last, v0, e0, window, weights, sums, apart):  # type: ignore[no-untyped-def]
    """Sum up the weights of every row v0 + first .. v0 + last - 1 from its first edge on; both arrays begin at e0.

    apart: keep each as it is.
    """
    window = Window(*window)
    index = (window.bases, window.offsets, window.shift)
    for row in range(first, last):
        v = v0 + np.uint64(row)
        total = 0.0
        for edge in range(row_start(index, v) - e0, row_start(index, v + ONE) - e0):
            total = np.float64(weights[edge]) + (0.0 if apart else total)
            sums[edge] = total


@kernel("count_steps")
def count_steps(found):  # type: ignore[no-untyped-def]
    """Return how many vertices walkers have gained."""
    found = Found(*found)
    rows = len(found.gained) // len(found.used)
    count = 0
    for unit in range(len(found.used)):
        for row in range(unit * rows, unit * rows + found.used[unit]):
            count += found.gained[row]
    return count


@kernel("collect_steps")
def collect_steps(block, width, step, found, cells, vertices, ends):  # type: ignore[no-untyped-def]
    """Write what walkers have gained as records: a cell of the walks of their block, and the vertex.

    block: walks of one; width: cells of a walk. step: of each walker, with these. ends: filled with where the records
    of each block end.
    """
    found = Found(*found)
    rows = len(found.gained) // len(found.used)
    count, number = 0, 0
    for unit in range(len(found.used)):
        for row in range(unit * rows, unit * rows + found.used[unit]):
            size, i = found.gained[row], found.owner[row]
            if size > 0:
                while i >= (number + 1) * block:
                    ends[number] = count
                    number += 1
                cell = (i - number * block) * width + np.int64(step[i]) - size + 1
                for k in range(size):
                    cells[count] = np.uint32(cell + k)
                    vertices[count] = found.vertices[row, k]
                    count += 1
    for rest in range(number, len(ends)):
        ends[rest] = count


@kernel("place_steps")
def place_steps(cells, vertices, walks):  # type: ignore[no-untyped-def]
    """Write the vertex of every record into its cell of the walks."""
    for k in range(len(cells)):
        walks[np.uint64(cells[k])] = vertices[k]


@kernel("number_found")
def number_found(nodes, known, found, table, places):  # type: ignore[no-untyped-def]
    """Give each found vertex its place among nodes[:known], or the next one; return how many places there are then.

    nodes: int64, with room for all that is found; the first of equal ones is meant. table: int32, -1, a power of two of
    slots, more than twice as many as nodes; a slot has a place. places: int64, filled.
    """
    end, last = known, len(table) - 1
    for i in range(known + len(found)):
        vertex = nodes[i] if i < known else found[i - known]
        at = np.int64((np.uint64(vertex) * GOLDEN) >> _32) & last
        while table[at] >= 0 and nodes[table[at]] != vertex:
            at = (at + 1) & last
        if table[at] < 0:
            if i >= known:
                nodes[end] = vertex
            table[at] = min(i, end)
            end += i >= known
        if i >= known:
            places[i - known] = table[at]
    return end


@loop_kernel("draw_edges", grain=256)
def draw_edges(first, last, index, vertices, ends, key, replace, kept, edges, found):  # type: ignore[no-untyped-def]
    """Draw ends[i] - ends[i - 1] edges of the row of vertices[i], as `drawn_edge` does.

    key: seed and hop, uint64. edges: int64, filled; found: int64, filled with their neighbors where `kept` has those of
    all edges.
    """
    for i in range(first, last):
        v = np.uint64(vertices[i])
        low = ends[i - 1] if i > 0 else 0
        row = row_start(index, v), row_start(index, v + ONE), ends[i] - low
        for k in range(row[2]):
            edges[low + k] = drawn_edge(key, v, row, k, replace, edges, low)
        if len(kept):
            for k in range(low, ends[i]):
                found[k] = kept[edges[k]]


@loop_kernel("draw_by_weight", grain=64)
def draw_by_weight(  # type: ignore[no-untyped-def]
    first, last, index, vertices, ends, key, replace, e0, weights, limits, keys, edges
):
    """Go on drawing edges by weight, from those of a window: weights[0] is that of edge e0; windows rise.

    Every edge gets exponentially distributed keys whose rates are its weight, and the smallest ones are drawn
    (Efraimidis and Spirakis, IPL 2006): without replacement one key, with it one for each draw. keys: the smallest ones
    so far, of ends[i] - ends[i - 1] draws for vertices[i]; infinite at first. edges: those that have them; -1 at first.
    A key is a function of seed, hop, edge and draw. limits: of each of `vertices`, where weights are times: edges that
    are not later weigh 1, the others nothing.
    """
    seed, hop = key
    for i in range(first, last):
        v = np.uint64(vertices[i])
        start, end = row_start(index, v), row_start(index, v + ONE)
        low = ends[i - 1] if i > 0 else 0
        count, worst = ends[i] - low, low
        if count == 0:
            continue
        everything = count == end - start and not replace
        for k in range(low, low + count):
            if keys[k] > keys[worst]:
                worst = k
        for edge in range(max(start, e0), min(end, e0 + len(weights))):
            weight = np.float64(weights[edge - e0])
            if len(limits):
                weight = np.float64(weight <= limits[i])
            if not weight > 0.0:
                continue
            if everything:
                keys[worst], edges[worst] = 0.0, edge
                worst += 1
                continue
            for k in range(count if replace else 1):
                place, height = low + k if replace else worst, draw(seed, np.uint64(edge), hop, np.uint64(k))
                if height > keys[place] * weight * ABOVE:  # its logarithm is larger, and not needed
                    continue
                found = -np.log1p(-height) / weight
                if found < keys[place]:
                    keys[place], edges[place] = found, edge
                    if not replace:
                        for other in range(low, low + count):
                            if keys[other] > keys[worst]:
                                worst = other
