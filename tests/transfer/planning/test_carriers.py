"""How many edges need not be read in place after a pass, by what earlier runs have told."""

from __future__ import annotations

import pytest
from penstock.transfer.planning.carriers import Carriers


@pytest.mark.parametrize(
    ("work", "left", "edges", "sent", "everything", "saved"),
    [
        (0, 0, 100, 150, False, 100),  # nothing is known but the frontier
        (0, 0, 1000, 1000, True, 2000),
        (0, 300, 1000, 1000, True, 1700),
        (900, 0, 100, 150, False, 850),  # the rest of a run like those before
        (900, 700, 100, 150, False, 150),  # most of which came after a pass, too
        (900, 0, 100, 1200, False, 100),  # this run has sent more than those before
    ],
)
def test_a_pass_saves_what_is_left_of_a_run(
    work: int, left: int, edges: int, sent: int, everything: bool, saved: int
) -> None:
    assert Carriers(work, left).saved(edges, sent, everything=everything, passed=False) == saved


def test_a_second_pass_saves_its_frontier() -> None:
    assert Carriers(900, 50).saved(100, 150, everything=False, passed=True) == 100


def test_runs_with_a_pass_tell_what_is_left_and_others_what_there_is() -> None:
    known = Carriers()
    known.end(1_000, None)
    known.end(700, 600)
    known.end(900, 0)  # a pass from disk tells nothing
    assert (known.work, known.left) == (1_000, 100)
