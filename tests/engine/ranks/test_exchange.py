"""After an exchange all states hold the same messages and marks."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine.kernels.reference.vertex import ReferenceKernels, marked
from penstock.engine.program.program import Field, Program
from penstock.engine.ranks.exchange import HostExchange
from penstock.engine.state.state import State

N = 10_000


def _program(combiner: str) -> Program:
    members = {"value": Field(np.int64), "combine": combiner, "self_combining": True, "edge": lambda value: value}
    return type("Any", (Program,), members)()


def _states(combiner: str, count: int) -> list[State]:
    program = _program(combiner)
    author = ReferenceKernels(program, np.dtype(np.uint32), weighted=False).author
    states = [State(program, author, 0, N, np.dtype(np.uint32)) for _ in range(count)]
    for state in states:
        state.accumulate_apart()
    return states


@pytest.mark.parametrize(("combiner", "merge"), [("min", min), ("max", max), ("sum", sum)])
@pytest.mark.parametrize("devices", [2, 3])
def test_messages_are_combined_and_marks_united(combiner: str, merge, devices: int) -> None:
    states = _states(combiner, devices)
    expected: dict[int, list[int]] = {}
    random = np.random.default_rng(5)
    for state in states:
        at = np.unique(random.integers(0, N, 40))
        values = random.integers(1, 100, len(at))
        state.incoming[at] = values
        state.touched.add(at)
        for where, value in zip(at, values, strict=True):
            expected.setdefault(int(where), []).append(int(value))
    HostExchange(states, combiner).share_messages(everything=False)
    for state in states:
        assert marked(state.touched) == sorted(expected)
        assert {at: int(state.incoming[at]) for at in expected} == {at: merge(v) for at, v in expected.items()}


def test_a_sweep_shares_what_nobody_marked() -> None:
    states = _states("sum", 2)
    for state in states:
        state.incoming[:] = 1
    HostExchange(states, "sum").share_messages(everything=True)
    assert all((state.incoming == 2).all() for state in states)


def test_one_device_has_nothing_to_share() -> None:
    (state,) = _states("min", 1)
    state.incoming[3] = 7
    HostExchange([state], "min").share_messages(everything=True)
    assert state.incoming[3] == 7
