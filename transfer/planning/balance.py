"""The route of each partition that minimizes the time of the busiest resource.

Owns the greedy pass: resources work at the same time, so an iteration lasts as long as the
resource with the largest sum, and the best route of a partition depends on the others' routes.
Refuses a partition that no route serves. Pure: seconds in, routes out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


FEW = 64


def alone(costs: Floats, allowed: Bools) -> Ints:
    """Return for each partition the route with the smallest busiest resource, by itself.

    `costs`: seconds, float64[r, p, 5]; `allowed`: bool[r, p]. The answer is int64[p], a route's
    row. Ties go to the smaller sum over all resources, then to the earlier route.
    """
    if not np.all(allowed.any(axis=0)):
        missing = np.flatnonzero(~allowed.any(axis=0))
        raise ValueError(f"no route serves partitions {missing[:8].tolist()}")
    busiest = np.where(allowed, costs.max(axis=2), np.inf)
    sums = np.where(allowed, costs.sum(axis=2), np.inf)
    tied = busiest == busiest.min(axis=0)
    return np.asarray(np.where(tied, sums, np.inf).argmin(axis=0), dtype=np.int64)


def balance(costs: Floats, allowed: Bools) -> Ints:
    """Return routes, int64[p], with a short sum on the busiest resource.

    Starts from each partition's own best, then moves partitions off the busiest resource, those first that relieve it
    most for the work they add elsewhere: many at once, and, up to `FEW` partitions, one by one until no single move
    helps. Shapes as in `alone`.
    """
    routes = alone(costs, allowed)
    count = costs.shape[1]
    if count == 0 or np.all(allowed.sum(axis=0) == 1):
        return routes
    chosen = costs[routes, np.arange(count)]
    totals = chosen.sum(axis=0)
    busiest = int(totals.argmax())
    if not np.any(np.where(allowed, costs[:, :, busiest], np.inf) < chosen[:, busiest]):
        return routes  # no other route takes less of it: nothing to move
    while _relieve_many(costs, allowed, routes, totals):
        pass
    while count <= FEW:
        before = totals.max()
        _relieve(costs, allowed, routes, totals)
        if not totals.max() < before * (1 - 1e-9):
            break
    return routes


def _relieve_many(costs: Floats, allowed: Bools, routes: Ints, totals: Floats) -> bool:
    """Make as many of the best moves off the busiest resource as shorten it, all at once, in place; whether any did."""
    score, change = _scores(costs, allowed, routes, totals)
    best = score.argmax(axis=0)
    order = np.argsort(-score[best, np.arange(costs.shape[1])], kind="stable")
    order = order[score[best[order], order] > 0]
    if not len(order):
        return False
    after = totals + np.cumsum(change[best[order], order], axis=0)
    if not after.max(axis=1).min() < totals.max() * (1 - 1e-3):
        return False
    moves = order[: int(after.max(axis=1).argmin()) + 1]
    totals[:] = after[len(moves) - 1]
    routes[moves] = best[moves]
    return True


def _relieve(costs: Floats, allowed: Bools, routes: Ints, totals: Floats) -> None:
    """Try every move off the busiest resource one by one, best first, and keep those that shorten it; in place."""
    score = _scores(costs, allowed, routes, totals)[0].ravel()
    moves = np.argsort(-score, kind="stable")[: np.count_nonzero(score)]
    flat, count = costs.reshape(-1, costs.shape[2]), costs.shape[1]
    while len(moves):
        numbers = moves % count
        moved = totals + flat[moves] - costs[routes[numbers], numbers]
        better = moved.max(axis=1) < totals.max()
        first = int(better.argmax())
        if not better[first]:
            break
        totals[:] = moved[first]
        routes[numbers[first]] = moves[first] // count
        moves = moves[first + 1 :]


def _scores(costs: Floats, allowed: Bools, routes: Ints, totals: Floats) -> tuple[Floats, Floats]:
    """How much each move relieves the busiest resource for the work it adds elsewhere, [r, p]; and what it changes."""
    change = costs - costs[routes, np.arange(costs.shape[1])]
    gain = np.where(allowed, -change[:, :, int(totals.argmax())], 0.0)
    return np.where(gain > 0, gain / (np.maximum(change, 0.0).sum(axis=2) + 1e-12), 0.0), change
