"""The story of one run, iteration by iteration.

    frontier -> direction -> send -> pull views, run kernels on them -> exchange -> apply -> done?

Owns the order of these steps over a list of devices, each with its own State and its own share of the edges. Decides
nothing itself (direction, demand and plan are pure functions) and opens nothing (lanes bring the edges).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.direction import Direction, Situation, choose
from penstock.engine.exchange import Exchange
from penstock.engine.frontier import Frontier
from penstock.engine.kernels.author import scalar_values
from penstock.engine.program import globals_of
from penstock.engine.trace import IterationRecord

if TYPE_CHECKING:
    from penstock.engine.lane import Lane
    from penstock.engine.program import Program
    from penstock.storage.graph import Graph
    from penstock.storage.index import Index

_REDUCE: dict[str, Any] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


@dataclass
class Worker:
    """A device at work: its state, its kernels, its lanes of edges by direction."""

    state: Any  # a State, or a PlacedState on a device with memory of its own
    kernels: Any
    lanes: dict[Direction, Lane]


@dataclass
class Loop:
    """One run of `program`; `out` is the out-index (degrees), `asynchronous`: updates are seen at once."""

    program: Program
    graph: Graph
    out: Index
    workers: list[Worker]
    asynchronous: bool = False
    forced: Direction | None = None
    converged: bool = False

    def __post_init__(self) -> None:
        self.exchange = Exchange([worker.state for worker in self.workers], self.program.combine)
        self.author = self.workers[0].kernels.author
        self.totals: dict[str, float] = {}
        self.unexplored = self.graph.edges
        self.limit = self.program.bucket or math.inf
        self.iteration = 0

    def iterate(self, everything: bool) -> Iterator[IterationRecord]:
        """Run until nobody is active, the program is done, or its max_iter is reached."""
        direction: Direction = "push"
        before = Frontier(0, 0)
        if self.totals_declared:
            self._reduce()
        while self.iteration < self.program.max_iter:
            began = time.perf_counter()
            frontier = self._everyone() if everything else self._next_frontier()
            if frontier.empty:
                self.converged = True
                return
            growing = frontier.vertices > before.vertices
            direction = choose(self._situation(), frontier, direction, growing)
            record = IterationRecord(self.iteration, direction, frontier.vertices, frontier.edges)
            self._walk(direction, frontier, record)
            self.exchange.share_messages(frontier.everything)
            if not self.asynchronous:
                self._apply(frontier)
            self.unexplored -= frontier.edges
            record.totals = dict(self.totals)
            record.seconds = time.perf_counter() - began
            before = frontier
            self.iteration += 1
            yield record
            if self.program.done(record.number, self.totals):
                self.converged = True
                return
            everything = everything and self.program.everywhere

    @property
    def totals_declared(self) -> bool:
        """Whether the program has Globals."""
        return bool(self.author.totals)

    def scalars(self) -> tuple[Any, ...]:
        """What the author's functions read besides fields, at this moment."""
        facts = {"iteration": self.iteration, "vertices": self.graph.vertices, **self.totals}
        return scalar_values(self.program, self.author, facts)

    def _everyone(self) -> Frontier:
        return Frontier(self.graph.vertices, self.graph.edges, everything=self.graph.vertices > 0)

    def _next_frontier(self) -> Frontier:
        """Select what is due; when nothing is, move the limit to the bucket of the lowest pending priority."""
        frontier = self._select()
        while frontier.empty and frontier.rest < math.inf:
            bucket = self.program.bucket
            self.limit = max((math.floor(frontier.rest / bucket) + 1) * bucket, np.nextafter(frontier.rest, math.inf))
            frontier = self._select()
        return frontier

    def _select(self) -> Frontier:
        scalars = self.scalars()
        selected: list[Frontier] = []
        for worker in self.workers:
            worker.kernels.use()
            selected.append(worker.kernels.select(worker.state, self.out, scalars, self.limit))
        return selected[0]

    def _situation(self) -> Situation:
        return Situation(
            self.graph.vertices,
            self.graph.edges,
            self.unexplored,
            self.program.early_exit,
            "pull" in self.workers[0].lanes,
            self.forced,
            any(lane.linked for lane in self.workers[0].lanes.values()),
        )

    def _walk(self, direction: Direction, frontier: Frontier, record: IterationRecord) -> None:
        """Every device sends, then runs its kernels over the edges that its lane brings."""
        scalars = self.scalars()
        for worker in self.workers:
            kernels, state, lane = worker.kernels, worker.state, worker.lanes[direction]
            kernels.use()
            kernels.send(state, frontier, self.out, scalars)
            for view in lane.views(kernels, state, frontier, scalars):
                began = time.perf_counter()
                if direction == "push":
                    kernels.push(view, state, frontier, self.out, scalars)
                else:
                    kernels.pull(view, state, frontier, (lane.index, self.out), scalars)
                view.record.kernel_seconds += time.perf_counter() - began
            record.tasks.extend(lane.records)

    def _apply(self, frontier: Frontier) -> None:
        scalars = self.scalars()
        for worker in self.workers:
            worker.kernels.use()
            worker.kernels.apply(worker.state, frontier, self.out, scalars)
        if self.totals_declared:
            if frontier.everything:
                self._total()
            else:
                self._reduce()

    def _reduce(self) -> None:
        worker = self.workers[0]
        known = {**dict.fromkeys(self.author.totals, 0.0), **self.totals}
        self.totals = known
        worker.kernels.use()
        worker.kernels.reduce(worker.state, self.out, self.scalars())
        self._total()

    def _total(self) -> None:
        """Add up the spans' shares in their order, so that the sum is the same on any number of threads."""
        partial = self.workers[0].state.partial
        for column, (name, total) in enumerate(globals_of(self.program).items()):
            self.totals[name] = float(_REDUCE[total.combine].reduce(partial[:, column]))
