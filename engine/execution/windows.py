"""Walks where memory has no room for the values of all vertices: window by window of those that edges lead to.

    for each window of vertices: its values -> for each view of rows: their values -> the view's edges to the window
                                 -> of a push: what its vertices become

Owns the size of windows. Edges are read once for each window, the values of a window once, those of rows for each one.
Messages of a sweep are not read where nothing has been combined in them yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
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

Settle = Callable[["State"], None]
"""Gives vertices of a part of the state new values."""


def window_vertices(room: int, beside: tuple[int, int], page: int, together: int) -> int:
    """Vertices of a window, whole pages.

    room: bytes of values in memory; beside: of a vertex of a window, and of one of the rows beside it
    (`StepValues.at_hand`); page: vertices of a page; together: of a range of rows.
    """
    far, near = beside
    return max(1, (room - AHEAD * near * together) // max(1, far * page)) * page


class Windows:
    """The windows of a run's walks.

    count: of the last walk. settled: whether it has given vertices new values. emptied: the messages of vertices before
    this one are those of the walk.
    """

    def __init__(self, program: Program, state: State, kernels: HostKernels) -> None:
        self._state, self._kernels, self._steps = state, kernels, StepValues.of(program)
        self.count, self._emptied, self.settled = 1, 0, False
        self._before: tuple[int, float, float] = (0, 0.0, 0.0)

    def note(self, record: IterationRecord) -> None:
        """Note in an iteration's record what was read from the file of values and written to it since the last one."""
        pages, before = self._state.pages, self._before
        assert pages is not None, "all values are in memory"
        self._before = pages.file.bytes_moved, pages.file.busy_seconds, pages.waited_seconds
        record.windows, record.value_bytes = self.count, self._before[0] - before[0]
        record.value_seconds, record.value_wait_seconds = self._before[1] - before[1], self._before[2] - before[2]

    def begin(self) -> None:
        """Begin the walks of an iteration."""
        self._emptied, self.settled = 0, False

    def walk(self, stream: EdgeStream, frontier: Frontier, settle: Settle | None) -> Iterator[AtHand]:
        """Yield what each window that has something to tell does with a walk's views; it is in memory meanwhile.

        settle: gives the vertices of a window new values, of a walk that brings all messages; None: others follow.
        """
        state, steps, pushes = self._state, self._steps, stream.direction == "push"
        assert state.pages is not None, "all values are in memory"
        assert stream.index.pages is not None, "values come with the rows of the index"
        far, near = steps.walked(state.messages, pushes=pushes)
        beside = steps.at_hand(state.pages.item_bytes, state.messages, pushes=pushes)
        size = window_vertices(state.pages.room, beside, state.pages.rows, stream.index.pages.together)
        self.count = -(-state.last // size)
        self.settled = settle is not None and pushes and steps.applied_within(state.messages)
        for first in range(0, state.last, size):
            last = min(first + size, state.last)
            if not (pushes or frontier.everything or state.active.part(first, last).words.any()):
                continue
            if pushes:
                self._empty(last)
            with state.held(far, first, last):
                yield partial(self._at_hand, stream, frontier, (first, last), near)
                if pushes:
                    self._note_changes(frontier, first, last)
                else:
                    self._empty(state.last)
                if settle is not None and self.settled:
                    settle(state.part(first, last))

    def _empty(self, until: int) -> None:
        """Let messages of the vertices up to this one be combined with nothing, if a walk begins so."""
        state, pages = self._state, self._state.pages
        assert pages is not None, "all values are in memory"
        emptied = self._steps.emptied(state.messages)
        while emptied and self._emptied < until:
            last = min(self._emptied + pages.rows, state.last)
            with state.held(emptied, self._emptied, last, changes=emptied, fresh=emptied):
                self._kernels.empty(state.part(self._emptied, last))
            self._emptied = last

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
            if not pushes:
                self._empty(view.v1)
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
