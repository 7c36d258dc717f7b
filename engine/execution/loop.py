"""The loop of one run, iteration by iteration.

    frontier -> direction -> send -> pull views, run kernels on them -> exchange -> apply -> done?

Owns the order of these steps, of one process. What is beside it: which vertices are due (`priorities.py`, `layers.py`),
what the direction rule sees (`situations.py`), several iterations in one launch (`fusing.py`), the kernels that views
meet (`stream_walk.py`), values that memory has no room for (`windows.py`), several ranks (`shared_loop.py`). Opens
nothing: edge streams deliver the edges.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from penstock.engine.execution import cel, stream_walk
from penstock.engine.execution.fusing import fuse
from penstock.engine.execution.run_parts import RunParts
from penstock.engine.execution.situations import situation_of
from penstock.engine.execution.windows import Windows
from penstock.engine.program.bindings import scalar_values
from penstock.engine.program.combiners import COMBINERS
from penstock.engine.program.program import globals_of
from penstock.engine.resources.direction import Direction, Situation, choose
from penstock.engine.state.records import IterationRecord
from penstock.engine.state.state import Frontier

if TYPE_CHECKING:
    from penstock.engine.execution.windows import AtHand
    from penstock.engine.kernels.interface import WholeRowKernels, WindowKernels
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.engine.state.state_arrays import StateArrays
    from penstock.transfer.devices.device import Event
    from penstock.transfer.values.task import Demand


class AllAtHand:
    """The walks of a run for which memory has the values of all vertices: the other way is `Windows`."""

    settled = False
    opened = ()

    def begin(self) -> None:
        """Begin the walks of an iteration."""

    def walk(self, stream: EdgeStream, *_: Any) -> Iterator[tuple[EdgeStream, AtHand]]:
        """Walk once along the stream; `iter`: kernels read its views as they come, for all values are in memory."""
        return iter(((stream, iter),))

    def first(self, stream: EdgeStream) -> EdgeStream:
        """The stream that a walk begins with."""
        return stream

    def note(self, record: IterationRecord) -> None:
        """Nothing is read from a file of values."""


@dataclass
class Loop(RunParts):
    """A run in one process; a program's iterations, and what they have in common with those of other operators."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.globals = globals_of(self.program)
        walked = (stream.index for side in (self.streams, self.against) for stream in side.values())
        self._reads_rows = any(index.pages is not None for index in (self.out, *walked))
        self._index_bytes = 0
        self.index_bytes_read()
        self.windows: AllAtHand | Windows = AllAtHand()
        if self.state.pages is not None:
            kernels = cast("WindowKernels[Any]", self.kernels)
            self.windows = Windows(self.program, self.state, kernels, self.out)
        self.begin_buckets()
        self._may_relax_rows = self.can_settle and "push" in self.streams

    def iterate(self) -> Iterator[IterationRecord]:
        """Run until no vertex is active, the program is done, or its max_iter is reached."""
        try:
            if self.totals_declared and self.iteration == 0:
                self.reduce()
            self._look_ahead()
            while not self.finished and self.iteration < self.program.max_iter:
                began = time.perf_counter()
                self.kernels.use()
                frontier = self.everyone if self.everything else self.due.next(self._select, self.kernels)
                if not frontier.vertices:
                    self.converged = True
                    break
                growing = frontier.vertices > self.before.vertices
                situation = self.situation = self._situation(frontier)
                self.direction = choose(situation, frontier, self.direction, growing)
                scalars = self.scalars()
                if self.direction == "push" and (yield from fuse(self, frontier, situation, scalars, began)):
                    self._look_ahead()
                    continue
                walking = time.perf_counter()
                rows = self._unsettled(frontier, scalars)
                direction = self.direction if rows is None else "pull"
                record = IterationRecord(self.iteration, direction, frontier.vertices, frontier.edges)
                self._send(frontier, record, scalars)
                self._walk(frontier, record, scalars, rows)
                record.walk_seconds = time.perf_counter() - walking - record.exchange_seconds
                self._take_effect(frontier, record, scalars, rows)
                self._end(frontier, record)
                record.seconds = time.perf_counter() - began
                yield record
            cel.end(self)
            self.hand_out()
        finally:
            for stream in (*self.streams.values(), *self.windows.opened):
                stream.release()

    def begin_buckets(self) -> None:
        """Begin with the first bucket of the program, which `start` may have set."""
        self.due.begin(self.streams.values(), self.graph.edges, self.gathered)

    def _end(self, frontier: Frontier, record: IterationRecord) -> None:
        """Fill in the record of an iteration, and count it."""
        self.unexplored -= frontier.edges
        self.unvisited -= frontier.vertices
        record.totals = dict(self.totals)
        record.index_bytes = self.index_bytes_read()
        self.windows.note(record)
        self.before = frontier
        self.everything = self.everything and self.program.everywhere
        self.end_iteration(record.number)
        if self.finished:
            record.tasks.extend(self.windows.first(self.streams[self.direction]).drain())

    def end_iteration(self, number: int) -> None:
        """Count the iteration, and ask the program whether it is done."""
        self.iteration += 1
        self.finished = self.converged = self.program.done(number, self.totals)
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Of a program whose answer is wanted only so far, hold back what is farther, and end where nothing is left."""
        if self.program.bounded:
            self.kernels.use()
            if self.due.is_over(self.state, self.iteration, self.values_at):
                self.finished = self.converged = True

    def index_bytes_read(self) -> int:
        """Bytes that were read from disk since the last call for rows of indexes that are not in memory."""
        if not self._reads_rows:
            return 0
        before, self._index_bytes = self._index_bytes, self.graph.index_bytes_read
        return self._index_bytes - before

    @property
    def row_kernels(self) -> WholeRowKernels[Any]:
        """The kernels, of a program on whole rows."""
        return cast("WholeRowKernels[Any]", self.kernels)

    @property
    def totals_declared(self) -> bool:
        """Whether the program has Globals."""
        return bool(self.author.totals)

    @property
    def everyone(self) -> Frontier:
        """Every vertex."""
        return Frontier(self.graph.vertices, self.graph.edges, everything=self.graph.vertices > 0)

    def walks(self, direction: Direction) -> list[EdgeStream]:
        """The streams of the walks that together carry all messages of an iteration in this direction."""
        return [side[direction] for side in (self.streams, self.against) if direction in side]

    def scalars(self) -> tuple[Any, ...]:
        """What the author's functions read besides fields, at this moment."""
        facts = {"iteration": self.iteration, "vertices": self.graph.vertices, "due": self.due.limit, **self.totals}
        facts["settled"] = self.due.settled_below
        return scalar_values(self.program, self.author, facts)

    # The steps of an iteration.

    def _select(self) -> Frontier:
        return self.kernels.select(self.state, self.out, self.scalars(), self.due.limit)

    def _situation(self, frontier: Frontier) -> Situation:
        """What the direction rule looks at."""
        return situation_of(self, frontier, self.windows.first)

    def _unsettled(self, frontier: Frontier, scalars: tuple[Any, ...]) -> Demand | None:
        """The rows to walk in place of the frontier's; None: those of the frontier."""
        return stream_walk.unsettled(self, frontier, scalars) if self._may_relax_rows else None

    def _send(self, frontier: Frontier, record: IterationRecord, scalars: tuple[Any, ...]) -> None:
        """Compute what the frontier's vertices send."""
        self.kernels.send(self.state, frontier, self.out, scalars)

    def _walk(self, frontier: Frontier, record: IterationRecord, scalars: tuple[Any, ...], rows: Demand | None) -> None:
        """Run the kernels over the edges that the streams bring; rows: `_unsettled`."""
        self.windows.begin()
        walks = self.walks(self.direction)
        settle = partial(self._new_values, frontier, scalars) if not self.asynchronous and len(walks) == 1 else None
        for number, stream in enumerate(walks):
            along = self.state.listed_along(frontier, stream.index) if number else frontier
            for walked, at_hand in self.windows.walk(stream, frontier, settle, self.unexplored - frontier.edges):
                listed = along if walked is stream else replace(along, listed=False)  # the list counts other edges
                stream_walk.walk(self, walked, listed, record, scalars, rows, at_hand)

    def _take_effect(
        self, frontier: Frontier, record: IterationRecord, scalars: tuple[Any, ...], rows: Demand | None
    ) -> None:
        """Let what the walk has brought take effect."""
        if not self.asynchronous:
            self._apply(frontier, scalars)

    def _apply(self, frontier: Frontier, scalars: tuple[Any, ...], free: Event = None) -> None:
        """Compute new values; where another sweep follows, its edges begin to come meanwhile.

        free: the event after which no kernel reads edges; None: now.
        """
        stream = self.windows.first(self.streams[self.direction])
        again = frontier.everything and self.program.everywhere and self.iteration + 1 < self.program.max_iter

        def settle() -> None:
            if not self.windows.settled:
                self._new_values(frontier, scalars, self.state)

        if again and not stream.resident:
            device = stream.pipeline.device
            after = device.event(None) if free is None else free
            device.overlap(partial(stream.read_ahead, self.kernels, self.state, after), settle)
        else:
            settle()
        self.agree_on_floats()
        if self.totals_declared:
            if frontier.everything:
                self._total_of_sweep(frontier)
            else:
                self.reduce()

    def _new_values(self, frontier: Frontier, scalars: tuple[Any, ...], part: StateArrays) -> None:
        """Give the vertices of a part of the state new values."""
        self.kernels.apply(part, frontier, self.out, scalars)

    def reduce(self) -> None:
        """Compute the Globals of the present values, and set `totals`."""
        known = {**dict.fromkeys(self.author.totals, 0.0), **self.totals}
        self.totals = known
        self.kernels.use()
        self._reduced()
        self.total()

    def _reduced(self) -> None:
        """Leave the Globals' shares of the present values in the state."""
        self.kernels.reduce(self.state, self.out, self.scalars())

    def total(self) -> None:
        """Combine the partial totals of spans of vertices in order, so that threads do not change a sum."""
        partial = self.state.partial
        for column, (name, total) in enumerate(self.globals.items()):
            self.totals[name] = float(COMBINERS[total.combine].ufunc.reduce(partial[:, column]))

    # What several ranks do otherwise (`SharedLoop`).

    @property
    def can_settle(self) -> bool:
        """Whether rows may be relaxed both ways: every edge in two rows, values seen at once, no direction forced."""
        alone = self.due.alone and self.state.pages is None and not self.against
        return alone and self.asynchronous and not self.graph.directed and self.author.settles and self.forced is None

    @property
    def owned_vertices(self) -> tuple[int, int]:
        """The first and past the last of the vertices whose rows are this rank's."""
        return 0, self.graph.vertices

    def hand_out(self) -> None:
        """Give all ranks the values of all vertices, some of which owners alone may have."""

    def keep_whole(self, *, wanted: bool) -> None:
        """Give all ranks the values of all vertices if one of them keeps a checkpoint now; wanted: if this does."""

    def compare(self, direction: Direction, frontier: Frontier, record: IterationRecord, seconds: float) -> None:
        """Compare how long ranks were busy, and move their bounds where that pays."""

    def share_rows(self, arrays: Sequence[Any], record: IterationRecord) -> None:
        """Give all ranks the items of their vertices in these arrays that each of them has computed."""

    def share_counts(self, record: IterationRecord) -> None:
        """Give all ranks the messages that they have counted together."""

    def total_own(self, record: IterationRecord) -> None:
        """Combine the Globals' shares of spans that each rank has computed for its own vertices."""
        self.total()

    def _total_of_sweep(self, frontier: Frontier) -> None:
        """Combine the partial totals that a sweep's `apply` has left."""
        self.total()

    def agree_on_floats(self) -> None:
        """Take the first rank's values and marks, where ranks on unlike processors have computed floats."""
