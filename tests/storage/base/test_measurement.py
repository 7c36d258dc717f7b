"""A clock with a limit gives shares of what is left, and never more."""

from penstock.storage.base.measurement import TimeBudget


class Hands:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def test_shares_end_with_the_whole() -> None:
    hands = Hands()
    clock = TimeBudget(2.0, hands)
    assert (clock.left, clock.spent) == (2.0, 0.0)
    assert clock.until(0.5) == 100.5
    hands.at = 101.75
    assert clock.until(0.5) == 102.0
    assert clock.allows(0.25)
    assert not clock.allows(0.3)
    hands.at = 103.0
    assert (clock.left, clock.spent) == (0.0, 3.0)


def test_without_a_limit_there_is_always_time() -> None:
    hands = Hands()
    clock = TimeBudget(None, hands)
    hands.at += 1e9
    assert clock.allows(1e9)
    assert clock.until(1.0) == hands.at + 1.0
