"""When an iteration brings partitions whole, by what earlier runs have told."""

from __future__ import annotations

import pytest
from penstock.transfer.planning.carriers import USEFUL, Carriers

EACH = 1e-9, 3e-9
"""Seconds of an edge that is read in place later, of many at once and of few."""


@pytest.mark.parametrize(
    ("carried", "now", "sent", "pays"),
    [
        (1.0, 1.0, 10, True),  # it takes no longer than what it replaces
        (1.1, 1.0, 10, False),  # and nothing is known of what is left
        (1.0, 1.0, None, True),
        (1.1, 1.0, None, False),
    ],
)
def test_before_a_run_has_told_a_pass_must_not_take_longer(
    carried: float, now: float, sent: int | None, pays: bool
) -> None:
    assert Carriers().pay(carried, now, sent, EACH) == pays


@pytest.mark.parametrize(
    ("left", "sent", "pays"),
    [
        (0, 1_000, True),  # 2 ms later for 1.5 now
        (0, 2_500_000, False),  # half a millisecond is left of the run
        (600_000, 1_000, False),  # 1.8 ms would be left of it after the pass
        (0, None, False),  # there was one in this run
    ],
)
def test_what_runs_have_sent_tells_what_a_pass_saves(left: int, sent: int | None, pays: bool) -> None:
    known = Carriers()
    known.end(3_000_000, 0, None)
    if left:
        known.end(1_000_000 + left, 500_000, 1_000_000)
    assert known.work == 3_000_000  # of the run without carriers
    assert known.pay(2.5e-3, 1e-3, sent, EACH) == pays


def test_what_carriers_took_of_late_counts_half() -> None:
    known = Carriers()
    found = []
    for seconds in (2.0, 1.0):
        known.took(seconds)
        found.append(known.seconds)
    assert found == [2.0, 1.5]


def test_without_a_run_that_had_no_carriers_part_of_what_followed_counts() -> None:
    known = Carriers()
    known.end(1_000, 400, 900)
    assert (known.work, known.left, known.plain) == (1_000 + USEFUL * 400, 100, False)
    known.end(2_000, 0, None)
    assert (known.work, known.left, known.plain) == (2_000, 100, True)
