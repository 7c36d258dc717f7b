"""The loop of one run, iteration by iteration.

    frontier -> direction -> send -> pull views, run kernels on them -> exchange -> apply -> done?

Owns the order of these steps. Direction, demand and plan are pure functions; decided here is whether iterations are
fused (`_can_fuse`), and whether a walk reads other rows (`_unsettled_rows`) or little (`_few_behind`). Opens nothing:
edge streams deliver the edges.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from penstock.engine.execution import cel
from penstock.engine.execution.owned_steps import OwnedSteps, keeps_apart, shares_sweeps
from penstock.engine.execution.priorities import Horizon, bucket_width
from penstock.engine.execution.shared_situation import certainly_pushed, own_seconds, progress_of, seen_by_all
from penstock.engine.execution.windows import Windows
from penstock.engine.program.bindings import scalar_values
from penstock.engine.program.combiners import COMBINERS
from penstock.engine.program.program import Program, fields_of, globals_of, words_of
from penstock.engine.ranks.communicator import broadcast
from penstock.engine.ranks.rank_devices import RankDevices
from penstock.engine.ranks.rank_exchange import RankExchange
from penstock.engine.resources.direction import (
    Direction,
    Situation,
    can_choose,
    certain_push,
    choose,
    is_certain,
    is_open,
    weighs,
)
from penstock.engine.resources.direction_cost import LinkReading, reading
from penstock.engine.resources.link_costs import fetched_of, link_costs_of
from penstock.engine.state.fused_iterations import (
    NO_FRONTIERS,
    FusedCall,
    FusedIterations,
    FusedLimits,
    FusedRecord,
    RunRecords,
)
from penstock.engine.state.records import IterationRecord, PhaseRecord
from penstock.engine.state.state import Frontier, State
from penstock.storage.base.timeline import during
from penstock.transfer.values.task import Demand, TaskRecord

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.execution.layers import Layers
    from penstock.engine.execution.windows import AtHand, Settle
    from penstock.engine.kernels.host.launch import HostKernels
    from penstock.engine.kernels.interface import Kernels, WholeRowKernels, WindowKernels
    from penstock.engine.ranks.communicator import Communicator
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.engine.resources.ownership import Ownership
    from penstock.engine.state.device_state import VertexState
    from penstock.engine.state.state_arrays import StateArrays
    from penstock.storage.base.timeline import Timeline
    from penstock.storage.format.graph import Graph
    from penstock.storage.format.index import Index
    from penstock.transfer.devices.device import Event
    from penstock.transfer.values.view import View

MANY = 32
"""A frontier of fewer edges than this part of the graph's is pushed without a look at what unsettled vertices have."""
FIRST, AGAIN = 1, 4
"""How many edges of the frontier an edge of unsettled vertices must replace: the first time, and after that."""
MISSED, SOME_LINES = 4, 1 << 14
"""A pull that reads so many times the lines expected, and so many more, was not expected well."""
SELECTIVE = ("min", "max", "or")
"""Combiners whose pushes write only what changes a vertex."""
LOADED = ("filter", "resident")
"""Routes whose views can hold the edges of inactive rows too, so that rows that become pending can be walked."""


@dataclass
class Loop:
    """One run of `program`.

    out: index of the adjacency along whose rows vertices send. streams: of edges, for push and for pull. against: those
    of a second walk in each iteration, for programs that send along the edges of a directed graph and against them
    (`along = "both"`). ranks: the processes that share the edges, None for one; devices: where they compute; ownership:
    which vertices are whose; rebalance: what moves these bounds after a walk of so many seconds, None where they stay.
    timeline: where exchanges are stamped, if anywhere. asynchronous: updates are visible in the same iteration.
    forced: the only direction that the run may take, None where there are two. local_rounds: how often `_push_again`
    repeats a push on a view. layers: whose vertices send, None for all that are due.

    A checkpoint holds, besides the state: iteration; totals; unexplored and unvisited, the graph's edges and vertices
    less those of all frontiers so far; limit, below which priorities are due; direction and before, direction and
    frontier of the iteration that ended last; everything, whether all vertices are active next; converged; finished,
    whether nothing is left to do; met: of triangle programs, vertices 0 to met - 1 are done.

    collected: where calls of fused iterations go, but for the last record of each, if nobody looks at each; else None.
    settled: whether the state is that after the iterations whose records were yielded. While the records of fused
    iterations are yielded one by one, the state, and all that a checkpoint holds, is that after the last of them.
    phase: of a program of phases, the one that this loop runs, for the records.
    """

    program: Program
    graph: Graph
    out: Index
    state: VertexState
    kernels: Kernels[Any]
    streams: dict[Direction, EdgeStream]
    against: dict[Direction, EdgeStream] = field(default_factory=dict)
    asynchronous: bool = False
    forced: Direction | None = None
    local_rounds: int = 0
    layers: Layers | None = None
    ranks: Communicator | None = None
    devices: RankDevices = field(default_factory=RankDevices)
    ownership: Ownership | None = None
    rebalance: Callable[[Loop, Direction, Frontier, IterationRecord, float], None] | None = None
    timeline: Timeline | None = None
    converged: bool = False
    finished: bool = False
    everything: bool = False
    met: int = 0
    collected: RunRecords | None = None
    settled: bool = True
    phase: PhaseRecord | None = None
    direction: Direction = "push"
    before: Frontier = field(default_factory=lambda: Frontier(0, 0))

    def __post_init__(self) -> None:
        self.exchange = None if self.ranks is None else self._exchange_of_ranks(self.ranks)
        self.owned: OwnedSteps | None = None
        if self.exchange is not None and not self.devices.on_devices:
            self.owned = OwnedSteps(self.program, cast("State", self.state), self.exchange)
        self._keeps_apart = False
        self.author = self.kernels.author
        self.totals: dict[str, float] = {}
        self.unexplored = self.graph.edges
        self.unvisited = self.graph.vertices
        self.iteration = 0
        self.settled_below = -math.inf
        self.horizon = Horizon(self.program)
        self.begin_buckets()
        self._bucket_limit = math.nan
        self._rows_weight = FIRST
        self._now: Situation | None = None
        self._expected: tuple[TaskRecord, float] | None = None
        self._bucket_began_small = False
        self._walked: Event = None
        self._seen: Situation | None = None
        self._edgeless = self.graph.without_edges or 0
        self._globals = globals_of(self.program)
        walked = (stream.index for side in (self.streams, self.against) for stream in side.values())
        self._reads_rows = any(index.pages is not None for index in (self.out, *walked))
        self._index_bytes = 0
        self.index_bytes_read()
        self.windows: Windows | None = None
        if self.state.pages is not None:
            kernels = cast("WindowKernels[Any]", self.kernels)
            self.windows = Windows(self.program, self.state, kernels, self.out)

    def _exchange_of_ranks(self, ranks: Communicator) -> RankExchange:
        assert self.devices.arrays is not None, "ranks exchange arrays"
        return RankExchange(self.state, self.kernels.exchange_kernels(), ranks, self.devices.arrays)

    def iterate(self) -> Iterator[IterationRecord]:
        """Run until no vertex is active, the program is done, or its max_iter is reached."""
        try:
            yield from self._iterations()
            self.hand_out()
        finally:
            for stream in (*self.streams.values(), *(self.windows.opened if self.windows is not None else ())):
                stream.release()

    def begin_buckets(self) -> None:
        """Begin with the first bucket of the program, which `start` may have set; without buckets all are due."""
        program, streams = self.program, self.streams.values()
        again = any(stream.reads_again for stream in streams)  # an iteration then reads most chunks, however few edges
        agains, linked = self.gathered(again, any(stream.linked for stream in streams)).T
        narrowest = 0.0 if agains.any() else program.narrowest_bucket
        usual = program.bucket
        if program.narrowest_bucket and any(stream.scans for stream in streams):
            usual = narrowest = 0.0  # the fewer iterations, the fewer edges are read: all that is pending is due
        self.bucket = bucket_width(usual, narrowest, self.graph.edges, bool(linked.any()))
        self.limit = math.inf if self.layers is not None else self.bucket.width or math.inf

    def _iterations(self) -> Iterator[IterationRecord]:
        if self.totals_declared and self.iteration == 0:
            self.reduce()
        self._look_ahead()
        while not self.finished and self.iteration < self.program.max_iter:
            began = time.perf_counter()
            self.kernels.use()
            frontier = self.everyone if self.everything else self._next_frontier()
            if frontier.empty:
                self.converged = True
                return
            self._note_bucket_size(frontier)
            self.bucket.work += frontier.edges
            growing = frontier.vertices > self.before.vertices
            situation = self._now = self._situation(frontier)
            self.direction = choose(situation, frontier, self.direction, growing)
            fusible = self.direction == "push" and self._can_fuse(frontier)
            if fusible and (yield from self._fuse(frontier, certain_push(situation), began)):
                self._look_ahead()
                continue
            walking = time.perf_counter()
            rows = self._unsettled_rows(frontier)
            if rows is not None and self.exchange is not None:
                self.exchange.begin_settling()
            direction = self.direction if rows is None else "pull"
            record = IterationRecord(self.iteration, direction, frontier.vertices, frontier.edges)
            scalars = self.scalars()
            self._walk(frontier, record, scalars, rows)
            record.walk_seconds = time.perf_counter() - walking - record.exchange_seconds
            shared = self._exchange(frontier, record, settled=rows is not None)
            compares, parts = self.rebalance is not None and shared, self._sharing(frontier) is not None
            if compares and not parts:
                self._compare(frontier, record)
            if not self.asynchronous:
                self._apply(frontier, scalars)
            if compares and parts:  # messages are with owners until they have applied them
                self._compare(frontier, record)
            if not shared:
                self._share_pending(record)
            self.unexplored -= frontier.edges
            self.unvisited -= frontier.vertices
            record.totals = dict(self.totals)
            record.index_bytes = self.index_bytes_read()
            if self.windows is not None:
                self.windows.note(record)
            record.seconds = time.perf_counter() - began
            self.before = frontier
            self.everything = self.everything and self.program.everywhere
            self.end_iteration(record.number)
            if self.finished:
                record.tasks.extend(self._begins(self.streams[self.direction]).drain())
            yield record

    def end_iteration(self, number: int) -> None:
        """Count the iteration, and ask the program whether it is done."""
        self.iteration += 1
        self.finished = self.converged = self.program.done(number, self.totals)
        self._look_ahead()

    def index_bytes_read(self) -> int:
        """Bytes that were read from disk since the last call for rows of indexes that are not in memory."""
        if not self._reads_rows:
            return 0
        before, self._index_bytes = self._index_bytes, self.graph.index_bytes_read
        return self._index_bytes - before

    def _look_ahead(self) -> None:
        """Of a program whose answer is wanted only so far, hold back what is farther, and end where nothing is left."""
        if not self.program.bounded or self.layers is not None:
            return
        self.kernels.use()
        self.horizon.look(self.state)
        self.limit = min(self.limit, self.horizon.ceiling)
        if self.iteration >= self.horizon.last:
            self.finished = self.converged = True

    @property
    def owned_vertices(self) -> tuple[int, int]:
        """The first and past the last of the vertices whose rows are this rank's; without ranks all."""
        return (0, self.graph.vertices) if self.ownership is None else self.ownership.vertices

    @property
    def row_kernels(self) -> WholeRowKernels[Any]:
        """The kernels, of a program on whole rows."""
        return cast("WholeRowKernels[Any]", self.kernels)

    def walks(self, direction: Direction) -> list[EdgeStream]:
        """The streams of the walks that together carry all messages of an iteration in this direction."""
        return [side[direction] for side in (self.streams, self.against) if direction in side]

    def gathered(self, *numbers: float) -> NDArray[np.float64]:
        """What these numbers are in each rank, shape (ranks, numbers)."""
        ours = np.array(numbers, dtype=np.float64)
        return ours[None] if self.ranks is None else self.ranks.gather_numbers(ours)

    @contextmanager
    def exchanging(self, record: IterationRecord) -> Iterator[None]:
        """Exchange between ranks within; the only place where that is timed."""
        began = time.perf_counter()
        with during(self.timeline, "exchange", "exchange"):
            yield
        record.exchange_seconds += time.perf_counter() - began

    def _exchange(self, frontier: Frontier, record: IterationRecord, *, settled: bool) -> bool:
        """Give all ranks the same messages; return whether they have them. settled: after a walk of unsettled rows."""
        if self.exchange is None:
            return True
        self._walked = self.streams[self.direction].pipeline.device.event(None)
        pulled = all(stream.direction == "pull" for stream in self.walks(self.direction))
        ownership = self.ownership if pulled else None
        with self.exchanging(record):
            if settled:
                assert self.ownership is not None, "ranks own rows"
                self.exchange.share_settled(self.ownership.bounds)
                return True
            bounds = None if ownership is None else ownership.bounds
            if (sharing := self._sharing(frontier)) is not None:
                owned, every = sharing
                if pulled:
                    owned.hand_pulled(every)
                elif self.windows is None or not self.windows.shared:
                    self.exchange.give_owners(owned.starts(every), (0, self.state.last))
                return True
            kept_above = self.owned.kept_above if pulled and self._keeps_apart and self.owned is not None else None
            return self.exchange.share_messages(frontier.everything, bounds, kept_above)

    def _sharing(self, frontier: Frontier) -> tuple[OwnedSteps, NDArray[np.int64]] | None:
        """Of a sweep in which each rank sends from, and applies to, its own vertices alone: those steps, and bounds."""
        if not frontier.everything or self.ownership is None or self.owned is None or not self.owned.sweeps:
            return None
        return self.owned, self.ownership.bounds

    def _compare(self, frontier: Frontier, record: IterationRecord) -> None:
        """Compare how long ranks were busy, and move their bounds where that pays."""
        assert self.rebalance is not None, "bounds may move"
        self.rebalance(self, self.direction, frontier, record, record.walk_seconds)

    def _share_pending(self, record: IterationRecord) -> None:
        """Give all ranks the same pending vertices, where owners alone have applied."""
        assert self.exchange is not None, "ranks own vertices"
        assert self.owned is not None, "ranks own vertices"
        self.owned.apart = True
        with self.exchanging(record):
            self.exchange.share_pending()

    def keep_apart(self, *, checkpoints: bool) -> None:
        """Let owners alone have what wide pulls bring, where a program allows it, and no rank keeps checkpoints."""
        if self.owned is None or self.asynchronous or self.author.uses_activity:
            return
        sweeps = self.windows is not None and shares_sweeps(self.program)
        if (sweeps or keeps_apart(self.program)) and not self.gathered(checkpoints).any():
            self.owned.sweeps, self._keeps_apart = sweeps, not sweeps

    def hand_out(self) -> None:
        """Give all ranks the values of all vertices, some of which owners alone may have."""
        if self.owned is not None and self.ownership is not None:
            self.owned.hand_out(self.ownership.bounds)

    def _note_bucket_size(self, frontier: Frontier) -> None:
        """When `limit` has moved, note whether the frontier can be fused: only then may fused iterations move it."""
        if self.limit != self._bucket_limit:
            self._bucket_limit = self.limit
            self._bucket_began_small = self.kernels.can_fuse(frontier)

    def _can_fuse(self, frontier: Frontier) -> bool:
        """Whether one launch may run this iteration and more: one process that reads all edges, a small frontier."""
        stream, kernels = self.streams["push"], self.kernels
        against = self.against.get("push")
        here = self.ranks is None and self.layers is None and stream.index is self.out and self.out.whole
        able = here and (against is None or kernels.both_ways) and kernels.can_fuse(frontier)
        if against is not None:  # without in-edges all out-edges are pulled along, whatever the frontier is
            return able and stream.resident and against.resident and against.direction == "push"
        return able and (stream.resident or (kernels.over_links and stream.slight(frontier)))

    def _fuse(
        self, frontier: Frontier, certain: tuple[int, int, float], selecting: float
    ) -> Generator[IterationRecord, None, bool]:
        """Run several iterations in one launch; returns whether at least one could run.

        certain: which frontiers are pushed without asking `choose` (`certain_push`). selecting: when the selection of
        the first frontier began, which waits for earlier kernels.
        """
        began, scalars = time.perf_counter(), self.scalars()
        stream = self.streams["push"]
        edges, alpha, per_row = certain
        left = self.program.max_iter - self.iteration
        if self.program.bounded:
            left = min(left, self.horizon.most_fused(self.iteration))
        unvisited = self.unvisited if self._now is None else self._now.unvisited
        bucket = self.bucket.width if self._bucket_began_small else 0.0
        bounds = FusedLimits(
            left, edges, alpha, self.unexplored, self.before.vertices, self.limit, bucket, unvisited, per_row
        )
        done = FusedIterations(NO_FRONTIERS, self.limit)
        against, tasks = None, []
        other = self.against.get("push")
        if other is not None:  # all its edges are in memory, and stay there
            with other.views(self.kernels, self.state, frontier, scalars) as views:
                found = [(view, other.index) for view in views]
            if not found:  # this frontier has no edges there; those after it may
                return False
            against = found[-1]
            tasks = [(task, other.edge_bytes) for task in other.records]
        with stream.views(self.kernels, self.state, frontier, scalars) as views:
            for view in views:
                done = self.kernels.fused_iterations(view, self.state, frontier, self.out, scalars, bounds, against)
                view.record.predicted = None  # it was for one iteration: there is nothing to learn from several
        tasks = [*((task, stream.edge_bytes) for task in stream.records), *tasks]
        frontiers = done.frontiers
        if not len(frontiers):
            return False
        vertices, edges = frontiers.sum(axis=0).tolist()
        self.bucket.work += edges - frontier.edges
        if done.limit != self.limit:
            self.bucket.forget()
            self.settled_below = self.limit
        self.limit = done.limit
        self.unexplored -= edges
        self.unvisited -= vertices
        self.before = Frontier(*frontiers[-1].tolist())
        self.iteration += len(frontiers)
        seconds = (time.perf_counter() - began) / len(frontiers)
        call = FusedCall(self.iteration - len(frontiers), frontiers, tasks, selecting, began, seconds, self.phase)
        if self.collected is not None:
            self.collected.add_call(call)
            yield FusedRecord(call, len(frontiers) - 1)
        else:
            *others, last = call.records()
            self.settled = False
            yield from others
            self.settled = True
            yield last
        return True

    @property
    def can_settle(self) -> bool:
        """Whether rows may be relaxed both ways: every edge in two rows, values seen at once, no direction forced."""
        together = self.devices.on_devices and self.devices.alike
        able = self.ranks is None or (together and "degree" not in words_of(self.program))
        alone = self.layers is None and self.windows is None and able and not self.against
        return alone and self.asynchronous and not self.graph.directed and self.author.settles and self.forced is None

    @property
    def totals_declared(self) -> bool:
        """Whether the program has Globals."""
        return bool(self.author.totals)

    def scalars(self) -> tuple[Any, ...]:
        """What the author's functions read besides fields, at this moment."""
        facts = {"iteration": self.iteration, "vertices": self.graph.vertices, "due": self.limit, **self.totals}
        facts["settled"] = self.settled_below
        return scalar_values(self.program, self.author, facts)

    @property
    def everyone(self) -> Frontier:
        """Every vertex."""
        return Frontier(self.graph.vertices, self.graph.edges, everything=self.graph.vertices > 0)

    def _next_frontier(self) -> Frontier:
        """Select what is due; when nothing is, move the limit to the bucket of the lowest pending priority."""
        frontier, empty = self._select(), False
        while frontier.empty and frontier.rest < self.horizon.ceiling:
            above = self.bucket.limit_above(frontier.rest, empty=empty)
            self.settled_below, self.limit = frontier.rest, min(above, self.horizon.ceiling)
            frontier, empty = self._select(), True
        return frontier

    def _select(self) -> Frontier:
        scalars = self.scalars()

        def select(state: VertexState) -> Frontier:
            return self.kernels.select(state, self.out, scalars, self.limit)

        if self.owned is not None and self.ownership is not None:
            return self.owned.select(select, self.ownership.bounds)
        return (
            select(self.state) if self.layers is None else self.layers.select(self.state, partial(select, self.state))
        )

    def _situation(self, frontier: Frontier) -> Situation:
        """What the direction rule looks at; ranks look at the same."""
        found = self._own_situation(frontier)
        if self.ranks is None or not is_open(found) or is_certain(found, frontier):
            return found
        if not (self.devices.linked or can_choose(found) or found.selective):
            return found
        if self._seen is not None and (pushed := certainly_pushed(found, self._seen, frontier)) is not None:
            return pushed
        streams = self.streams
        seconds = own_seconds(found, (streams["push"], streams["pull"]), frontier)
        self._seen = seen_by_all(found, seconds, self.ranks)
        return self._seen

    def _own_situation(self, frontier: Frontier) -> Situation:
        streams, rows = self.streams, self.state.unmatched
        absent = [stream for stream in streams.values() if not stream.resident]
        kept = rows.used if rows is not None and rows.complete else None
        on_cores = all(stream.pipeline.device.reads_host for stream in streams.values())
        edgeless = self._edgeless if on_cores else 0  # a pull on the cores looks at no empty row
        situation = Situation(
            self.graph.vertices,
            self.graph.edges,
            self.unexplored,
            self.program.early_exit,
            "pull" in streams,
            self.forced,
            bool(absent) and not on_cores,
            max(0, self.unvisited - edgeless),
            on_cores,
            from_disk=any(stream.from_disk for stream in absent),
            kept=kept,
            selective=self.program.combine in SELECTIVE,
            leaves_rows=self.author.has_suffices,
        )
        if weighs(situation, frontier):
            push = self._begins(streams["push"])
            windows = 1 if push is streams["push"] else len(streams["push"].directory.adjacency.windows)
            return replace(situation, link=link_costs_of(push, streams["pull"], frontier, windows))
        if situation.on_cores and situation.from_disk and can_choose(situation):
            found = fetched_of(streams["push"], streams["pull"], frontier, situation.unvisited, rows is not None)
            return replace(situation, fetched=found)
        return situation

    def _unsettled_rows(self, frontier: Frontier) -> Demand | None:
        """The rows to read in place of the frontier's: of vertices that may still change, where they have fewer edges.

        Only over a link: where edges are in memory already, counting them does not pay.
        """
        stream = self.streams.get("push")
        many = frontier.edges * MANY > self.graph.edges and not frontier.everything
        if not (many and self.can_settle) or stream is None:
            return None
        rows = stream.unsettled(self.kernels, self.state, self.scalars()) if stream.linked else None
        if self.ranks is None and rows is None:
            return None
        edges = math.inf if rows is None else int(rows.active_edges.sum())
        if float(self.gathered(edges).sum()) * self._rows_weight >= frontier.edges:
            return None
        self._rows_weight = AGAIN
        return rows

    def _walk(self, frontier: Frontier, record: IterationRecord, scalars: tuple[Any, ...], rows: Demand | None) -> None:
        """Send, then run the kernels over the edges that the streams bring; rows: `_unsettled_rows`."""
        direction, state = self.direction, self.state
        sharing = self._sharing(frontier)
        if self.owned is not None and self.owned.apart and direction == "push" and sharing is None:
            with self.exchanging(record):
                self.hand_out()
        if self.streams[direction].heads is not None:
            record.filling.extend(self.streams[direction].fill_heads(self.kernels, state))
        if (own := self._own_part(frontier, state)) is not None:
            self.kernels.send(own, frontier, self.out, scalars)
        if sharing is not None:
            with self.exchanging(record):
                owned, bounds = sharing
                owned.hand_sources(bounds, pulls=any(stream.direction == "pull" for stream in self.walks(direction)))
        if direction == "pull" and state.unmatched is not None and state.unmatched.complete:
            self._pull_unmatched(frontier, record, scalars)
            return
        if self.windows is not None:
            self.windows.begin()
        for number, stream in enumerate(self.walks(direction)):
            along = state.listed_along(frontier, stream.index) if number else frontier
            for walked, at_hand in self._windows(stream, frontier, record, scalars):
                listed = along if walked is stream else replace(along, listed=False)  # the list counts other edges
                self._walk_stream(walked, listed, scalars, rows, at_hand)
                record.tasks.extend(walked.records)
                record.plan_seconds += walked.plan_seconds

    def _windows(
        self, stream: EdgeStream, frontier: Frontier, record: IterationRecord, scalars: tuple[Any, ...]
    ) -> Iterator[tuple[EdgeStream, AtHand]]:
        """What to walk, and what to do with its views, for each window of vertices; once where all values are held."""
        if self.windows is None:
            return iter(((stream, iter),))  # the builtin `iter`: views as they come
        alone = not self.asynchronous and len(self.walks(self.direction)) == 1

        def settle(part: StateArrays) -> None:
            if (own := self._own_part(frontier, part)) is not None:
                self.kernels.apply(own, frontier, self.out, scalars)

        if self.exchange is None:
            return self.windows.walk(stream, frontier, settle if alone else None)
        return self._shared_windows(stream, frontier, record, settle if alone else None)

    def _shared_windows(
        self, stream: EdgeStream, frontier: Frontier, record: IterationRecord, settle: Settle | None
    ) -> Iterator[tuple[EdgeStream, AtHand]]:
        """The same of several ranks: messages go to owners while a window is at hand, if all ranks have the same ones.

        settle: of a push that brings all messages.
        """
        assert self.windows is not None, "values are in pages"
        windows, exchange = self.windows, self.exchange
        sharing = self._sharing(frontier) if settle is not None and stream.direction == "push" else None
        if sharing is None or exchange is None:
            return windows.walk(stream, frontier, None)
        owned, bounds = sharing
        cut, starts, own = windows.cut(stream), owned.starts(bounds), owned.own(bounds)
        cuts = self.gathered(cut.size, cut.count, cut.of_file)
        if (cuts != cuts[0]).any():
            return windows.walk(stream, frontier, None)

        def share(first: int, last: int) -> None:
            with self.exchanging(record):
                exchange.give_owners(starts, (first, last))
            windows.leave(first, min(own[0], last))
            windows.leave(max(own[1], first), last)

        return windows.walk(stream, frontier, settle, share)

    def _own_part(self, frontier: Frontier, part: StateArrays) -> StateArrays | None:
        """A part of the state, or of a shared sweep that of its vertices which are this rank's, if there are any."""
        if (sharing := self._sharing(frontier)) is None:
            return part
        owned, bounds = sharing
        return owned.part(bounds, part.first, part.last)

    def _begins(self, stream: EdgeStream) -> EdgeStream:
        """The edges that the next sweep begins with."""
        return stream if self.windows is None else self.windows.first(stream)

    def _pull_unmatched(self, frontier: Frontier, record: IterationRecord, scalars: tuple[Any, ...]) -> None:
        """Pull along the rows that the last pull kept, which are all that there are."""
        began = time.perf_counter()
        cast("HostKernels", self.kernels).pull_unmatched(cast("State", self.state), self.out, scalars)
        task = TaskRecord("resident", self.streams["pull"].key, (), frontier.edges)
        task.kernel_seconds = time.perf_counter() - began
        record.tasks.append(task)

    def _walk_stream(
        self, stream: EdgeStream, frontier: Frontier, scalars: tuple[Any, ...], rows: Demand | None, at_hand: AtHand
    ) -> None:
        """Run the kernels over the edges that one stream brings; rows: those to be relaxed both ways, if any."""
        kernels, state, skip = self.kernels, self.state, 0
        if stream.heads is not None:  # first the neighbors kept on the device; the walk skips them, and what matched
            head = stream.heads.view(stream.key)
            kernels.pull(head, state, frontier, (stream.heads.index, self.out), scalars)
            kernels.record_matched(state)
            skip = stream.skip
        behind = self._few_behind(stream, frontier)
        kept = state.unmatched if stream.direction == "pull" else None
        if kept is not None:
            kept.begin()
        if rows is not None:
            with stream.views(kernels, state, frontier, scalars, rows=rows) as arrivals:
                for view in arrivals:
                    began = time.perf_counter()
                    kernels.relax_unsettled(view, state, stream.index, scalars)
                    view.record.kernel_seconds += time.perf_counter() - began
            return
        with stream.views(kernels, state, frontier, scalars, behind=behind) as arrivals:
            follows = stream.direction == "push" and cel.follows(stream)
            follow = cel.views(arrivals, kernels, state, stream, (scalars, self.limit)) if follows else arrivals
            for view in at_hand(follow):
                began = time.perf_counter()
                if stream.direction == "push":
                    kernels.push(view, state, frontier, stream.index, scalars)
                    self._push_again(stream, view, scalars)
                else:
                    kernels.pull(view, state, frontier, (stream.index, self.out), scalars, skip)
                view.record.kernel_seconds += time.perf_counter() - began
                if behind is not None:
                    view.record.predicted = None  # the guess was of what all rows have, not of this view
                    self._expected = view.record, behind.requests
        if kept is not None:
            kept.end()

    def _few_behind(self, stream: EdgeStream, frontier: Frontier) -> LinkReading | None:
        """What a pull reads behind row prefixes, where that is expected to be little; None where it is to be counted.

        Once much more was read than expected, it is always counted.
        """
        now = self._now
        if stream.direction != "pull" or now is None or now.link is None:
            return None
        if self._expected is not None and self._expected[0].lines_read > MISSED * self._expected[1] + SOME_LINES:
            return None
        read = reading(now.link, *progress_of(now, stream, frontier))
        return read if stream.few_behind(read) else None

    def _push_again(self, stream: EdgeStream, view: View, scalars: tuple[Any, ...]) -> None:
        """Push again from vertices that have become pending, on edges that were brought for this iteration only."""
        if self.local_rounds and view.record.route in LOADED and not stream.resident:
            for _ in range(self.local_rounds):
                self.kernels.push_resend(view, self.state, stream.index, scalars, self.limit)
                view.record.local_rounds += 1

    def _apply(self, frontier: Frontier, scalars: tuple[Any, ...]) -> None:
        """Compute new values; where another sweep follows, its edges begin to come meanwhile."""
        stream = self._begins(self.streams[self.direction])
        device = stream.pipeline.device
        again = frontier.everything and self.program.everywhere and self.iteration + 1 < self.program.max_iter
        ahead, free = again and not stream.resident, self._walked  # edges may come during the exchange of ranks
        if ahead and self.ranks is None:
            free = device.event(None)
        if ahead and device.reads_host:  # its kernels are done when they return: reads start before them
            stream.read_ahead(self.kernels, self.state, free)
        if (self.windows is None or not self.windows.settled) and (
            own := self._own_part(frontier, self.state)
        ) is not None:
            self.kernels.apply(own, frontier, self.out, scalars)
        if ahead and not device.reads_host:
            stream.read_ahead(self.kernels, self.state, free)
        self.agree_on_floats()
        if self.totals_declared:
            if frontier.everything:
                if (sharing := self._sharing(frontier)) is not None:
                    owned, bounds = sharing
                    owned.hand_totals(bounds)
                self.total()
            else:
                self.reduce()

    def reduce(self) -> None:
        """Compute the Globals of the present values, and set `totals`."""
        known = {**dict.fromkeys(self.author.totals, 0.0), **self.totals}
        self.totals = known
        self.kernels.use()
        self.kernels.reduce(self.state, self.out, self.scalars())
        self.total()

    def total(self) -> None:
        """Combine the partial totals of spans of vertices in order, so that threads do not change a sum."""
        partial = self.state.partial
        for column, (name, total) in enumerate(self._globals.items()):
            self.totals[name] = float(COMBINERS[total.combine].ufunc.reduce(partial[:, column]))
        if self.ranks is not None and self.devices.on_devices and self.totals:
            # the first rank's, where some are added up on devices, in an order of their own
            names = list(self._globals)
            values = self.ranks.gather_numbers(np.array([self.totals[name] for name in names]))[0]
            self.totals.update(zip(names, values.tolist(), strict=True))

    def agree_on_floats(self) -> None:
        """Take the first rank's values and marks, where ranks on unlike processors have computed floats."""
        state, ranks = self.state, self.devices.arrays
        if ranks is None or self.devices.alike or not any(array.dtype.kind == "f" for array in state.arrays):
            return
        for name, spec in fields_of(self.program).items():
            if not spec.constant:
                broadcast(ranks, state.fields[name], 0)
        broadcast(ranks, state.pending.words.view(np.uint32), 0)
        state.pending.summarize()
        state.sent_ahead = None
