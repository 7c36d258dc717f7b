"""Steps of an iteration that each rank takes for its own vertices alone, where ranks are on cores with all values.

    wide frontiers:           each rank selects a part -> how many there are, from all
    wide walks of searches:   messages, to owners -> each rank applies its own -> who is pending, from all
    the end:                  values, from all

Of such walks other ranks get the marks alone until the search ends. What they push to a vertex that was reached
meanwhile they drop by these marks: its value, which tells a push so in one process, is its owner's. Few messages go to
all ranks, and all apply them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.program.program import arguments, author_function
from penstock.engine.state.state import SPAN, Bitmap, Frontier, list_capacity
from penstock.engine.state.state_arrays import SENT, StateArrays, StepValues

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.engine.ranks.rank_exchange import RankExchange
    from penstock.engine.state.state import State


def keeps_apart(program: Program) -> bool:
    """Whether ranks need nothing of each other's values but who is pending, until the end.

    Of a search: who has got a message is active next and takes no more of them, since it has them in the field whose
    first value lets it take some; and what a vertex sends is none of its values.
    """
    steps, active = StepValues.of(program), author_function(program, "active")
    once = program.visits_once and bool(program.accumulator) and (active is None or not arguments(active))
    alone = once and not program.bounded and "global" not in steps.by_role
    read = steps.changing | {SENT}
    return alone and author_function(program, "priority") is None and steps.source.isdisjoint(read)


def span_starts(bounds: NDArray[np.int64], vertices: int) -> NDArray[np.int64]:
    """Where each rank's vertices begin in whole spans, about those whose rows it has by these bounds."""
    starts: NDArray[np.int64] = np.minimum(np.rint(bounds / SPAN).astype(np.int64) * SPAN, vertices)
    starts[-1] = vertices
    return starts


class OwnedSteps:
    """Those of one rank in a run.

    apart: whether other ranks lack values of this one's vertices, and it theirs. bounds: which vertices' rows are whose
    now.
    """

    apart = False

    def __init__(self, program: Program, state: State, exchange: RankExchange, bounds: NDArray[np.int64]) -> None:
        self._state, self._exchange, self.bounds = state, exchange, bounds
        self._changing = StepValues.of(program).changing
        self._wide = list_capacity(program, state.last)
        self._by_priority = author_function(program, "priority") is not None
        self._reached = Bitmap.empty(0)

    def share_pending(self) -> None:
        """Tell all ranks who is pending where owners alone have applied."""
        if not self.apart:
            self.apart, self._reached = True, Bitmap.empty(self._state.last)
        self._exchange.share_own_marks(self._state.pending, self.bounds)
        self._reached.unite(self._state.pending)

    def drop_reached(self) -> None:
        """Forget what was pushed to vertices that owners alone know to be reached."""
        if self.apart:
            self._state.touched.remove(self._reached)

    def select(self, select: Callable[[StateArrays], Frontier]) -> Frontier:
        """Select what is pending; where it may be too much to be listed each rank counts about its own vertices."""
        state, exchange = self._state, self._exchange
        if self._by_priority or exchange.found <= self._wide:
            return select(state)
        first, last = self.own
        part = state.part(first, last)
        part.work = part.work[:0]  # no room: a list of them alone is of no use
        own = select(part) if first < last else Frontier(0, 0)
        for begin, end in ((0, first), (last, state.last)):
            if begin == end:
                continue
            pending, active = state.pending.part(begin, end), state.active.part(begin, end)
            active.words[:], active.summary[:] = pending.words, pending.summary
            pending.clear()
        found = exchange.ranks.gather_numbers(np.array([own.vertices, own.edges])).sum(axis=0)
        return Frontier(*found.tolist())

    @property
    def own(self) -> tuple[int, int]:
        """The first and past the last vertex that this rank selects from: whole spans, about those of its rows."""
        first, last = span_starts(self.bounds, self._state.last)[self._exchange.ranks.rank :][:2].tolist()
        return first, last

    def hand_out(self) -> None:
        """Give all ranks the values of all vertices."""
        if self.apart:
            self.apart, self._reached = False, Bitmap.empty(0)
            for name in sorted(self._changing):
                self._exchange.gather(name, self.bounds, (0, self._state.last))
