"""After an exchange all ranks hold the same messages and marks, whichever of the forms they travel in."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine.kernels.host.launch_exchange import HostExchangeKernels
from penstock.engine.kernels.reference.vertex import ReferenceKernels, marked
from penstock.engine.program.program import Field, Program
from penstock.engine.ranks.rank_exchange import RankExchange
from penstock.engine.state.state import State
from support.thread_ranks import ThreadRanks, on_ranks

N = 10_000
SHARES = {"ids": 0.002, "bitmap": 0.1, "dense": 0.9}
"""Of the vertices: how many each rank finds messages for."""


def _state(combiner: str, *, apart: bool = True) -> State:
    members = {"value": Field(np.int64), "combine": combiner, "self_combining": True, "edge": lambda value: value}
    program: Program = type("Any", (Program,), members)()
    author = ReferenceKernels(program, np.dtype(np.uint32), weighted=False).author
    state = State(program, author, 0, N, np.dtype(np.uint32))
    if apart:
        state.accumulate_apart()
    state.mark_apart()
    return state


def _exchange(state: State, combiner: str, ranks: ThreadRanks) -> RankExchange:
    return RankExchange(state, HostExchangeKernels(combiner), ranks, ranks)


def _found(rank: int, share: float, span: tuple[int, int] = (0, N)) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(rank)
    at = np.unique(random.integers(*span, int(share * (span[1] - span[0]))))
    return at, random.integers(1, 100, len(at))


@pytest.fixture(params=[1 << 22, 3000], ids=["at once", "by ranges"], autouse=True)
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many vertices' messages travel at once."""
    monkeypatch.setattr(HostExchangeKernels, "exchanged_at_once", request.param)


@pytest.mark.parametrize(("combiner", "merge"), [("min", np.minimum), ("max", np.maximum), ("sum", np.add)])
@pytest.mark.parametrize("share", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize("ranks", [2, 3])
def test_what_was_pushed_is_combined(combiner: str, merge: np.ufunc, share: float, ranks: int) -> None:
    wanted, marks = _state(combiner).incoming, set()
    assert wanted is not None
    for at, values in (_found(rank, share) for rank in range(ranks)):
        wanted[at] = merge(wanted[at], values)
        marks |= set(at.tolist())

    def work(rank: ThreadRanks) -> State:
        state = _state(combiner)
        at, values = _found(rank.rank, share)
        state.target[at] = values
        state.touched.add(at)
        _exchange(state, combiner, rank).share_messages(everything=False)
        return state

    for state in on_ranks(ranks, work):
        np.testing.assert_array_equal(state.target, wanted)
        assert marked(state.touched) == sorted(marks)
        assert state.touched.summary.astype(bool).tolist() == [True] * 3


@pytest.mark.parametrize("share", SHARES.values(), ids=SHARES)
def test_what_was_pulled_is_its_owners(share: float) -> None:
    bounds = np.array([0, 4100, 4100, N])
    wanted, marks = np.zeros(N, np.int64), []
    for rank in (0, 2):
        at, values = _found(rank, share, (int(bounds[rank]), int(bounds[rank + 1])))
        wanted[at] = values
        marks += at.tolist()

    def work(rank: ThreadRanks) -> State:
        state, span = _state("sum"), (int(bounds[rank.rank]), int(bounds[rank.rank + 1]))
        if rank.rank != 1:
            at, values = _found(rank.rank, share, span)
            state.target[at] = values
            state.touched.add(at)
        if rank.rank == 0 and 4100 in marks:
            state.target[4100] = -5  # beside the owned rows: a block of a pull may reach there
            state.touched.add(np.array([4100]))
        _exchange(state, "sum", rank).share_messages(False, bounds)
        return state

    for state in on_ranks(3, work):
        np.testing.assert_array_equal(state.target, wanted)
        assert marked(state.touched) == sorted(marks)


def test_a_sweep_shares_every_vertex() -> None:
    def work(rank: ThreadRanks) -> list[int]:
        pushed, pulled = _state("sum"), _state("sum")
        pushed.target[:], pulled.target[:] = 1, rank.rank
        _exchange(pushed, "sum", rank).share_messages(everything=True)
        _exchange(pulled, "sum", rank).share_messages(True, np.array([0, 7, 8, N]))
        return [int(pushed.target.min()), int(pushed.target.max()), *pulled.target[[0, 6, 7, 8, N - 1]].tolist()]

    assert on_ranks(3, work) == [[3, 3, 0, 0, 1, 2, 2]] * 3


def test_marks_become_pending_where_values_change_at_once() -> None:
    def work(rank: ThreadRanks) -> tuple[list[int], list[int], list[int]]:
        state = _state("max", apart=False)
        state.pending.add(np.array([9]))  # due later: its value does not travel
        state.touched.add(np.array([rank.rank, 5000]))
        state.target[[rank.rank, 5000]] = rank.rank + 1
        _exchange(state, "max", rank).share_messages(everything=False)
        return marked(state.pending), marked(state.touched), state.target[[0, 1, 5000]].tolist()

    assert on_ranks(2, work) == [([0, 1, 9, 5000], [], [1, 2, 2])] * 2


def test_sums_of_floats_are_the_same_bits_in_every_rank() -> None:
    def work(rank: ThreadRanks) -> bytes:
        members = {"value": Field(np.float64), "combine": "sum", "edge": lambda value: value}
        program: Program = type("Any", (Program,), members)()
        author = ReferenceKernels(program, np.dtype(np.uint32), weighted=False).author
        state = State(program, author, 0, N, np.dtype(np.uint32))
        state.accumulate_apart()
        for share in SHARES.values():
            at, _ = _found(rank.rank, share)
            state.target[at] += np.random.default_rng(rank.rank).random(len(at))
            state.touched.add(at)
            _exchange(state, "sum", rank).share_messages(everything=False)
        return state.target.tobytes()

    assert len(set(on_ranks(3, work))) == 1
