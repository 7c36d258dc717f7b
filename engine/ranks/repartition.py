"""Where the bounds between ranks go, from how long each rank was busy. Pure: numbers in, bounds out.

The load is piecewise linear over the rows, cut at the bounds: what a rank was busy, spread over its work (edges, and
one for every row). Bounds go to where the longest of all ranks is shortest; they move only where that gains more, in
the iterations that are expected, than reading what then has another owner takes (Jia et al., Lux, VLDB 2017, section
5).

Ranks may differ in speed, and rows in what their edges take; one measurement does not tell which it is. What moves is
therefore expected to take what the slower of both ranks takes an edge, so that bounds approach their place from one
side. A rank that takes as long for an edge as before a move is taken to do so with what it gets next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from penstock.engine.state.row_blocks import start

if TYPE_CHECKING:
    from penstock.storage.format.index import Index

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FIRST_GAIN, SURE_GAIN = 0.2, 0.04
"""What a move must gain of an iteration: after few measurements, which may be noise, and after several."""
HALVINGS = 40
"""Of the interval that the seconds of the longest rank are in."""
STEPS = 6
"""How often a move is halved that a rank has no memory for."""
LEAST_RATE = 1e-3
"""A rank is not taken to be faster than so: seconds for an edge, as part of the mean of all ranks."""
SAME_RATE, CHANGED_WORK = 0.1, 0.05
"""A rank's seconds for an edge that differ by less are the same; work that differs by less shows nothing about them."""


Measured = tuple[Floats, Floats]
"""What was measured with some bounds, an item a rank: how much work each had, and seconds for a unit of it."""


@dataclass(frozen=True)
class RankLoads:
    """What all ranks know of each other, an item a rank, float64.

    busy: seconds of a walk, without waiting for other ranks. read: seconds until an edge that the rank gets is where
    its kernels read it. most: edges that it has room for, inf where it reads them again and again. expected: iterations
    that follow. sure: whether `busy` is of more than a few iterations. before: what was measured before the last move,
    if there was one.
    """

    busy: Floats
    read: Floats
    most: Floats
    expected: float
    sure: bool = False
    before: Measured | None = None


def starting_shares(abilities: Floats, edges: int) -> tuple[float, ...] | None:
    """Return the edges with which all ranks are predicted to be busy for equally long, None for equal parts.

    abilities: of each rank, edges a second of its kernels, edges a second that reach it over a link (inf without one),
    and edges that stay on its device, float64 (size, 3). Kernels work while edges travel.
    """
    if not edges or (abilities == abilities[0]).all():
        return None
    kernels, links, room = abilities.T
    low, high = 0.0, edges / float(np.minimum(kernels, links).max())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = np.minimum(middle * kernels, room + middle * links).sum() >= edges
        low, high = (low, middle) if enough else (middle, high)
    return tuple(np.minimum(high * kernels, room + high * links).tolist())


def new_bounds(bounds: Ints, indexes: Sequence[Index], loads: RankLoads, reach: Ints) -> Ints | None:
    """Return the bounds that the ranks should have, None where they should stay.

    bounds: rank r owns vertices bounds[r] to bounds[r + 1] - 1, int64 (size + 1,). indexes: of the adjacencies whose
    rows are divided. reach: the first and past the last vertex whose edges a rank has had so far, int64 (size, 2).
    """
    work, longest = _works(indexes, bounds), float(loads.busy.max())
    if work[-1] <= 0 or longest <= 0:
        return None
    costs = _costs(measured(bounds, indexes, loads.busy), loads.before)
    targets = _balanced(work, costs, longest)
    found = np.array([bounds[0], *(_row_at(indexes, int(bounds[-1]), at) for at in targets), bounds[-1]])
    found = _within(bounds, found, indexes, loads.most, reach)
    after = _works(indexes, found)
    gain = longest - max(_seconds(costs, work, rank, after[rank : rank + 2]) for rank in range(len(costs)))
    if gain < (SURE_GAIN if loads.sure else FIRST_GAIN) * longest:
        return None
    return found if gain * loads.expected > _reading(bounds, found, indexes, loads, reach) else None


def measured(bounds: Ints, indexes: Sequence[Index], busy: Floats) -> Measured:
    """Return what busy seconds say of each rank; one without rows is taken to be as fast as the mean of all."""
    work = _works(indexes, bounds)
    widths, mean = np.diff(work), busy.sum() / max(1.0, work[-1])
    rates = np.where(widths > 0, np.maximum(busy / np.maximum(widths, 1), LEAST_RATE * mean), mean)
    return widths, rates


def _work(indexes: Sequence[Index], vertex: int) -> int:
    """What the rows before a vertex take: one for each edge, and for each row."""
    return vertex + sum(start(index, vertex) for index in indexes)


def _works(indexes: Sequence[Index], bounds: Ints) -> Floats:
    """The same for several vertices."""
    return np.array([_work(indexes, int(vertex)) for vertex in bounds], dtype=np.float64)


def _row_at(indexes: Sequence[Index], vertices: int, work: float) -> int:
    """The row at which so much work is done, as nearly as rows allow."""
    low, high = 0, vertices
    while low < high:
        middle = (low + high) // 2
        if _work(indexes, middle) < work:
            low = middle + 1
        else:
            high = middle
    return low - 1 if low and _work(indexes, low) - work > work - _work(indexes, low - 1) else low


def _costs(now: Measured, before: Measured | None) -> Floats:
    """Seconds of each rank's rows in each rank, for a unit of work: costs[rank, owner], float64 (size, size)."""
    work, rates = now
    costs = np.maximum(rates[:, None], rates[None, :])
    if before is not None:
        same = np.abs(rates - before[1]) < SAME_RATE * before[1]
        same &= np.abs(work - before[0]) > CHANGED_WORK * before[0]
        costs[same] = rates[same, None]
    return costs


def _seconds(costs: Floats, work: Floats, rank: int, span: Floats) -> float:
    """How long a rank is expected to be busy with a span of the work; work: the bounds with which it was measured."""
    shared = np.minimum(work[1:], span[1]) - np.maximum(work[:-1], span[0])
    return float(np.dot(costs[rank], np.maximum(shared, 0)))


def _balanced(work: Floats, costs: Floats, longest: float) -> list[float]:
    """The bounds, in work, with which the longest rank is shortest; longest: seconds that suffice."""
    low, high = 0.0, longest
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _dealt(work, costs, middle)[-1] >= work[-1] else (middle, high)
    return _dealt(work, costs, high)[:-1]


def _dealt(work: Floats, costs: Floats, seconds: float) -> list[float]:
    """How far ranks get, one after another, if each is busy for so long."""
    ends, at, piece = [], 0.0, 0
    for rank in range(len(costs)):
        left = seconds
        while piece < len(costs):
            needed = (work[piece + 1] - at) * costs[rank, piece]
            if needed > left:
                at += left / costs[rank, piece]
                break
            at, left, piece = float(work[piece + 1]), left - needed, piece + 1
        ends.append(at)
    return ends


def _within(bounds: Ints, found: Ints, indexes: Sequence[Index], most: Floats, reach: Ints) -> Ints:
    """The new bounds, or as far on the way to them as every rank has memory for; the old ones if that is nowhere."""
    for step in range(STEPS):
        part = bounds + (found - bounds) // 2**step
        first, last = np.minimum(part[:-1], reach[:, 0]), np.maximum(part[1:], reach[:, 1])
        held = [_edges(indexes, int(v0), int(v1)) for v0, v1 in zip(first, last, strict=True)]
        grows = (first < reach[:, 0]) | (last > reach[:, 1])
        if not np.any(grows & (np.array(held) > most)):
            return np.asarray(part, dtype=np.int64)
    return bounds


def _reading(bounds: Ints, found: Ints, indexes: Sequence[Index], loads: RankLoads, reach: Ints) -> float:
    """Seconds until the last rank has read what it gets, and has not in its memory from earlier."""
    seconds = 0.0
    for rank, each in enumerate(loads.read):
        keeps = np.isfinite(loads.most[rank])
        (old0, old1), (new0, new1) = (
            (reach[rank] if keeps else bounds[rank : rank + 2]),
            found[rank : rank + 2].tolist(),
        )
        kept = max(0, _edges(indexes, max(old0, new0), min(old1, new1)))
        seconds = max(seconds, (_edges(indexes, new0, new1) - kept) * float(each))
    return seconds


def _edges(indexes: Sequence[Index], first: int, last: int) -> int:
    """Edges of the rows [first, last)."""
    return sum(start(index, last) - start(index, first) for index in indexes) if first < last else 0
