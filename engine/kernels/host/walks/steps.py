"""Kernels that advance random walkers along the rows that are in memory.

A walker is advanced until its walk is complete, or it needs a row that is not in memory, or no more steps of it fit.
Walkers are taken in groups, and their next rows and edges are loaded ahead, because both are anywhere in memory
(ThunderRW, VLDB 2021, interleaves steps likewise). How a step is chosen is in `../../walk_steps.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from penstock.engine.kernels.host.atomics import prefetch
from penstock.engine.kernels.host.device_functions import ONE, row_start
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.kernels.walk_arrays import Rule, Walkers, Window
from penstock.engine.kernels.walk_steps import compile_steps

GROUP = 64
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
mark_row = _STEPS.mark_row


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
