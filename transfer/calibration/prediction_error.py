"""Prediction errors: predicted against measured seconds by route, of tasks and of whole walks.

Pure: records in, figures out. Refuses what was not both predicted and measured (`feedback.py` measures).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from penstock.transfer.values.cost import Cost
from penstock.transfer.values.task import TaskRecord


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How well one route was predicted, on the resource that was to be the busiest.

    tasks, median_error: median over its tasks of |predicted - measured| / measured. walks, median_walk_error: the same
    for the sums over all of its tasks in a walk, which are what a plan weighs. predicted_seconds, measured_seconds:
    sums over all tasks.
    """

    tasks: int
    median_error: float
    predicted_seconds: float
    measured_seconds: float
    walks: int = 0
    median_walk_error: float = 0.0


Pair = tuple[float, float]


def accuracy(records: Iterable[TaskRecord]) -> dict[str, Accuracy]:
    """Return, by route, how well tasks were predicted; routes of which nothing was measured are left out."""
    tasks: dict[str, list[Pair]] = {}
    walks: dict[str, dict[int, list[tuple[Cost, Cost]]]] = {}
    for record in records:
        if record.predicted is None or record.measured is None:
            continue
        pair = busiest(record.predicted, record.measured)
        if pair is not None:
            tasks.setdefault(record.route, []).append(pair)
        costs = record.predicted, record.measured
        walks.setdefault(record.route, {}).setdefault(record.walk, []).append(costs)
    found = {}
    for route, pairs in tasks.items():
        sums = [pair for costs in walks[route].values() if (pair := _summed(costs)) is not None]
        before, after = (sum(pair[at] for pair in pairs) for at in (0, 1))
        found[route] = Accuracy(len(pairs), _error(pairs), before, after, len(sums), _error(sums))
    return found


def busiest(before: Sequence[float], after: Sequence[float]) -> Pair | None:
    """Return predicted and measured seconds of the resource with the most predicted; None where either is nothing."""
    at = max(range(len(before)), key=lambda resource: before[resource])
    return (before[at], after[at]) if before[at] > 0 and after[at] > 0 else None


def _summed(costs: list[tuple[Cost, Cost]]) -> Pair | None:
    sums = [[sum(seconds) for seconds in zip(*(pair[at] for pair in costs), strict=True)] for at in (0, 1)]
    return busiest(*sums)


def _error(pairs: list[Pair]) -> float:
    return float(np.median([abs(before - after) / after for before, after in pairs])) if pairs else 0.0
