"""Which neighboring partitions travel as one task.

Owns that rule, as a pure function. Task combination is HyTGraph's (section V), whose printed loop
drops partitions; here every wanted partition is in exactly one group (property-tested). Refuses
to join what would not lie in one array: partitions join only where their places follow one
another, or where all pass through one slab of `k` partitions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

Group = tuple[str, tuple[int, ...]]

NOWHERE = -1


def combine(
    numbers: Sequence[int],
    routes: Sequence[str],
    places: NDArray[np.int64],
    partition_edges: int,
    k: int,
    unbounded: Collection[str] = (),
) -> list[Group]:
    """Return (route, consecutive partition numbers) for the wanted partitions `numbers`, ascending.

    `routes` names the route of each of `numbers`; `places` is the arena position of every partition of the
    adjacency, -1 for none. Filter partitions join up to `k`. Resident partitions do so too while others must
    be fetched (the pipeline puts them between arrivals); where all are resident they join without limit, and
    reach over unwanted ones between them that lie in the same run. Routes in `unbounded` do both always: a device
    behind a link reads resident partitions, and those in host memory, in one launch. Others stay alone.
    """
    runs = _runs(places, partition_edges)
    at_rest = all(route == "resident" for route in routes)
    groups: list[tuple[str, list[int]]] = []
    for number, route in zip(numbers, routes, strict=True):
        last = groups[-1] if groups else ("", [])
        together = route == last[0] and runs[last[1][-1]] == runs[number]
        over = together and (at_rest or route in unbounded) and runs[number] != NOWHERE
        if over or (route == last[0] == "zero-copy" and route in unbounded):
            last[1].extend(range(last[1][-1] + 1, number + 1))
        elif together and _joins(last[1], number, route, k) and not _apart(route, runs[number]):
            last[1].append(number)
        else:
            groups.append((route, [number]))
    return [(route, tuple(group)) for route, group in groups]


def _joins(group: list[int], number: int, route: str, k: int) -> bool:
    return route in ("resident", "filter") and len(group) < k and group[-1] + 1 == number


def _apart(route: str, run: int) -> bool:
    """Return whether partitions without a place have no common array: only a slab gives them one."""
    return route == "resident" and run == NOWHERE


def _runs(places: NDArray[np.int64], partition_edges: int) -> NDArray[np.int64]:
    """Number the runs of partitions that follow one another in the arena; -1 where there is no place."""
    breaks = np.ones(len(places), dtype=np.int64)
    breaks[1:] = np.diff(places) != partition_edges
    return np.where(places < 0, NOWHERE, np.cumsum(breaks))
