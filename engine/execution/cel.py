"""The story of an iteration that adds successors to its carriers (routes `cel` and `cel-structural`).

    carrier t arrives -> its kernel -> whose rows has the walk passed? -> they travel beside carrier t + 1

WolfGraph's Concatenated Edge List (Zhu et al., FGCS 2020), made causal: after each carrier, what is pending, is due and
has its row in partitions that this iteration has brought already is taken, and its rows, gathered on the host, are sent
along before the next carrier's; one flush follows the last carrier. So those partitions need not travel again in the
next iteration for these vertices. An edge can be applied several times an iteration: records of route `cel` say how
many. By WolfGraph's own rule all successors of a carrier's destinations travel, found without waiting for its kernel;
those that turn out to be pending send. Refuses programs that may not see their own updates: only pushes of asynchronous
programs can.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from penstock.engine.kernels.interface import ReadyRows
from penstock.engine.program.program import author_function
from penstock.storage.base.errors import InputError
from penstock.transfer.routes.cel import CAUSAL, STRUCTURAL, complete, successors
from penstock.transfer.routes.cel import NAMES as NAMES  # the session asks for them here
from penstock.transfer.values.task import Demand

if TYPE_CHECKING:
    from collections.abc import Generator

    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.engine.state.frontier import Frontier
    from penstock.transfer.values.view import View

LINE_BYTES = 128


def check(program: Program, config: Config, *, asynchronous: bool) -> None:
    """Refuse a program, or options, with which nothing could follow its carriers. Raises InputError."""
    if config.route not in NAMES:
        return
    name = type(program).__name__
    way_out = "use --route auto, or a program such as sssp, widest or reachability"
    if not asynchronous:
        why = "and it runs synchronously here"
    elif author_function(program, "send") is not None:
        why = "and what it sends is computed once an iteration, by its send()"
    elif program.along == "both":
        why = "and it sends against the edges too"
    elif config.direction == "pull":
        why, way_out = "and it is to pull", "leave out --direction pull, or use --route auto"
    else:
        return
    raise InputError(f"{name} cannot run by route {config.route}, which serves asynchronous pushes, {why}; {way_out}")


def follows(lane: EdgeStream) -> bool:
    """Whether rows may follow the carriers of this lane."""
    return lane.pipeline.options.route in NAMES and lane.direction == "push" and not lane.resident


def views(
    kernels: Any, state: Any, lane: EdgeStream, frontier: Frontier, due: tuple[tuple[Any, ...], float]
) -> Iterator[View]:
    """As `Lane.views`, with views of rows that follow; due: the program's scalars, and the limit of its priorities."""
    rule = _Structural if lane.pipeline.options.route == STRUCTURAL else _Causal
    followers = rule(kernels, state, lane, frontier, due)
    with closing(cast("Generator[View]", lane.views(kernels, state, frontier, due[0]))) as arrivals:
        for view in arrivals:
            if view.record.route == STRUCTURAL:
                _send(view, kernels, state, lane, due)
                continue
            yield view
            if view.record.route not in NAMES:
                followers.after(np.array(view.record.partitions))


def _send(view: View, kernels: Any, state: Any, lane: EdgeStream, due: tuple[tuple[Any, ...], float]) -> None:
    """Send from those rows of a structural view that are pending by now."""
    began = time.perf_counter()
    kernels.push_pending(view, state, lane.index, *due)
    view.record.kernel_seconds += time.perf_counter() - began


class _Followers:
    """What the walk has brought so far."""

    def __init__(
        self, kernels: Any, state: Any, lane: EdgeStream, frontier: Frontier, due: tuple[tuple[Any, ...], float]
    ) -> None:
        self._kernels, self._state, self._lane, self._frontier, self._due = kernels, state, lane, frontier, due
        self._stage = lane.pipeline.stage(lane.key)
        self._brought = np.zeros(len(self._stage.table), dtype=bool)

    def _passed(self, numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Chunks of the partitions brought so far, with these, whose edges can be had again, uint8[chunks]."""
        self._brought[numbers] = True
        step = self._stage.table.partition_edges // self._lane.chunk_edges
        here = complete(self._stage, with_weights=self._lane.with_weights)
        return np.asarray(here & np.repeat(self._brought, step)[: len(here)], dtype=np.uint8)


class _Causal(_Followers):
    """Who has changed follows."""

    def after(self, numbers: NDArray[np.int64]) -> None:
        """Take who has changed, now that the kernel has run on these partitions; the host waits for that kernel."""
        lane, table = self._lane, self._stage.table
        sizes = table.partition_edges, lane.chunk_edges, max(1, LINE_BYTES // lane.edge_bytes)
        where = ReadyRows(self._passed(numbers), sizes, np.zeros(3 * len(table), dtype=np.int64))
        marks = self._kernels.select_ready(self._state, lane.index, *self._due, where)
        vertices, edges, lines = np.ascontiguousarray(where.table.reshape(-1, 3).T)
        if edges.any():
            demand = Demand(lane.key, vertices, edges, lines, edges.astype(float), None, lane.with_weights, marks=marks)
            lane.pipeline.follow(CAUSAL, demand)


class _Structural(_Followers):
    """Whom the carrier leads to follows, changed or not."""

    _marks: Any = None

    def after(self, numbers: NDArray[np.int64]) -> None:
        """Find whom the active rows of these partitions lead to, while the kernel may still run."""
        lane = self._lane
        if self._marks is None and not self._frontier.everything:
            self._marks = self._kernels.marks(self._state)
        none = np.zeros(0, dtype=np.int64)
        active = Demand(lane.key, none, none, none, none.astype(float), None, lane.with_weights, marks=self._marks)
        found = successors(active, numbers, self._passed(numbers), self._stage)
        if found.active_edges.any():
            lane.pipeline.follow(STRUCTURAL, found)
