"""The story of one run, iteration by iteration.

    frontier -> direction -> send -> pull views, run kernels on them -> exchange -> apply -> done?

Owns the order of these steps over a list of devices, each with its own State and its own share of the edges. Decides
nothing itself (direction, demand and plan are pure functions) and opens nothing (lanes bring the edges).
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from penstock.engine.execution import cel
from penstock.engine.program.bindings import scalar_values
from penstock.engine.program.combiners import COMBINERS
from penstock.engine.program.program import Program, globals_of
from penstock.engine.ranks.exchange import Exchange, HostExchange
from penstock.engine.resources.direction import Direction, Situation, certain_push, choose, weighs
from penstock.engine.resources.link_costs import link_costs_of
from penstock.engine.state.frontier import Frontier
from penstock.engine.state.fused_limits import FusedIterations, FusedLimits
from penstock.engine.state.records import IterationRecord
from penstock.transfer.values.rates import LINE_BYTES
from penstock.transfer.values.task import TaskRecord

if TYPE_CHECKING:
    from penstock.engine.kernels.interface import Kernels, WholeRowKernels
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.engine.state.device_state import VertexState
    from penstock.engine.state.state import State
    from penstock.storage.format.graph import Graph
    from penstock.storage.format.index import Index
    from penstock.transfer.values.view import View

LOADED = ("filter", "resident")
"""Routes whose views hold all edges of their rows, so that other rows than the active ones can be walked again."""


@dataclass
class Worker:
    """A device at work: its state, its kernels, its lanes of edges by direction.

    against: of programs that go both ways along a directed graph's edges, the lanes of the second walk.
    """

    state: VertexState
    kernels: Kernels[Any]
    lanes: dict[Direction, EdgeStream]
    against: dict[Direction, EdgeStream] = field(default_factory=dict)

    @property
    def row_kernels(self) -> WholeRowKernels[Any]:
        """The kernels, of a program on whole rows."""
        return cast("WholeRowKernels[Any]", self.kernels)


@dataclass
class Loop:
    """One run of `program`; `out`: index of the edges sent along (degrees); `asynchronous`: updates seen at once.

    What a run that is continued needs besides the devices' states: iteration, totals, unexplored (edges), unvisited
    (vertices), limit, direction and before (the iteration's that ended last), everything (whether all vertices are
    active next), finished (nothing is left to do), met (of triangles: the vertices before this one have met all of
    theirs). settled: the states are those after `iteration` iterations, which they are not while several that one
    launch ran are told one by one.
    """

    program: Program
    graph: Graph
    out: Index
    workers: list[Worker]
    asynchronous: bool = False
    forced: Direction | None = None
    local_rounds: int = 0
    converged: bool = False
    finished: bool = False
    everything: bool = False
    met: int = 0
    settled: bool = True
    direction: Direction = "push"
    before: Frontier = field(default_factory=lambda: Frontier(0, 0))

    def __post_init__(self) -> None:
        states = [worker.state for worker in self.workers]
        host_states = cast("list[State]", states)  # several are shares of the host's memory
        self.exchange: Exchange = HostExchange(host_states, self.program.combine)
        self.author = self.workers[0].kernels.author
        self.totals: dict[str, float] = {}
        self.unexplored = self.graph.edges
        self.unvisited = self.graph.vertices
        self.limit = self.program.bucket or math.inf
        self.iteration = 0
        self._noted_limit = math.nan
        self._small_buckets = False

    def iterate(self) -> Iterator[IterationRecord]:
        """Run until nobody is active, the program is done, or its max_iter is reached."""
        try:
            yield from self._iterations()
        finally:
            for worker in self.workers:
                for lane in worker.lanes.values():
                    lane.release()

    def _iterations(self) -> Iterator[IterationRecord]:
        if self.totals_declared and self.iteration == 0:
            self.reduce()
        while not self.finished and self.iteration < self.program.max_iter:
            began = time.perf_counter()
            frontier = self._everyone() if self.everything else self._next_frontier()
            if frontier.empty:
                self.converged = True
                return
            self._note_bucket(frontier)
            growing = frontier.vertices > self.before.vertices
            situation = self._situation(frontier)
            self.direction = choose(situation, frontier, self.direction, growing)
            stretches = self.direction == "push" and self._can_stretch(frontier)
            if stretches and (yield from self._stretch(frontier, certain_push(situation), began)):
                continue
            record = IterationRecord(self.iteration, self.direction, frontier.vertices, frontier.edges)
            walking = time.perf_counter()
            self._walk(self.direction, frontier, record)
            record.walk_seconds = time.perf_counter() - walking
            self.exchange.share_messages(frontier.everything)
            if not self.asynchronous:
                self._apply(frontier)
            self.unexplored -= frontier.edges
            self.unvisited -= frontier.vertices
            record.totals = dict(self.totals)
            record.seconds = time.perf_counter() - began
            self.before = frontier
            self.everything = self.everything and self.program.everywhere
            self.end_iteration(record.number)
            if self.finished:
                for worker in self.workers:
                    record.tasks.extend(worker.lanes[self.direction].drain())
            yield record

    def end_iteration(self, number: int) -> None:
        """Count the iteration, and ask the program whether it is done."""
        self.iteration += 1
        self.finished = self.converged = self.program.done(number, self.totals)

    def _note_bucket(self, frontier: Frontier) -> None:
        """Keep in mind whether the last bucket began small: then a stretch may go on to the next one by itself."""
        if self.limit != self._noted_limit:
            self._noted_limit = self.limit
            self._small_buckets = self.workers[0].kernels.can_fuse(frontier)

    def _can_stretch(self, frontier: Frontier) -> bool:
        """Whether one launch may run this iteration and more: one device that reads all edges, a small frontier."""
        worker = self.workers[0]
        lane, kernels = worker.lanes["push"], worker.kernels
        here = len(self.workers) == 1 and not worker.against and lane.index is self.out
        able = here and kernels.can_fuse(frontier)
        return able and (lane.resident or (kernels.over_links and lane.slight(frontier)))

    def _stretch(
        self, frontier: Frontier, certain: tuple[int, int, float], selecting: float
    ) -> Generator[IterationRecord, None, bool]:
        """Run several iterations in one launch; returns whether at least one could run.

        certain: what is pushed for certain (`certain_push`). selecting: when the first one's frontier was asked for,
        which waits for the kernels before it.
        """
        began, first = time.perf_counter(), self.iteration
        worker, scalars = self.workers[0], self.scalars()
        lane = worker.lanes["push"]
        edges, alpha, per_row = certain
        left = self.program.max_iter - self.iteration
        bucket = self.program.bucket if self._small_buckets else 0.0
        bounds = FusedLimits(
            left, edges, alpha, self.unexplored, self.before.vertices, self.limit, bucket, self.unvisited, per_row
        )
        done = FusedIterations([], self.limit)
        worker.kernels.use()
        with lane.views(worker.kernels, worker.state, frontier, scalars) as views:
            for view in views:
                done = worker.kernels.fused_iterations(view, worker.state, frontier, self.out, scalars, bounds)
                view.record.predicted = None  # it was for one iteration: there is nothing to learn from several
        self.limit = done.limit
        seconds = (time.perf_counter() - began) / max(1, len(done.frontiers))
        for at, (vertices, edges) in enumerate(done.frontiers):
            record = IterationRecord(self.iteration, "push", vertices, edges, seconds, began=began + at * seconds)
            if at == 0:
                record.seconds, record.began = began + seconds - selecting, selecting
            lines = vertices + edges * lane.edge_bytes // LINE_BYTES
            record.tasks = [
                TaskRecord(
                    task.route, task.direction, task.partitions, edges, lines=lines, kernel_seconds=seconds,
                    bytes_link=lines * LINE_BYTES if task.route == "zero-copy" else 0, hits=task.hits,
                )
                for task in lane.records
            ]  # fmt: skip
            self.unexplored -= edges
            self.unvisited -= vertices
            self.before = Frontier(vertices, edges)
            self.iteration += 1
            self.settled = self.iteration == first + len(done.frontiers)
            yield record
        return bool(done.frontiers)

    @property
    def totals_declared(self) -> bool:
        """Whether the program has Globals."""
        return bool(self.author.totals)

    def scalars(self) -> tuple[Any, ...]:
        """What the author's functions read besides fields, at this moment."""
        facts = {"iteration": self.iteration, "vertices": self.graph.vertices, "due": self.limit, **self.totals}
        return scalar_values(self.program, self.author, facts)

    def _everyone(self) -> Frontier:
        return Frontier(self.graph.vertices, self.graph.edges, everything=self.graph.vertices > 0)

    def _next_frontier(self) -> Frontier:
        """Select what is due; when nothing is, move the limit to the bucket of the lowest pending priority."""
        frontier = self._select()
        while frontier.empty and frontier.rest < math.inf:
            bucket = self.program.bucket
            number = frontier.rest / bucket
            above = (math.floor(number) + 1.0) * bucket if math.isfinite(number) else math.inf
            self.limit = max(above, float(np.nextafter(frontier.rest, math.inf)))
            frontier = self._select()
        return frontier

    def _select(self) -> Frontier:
        scalars = self.scalars()
        selected: list[Frontier] = []
        for worker in self.workers:
            worker.kernels.use()
            selected.append(worker.kernels.select(worker.state, self.out, scalars, self.limit))
        return selected[0]

    @property
    def _linked(self) -> bool:
        return any(lane.linked for lane in self.workers[0].lanes.values())

    def _situation(self, frontier: Frontier) -> Situation:
        lanes = self.workers[0].lanes
        situation = Situation(
            self.graph.vertices,
            self.graph.edges,
            self.unexplored,
            self.program.early_exit,
            "pull" in lanes,
            self.forced,
            self._linked,
            self.unvisited,
            all(lane.pipeline.device.reads_host for lane in lanes.values()),
        )
        if not weighs(situation, frontier):
            return situation
        return replace(situation, link=link_costs_of(lanes["push"], lanes["pull"], frontier))

    def _walk(self, direction: Direction, frontier: Frontier, record: IterationRecord) -> None:
        """Every device sends, then runs its kernels over the edges that its lane brings."""
        scalars = self.scalars()
        for worker in self.workers:
            worker.kernels.use()
            worker.kernels.send(worker.state, frontier, self.out, scalars)
            self._walk_lane(worker, worker.lanes[direction], frontier, scalars)
            record.tasks.extend(worker.lanes[direction].records)
            record.plan_seconds += worker.lanes[direction].plan_seconds
            if direction in worker.against:
                lane = worker.against[direction]
                self._walk_lane(worker, lane, worker.state.listed_along(frontier, lane.index), scalars)
                record.tasks.extend(lane.records)
                record.plan_seconds += lane.plan_seconds

    def _walk_lane(self, worker: Worker, lane: EdgeStream, frontier: Frontier, scalars: tuple[Any, ...]) -> None:
        """Run the kernels over the edges that one lane brings."""
        kernels, state = worker.kernels, worker.state
        if lane.heads is not None:
            head = lane.heads.view(lane.key)
            kernels.pull(head, state, frontier, (lane.heads.index, self.out), scalars)
            kernels.record_matched(state)
        skip = lane.skip
        with lane.views(kernels, state, frontier, scalars) as arrivals:
            follows = cel.follows(lane)
            for view in cel.views(arrivals, kernels, state, lane, (scalars, self.limit)) if follows else arrivals:
                began = time.perf_counter()
                if lane.direction == "push":
                    kernels.push(view, state, frontier, lane.index, scalars)
                    self._push_again(worker, lane, view, scalars)
                else:
                    kernels.pull(view, state, frontier, (lane.index, self.out), scalars, skip)
                view.record.kernel_seconds += time.perf_counter() - began

    def _push_again(self, worker: Worker, lane: EdgeStream, view: View, scalars: tuple[Any, ...]) -> None:
        """Local rounds on edges that were brought for this iteration only."""
        if self.local_rounds and view.record.route in LOADED and not lane.resident:
            for _ in range(self.local_rounds):
                worker.kernels.push_resend(view, worker.state, lane.index, scalars, self.limit)
                view.record.local_rounds += 1

    def _apply(self, frontier: Frontier) -> None:
        scalars = self.scalars()
        for worker in self.workers:
            worker.kernels.use()
            with self._reading_ahead(worker, frontier):
                worker.kernels.apply(worker.state, frontier, self.out, scalars)
        if self.totals_declared:
            if frontier.everything:
                self.total()
            else:
                self.reduce()

    @contextmanager
    def _reading_ahead(self, worker: Worker, frontier: Frontier) -> Iterator[None]:
        """Let the edges of the next sweep be on their way while this one's last kernels run."""
        lane = worker.lanes[self.direction]
        if not (frontier.everything and self.program.everywhere and self.iteration + 1 < self.program.max_iter):
            yield
            return
        device = lane.pipeline.device
        free = device.event(None)
        if device.reads_host:  # its kernels are done when they return: the disk begins before them
            lane.read_ahead(worker.kernels, worker.state, free)
            yield
        else:
            yield
            lane.read_ahead(worker.kernels, worker.state, free)

    def reduce(self) -> None:
        """Add up the Globals over the present values."""
        worker = self.workers[0]
        known = {**dict.fromkeys(self.author.totals, 0.0), **self.totals}
        self.totals = known
        worker.kernels.use()
        worker.kernels.reduce(worker.state, self.out, self.scalars())
        self.total()

    def total(self) -> None:
        """Add up the spans' shares in their order, so that the sum is the same on any number of threads."""
        partial = self.workers[0].state.partial
        for column, (name, total) in enumerate(globals_of(self.program).items()):
            self.totals[name] = float(COMBINERS[total.combine].ufunc.reduce(partial[:, column]))
