"""A clock with a limit gives shares of what is left, and never more."""

from penstock.storage.base.measurement import TimeBudget
from support.clocks import MovedClock


def test_shares_end_with_the_whole() -> None:
    time = MovedClock(100.0)
    clock = TimeBudget(2.0, time)
    assert (clock.left, clock.spent) == (2.0, 0.0)
    assert clock.until(0.5) == 100.5
    time.go(1.75)
    assert clock.until(0.5) == 102.0
    assert (clock.allows(0.25), clock.allows(0.3)) == (True, False)
    time.go(1.25)
    assert (clock.left, clock.spent) == (0.0, 3.0)
