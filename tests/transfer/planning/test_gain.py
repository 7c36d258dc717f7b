"""Whether saving seconds is worth a plan, or one more task."""

from __future__ import annotations

import pytest
from penstock.transfer.planning.gain import COUNT_SECONDS, pays
from penstock.transfer.values.rates import TASK_SECONDS


@pytest.mark.parametrize(
    ("saved", "tasks", "counted", "expected"),
    [
        (0.0, 1, True, False),
        (TASK_SECONDS, 1, True, True),
        (TASK_SECONDS, 2, True, False),
        (TASK_SECONDS, 1, False, False),
        (TASK_SECONDS + COUNT_SECONDS, 1, False, True),
        (1.0, 3, False, True),
    ],
)
def test_what_is_saved_must_outweigh_tasks_and_counting(
    saved: float, tasks: int, counted: bool, expected: bool
) -> None:
    assert pays(saved, tasks, counted=counted) is expected
