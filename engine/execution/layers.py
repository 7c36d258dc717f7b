"""Which vertices send: those of one layer of rows after another, each until it is quiet (option `layers`).

A layer is a run of consecutive rows, with so few edges that the device's cache, or the host's, holds them. What becomes
active elsewhere waits for its layer. So edges that were brought serve several iterations, and in an order in which
edges lead forward (`--order paths`) a layer is rarely visited again. After DiGraph (Zhang et al., ASPLOS 2019), whose
priority puts layers first, and among them what has most active vertices; `../decisions/paths.md` has measurements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.execution.priorities import Due, ValuesAt
from penstock.engine.state.state import SPAN
from penstock.storage.base.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.kernels.interface import Kernels
    from penstock.engine.program.program import Program
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.engine.state.device_state import VertexState
    from penstock.engine.state.state import Frontier
    from penstock.storage.format.index import Index

ROUNDS = 8
"""Iterations of a layer before the next one has its turn, quiet or not: late ones move little."""


def check(program: Program, config: Config, *, asynchronous: bool) -> None:
    """Refuse a program, or options, with which vertices may not wait for their layer. Raises InputError."""
    if not config.tuning.layers:
        return
    name, why = type(program).__name__, ""
    if not asynchronous and not (program.order_free and config.mode == "async"):
        why = "the order in which its vertices send is not free"
    elif config.direction == "pull":
        why = "only pushes can leave rows out, and it is to pull"
    elif config.route == "cel":
        why = "route cel sends rows of other layers along"
    if why:
        raise InputError(
            f"{name} cannot run by layers: {why}; leave layers out, or use a program such as sssp or reachability, "
            "or pagerank with --mode async"
        )


def layer_bounds(index: Index, layers: int) -> NDArray[np.int64]:
    """First vertices of the layers, and the number of vertices: about equal edges, whole spans of bitmaps."""
    if index.edges == 0:
        return np.array([0, index.vertices], np.int64)
    edges = np.arange(layers, dtype=np.int64) * index.edges // layers
    firsts = index.rows_of(edges).astype(np.int64) // SPAN * SPAN
    return np.unique(np.concatenate([[0], firsts, [index.vertices]]))


class Layers(Due):
    """Whose turn it is: all that is pending in a layer is due. bounds: as of `layer_bounds`."""

    alone = False

    def __init__(self, program: Program, state: VertexState, bounds: NDArray[np.int64]) -> None:
        super().__init__(program)
        self._state, self._bounds = state, bounds
        self._number = self._rounds = 0  # iterations of the present layer so far

    def begin(self, streams: Collection[EdgeStream], edges: int, gathered: Callable[..., NDArray[np.float64]]) -> None:
        """Let priorities not count."""
        super().begin(streams, edges, gathered)
        self.limit = math.inf

    def go_on(self, limit: float) -> None:
        """Leave the limit where it is: a run without layers, whose checkpoint this is, may have had a lower one."""

    def next(self, select: Callable[[], Frontier], kernels: Kernels[Any]) -> Frontier:
        """Select among the vertices of the present layer, or of the next that has any pending."""
        count = len(self._bounds) - 1
        if self._rounds == ROUNDS:
            self._turn(count)
        frontier = self._select_here(select)
        for _ in range(count):
            if not frontier.empty:
                break
            self._turn(count)
            frontier = self._select_here(select)
        self._rounds += 1
        return frontier

    def is_over(self, state: VertexState, iteration: int, values_at: ValuesAt) -> bool:
        """Return whether nothing is left: what is far away is not held back."""
        return False

    def _turn(self, count: int) -> None:
        self._number, self._rounds = (self._number + 1) % count, 0

    def _select_here(self, select: Callable[[], Frontier]) -> Frontier:
        state = self._state
        words: Any = state.pending.words
        bits = 8 * words.dtype.itemsize
        first, last = (-(-int(bound) // bits) for bound in self._bounds[self._number : self._number + 2])
        before, after = words[:first].copy(), words[last:].copy()
        words[:first] = 0
        words[last:] = 0
        state.pending.summarize()
        frontier = select()
        words[:first] = before
        words[last:] = after
        state.pending.summarize()
        return frontier
