"""Values are looked at on the device that holds them, now and then, and leave it only to be told of."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from penstock.engine import Session
from penstock.engine.execution import nan_check
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.storage.base.errors import RunError
from support.graphs import in_memory, shape


class Held:
    """A state that counts what it is asked."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields
        self.looks: list[str] = []
        self.copies = 0

    def has_nan(self, name: str) -> bool:
        self.looks.append(name)
        return bool(np.isnan(self.fields[name]).any())

    def host_fields(self) -> dict[str, Any]:
        self.copies += 1
        return self.fields


def test_good_values_stay_where_they_are() -> None:
    state = Held(rank=np.ones(5))
    nan_check.check_nan_now(PageRank(), state, 64)
    assert state.looks == ["rank"]
    assert state.copies == 0


def test_values_are_looked_at_each_time_that_iterations_have_doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where fused iterations are told together."""
    looks: list[int] = []
    monkeypatch.setattr(nan_check, "check_nan_now", lambda program, state, iterations: looks.append(iterations))
    with Session(in_memory(shape("path"))) as session:
        for _ in session.steps(BFS(0)):
            pass
        one_by_one, looks[:] = looks.copy(), []
        session.run(BFS(0))
    assert one_by_one == [64, 128, 256]
    assert looks
    assert all(later >= 2 * earlier for earlier, later in itertools.pairwise(looks))


def test_whole_numbers_are_not_looked_at() -> None:
    state = Held(level=np.zeros(5, dtype=np.uint32))
    nan_check.check_nan_now(BFS(0), state, 64)
    assert not state.looks
    assert not state.copies


def test_what_is_no_number_is_told() -> None:
    state = Held(rank=np.array([0.5, np.nan]))
    with pytest.raises(RunError, match=r"1 of 2 values of 'rank' are no numbers \(NaN\) after 64 iterations"):
        nan_check.check_nan_now(PageRank(), state, 64)


def test_a_sum_that_takes_a_second_look_is_left_to_who_wants_it() -> None:
    """In memory, where the first one takes little time."""
    some, every = np.array([0.0, 2.0, np.inf]), np.array([0.0, 2.0])
    assert nan_check.check_nan(SSSP(0), {"distance": some}, 1) == {}
    assert nan_check.check_nan(SSSP(0), {"distance": every}, 1)["distance"].total == 2
