"""Vertices that wait for their turn: selections find who is due, whatever was marked and looked at before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.engine.kernels.ahead.stand_ins import scalars_of
from penstock.engine.kernels.host.due import is_steady
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.program.program import Field, Program
from penstock.engine.programs.sssp import SSSP
from penstock.engine.state.state import SPAN, State
from penstock.storage.format.index import WIDEST_SHIFT, Index

VERTICES = 3 * SPAN + 100
KIND = np.dtype(np.uint32)


def members(words: Any) -> Any:
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_selection_takes_what_is_due_of_all_that_waits(threads: int) -> None:
    """Beside a plain set: vertices are marked, also again with lower priorities, and limits rise by and by."""
    rng, program = np.random.default_rng(3), SSSP(0)
    kernels = HostKernels(program, KIND, False, threads)
    state = State(program, kernels.author, 0, VERTICES, KIND)
    degrees = rng.integers(0, 4, VERTICES)
    starts = np.append(0, np.cumsum(degrees)).astype(np.uint32)
    index = Index(np.zeros(2, np.int64), starts, WIDEST_SHIFT)
    distance, scalars = state.fields["distance"], scalars_of(program, kernels.author)
    distance[:] = rng.integers(1000, 2000, VERTICES)
    pending, limit = np.zeros(VERTICES, bool), 900.0
    kernels.use()
    for turn in range(60):
        marked = rng.choice(VERTICES, int(rng.integers(0, 200)), replace=False)
        if turn % 7 == 0:
            marked = np.arange(VERTICES)[rng.random(VERTICES) < 0.4]
        if len(marked):
            distance[marked] -= rng.integers(0, 50, len(marked)).astype(distance.dtype)
            kernels.mark(state, marked)
            pending[marked] = True
        state.walked = int(rng.choice([1, 1 << 20]))  # by one thread, or by several
        limit += float(rng.choice([0.0, 5.0, 40.0]))
        frontier = kernels.select(state, index, scalars, limit)
        due = pending & (distance < limit)
        pending &= ~due
        assert np.array_equal(members(state.active.words), np.flatnonzero(due))
        assert np.array_equal(members(state.pending.words), np.flatnonzero(pending))
        assert (frontier.vertices, frontier.edges) == (due.sum(), degrees[due].sum())
        if frontier.listed:
            assert np.array_equal(state.vertices[: frontier.vertices], np.flatnonzero(due))
        lowest = float(distance[pending].min()) if pending.any() else np.inf
        assert limit <= frontier.rest <= lowest or (frontier.rest == lowest == np.inf)
        if frontier.empty:
            assert frontier.rest == lowest
    assert pending.any()


class _ByTurns(Program):
    value = Field(np.uint32, fill=9)
    combine = "min"

    def edge(value):  # type: ignore[no-untyped-def]
        return value

    def priority(value, iteration):  # type: ignore[no-untyped-def]
        return value + iteration


@pytest.mark.parametrize(("program", "steady"), [(SSSP(0), True), (_ByTurns(), False)])
def test_priorities_that_read_the_turn_are_not_steady(program: Program, steady: bool) -> None:
    author = HostKernels(program, KIND, False, 1).author
    assert is_steady(program, author) == steady
