"""Steps of an iteration that each rank takes for its own vertices alone, where ranks are on cores.

    wide frontiers:           each rank selects a part -> how many there are, from all
    wide pulls of searches:   each rank applies what it has pulled -> who is pending, from all -> values, when asked for
    sweeps by windows:        each rank sends -> its rows, messages to owners -> each rank applies -> Globals, from all

Messages of such pulls do not travel: other ranks need the marks alone until they push, or the search ends. Few messages
do before that, and all ranks apply these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.program.program import author_function
from penstock.engine.ranks.rank_exchange import room_for_few
from penstock.engine.state.state import SPAN, Frontier, list_capacity
from penstock.engine.state.state_arrays import SENT, StateArrays, StepValues

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.engine.ranks.rank_exchange import RankExchange


def keeps_apart(program: Program) -> bool:
    """Whether ranks need nothing of each other's pulls but who is pending, until they push.

    Of a search: who has got a message takes no more of them, and what a vertex sends is none of its values.
    """
    steps = StepValues.of(program)
    alone = program.visits_once and not program.bounded and "global" not in steps.by_role
    read = steps.changing | {SENT}
    return alone and author_function(program, "priority") is None and steps.source.isdisjoint(read)


def shares_sweeps(program: Program) -> bool:
    """Whether in sweeps other ranks need nothing of a vertex but what it sends, and its share of Globals."""
    steps = StepValues.of(program)
    return steps.sweeps and not program.bounded and steps.target.isdisjoint(steps.changing)


class OwnedSteps:
    """Those of one rank in a run.

    apart: whether other ranks lack values of this one's vertices, and it theirs. sweeps: whether sweeps are shared.
    bounds: which vertices' rows are whose now.
    """

    apart = sweeps = False

    def __init__(self, program: Program, state: StateArrays, exchange: RankExchange, bounds: NDArray[np.int64]) -> None:
        self._state, self._exchange, self.bounds = state, exchange, bounds
        steps = StepValues.of(program)
        self._changing = steps.changing
        self._wide = list_capacity(program, state.last) if state.pages is None else 0
        self._by_priority = author_function(program, "priority") is not None
        self._sources = sorted(steps.source & (steps.changing | steps.sends))

    @property
    def kept_above(self) -> int:
        """If a pull finds more messages they stay with owners: any where values do, too, since other ranks' are old."""
        return 0 if self.apart else room_for_few(self._state.last)

    def select(self, select: Callable[[StateArrays], Frontier]) -> Frontier:
        """Select what is pending; where it may be too much to be listed each rank counts about its own vertices."""
        state, exchange = self._state, self._exchange
        if self._by_priority or exchange.found <= self._wide:
            return select(state)
        first, last = self.own
        own = select(state.part(first, last)) if first < last else Frontier(0, 0)
        for begin, end in ((0, first), (last, state.last)):
            if begin == end:
                continue
            pending, active = state.pending.part(begin, end), state.active.part(begin, end)
            active.words[:], active.summary[:] = pending.words, pending.summary
            pending.clear()
        found = exchange.ranks.gather_numbers(np.array([own.vertices, own.edges])).sum(axis=0)
        return Frontier(*found.tolist())

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the vertices of each rank begin whose values it computes: whole spans, about those of its rows."""
        starts: NDArray[np.int64] = np.minimum(np.rint(self.bounds / SPAN).astype(np.int64) * SPAN, self._state.last)
        starts[-1] = self._state.last
        return starts

    @property
    def own(self) -> tuple[int, int]:
        """The first and past the last vertex whose values this rank computes."""
        first, last = self.starts[self._exchange.ranks.rank :][:2].tolist()
        return first, last

    def part(self, first: int, last: int) -> StateArrays | None:
        """The state of those of the vertices first..last-1 whose values this rank computes, if there are any."""
        low, high = self.own
        low, high = max(low, first), min(high, last)
        return self._state.part(low, high) if low < high else None

    def hand_sources(self, *, pulls: bool) -> None:
        """Give ranks what messages of a sweep are made of: of all vertices, or in a push of those of their rows."""
        self.apart, starts = True, self.starts
        for name in self._sources:
            for span in [None] if pulls else self._between():
                self._exchange.hand_out(name, starts, span)

    def hand_pulled(self) -> None:
        """Give ranks the messages that others have pulled for vertices whose values they compute."""
        for span in self._between():
            self._exchange.hand_out(self._state.messages, self.bounds, span)

    def _between(self) -> list[tuple[int, int]]:
        """The vertices whose rows are of one rank, and whose values another computes."""
        ends = np.stack([self.bounds, self.starts])
        return [(low, high) for low, high in zip(*np.sort(ends, axis=0).tolist(), strict=True) if low < high]

    def hand_totals(self) -> None:
        """Give all ranks the partial totals of all spans."""
        self._exchange.arrays.gather_slices(self._state.partial, -(-self.starts // SPAN))

    def hand_out(self) -> None:
        """Give all ranks the values of all vertices."""
        if self.apart:
            self.apart = False
            owners = self.starts if self.sweeps else self.bounds
            if self.sweeps:
                self._exchange.share_pending(self.own)
            for name in sorted(self._changing):
                self._exchange.hand_out(name, owners)
