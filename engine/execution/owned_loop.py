"""The loop of one of several ranks each of which has the values of its own vertices alone, in a file, by windows.

own frontier -> how many, of all -> own ones send -> [walk: window from owners -> messages to owners] -> own ones
apply -> Globals, of all -> bounds?
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from penstock.engine.execution.owned_values import OwnedValues
from penstock.engine.execution.shared_loop import SharedLoop, exchanging
from penstock.engine.execution.windows import Windows
from penstock.engine.state.state import Frontier

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.resources.ownership import Ownership
    from penstock.engine.state.records import IterationRecord
    from penstock.engine.state.state import State
    from penstock.engine.state.state_arrays import StateArrays
    from penstock.transfer.values.task import Demand


@dataclass(kw_only=True)
class OwnedLoop(SharedLoop):
    """One run of a program in one of several ranks whose values of vertices are in pages."""

    def __post_init__(self) -> None:
        super().__post_init__()
        assert isinstance(self.windows, Windows)
        assert self.state.pages is not None, "values are in pages"
        state = cast("State", self.state)  # of cores
        self.values = OwnedValues(self.program, state, self.state.pages, self.exchange, self.ownership.bounds)
        self.windows.owners = self.values
        self.windows.agree([*self.streams.values(), *self.against.values()], self.gathered)
        self._kept_anywhere = False
        if self.author.has_priority:
            state.lows  # noqa: B018 (parts of it are taken)

    def keep_apart(self, *, checkpoints: bool) -> None:
        """Note whether a rank keeps checkpoints."""
        self._kept_anywhere = bool(self.gathered(checkpoints).any())

    def own(self, ownership: Ownership) -> None:
        """Own other vertices from now on, between two walks."""
        super().own(ownership)
        self.values.bounds = ownership.bounds

    def _select(self) -> Frontier:
        self.values.begin()
        self.values.clear_active()
        part, limit = self.values.part(0, self.state.last), self.due.limit
        own = Frontier(0, 0) if part is None else self.kernels.select(part, self.out, self.scalars(), limit)
        found = self.gathered(own.vertices, own.edges, own.rest)
        vertices, edges = found[:, :2].sum(axis=0).astype(np.int64).tolist()
        return Frontier(vertices, edges, rest=float(found[:, 2].min()))

    def _send(self, frontier: Frontier, record: IterationRecord, scalars: tuple[Any, ...]) -> None:
        self.values.begin()
        self.values.timed = partial(exchanging, self.timeline, record)  # not bound: no cycle holds the file
        if (part := self.values.part(0, self.state.last)) is not None:
            self.kernels.send(part, frontier, self.out, scalars)
        if not frontier.everything:
            with self.exchanging(record):
                pulls = any(stream.direction == "pull" for stream in self.walks(self.direction))
                self.values.share_active(pulls=pulls)

    def _take_effect(
        self, frontier: Frontier, record: IterationRecord, scalars: tuple[Any, ...], rows: Demand | None
    ) -> None:
        walked = self.streams[self.direction].pipeline.device.event(None)  # edges may come meanwhile
        if self.asynchronous:
            self.exchange.kernels.move_marks(self.state.touched, self.state.pending)
        else:
            self._apply(frontier, scalars, walked)
        self.compare(self.direction, frontier, record, record.walk_seconds)

    def _new_values(self, frontier: Frontier, scalars: tuple[Any, ...], part: StateArrays) -> None:
        if (own := self.values.part(part.first, part.last)) is not None:
            super()._new_values(frontier, scalars, own)

    def _total_of_sweep(self, frontier: Frontier) -> None:
        self.values.hand_totals()
        self.total()

    def _reduced(self) -> None:
        if not self.values.apart:
            super()._reduced()
            return
        if (part := self.values.part(0, self.state.last)) is not None:
            self.kernels.reduce(part, self.out, self.scalars())
        self.values.hand_totals()

    def values_at(self, name: str, places: NDArray[np.int64]) -> NDArray[Any]:
        """What a field has at some vertices, from their owners."""
        found = self.ranks.gather_numbers(super().values_at(name, places))
        owners = np.searchsorted(self.values.starts, places, side="right") - 1
        some: NDArray[Any] = found[owners, np.arange(len(places))]
        return some

    def hand_out(self) -> None:
        """Give all ranks the values of all vertices."""
        self.values.hand_out()

    def keep_whole(self, *, wanted: bool) -> None:
        """Give all ranks the values of all vertices if one of them keeps a checkpoint now; wanted: if this does."""
        if self._kept_anywhere and self.gathered(wanted).any():
            self.hand_out()
