"""Moving the bounds between ranks while a run goes on (Lux, VLDB 2017, section 5).

    seconds of this rank's walk -> those of all ranks -> new bounds? -> streams, caches and kept rows follow

`ranks/repartition.py` decides; here is what is measured, and what is done. Only iterations that walk much of the graph
are compared, so that the others send no message for it; what was read for the first time tells nothing of the next one.
"""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.ranks import repartition
from penstock.engine.ranks.repartition import Floats, Measured, RankLoads
from penstock.engine.resources.ownership import Ownership
from penstock.engine.state.state import Frontier

if TYPE_CHECKING:
    from penstock.engine.execution.shared_loop import SharedLoop
    from penstock.engine.resources.direction import Direction
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.engine.resources.host_resources import HostResources
    from penstock.engine.state.records import IterationRecord

MUCH = 8
"""Iterations whose frontier has at least this part of the edges are compared."""
WINDOW = 3
"""So many of them count, if the same rank was longest in all: of sweeps each rank's least seconds, of frontiers, which
differ, the mean."""
LEAST_MEASURED = 2
"""Of sweeps so many are enough where much is gained."""
LEAST_UNEVEN = 0.04
"""In each of them the mean of all ranks is shorter than the longest by at least this part of it."""
SWEEPS_AHEAD = 10
"""Sweeps that are expected at least, if the program allows so many; else as many as there were so far."""


@dataclass
class Rebalance:
    """What a run of several ranks has measured of them since bounds moved.

    resources: of this rank. compared: iterations so far that were compared.
    """

    resources: HostResources
    compared: int = 0
    _window: deque[Floats] = field(default_factory=lambda: deque(maxlen=WINDOW))
    _before: Measured | None = None
    _reach: np.ndarray | None = None
    _first: int = -1  # the first iteration that was compared: kernels are loaded in it
    _slower: float = 1.0  # how many times as long as predicted the last move took

    def after_walk(
        self, loop: SharedLoop, direction: Direction, frontier: Frontier, record: IterationRecord, seconds: float
    ) -> None:
        """Compare the ranks, and move the bounds where that pays; seconds: of this rank's walk, nothing else."""
        if frontier.edges * MUCH < loop.graph.edges or not loop.graph.edges:
            return
        walked = loop.walks(direction)
        self._first = record.number if self._first < 0 else self._first
        usual = seconds if all(stream.reads_again for stream in walked) or not record.bytes_disk else math.nan
        ours = usual, self._slower * self.resources.edge_seconds, self.resources.most_edges
        found = loop.gathered(*ours)
        record.rank_seconds = tuple(found[:, 0].tolist()) if not np.isnan(found[:, 0]).any() else ()
        if record.number == self._first or not record.rank_seconds:
            return
        self.compared += 1
        self._window.append(found[:, 0])
        left = loop.program.max_iter - record.number - 1
        bounds = self._decided(loop, walked, found, left, sweeps=frontier.everything and loop.program.everywhere)
        if bounds is not None:
            self._move(loop, bounds, record)

    def _decided(
        self, loop: SharedLoop, walked: list[EdgeStream], found: Floats, left: int, *, sweeps: bool
    ) -> repartition.Ints | None:
        """The new bounds, None to stay; found: the numbers of all ranks. left: iterations that may follow."""
        ownership, times = loop.ownership, np.stack(list(self._window))
        several = len(times) == WINDOW
        uneven = 1 - times.mean(axis=1) / np.maximum(times.max(axis=1), 1e-9)
        if (
            len(times) < (LEAST_MEASURED if sweeps else WINDOW)
            or len(set(times.argmax(axis=1).tolist())) > 1
            or uneven.min() < LEAST_UNEVEN
        ):
            return None
        busy = times.min(axis=0) if sweeps else times.mean(axis=0)
        expected = min(left, max(SWEEPS_AHEAD, self.compared) if sweeps else self.compared)
        loads = RankLoads(busy, found[:, 1], found[:, 2], float(expected), several, self._before)
        indexes, bounds = [stream.index for stream in walked], ownership.bounds
        if self._reach is None:
            self._reach = np.stack([bounds[:-1], bounds[1:]], axis=1)
        moved = repartition.new_bounds(bounds, indexes, loads, self._reach)
        if moved is not None:
            self._before = repartition.measured(bounds, indexes, busy)
            first, last = np.minimum(self._reach[:, 0], moved[:-1]), np.maximum(self._reach[:, 1], moved[1:])
            self._reach = np.stack([first, last], axis=1)
        return moved

    def _move(self, loop: SharedLoop, bounds: repartition.Ints, record: IterationRecord) -> None:
        """Let all that knows the bounds have the new ones, and read what this rank has got where it holds all else."""
        began = time.perf_counter()
        ownership = loop.ownership
        loop.hand_out()
        streams = [*loop.streams.values(), *loop.against.values()]
        resident = [stream for stream in streams if stream.resident]
        if loop.state.unmatched is not None:
            loop.state.unmatched.begin()  # rows of others are not among those kept
        if loop.state.groups is not None and self.resources.needs.weighted:
            # places where chunks may be read once more: those that were read without weights before
            self.resources.give_ids_back(None)
        loop.own(Ownership(bounds, ownership.rank))
        self.resources.own(loop.ownership, [*streams, *loop.windows.opened])
        for stream in resident:
            everyone = Frontier(stream.index.vertices, stream.index.edges, everything=True)
            with stream.views(loop.kernels, loop.state, everyone, ()) as views:
                deque(views, maxlen=0)
            record.filling.extend(stream.records)
        self._window.clear()
        record.moved, record.move_seconds = tuple(bounds.tolist()), time.perf_counter() - began
        chunks = sum(task.chunks_read for task in record.filling)
        predicted = self.resources.edge_seconds * chunks * self.resources.chunk_edges
        self._slower = max(1.0, record.move_seconds / predicted) if predicted else self._slower
