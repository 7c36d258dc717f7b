"""Time in which anyone was inside counts once, however many were."""

from __future__ import annotations

import pytest
from penstock.storage.clocks.busy_timer import BusyTimer


class Hands:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def test_what_overlaps_counts_once() -> None:
    hands = Hands()
    busy = BusyTimer(hands)
    hands.time = 1.0
    with busy:
        hands.time = 2.0
        with busy:
            hands.time = 4.0
            assert busy.seconds == 3.0
        hands.time = 5.0
    hands.time = 9.0
    assert busy.seconds == 4.0
    with busy:
        hands.time = 10.0
    assert busy.seconds == 5.0


def test_an_error_inside_ends_it() -> None:
    hands = Hands()
    busy = BusyTimer(hands)

    def fail() -> None:
        with busy:
            hands.time = 1.0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    hands.time = 7.0
    assert busy.seconds == 1.0
