"""The kernels of one program on the CPU cores over a list: those of `launch.py`, of which pushes and links walk blocks.

Nothing is fused, and nothing is sent once more from a view: both need rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.host.launch import SMALL, HostKernels, _vertices_of, kernel_index
from penstock.engine.kernels.host.lists import edge_blocks
from penstock.engine.kernels.interface import WaysName
from penstock.storage.format.schema import LIST_BLOCK

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.state.state import Frontier, State
    from penstock.storage.format.index import Index
    from penstock.transfer.values.view import View

STEPS = 32
"""Runs of edges for each thread, so that the last ones to end do not matter."""
ALL_BLOCKS = np.ones(1, np.bool_)


class HostBlockKernels(HostKernels):
    """Compiled kernels over blocks of edges."""

    ways: WaysName = "forward"
    _wanted: NDArray[np.bool_] | None = None
    _picked: NDArray[np.uint16] = np.zeros((0, LIST_BLOCK), np.uint16)

    def choose_blocks(self, wanted: NDArray[np.bool_] | None) -> None:
        """Walk only these blocks from now on; None: all."""
        self._wanted = wanted

    def can_fuse(self, frontier: Frontier) -> bool:
        """Never: an iteration walks blocks, whatever its frontier is."""
        return False

    def push(self, view: View, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Send along the view's edges of which an active vertex is at the end that sends."""
        whole = frontier.everything
        assert whole or self._wanted is not None, "blocks of a frontier have been chosen"
        small, steps, step = self._runs(view.e1 - view.e0)
        if len(self._picked) < steps and not whole:
            self._picked = np.zeros((steps, LIST_BLOCK), np.uint16)
        state.walked = max(state.walked, view.e1 - view.e0)
        self._call(
            (edge_blocks.make_push_blocks, self.ways), small, steps, self._edges_of(view), kernel_index(index),
            state.active.words, whole, ALL_BLOCKS if whole else self._wanted, self._picked, step, state.arrays, scalars,
            _vertices_of(state),
        )  # fmt: skip

    def link_rows(self, view: View, state: State, index: Index, done_each: int, skipped: Any, symmetric: bool) -> None:
        """Link every edge of the view: first some, whose trees are made flat, so that the others' links are short."""
        first = min(view.e1 - view.e0, len(state.arrays[0]))
        for keys in (view.neighbors[:first], view.neighbors[first:]):
            small, steps, step = self._runs(len(keys))
            if steps:
                self._call(edge_blocks.link_blocks, small, steps, keys, step, state.arrays[0], np.uint64(state.first))
                self.compress(state)

    def _runs(self, edges: int) -> tuple[bool, int, int]:
        """How edges are cut for threads: whether they are few, how many runs, edges of a run."""
        step = max(LIST_BLOCK, -(-edges // (self.threads * STEPS)))
        return edges < SMALL, -(-edges // step), step
