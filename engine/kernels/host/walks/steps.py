"""Kernels that advance random walkers along the rows that are in memory.

A walker is advanced until its walk is complete, or it needs a row that is not in memory, or no more steps of it fit.
Walkers are taken in groups, and their next rows and edges are loaded ahead, because both are anywhere in memory
(ThunderRW, VLDB 2021, interleaves steps likewise). Edges of the second order are drawn by rejection, with the way back
apart, after KnightKing (SOSP 2019); where the row that decides is not in memory, the walker waits with its candidate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from penstock.engine.kernels.host.atomics import prefetch
from penstock.engine.kernels.host.device_functions import ONE, row_start
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.kernels.walk_functions import make_draw, mix64

GROUP = 64
TOGETHER = 32
"""Walkers that are looked at together for one that can advance, in vectors."""
ENDED, AGAIN, WAITS, ASKS = -1, -2, -3, -4
"""In place of an edge: the walk ends; it restarts; its row is not in memory; it has a candidate to be decided on."""
FIRST_DRAW, SECOND_DRAW, TWO = np.uint64(1), np.uint64(2), np.uint64(2)
RESTART_DRAW = np.uint64(0)


class Walkers(NamedTuple):
    """Where walkers are, an item each.

    at: the vertex whose row is needed next, the largest value where the walk is over. step: uint32, steps made.
    previous, candidate: vertices, or the largest value for none, and trial: uint32; empty where steps are of the first
    order. A walker with a candidate is at the vertex before, and `previous` is where it goes from. first: uint64, the
    number of the first one's walk. sources: vertices, or empty for all; walk w begins at number w % source_count.
    """

    at: Any
    step: Any
    previous: Any
    candidate: Any
    trial: Any
    first: Any
    sources: Any
    source_count: Any


class Window(NamedTuple):
    """Rows in memory: those before `kept_rows`, and of rows [v0, v1) those whose chunks are flagged.

    bases, offsets, shift: of the row index. kept, kept_sums: of edges from 0 on. loaded, loaded_sums: of edges from e0
    on, of which chunks of chunk_edges are flagged in `here`. Sums are of the weights in a row up to each edge, float64;
    empty without weights.
    """

    bases: Any
    offsets: Any
    shift: Any
    kept_rows: Any
    kept: Any
    kept_sums: Any
    v0: Any
    v1: Any
    e0: Any
    loaded: Any
    loaded_sums: Any
    chunk_edges: Any
    here: Any


class Rule(NamedTuple):
    """How a step is chosen.

    back, far: 1/p and 1/q of node2vec. bound: what candidates are accepted by; a larger `back` is drawn apart.
    symmetric: whether each edge is in the rows of both its ends. revives: whether a walk in a dead end restarts.
    """

    seed: Any
    length: Any
    restart: Any
    revives: Any
    weighted: Any
    second: Any
    back: Any
    far: Any
    bound: Any
    symmetric: Any


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


draw = inline(make_draw(inline(mix64)))


@inline
def none_of(array):  # type: ignore[no-untyped-def]
    """Return what stands for no vertex in an array of vertices."""
    return ~array.dtype.type(0)


@inline
def is_here(window, v, start, end):  # type: ignore[no-untyped-def]
    """Return whether row `v`, edges [start, end), is in memory."""
    if v < window.kept_rows or start == end:
        return True
    if v < window.v0 or v >= window.v1:
        return False
    first = (start - window.e0) // window.chunk_edges
    last = (end - 1 - window.e0) // window.chunk_edges
    missing = 0
    for chunk in range(first, last + 1):
        missing += window.here[chunk] == 0
    return missing == 0


@inline
def neighbor_at(window, kept, edge):  # type: ignore[no-untyped-def]
    """Return the neighbor of an edge, uint64; kept: whether its row is among the first."""
    if kept:
        return np.uint64(window.kept[np.uint64(edge)])
    return np.uint64(window.loaded[np.uint64(edge - window.e0)])


@inline
def sum_at(window, kept, edge):  # type: ignore[no-untyped-def]
    """Return the sum of the weights of a row up to an edge."""
    if kept:
        return window.kept_sums[np.uint64(edge)]
    return window.loaded_sums[np.uint64(edge - window.e0)]


@inline
def lower_bound(window, kept, start, end, v):  # type: ignore[no-untyped-def]
    """Return the first edge of [start, end) whose neighbor is at least `v`, or end."""
    while start < end:
        middle = (start + end) >> 1
        if neighbor_at(window, kept, middle) < v:
            start = middle + 1
        else:
            end = middle
    return start


@inline
def total_of(window, rule, kept, start, end):  # type: ignore[no-untyped-def]
    """Return the sum of the weights of a row that has edges."""
    if rule.weighted:
        return sum_at(window, kept, end - 1)
    return np.float64(end - start)


@inline
def edge_of(window, rule, kept, start, end, target):  # type: ignore[no-untyped-def]
    """Return the edge of row [start, end) at which the sum of weights passes `target`, never one of weight 0."""
    if not rule.weighted:
        return start + np.int64(target)
    if target >= sum_at(window, kept, end - 1):  # where a tiny product was rounded up
        target = 0.0
    low, high = start, end - 1
    while low < high:
        middle = (low + high) >> 1
        if sum_at(window, kept, middle) > target:
            high = middle
        else:
            low = middle + 1
    return low


@inline
def source_of(walkers, i):  # type: ignore[no-untyped-def]
    """Return the vertex at which the walk of walker `i` begins, uint64."""
    number = (walkers.first + np.uint64(i)) % walkers.source_count
    if len(walkers.sources):
        return np.uint64(walkers.sources[number])
    return number


@inline
def propose(walkers, window, rule, i):  # type: ignore[no-untyped-def]
    """Return the edge that walker `i` might follow, or ENDED, AGAIN, WAITS, ASKS."""
    index = (window.bases, window.offsets, window.shift)
    v = np.uint64(walkers.at[i])
    if rule.second and walkers.candidate[i] != none_of(walkers.candidate):
        return np.int64(ASKS)
    start, end = row_start(index, v), row_start(index, v + ONE)
    if not is_here(window, v, start, end):
        return np.int64(WAITS)
    kept = v < window.kept_rows
    total = 0.0
    if start < end:
        total = total_of(window, rule, kept, start, end)
    if total <= 0.0:
        return np.int64(AGAIN) if rule.revives and v != source_of(walkers, i) else np.int64(ENDED)
    walk, step = walkers.first + np.uint64(i), np.uint64(walkers.step[i])
    number = FIRST_DRAW
    if rule.second:
        number += TWO * np.uint64(walkers.trial[i])
    if rule.restart > 0.0 and number == FIRST_DRAW and draw(rule.seed, walk, step, RESTART_DRAW) < rule.restart:
        return np.int64(AGAIN)
    wide = total
    if rule.second and rule.back > rule.bound and walkers.previous[i] != none_of(walkers.previous):
        wide += way_back(window, rule, kept, start, end, np.uint64(walkers.previous[i])) * (
            rule.back / rule.bound - 1.0
        )
    target = draw(rule.seed, walk, step, number) * wide
    if wide > total and target >= total:
        return lower_bound(window, kept, start, end, np.uint64(walkers.previous[i]))
    edge = edge_of(window, rule, kept, start, end, target)
    if kept:
        prefetch(window.kept, np.uint64(edge))
    else:
        prefetch(window.loaded, np.uint64(edge - window.e0))
    return edge


@inline
def way_back(window, rule, kept, start, end, previous):  # type: ignore[no-untyped-def]
    """Return the weight of the edges of a row that lead to the previous vertex."""
    first = lower_bound(window, kept, start, end, previous)
    after = first
    while after < end and neighbor_at(window, kept, after) == previous:
        after += 1
    if not rule.weighted:
        return np.float64(after - first)
    weight = 0.0
    if after > first:
        weight = sum_at(window, kept, after - 1)
        if first > start:
            weight -= sum_at(window, kept, first - 1)
    return weight


@inline
def is_adjacent(window, symmetric, u, v):  # type: ignore[no-untyped-def]
    """Return 1 or 0 for whether `u` has an edge to `v`; -1 where the row of `u` is not in memory.

    symmetric: `v` has one to `u` then, so that the shorter row tells.
    """
    index = (window.bases, window.offsets, window.shift)
    start, end = row_start(index, u), row_start(index, u + ONE)
    if not is_here(window, u, start, end):
        return -1
    if symmetric:
        from_v, to_v = row_start(index, v), row_start(index, v + ONE)
        if to_v - from_v < end - start and is_here(window, v, from_v, to_v):
            u, v, start, end = v, u, from_v, to_v
    kept = u < window.kept_rows
    edge = lower_bound(window, kept, start, end, v)
    return 1 if edge < end and neighbor_at(window, kept, edge) == v else 0


@inline
def judge(walkers, window, rule, i, previous, x):  # type: ignore[no-untyped-def]
    """Return whether walker `i` takes the drawn vertex `x`: 1 or 0, or -1 where the row that decides is missing."""
    walk, step = walkers.first + np.uint64(i), np.uint64(walkers.step[i])
    number = SECOND_DRAW + TWO * np.uint64(walkers.trial[i])
    height = draw(rule.seed, walk, step, number) * rule.bound
    if x == previous:
        return 1 if height < rule.back else 0
    if height < min(1.0, rule.far):
        return 1
    if height >= max(1.0, rule.far):
        return 0
    adjacent = is_adjacent(window, rule.symmetric, previous, x)
    return adjacent if adjacent < 0 or rule.far < 1.0 else 1 - adjacent


@inline
def move(walkers, found, i, row, x, v):  # type: ignore[no-untyped-def]
    """Write down that walker `i` goes from `v` to `x`; v: none where it restarts. Return whether it may go on."""
    walkers.at[i] = walkers.at.dtype.type(x)
    walkers.step[i] += np.uint32(1)
    if len(walkers.previous):
        walkers.previous[i] = walkers.previous.dtype.type(v)
        walkers.candidate[i] = none_of(walkers.candidate)
        walkers.trial[i] = np.uint32(0)
    gained = found.gained[row]
    found.vertices[row, gained] = found.vertices.dtype.type(x)
    found.gained[row] = gained + 1


@inline
def take(walkers, window, rule, found, i, row, place):  # type: ignore[no-untyped-def]
    """Let walker `i` do what was proposed; return whether it has another step to do here."""
    none = none_of(walkers.at)
    if place == WAITS:
        return False
    if place == ENDED:
        walkers.at[i] = none
        return False
    v = np.uint64(walkers.at[i])
    if place == AGAIN:
        x = source_of(walkers, i)
        v = np.uint64(none)
    else:
        x = v
        previous = np.uint64(none)
        if rule.second:
            previous = np.uint64(walkers.previous[i])
        if place == ASKS:  # it is at the vertex before, whose row decides
            previous, v = v, previous
            x = np.uint64(walkers.candidate[i])
        else:
            x = neighbor_at(window, v < window.kept_rows, place)
        if previous != np.uint64(none):
            verdict = judge(walkers, window, rule, i, previous, x)
            if verdict < 0:
                walkers.at[i] = walkers.at.dtype.type(previous)
                walkers.previous[i] = walkers.previous.dtype.type(v)
                walkers.candidate[i] = walkers.candidate.dtype.type(x)
                return False
            if verdict == 0:
                walkers.at[i] = walkers.at.dtype.type(v)
                walkers.previous[i] = walkers.previous.dtype.type(previous)
                walkers.candidate[i] = none_of(walkers.candidate)
                walkers.trial[i] += np.uint32(1)
                return True
    move(walkers, found, i, row, x, v)
    prefetch(window.offsets, x)
    if walkers.step[i] >= rule.length:
        walkers.at[i] = none
        return False
    if found.gained[row] >= found.vertices.shape[1]:
        found.more[0] = 1
        return False
    return True


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
    """Mark the chunks of the rows that walkers first .. last - 1 need next.

    wanted: uint8, of every chunk, and last whether there are walkers that need none, in dead ends.
    """
    walkers, window = Walkers(*walkers), Window(*window)
    index = (window.bases, window.offsets, window.shift)
    for i in range(first, last):
        v = walkers.at[i]
        if v == none_of(walkers.at):
            continue
        start, end = row_start(index, np.uint64(v)), row_start(index, np.uint64(v) + ONE)
        if start == end:
            wanted[len(wanted) - 1] = 1
        elif np.uint64(v) >= window.kept_rows:
            for chunk in range(start // window.chunk_edges, (end - 1) // window.chunk_edges + 1):
                wanted[chunk] = 1


@loop_kernel("sum_weights", grain=4096)
def sum_weights(first, last, v0, e0, window, weights, sums):  # type: ignore[no-untyped-def]
    """Sum up the weights of every row v0 + first .. v0 + last - 1 from its first edge on; both arrays begin at e0."""
    window = Window(*window)
    index = (window.bases, window.offsets, window.shift)
    for row in range(first, last):
        v = v0 + np.uint64(row)
        total = 0.0
        for edge in range(row_start(index, v) - e0, row_start(index, v + ONE) - e0):
            total += np.float64(weights[edge])
            sums[edge] = total
