"""Values of vertices of which each rank has its own alone, where memory has no room for those of all.

    a window's values, from owners -> [walk] -> its messages, to owners -> next window ... -> all values, to all

Values are owned by whole spans, rows by vertex, so that the rows of some vertices are of one rank and the values of
another. Who is pending, and active, is known of own vertices; of others while rows pull from them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.execution.owned_steps import span_starts
from penstock.engine.ranks.communicator import gather_parts, starts_of
from penstock.engine.state.state import SPAN
from penstock.engine.state.state_arrays import INCOMING, SENT, StateArrays, StepValues

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.engine.ranks.rank_exchange import RankExchange
    from penstock.engine.state.state import State
    from penstock.storage.checkpoint.state_pages import StatePages

Span = tuple[int, int]


class OwnedValues:
    """Those of one rank in a run, and what it gets of others'.

    apart: whether other ranks lack values of this one's vertices, and it theirs. bounds: which vertices' rows are whose
    now. timed: what exchanges of a walk are made within.
    """

    apart = False

    def __init__(
        self, program: Program, state: State, pages: StatePages, exchange: RankExchange, bounds: NDArray[np.int64]
    ) -> None:
        self._state, self._pages, self._exchange, self.bounds = state, pages, exchange, bounds
        self._steps = StepValues.of(program)
        self.timed: Callable[[], AbstractContextManager[None]] = nullcontext

    def begin(self) -> None:
        """Have values of own vertices alone from now on."""
        if not self.apart:
            self.apart = True
            self._pages.own(*self.own, self._steps.changing)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the vertices of each rank begin whose values it has: whole spans, about those of its rows."""
        return span_starts(self.bounds, self._state.last)

    @property
    def values(self) -> Span:
        """The first and past the last vertex whose values this rank has."""
        first, last = self.starts[self._exchange.ranks.rank :][:2].tolist()
        return first, last

    @property
    def own(self) -> Span:
        """The same with vertices whose rows this rank has."""
        (first, last), rank = self.values, self._exchange.ranks.rank
        return min(first, int(self.bounds[rank])), max(last, int(self.bounds[rank + 1]))

    @property
    def between(self) -> list[Span]:
        """The vertices whose rows are of one rank, and whose values another has."""
        ends = np.stack([self.bounds, self.starts])
        return [(low, high) for low, high in zip(*np.sort(ends, axis=0).tolist(), strict=True) if low < high]

    def part(self, first: int, last: int) -> StateArrays | None:
        """The state of those of the vertices first..last-1 whose values this rank has, if there are any."""
        low, high = self.values
        low, high = max(low, first), min(high, last)
        return self._state.part(low, high) if low < high else None

    def _others(self, first: int, last: int) -> list[Span]:
        """Those of the vertices first..last-1 whose values other ranks have."""
        low, high = self.values
        parts = (first, min(last, low)), (max(first, high), last)
        return [part for part in parts if part[0] < part[1]]

    # What windows ask.

    def of_all(self, reached: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """What any rank has reached."""
        with self.timed():
            return np.asarray(self._exchange.ranks.gather_numbers(reached).any(axis=0))

    def bring(self, names: Collection[str], spans: Sequence[Span], *, pushes: bool = False) -> None:
        """Give all ranks the values of vertices that are in memory, which owners of rows have while they pull.

        pushes: owners of values have these, and of messages none are given, for they are combined anew; unless they
        decide what is taken, too.
        """
        state, messages = self._state, self._state.messages
        anew = pushes and self._combines_anew
        for span in spans:
            for first, last in self._others(*span) if anew else ():
                state.target[first:last] = state.identity
            with self.timed():
                for name in sorted(set(names) - {messages} if anew else names):
                    self._exchange.gather(name, self.starts if pushes else self.bounds, span)

    def bring_some(self, names: Collection[str], ids: NDArray[Any]) -> None:
        """Give this rank the values of some vertices, ascending, before it pushes to these; each rank names its own."""
        state, ranks, messages = self._state, self._exchange.ranks, self._state.messages
        low, high = self.values
        if self._combines_anew:
            state.target[ids[(ids < low) | (ids >= high)]] = state.identity
            names = set(names) - {messages}
        if not names:
            return
        step = max(1, self._exchange.at_once // ranks.size)
        with self.timed():
            counts = ranks.gather_numbers(np.array([len(ids)])).ravel()
            for first in range(0, int(counts.max()), step):
                self._bring_listed(sorted(names), ids[first : first + step], np.clip(counts - first, 0, step))

    def _bring_listed(self, names: Sequence[str], ids: NDArray[Any], counts: NDArray[np.int64]) -> None:
        """Give this rank the values of some vertices; counts: of how many each rank asks."""
        ranks = self._exchange.ranks
        every, ends = gather_parts(ranks, ids, counts), starts_of(counts)
        owners = np.searchsorted(self.starts, every, side="right") - 1
        order, lengths = np.argsort(owners, kind="stable"), np.bincount(owners, minlength=ranks.size)
        for name in names:
            values = self._exchange.values(name)
            found = np.empty((len(every), *values.shape[1:]), values.dtype)
            found[order] = gather_parts(ranks, values[every[owners == ranks.rank]], lengths)
            values[ids] = found[ends[ranks.rank] : ends[ranks.rank + 1]]

    @property
    def _combines_anew(self) -> bool:
        """Whether pushes combine messages to others' vertices from nothing: unless these decide what is taken."""
        return self._state.incoming is not None and self._state.messages not in self._steps.target

    def bring_rows(self, names: Collection[str]) -> None:
        """Give the owners of rows the values of their vertices that others have."""
        self._gather_between(names, self.starts)

    def share(self, spans: Sequence[Span], *, everything: bool, whole: bool) -> None:
        """Give owners all ranks' messages of vertices that are in memory; whole: as `RankExchange.give_owners`."""
        parts = [part for span in spans for part in self._pages.spans(*span)]
        with self.timed():
            self._exchange.give_owners(self.starts, parts, everything=everything, whole=whole)
        for span in spans:
            self._forget_marks(span)

    def share_rows(self) -> None:
        """Give owners of vertices the messages that others have pulled for them."""
        state = self._state
        self._gather_between([state.messages], self.bounds)
        if state.touched is not state.pending:
            with self.timed():
                for low, high in self.between:
                    self._exchange.combine_marks(state.touched.part(low, high))
            self._forget_marks((0, state.last))

    def _gather_between(self, names: Collection[str], bounds: NDArray[np.int64]) -> None:
        """Give all ranks values of the vertices between, of those who have them by these bounds."""
        (begin, end), ranks = self.own, self._exchange.ranks
        for low, high in self.between:
            for first, last in self._pages.spans(low, high):
                if begin < last and first < end:
                    with self._state.held(names, first, last, changes=names), self.timed():
                        for name in sorted(names):
                            self._exchange.gather(name, bounds, (first, last))
                    continue
                with self.timed():  # others' alone, which this rank does not keep
                    for name in sorted(names):
                        whole = np.empty_like(self._exchange.values(name)[first:last])
                        ranks.gather_slices(whole, np.clip(bounds, first, last) - first)

    def _forget_marks(self, span: Span) -> None:
        """Unset what this rank has marked of messages to others' vertices, which have these now."""
        state = self._state
        if state.touched is not state.pending:
            for part in self._others(*span):
                state.touched.part(*part).clear()

    # What the loop asks.

    def clear_active(self) -> None:
        """Forget which of the others' vertices were active."""
        for part in self._others(0, self._state.last):
            self._state.active.part(*part).clear()

    def share_active(self, *, pulls: bool) -> None:
        """Give ranks who is active: of all vertices, or in a push of those of their rows."""
        for low, high in [(0, self._state.last)] if pulls else self.between:
            span = low // SPAN * SPAN, min(-(-high // SPAN) * SPAN, self._state.last)
            self._exchange.gather_marks(self._state.active, self.starts, span)

    def hand_totals(self) -> None:
        """Give all ranks the partial totals of all spans."""
        self._exchange.arrays.gather_slices(self._state.partial, -(-self.starts // SPAN))

    def hand_out(self) -> None:
        """Give all ranks the values of all vertices, and who is pending."""
        if not self.apart:
            return
        self.apart = False
        state, pages = self._state, self._pages
        pages.own(0, state.last)
        pages.reset({SENT, INCOMING})  # nothing travels between iterations
        if state.active is not state.pending:  # else of sweeps, which mark nothing
            self._exchange.gather_marks(state.pending, self.starts, (0, state.last))
        for name in sorted(self._steps.changing):
            for span in pages.spans(0, state.last):
                with state.held((name,), *span, changes=(name,)):
                    self._exchange.gather(name, self.starts, span)
