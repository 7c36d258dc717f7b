"""How a walker chooses its next step, as plain Python functions that the compilers of host and GPU both compile.

Walks are the same on both because these functions are. Edges of the second order are drawn by rejection, with the way
back apart, after KnightKing (SOSP 2019); where the row that decides is not in memory, the walker waits with its
candidate.

A random number is a function of the seed, the walk, the step and the draw within it, and of nothing else, so that walks
do not depend on the order in which they are advanced. It is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) at a place
of its sequence that is computed: every walk has a sequence of its own, whose start is the hash of its number.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from penstock.engine.kernels.shared_functions import ONE, row_start

ENDED, AGAIN, WAITS, ASKS = -1, -2, -3, -4
"""In place of an edge: the walk ends; it restarts; its row is not in memory; it has a candidate to be decided on."""
FIRST_DRAW, SECOND_DRAW, TWO = np.uint64(1), np.uint64(2), np.uint64(2)
RESTART_DRAW = np.uint64(0)
TRIALS = np.uint64(16)
"""Edges that are drawn before all of a row are looked through for those that are not too late."""
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
UNIT = 2.0**-53
_1, _11, _27, _30, _31, _32 = (np.uint64(bits) for bits in (1, 11, 27, 30, 31, 32))


def mix64(word):  # type: ignore[no-untyped-def]
    """Return a hash of a uint64: the output function of SplitMix64."""
    word = (word ^ (word >> _30)) * FIRST_FACTOR
    word = (word ^ (word >> _27)) * SECOND_FACTOR
    return word ^ (word >> _31)


def make_draw(mix64: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for the random number in [0, 1) of a draw; all arguments are uint64."""

    def draw(seed, walk, step, number):  # type: ignore[no-untyped-def]
        start = mix64(seed + GOLDEN * (walk + _1))
        word = mix64(start + GOLDEN * (((step << _32) | number) + _1))
        return np.float64(word >> _11) * UNIT

    return draw


draw = make_draw(mix64)


def key_of(seed: int, hop: int) -> tuple[np.uint64, np.uint64]:
    """Return what random numbers of a hop of a sample are functions of, on all devices."""
    with np.errstate(over="ignore"):
        return mix64(np.uint64(seed)), np.uint64(hop)


def prefetch(array, place):  # type: ignore[no-untyped-def]
    """Load an item ahead; nothing where other threads run meanwhile."""


def product(a, b):  # type: ignore[no-untyped-def]
    """Return a product, rounded; what is added to it is added to that."""
    return a * b


def write(walks, row, step, x):  # type: ignore[no-untyped-def]
    """Note that a step of a walker has led to a vertex."""
    walks[row, step] = walks.dtype.type(x)


def has_room(walks, row):  # type: ignore[no-untyped-def]
    """Return whether a further step can be noted."""
    return True


def none_of(array):  # type: ignore[no-untyped-def]
    """Return what stands for no vertex in an array of vertices."""
    return ~array.dtype.type(0)


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


def neighbor_at(window, kept, edge):  # type: ignore[no-untyped-def]
    """Return the neighbor of an edge, uint64; kept: whether its row is among the first."""
    if kept:
        return np.uint64(window.kept[np.uint64(edge)])
    return np.uint64(window.loaded[np.uint64(edge - window.e0)])


def sum_at(window, kept, edge):  # type: ignore[no-untyped-def]
    """Return the sum of the weights of a row up to an edge."""
    if kept:
        return window.kept_sums[np.uint64(edge)]
    return window.loaded_sums[np.uint64(edge - window.e0)]


def lower_bound(window, kept, start, end, v):  # type: ignore[no-untyped-def]
    """Return the first edge of [start, end) whose neighbor is at least `v`, or end."""
    while start < end:
        middle = (start + end) >> 1
        if neighbor_at(window, kept, middle) < v:
            start = middle + 1
        else:
            end = middle
    return start


def total_of(window, rule, kept, start, end):  # type: ignore[no-untyped-def]
    """Return the sum of the weights of a row that has edges."""
    if rule.weighted:
        return sum_at(window, kept, end - 1)
    return np.float64(end - start)


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


def edge_in_time(walkers, window, rule, i, kept, start, end):  # type: ignore[no-untyped-def]
    """Return an edge of row [start, end) that is not later than walker `i` may use, each as likely; or ENDED.

    A few are drawn until one is; then all are looked through.
    """
    walk, step = walkers.first + np.uint64(i), np.uint64(walkers.step[i])
    limit = walkers.limits[(walk % walkers.source_count) % np.uint64(len(walkers.limits))]
    number = FIRST_DRAW
    while number <= TRIALS:
        edge = start + np.int64(draw(rule.seed, walk, step, number) * np.float64(end - start))
        if sum_at(window, kept, edge) <= limit:
            return edge
        number += _1
    count = 0
    for edge in range(start, end):
        count += sum_at(window, kept, edge) <= limit
    left = np.int64(draw(rule.seed, walk, step, number) * np.float64(count))
    for edge in range(start, end):
        if sum_at(window, kept, edge) <= limit:
            if left == 0:
                return np.int64(edge)
            left -= 1
    return np.int64(ENDED)


def drawn_edge(key, v, row, k, replace, edges, low):  # type: ignore[no-untyped-def]
    """Return the `k`-th edge that is drawn of row `v`, each as likely; those before it are in `edges` from `low` on.

    key: seed and hop, uint64. row: its first edge, the one past its last, and how many are drawn, all where it has as
    many. Without replacement by Floyd's method (Bentley and Floyd, CACM 1987), whose look through what is drawn is
    quadratic.
    """
    seed, hop = key
    start, end, count = row
    degree = end - start
    if replace:
        return start + np.int64(draw(seed, v, hop, np.uint64(k)) * np.float64(degree))
    if count == degree:
        return start + k
    limit = degree - count + k
    found = start + np.int64(draw(seed, v, hop, np.uint64(k)) * np.float64(limit + 1))
    for before in range(low, low + k):
        if edges[before] == found:
            return start + limit
    return found


def source_of(walkers, i):  # type: ignore[no-untyped-def]
    """Return the vertex at which the walk of walker `i` begins, uint64."""
    number = (walkers.first + np.uint64(i)) % walkers.source_count
    if len(walkers.sources):
        return np.uint64(walkers.sources[number])
    return number


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
        apart = way_back(window, rule, kept, start, end, np.uint64(walkers.previous[i]))
        wide += product(apart, rule.back / rule.bound - 1.0)
    target = draw(rule.seed, walk, step, number) * wide
    if wide > total and target >= total:
        return lower_bound(window, kept, start, end, np.uint64(walkers.previous[i]))
    if len(walkers.limits):
        edge = edge_in_time(walkers, window, rule, i, kept, start, end)
        if edge == ENDED:
            return np.int64(AGAIN) if rule.revives and v != source_of(walkers, i) else np.int64(ENDED)
    else:
        edge = edge_of(window, rule, kept, start, end, target)
    if kept:
        prefetch(window.kept, np.uint64(edge))
    else:
        prefetch(window.loaded, np.uint64(edge - window.e0))
    return edge


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


def judge(walkers, window, rule, i, previous, x):  # type: ignore[no-untyped-def]
    """Return whether walker `i` takes the drawn vertex `x`: 1 or 0, or -1 where the row that decides is missing."""
    walk, step = walkers.first + np.uint64(i), np.uint64(walkers.step[i])
    number = SECOND_DRAW + TWO * np.uint64(walkers.trial[i])
    height = draw(rule.seed, walk, step, number) * rule.bound
    if x == previous:
        return 1 if height < rule.back else 0
    if height < 1.0 and height < rule.far:
        return 1
    if height >= 1.0 and height >= rule.far:
        return 0
    adjacent = is_adjacent(window, rule.symmetric, previous, x)
    return adjacent if adjacent < 0 or rule.far < 1.0 else 1 - adjacent


def move(walkers, i, x, v):  # type: ignore[no-untyped-def]
    """Let walker `i` be at `x`, to which it goes from `v`, or from none where it restarts."""
    walkers.at[i] = walkers.at.dtype.type(x)
    walkers.step[i] += np.uint32(1)
    if len(walkers.previous):
        walkers.previous[i] = walkers.previous.dtype.type(v)
        walkers.candidate[i] = none_of(walkers.candidate)
        walkers.trial[i] = np.uint32(0)


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
    move(walkers, i, x, v)
    prefetch(window.offsets, x)
    write(found, row, walkers.step[i], x)
    if walkers.step[i] >= rule.length:
        walkers.at[i] = none
        return False
    return has_room(found, row)


def mark_row(walkers, window, wanted, i):  # type: ignore[no-untyped-def]
    """Mark the chunks of the row that walker `i` needs next, as `wanted` says; return whether its walk goes on.

    wanted: uint8, of every chunk, and last whether there are walkers that need none, in dead ends.
    """
    index = (window.bases, window.offsets, window.shift)
    v = walkers.at[i]
    if v == none_of(walkers.at):
        return False
    start, end = row_start(index, np.uint64(v)), row_start(index, np.uint64(v) + ONE)
    if start == end:
        wanted[len(wanted) - 1] = 1
    elif np.uint64(v) >= window.kept_rows:
        for chunk in range(start // window.chunk_edges, (end - 1) // window.chunk_edges + 1):
            wanted[chunk] = 1
    return True


STEPS = (
    row_start, prefetch, product, write, has_room, none_of, is_here, neighbor_at, sum_at, lower_bound, total_of,
    edge_of, edge_in_time, drawn_edge, source_of, way_back, propose, is_adjacent, judge, move, take, mark_row,
)  # fmt: skip
"""Each after those that it calls."""


def compile_steps(compile: Callable[[Any], Any], **given: Any) -> SimpleNamespace:
    """Compile the functions of this file, and return them by their names; given: those that are compiled already."""
    names = {"draw": compile(make_draw(compile(mix64))), **given}
    for function in STEPS:
        if function.__name__ not in names:
            own = FunctionType(function.__code__, {**globals(), **names}, function.__name__)
            names[function.__name__] = compile(own)
    return SimpleNamespace(**names)
