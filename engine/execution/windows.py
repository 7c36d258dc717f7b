"""Walks where memory has no room for the values of all vertices: window by window of those that edges lead to.

    for each window of vertices: its values -> for each view of rows: their values -> the view's edges to the window

Owns the size of windows. Edges are read once for each window, the values of a window once, those of rows for each one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from penstock.engine.program.step_values import StepValues

if TYPE_CHECKING:
    from penstock.engine.kernels.host.launch import HostKernels
    from penstock.engine.program.program import Program
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.engine.state.records import IterationRecord
    from penstock.engine.state.state import Frontier, State
    from penstock.transfer.values.view import View

AHEAD = 2
"""Ranges of rows whose values are in memory beside a window: the one at hand, and the next."""
AtHand = Callable[[Iterator["View"]], Iterator["View"]]
"""Brings what kernels read beside the edges of views, and cuts these to what they may write."""


def window_vertices(
    room: int, each: Mapping[str, int], walked: tuple[Collection[str], Collection[str]], page: int, together: int
) -> int:
    """Vertices of a window, whole pages.

    room: bytes of values in memory; each: of a value, by array; walked: as `StepValues.walked` says; page: vertices of
    a page; together: of a range of rows.
    """
    far, near = (sum(each[name] for name in names) for names in walked)
    return max(1, (room - AHEAD * near * together) // max(1, far * page)) * page


class Windows:
    """The windows of a run's walks; count: of the last one."""

    def __init__(self, program: Program, state: State, kernels: HostKernels) -> None:
        self._state, self._kernels, self._steps = state, kernels, StepValues.of(program)
        self.count = 1
        self._before: tuple[int, float, float] = (0, 0.0, 0.0)

    def note(self, record: IterationRecord) -> None:
        """Note in an iteration's record what was read from the file of values and written to it since the last one."""
        pages, before = self._state.pages, self._before
        assert pages is not None, "all values are in memory"
        self._before = pages.file.bytes_moved, pages.file.busy_seconds, pages.waited_seconds
        record.windows, record.value_bytes = self.count, self._before[0] - before[0]
        record.value_seconds, record.value_wait_seconds = self._before[1] - before[1], self._before[2] - before[2]

    def walk(self, stream: EdgeStream, frontier: Frontier) -> Iterator[AtHand]:
        """Yield what each window that has something to tell does with a walk's views; it is in memory meanwhile."""
        state, pushes = self._state, stream.direction == "push"
        assert state.pages is not None, "all values are in memory"
        assert stream.index.pages is not None, "values come with the rows of the index"
        far, near = self._steps.walked(state.messages, pushes=pushes)
        each = {name: state.pages.values(name).itemsize for name in far | near}
        size = window_vertices(state.pages.room, each, (far, near), state.pages.rows, stream.index.pages.together)
        self.count = -(-state.last // size)
        for first in range(0, state.last, size):
            last = min(first + size, state.last)
            if not (pushes or frontier.everything or state.active.part(first, last).words.any()):
                continue
            with state.held(far, first, last):
                yield partial(self._at_hand, stream, frontier, (first, last), near)
                if pushes:
                    self._note_changes(frontier, first, last)

    def _at_hand(
        self, stream: EdgeStream, frontier: Frontier, window: tuple[int, int], near: Collection[str],
        arrivals: Iterator[View],
    ) -> Iterator[View]:  # fmt: skip
        """The views, of edges to the window, while the values of their rows are in memory."""
        state, pushes, pages = self._state, stream.direction == "push", stream.index.pages
        assert pages is not None, "values come with the rows of the index"
        for view in arrivals:
            rows = view.v0, view.v1
            until = view.v1 + pages.together if frontier.everything else 0
            with state.held(near, view.v0, view.v1, until=until):
                if self.count > 1:
                    began = time.perf_counter()
                    view = self._kernels.in_window(view, state, frontier, stream.index, window, pushes=pushes)
                    view.record.kernel_seconds += time.perf_counter() - began
                if view.e0 < view.e1:
                    yield view
                    if not pushes:
                        self._note_changes(frontier, rows[0], rows[1])

    def _note_changes(self, frontier: Frontier, v0: int, v1: int) -> None:
        """Note the pages of messages in which vertices v0..v1-1 have got some: a sweep marks none, but reaches most."""
        state, pages = self._state, self._state.pages
        assert pages is not None, "all values are in memory"
        for unit in pages.of((state.messages,), v0, v1):
            first = unit[1] * pages.rows
            if frontier.everything or state.touched.part(first, min(first + pages.rows, state.last)).words.any():
                pages.change(unit)
