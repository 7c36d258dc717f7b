"""The loop of one of several ranks, which share the edges: each walks its rows, and all take the same next step.

    what all ranks see -> [walk] -> messages, to all -> bounds? -> [apply] -> pending

What owners do for their own vertices alone is in `owned_steps.py`, moving bounds in `rebalance.py`; `owned_loop.py` is
the loop where no rank has values of all vertices.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from penstock.engine.execution.loop import Loop
from penstock.engine.execution.owned_steps import OwnedSteps, keeps_apart
from penstock.engine.execution.situations import certainly_pushed, own_seconds, seen_by_all
from penstock.engine.program.combiners import COMBINERS
from penstock.engine.program.program import fields_of, words_of
from penstock.engine.ranks.communicator import broadcast
from penstock.engine.ranks.rank_exchange import RankExchange
from penstock.engine.resources.direction import Direction, Situation, can_choose, is_certain, is_open
from penstock.engine.state.state import Frontier
from penstock.storage.base.timeline import during

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.ranks.communicator import ArrayRanks, Communicator
    from penstock.engine.ranks.rank_devices import RankDevices
    from penstock.engine.resources.ownership import Ownership
    from penstock.engine.state.records import IterationRecord
    from penstock.engine.state.state import State
    from penstock.engine.state.state_arrays import StateArrays
    from penstock.storage.base.timeline import Timeline
    from penstock.transfer.values.task import Demand


@contextmanager
def exchanging(timeline: Timeline | None, record: IterationRecord) -> Iterator[None]:
    """Exchange between ranks within; the only place where that is timed."""
    began = time.perf_counter()
    with during(timeline, "exchange", "exchange"):
        yield
    record.exchange_seconds += time.perf_counter() - began


@dataclass(kw_only=True)
class SharedLoop(Loop):
    """One run of a program in one of several ranks.

    ranks: the processes; devices: where they compute; ownership: which vertices are whose; rebalance: what moves these
    bounds, None where they stay. timeline: where exchanges are stamped, if anywhere.
    """

    ranks: Communicator
    devices: RankDevices
    ownership: Ownership
    rebalance: Callable[[SharedLoop, Direction, Frontier, IterationRecord, float], None] | None = None
    timeline: Timeline | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.place = self.ranks.rank, self.ranks.size
        self.exchange = RankExchange(self.state, self.kernels.exchange_kernels(), self.ranks, self.arrays)
        self._owned: OwnedSteps | None = None
        if not self.devices.on_devices and self.state.pages is None:
            self._owned = OwnedSteps(self.program, cast("State", self.state), self.exchange, self.ownership.bounds)
        self._keeps_apart = False
        self._seen: Situation | None = None

    @property
    def arrays(self) -> ArrayRanks:
        """What exchanges arrays of the vertex state."""
        assert self.devices.arrays is not None, "ranks exchange arrays"
        return self.devices.arrays

    def exchanging(self, record: IterationRecord) -> AbstractContextManager[None]:
        """Exchange between ranks within."""
        return exchanging(self.timeline, record)

    def keep_apart(self, *, checkpoints: bool) -> None:
        """Let owners alone have what wide walks bring, where a program allows it, and no rank keeps checkpoints.

        Not of runs that only push, of which most messages go to vertices that were reached.
        """
        if self._owned is None or self.asynchronous or self.author.uses_activity:
            return
        pulls = "pull" in self.streams
        self._keeps_apart = pulls and keeps_apart(self.program) and not self.gathered(checkpoints).any()

    def own(self, ownership: Ownership) -> None:
        """Own other vertices from now on, between two walks."""
        self.ownership = ownership
        if self._owned is not None:
            self._owned.bounds = ownership.bounds

    # The steps of an iteration.

    def _select(self) -> Frontier:
        if self._owned is None:
            return super()._select()
        scalars = self.scalars()

        def select(state: StateArrays) -> Frontier:
            return self.kernels.select(state, self.out, scalars, self.due.limit)

        return self._owned.select(select)

    def _situation(self, frontier: Frontier) -> Situation:
        """What the direction rule looks at; ranks look at the same."""
        found = super()._situation(frontier)
        if not is_open(found) or is_certain(found, frontier):
            return found
        if not (self.devices.linked or can_choose(found) or found.selective):
            return found
        if self._seen is not None and (pushed := certainly_pushed(found, self._seen, frontier)) is not None:
            return pushed
        seconds = own_seconds(found, (self.streams["push"], self.streams["pull"]), frontier)
        self._seen = seen_by_all(found, seconds, self.ranks)
        return self._seen

    def _unsettled(self, frontier: Frontier, scalars: tuple[Any, ...]) -> Demand | None:
        rows = super()._unsettled(frontier, scalars)
        if rows is not None:
            self.exchange.begin_settling()
        return rows

    def _take_effect(
        self, frontier: Frontier, record: IterationRecord, scalars: tuple[Any, ...], rows: Demand | None
    ) -> None:
        """Exchange messages, let them take effect, and move bounds where that pays."""
        walked = self.streams[self.direction].pipeline.device.event(None)  # edges may come during the exchange
        shared = self._exchange(frontier, record, settled=rows is not None)
        if shared:
            self.compare(self.direction, frontier, record, record.walk_seconds)
        if not self.asynchronous:
            self._apply(frontier, scalars, walked)
        if not shared:
            assert self._owned is not None, "owners alone have applied"
            with self.exchanging(record):
                self._owned.share_pending()

    def _exchange(self, frontier: Frontier, record: IterationRecord, *, settled: bool) -> bool:
        """Give all ranks the same messages; return whether they have them. settled: after a walk of unsettled rows."""
        pulled = all(stream.direction == "pull" for stream in self.walks(self.direction))
        with self.exchanging(record):
            if settled:
                self.exchange.share_settled(self.ownership.bounds)
                return True
            if self._owned is not None and not pulled:
                self._owned.drop_reached()
            owners = self.ownership.bounds if self._keeps_apart else None
            return self.exchange.share_messages(frontier.everything, self.ownership.bounds if pulled else None, owners)

    def total(self) -> None:
        """Combine partial totals; where some are added up on devices, in an order of their own, the first rank's."""
        super().total()
        if self.devices.on_devices and self.totals:
            names = list(self.globals)
            values = self.ranks.gather_numbers(np.array([self.totals[name] for name in names]))[0]
            self.totals.update(zip(names, values.tolist(), strict=True))

    # What one process does not do.

    @property
    def can_settle(self) -> bool:
        """Whether rows may be relaxed both ways, of ranks on devices of one kind."""
        together = self.devices.on_devices and self.devices.alike
        return together and "degree" not in words_of(self.program) and super().can_settle

    @property
    def fuses(self) -> bool:
        """Whether several iterations may run in one launch: ranks exchange after each."""
        return False

    @property
    def owned_vertices(self) -> tuple[int, int]:
        """The first and past the last of the vertices whose rows are this rank's."""
        return self.ownership.vertices

    def gathered(self, *numbers: float) -> NDArray[np.float64]:
        """What these numbers are in each rank, shape (ranks, numbers)."""
        return self.ranks.gather_numbers(np.array(numbers, dtype=np.float64))

    def hand_out(self) -> None:
        """Give all ranks the values of all vertices, some of which owners alone may have."""
        if self._owned is not None:
            self._owned.hand_out()

    def compare(self, direction: Direction, frontier: Frontier, record: IterationRecord, seconds: float) -> None:
        """Compare how long ranks were busy, and move their bounds where that pays."""
        if self.rebalance is not None:
            self.rebalance(self, direction, frontier, record, seconds)

    def share_rows(self, arrays: Sequence[Any], record: IterationRecord) -> None:
        """Give all ranks the items of their vertices in these arrays that each of them has computed."""
        with self.exchanging(record):
            for array in arrays:
                self.arrays.gather_slices(array, self.ownership.bounds)

    def share_counts(self, record: IterationRecord) -> None:
        """Give all ranks the messages that they have counted together."""
        with self.exchanging(record):
            self.exchange.share_messages(True)

    def total_own(self, record: IterationRecord) -> None:
        """Combine the Globals' shares of all ranks, span by span; two ranks at most have vertices in one.

        Where some have them on a device: what each rank has found in all.
        """
        if not self.totals_declared:
            return
        with self.exchanging(record):
            partial = self.state.partial
            merge = [COMBINERS[total.combine].ufunc for total in self.globals.values()]
            if self.devices.on_devices:
                partial = np.array([[one.reduce(partial[:, column]) for column, one in enumerate(merge)]])
            found = self.ranks.gather_numbers(partial)
            for column, name in enumerate(self.globals):
                merged = merge[column].reduce(found[:, :, column], axis=0)
                self.totals[name] = float(merge[column].reduce(merged))

    def agree_on_floats(self) -> None:
        """Take the first rank's values and marks, where ranks on unlike processors have computed floats."""
        state = self.state
        if self.devices.alike or not any(array.dtype.kind == "f" for array in state.arrays):
            return
        for name, spec in fields_of(self.program).items():
            if not spec.constant:
                broadcast(self.arrays, state.fields[name], 0)
        broadcast(self.arrays, state.pending.words.view(np.uint32), 0)
        state.pending.summarize()
        state.sent_ahead = None
