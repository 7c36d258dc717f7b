"""Errors of what was predicted: of tasks, of walks, on the resource that was to be the busiest."""

from __future__ import annotations

import pytest
from penstock.transfer.calibration.prediction_error import accuracy, busiest
from penstock.transfer.values.cost import Cost
from penstock.transfer.values.task import TaskRecord


def seen(route: str, predicted: Cost, happened: Cost) -> TaskRecord:
    return TaskRecord(route, "out", (0,), predicted=predicted, measured=happened)


def test_errors_are_those_of_the_resource_that_was_to_be_busiest() -> None:
    tasks = [
        seen("filter", Cost(link=1.0, kernel=0.9), Cost(link=2.0, kernel=9.0)),
        seen("filter", Cost(link=1.0), Cost(link=0.8)),
        seen("filter", Cost(kernel=3.0), Cost(kernel=3.0)),
        seen("zero-copy", Cost(), Cost(kernel=1.0)),
        TaskRecord("resident", "out", (0,)),
    ]
    found = accuracy(tasks)
    assert list(found) == ["filter"]
    assert found["filter"].tasks == 3
    assert found["filter"].median_error == pytest.approx(0.25)
    assert (found["filter"].predicted_seconds, found["filter"].measured_seconds) == (5.0, 5.8)


def test_errors_of_walks_are_those_of_sums() -> None:
    tasks = [seen("filter", Cost(link=1.0, kernel=0.6), Cost(link=took, kernel=9.0)) for took in (0.5, 2.0, 1.0)]
    tasks[2].walk = 7
    found = accuracy(tasks)["filter"]
    assert (found.tasks, found.walks) == (3, 2)
    assert found.median_error == 0.5
    assert found.median_walk_error == pytest.approx((0.2 + 0.0) / 2)


def test_the_busiest_is_the_one_that_was_foretold() -> None:
    assert busiest((0.0, 2.0, 1.0), (9.0, 3.0, 8.0)) == (2.0, 3.0)
    assert busiest((0.0, 2.0), (9.0, 0.0)) is None
    assert busiest((0.0, 0.0), (9.0, 1.0)) is None
