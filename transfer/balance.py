"""Which route each partition takes so that the busiest resource is done soonest.

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
    """Return routes, int64[p], whose busiest resource's sum no single move shortens further.

    Starts from each partition's own best, then moves partitions off the busiest resource, those
    first that relieve it most for the work they add elsewhere. Shapes as in `alone`.
    """
    routes = alone(costs, allowed)
    count = costs.shape[1]
    if count == 0 or np.all(allowed.sum(axis=0) == 1):
        return routes
    totals = costs[routes, np.arange(count)].sum(axis=0)
    while True:
        before = totals.max()
        _relieve(costs, allowed, routes, totals)
        if not totals.max() < before * (1 - 1e-9):
            return routes


def _relieve(costs: Floats, allowed: Bools, routes: Ints, totals: Floats) -> None:
    """Try every move off the busiest resource, best first, and keep those that shorten it; in place."""
    worst, count = int(totals.argmax()), costs.shape[1]
    change = costs - costs[routes, np.arange(count)]
    gain = np.where(allowed, -change[:, :, worst], 0.0)
    score = np.where(gain > 0, gain / (np.maximum(change, 0.0).sum(axis=2) + 1e-12), 0.0).ravel()
    for move in np.argsort(-score, kind="stable")[: np.count_nonzero(score)]:
        route, number = divmod(int(move), count)
        moved = totals + costs[route, number] - costs[routes[number], number]
        if moved.max() < totals.max():
            totals[:] = moved
            routes[number] = route
