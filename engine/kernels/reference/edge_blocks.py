"""The definition of right on a list: one edge after another, in the order of the input, the ways of the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.engine.kernels.interface import WAYS, WaysName
from penstock.engine.kernels.reference.vertex import ReferenceKernels, row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from penstock.engine.state.state import Frontier, State
    from penstock.storage.format.index import Index
    from penstock.transfer.values.view import View


class ReferenceBlockKernels(ReferenceKernels):
    """The kernels of one program over blocks of edges, in plain Python."""

    ways: WaysName = "forward"

    def choose_blocks(self, wanted: NDArray[np.bool_] | None) -> None:
        """Skip none: in the others no source is active."""

    def push(self, view: View, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Send along every edge of the view that an active vertex sends along."""
        active, send = set(self._frontier(state, frontier)), self._messages_of(view, state, scalars)
        for e, u, v in self._messages(view):
            if u - state.first in active:
                start, end = row(index, u)
                send(e, u, v, end - start)

    def link_rows(self, view: View, state: State, index: Index, done_each: int, skipped: Any, symmetric: bool) -> None:
        """Link every edge of the view."""
        for key in view.neighbors.tolist():
            self._link(state, key >> 32, key & 0xFFFFFFFF)

    def _messages(self, view: View) -> Iterator[tuple[int, int, int]]:
        """Yield (edge, who sends, who receives)."""
        forward, reverse, loops_once = WAYS[self.ways]
        for e, key in enumerate(view.neighbors.tolist(), start=view.e0):
            source, target = key >> 32, key & 0xFFFFFFFF
            if forward:
                yield e, source, target
            if reverse and not (loops_once and source == target):
                yield e, target, source
