"""How often checkpoints come, as a table."""

from __future__ import annotations

import pytest
from penstock.engine.checkpoint.interval import DEFAULT_SECONDS, LEAST_TIMES, CheckpointInterval
from penstock.storage.base.errors import InputError


@pytest.mark.parametrize(
    ("every", "iterations", "seconds", "took", "due"),
    [
        (None, 1, DEFAULT_SECONDS - 1, 0.0, False),
        (None, 1, DEFAULT_SECONDS, 0.0, True),
        (None, 10**9, DEFAULT_SECONDS - 1, 0.0, False),
        (None, 1, DEFAULT_SECONDS, 10.0, False),
        (None, 1, 10 * LEAST_TIMES, 10.0, True),
        ("10", 9, 1e9, 0.0, False),
        ("10", 10, 0.0, 1e9, True),
        (1, 1, 0.0, 1e9, True),
        ("30s", 10**9, 29.9, 0.0, False),
        ("30s", 1, 30.0, 1e9, True),
        ("5min", 1, 300.0, 0.0, True),
        (" 1.5 H ", 1, 5399.0, 0.0, False),
        ("1.5h", 1, 5400.0, 0.0, True),
    ],
)
def test_when_one_is_due(every: str | int | None, iterations: int, seconds: float, took: float, due: bool) -> None:
    assert CheckpointInterval.of(every).due(iterations, seconds, took) is due


@pytest.mark.parametrize("every", ["", "0", 0, -3, "-3", "soon", "1.5", "5 days", "0s", "min", "1e3", "nan", "٣"])
def test_what_is_no_interval_is_refused(every: str | int) -> None:
    with pytest.raises(InputError, match=r"checkpoint_every is .*; give a number of iterations \(10\) or a time"):
        CheckpointInterval.of(every)


def test_by_default_checkpoints_take_a_sixtieth_of_the_time_at_most() -> None:
    assert 1 / LEAST_TIMES < 0.02
