"""Walks where memory has no room for the values of all vertices: window by window of those that edges lead to.

    for each window of vertices: its values -> for each view of rows: their values -> the view's edges to the window
                                 -> of a push: what its vertices become

Owns the size of windows. The values of a window come once, those of rows for each one; of several ranks from their
owners, while all walk in the same window (`owned_values.py`). Edges are read for each window, too, and cut to those
that lead to it; where the file has windows (`penstock convert --windows`) each reads its own. Where those of a push
find room they are kept: then they are read once, and of windows only the pages that they lead to. Messages of a sweep
are not read where nothing has been combined in them yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.state.compacted_rows import CompactedRows
from penstock.engine.state.state import Bitmap
from penstock.engine.state.state_arrays import StepValues

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.execution.owned_values import OwnedValues
    from penstock.engine.kernels.interface import WindowKernels
    from penstock.engine.program.program import Program
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.engine.state.records import IterationRecord
    from penstock.engine.state.state import Frontier
    from penstock.engine.state.state_arrays import StateArrays
    from penstock.storage.format.graph import Adjacency
    from penstock.storage.format.index import Index
    from penstock.transfer.values.view import View

AHEAD = 2
"""Ranges of rows whose values are in memory beside a window: the one at hand, and the next."""
KEPT_SHARE = 4
"""Edges of a frontier that take this part of the values' room are kept, and read once, not once for each window."""
FEW = 16
"""Edges of a frontier that lead to at most this part of the vertices of a group of pages: of several ranks, the values
that travel are those of vertices that they reach, not of whole pages."""
COUNTED_BYTES = 128
"""Bytes that an active vertex takes while edges of a frontier are counted along another adjacency than `out`."""
AtHand = Callable[[Iterator["View"]], Iterator["View"]]
"""Brings what kernels read beside the edges of views, and cuts these to what they may write."""

Settle = Callable[["StateArrays"], None]
"""Gives vertices of a part of the state new values."""


def window_vertices(room: int, beside: tuple[int, int], page: int, together: int) -> int:
    """Vertices of a window, whole pages.

    room: bytes of values in memory; beside: of a vertex of a window, and of one of the rows beside it
    (`StepValues.at_hand`); page: vertices of a page; together: of a range of rows.
    """
    far, near = beside
    return max(1, (room - AHEAD * near * together) // max(1, far * page)) * page


@dataclass(frozen=True)
class WindowCut:
    """How a walk's vertices are cut into windows.

    size: vertices of a window, the last of each of the file's but one; count: of windows; reads: how often each edge
    is read. of_file: vertices of a window of the file, each of which is cut; 0: all vertices are.
    """

    size: int
    count: int
    reads: int
    of_file: int = 0

    def parts(self, vertices: int) -> Iterator[tuple[int, int, int]]:
        """Yield the first and past the last vertex of each window, and the number of the file's that it is in."""
        for number, start in enumerate(range(0, vertices, self.of_file or max(1, vertices))):
            end = min(start + self.of_file, vertices) if self.of_file else vertices
            for first in range(start, end, self.size):
                yield first, min(first + self.size, end), number


def windows_walked(adjacency: Adjacency, steps: StepValues, *, pushes: bool = True) -> tuple[Adjacency, ...]:
    """The windows of the file that may be walked in place of all edges, if there are any.

    Not where messages are made of the degrees of their sources: a window has a part of the edges of each. Not by pulls
    that read nothing of a window.
    """
    return () if steps.asks_degree or not (pushes or steps.source) else adjacency.windows


ROW_COST = 5
"""Bytes of edges that are read in the time of decoding a row's offset: every window has all rows (R-MAT 25 and 30)."""


def cut_windows(
    adjacency: Adjacency, steps: StepValues, vertices: int, size: int, page: int, beside: tuple[int, int],
    room: int = 0, *, picks: bool = True, pushes: bool = True,
) -> WindowCut:  # fmt: skip
    """Cut the vertices that edges lead to into windows of at most `size`, of the file where that moves fewer bytes.

    page: vertices of a page; beside: as of `window_vertices`; room: of values in memory, of which those of rows stay
    from one window to the next that have some beside a window. picks: whether edges to a part of the vertices may be
    picked from others; else windows are those of the file, or there is one.
    """
    of_file = adjacency.window_vertices if windows_walked(adjacency, steps, pushes=pushes) else 0
    if not picks:
        return WindowCut(of_file or vertices, -(-vertices // of_file) if of_file else 1, 1, of_file)
    count = -(-vertices // size)
    plain = WindowCut(-(-vertices // (count * page)) * page, count, count)
    if count == 1 or not of_file or of_file % page:
        return plain
    reads = -(-of_file // size)
    part = -(-of_file // (reads * page)) * page
    cut = WindowCut(part, sum(1 for _ in WindowCut(part, 0, 0, of_file).parts(vertices)), reads, of_file)
    edges, (far, near) = adjacency.edges * adjacency.edge_bytes(with_weights=False), beside

    def moved(one: WindowCut) -> int:
        stays = max(0, room - far * min(one.size, vertices))
        return one.count * (max(0, near * vertices - stays) + ROW_COST * vertices) + one.reads * edges

    return min(plain, cut, key=moved)


class Windows:
    """The windows of a run's walks; out: the index along whose rows a frontier's edges are counted.

    state, kernels: of the cores, or of a device, where edges are not picked.

    count: of the last walk. settled: whether it has given vertices new values. emptied: the messages of vertices before
    this one are those of the walk. owners: the other ranks, if there are any.
    """

    owners: OwnedValues | None = None

    def __init__(self, program: Program, state: StateArrays, kernels: WindowKernels[Any], out: Index) -> None:
        assert state.pages is not None, "all values are in memory"
        self._state, self._pages, self._kernels = state, state.pages, kernels
        self._steps, self._out = StepValues.of(program), out
        self.count, self._emptied, self.settled = 1, 0, False
        keeps = kernels.picks and program.visits_once and bool(program.accumulator) and not self._steps.asks_degree
        self._keeps, self._keep_room, self._reached = keeps, 0, 0
        self._unvisited: CompactedRows | None = None
        self._room, self._together, self._by_file = self._pages.room, 0, True
        self._before = self._so_far()
        self._of_file: dict[str, EdgeStream] = {}

    def note(self, record: IterationRecord) -> None:
        """Note in an iteration's record what was read from the file of values and written to it since the last one."""
        before, self._before = self._before, self._so_far()
        record.windows, record.value_bytes = self.count, self._before[0] - before[0]
        record.value_seconds, record.value_wait_seconds = self._before[1] - before[1], self._before[2] - before[2]

    def _so_far(self) -> tuple[int, float, float]:
        """Bytes moved, seconds of that, and seconds of waiting, of this run and those that shared its file."""
        pages = self._pages
        return pages.file.bytes_moved, pages.file.busy_seconds, pages.waited_seconds

    def begin(self) -> None:
        """Begin the walks of an iteration."""
        self._emptied, self.settled = self._own[0], False

    def agree(self, streams: Collection[EdgeStream], gathered: Callable[..., NDArray[np.float64]]) -> None:
        """Walk the same windows in all ranks, of which some have less room; gathered: gives numbers of all."""
        together = max(self._beside(stream)[2] for stream in streams)
        by_file = all(self._has_windows(stream) for stream in streams)
        found = gathered(self._pages.room, -together, by_file).min(axis=0)
        self._room, self._together, self._by_file = int(found[0]), int(-found[1]), bool(found[2])

    def walk(
        self, stream: EdgeStream, frontier: Frontier, settle: Settle | None, unexplored: int
    ) -> Iterator[tuple[EdgeStream, AtHand]]:
        """Yield of each window that has something to tell its edges, and what a walk does with their views.

        Its values are in memory meanwhile. settle: gives the vertices of a window new values, of a walk that brings all
        messages; None: others follow. unexplored: edges of vertices that no frontier has had, with this one.
        """
        state, steps, pushes, owners = self._state, self._steps, stream.direction == "push", self.owners
        less, accepted = self._room_for_kept(stream, frontier, unexplored, alone=settle is not None), state.accepted
        self.settled = settle is not None and pushes and steps.applied_within(state.messages)
        far, near = steps.walked(state.messages, pushes=pushes)
        most, along = self.most_kept(stream), state.compacted or self._unvisited
        edges = self._edges_of(frontier, stream, most) if pushes and self._kernels.picks and not along else None
        id_bytes: int = state.vertices.itemsize
        kept = most + 1 if edges is None else edges * (stream.edge_bytes + id_bytes)
        kept += 2 * min(frontier.vertices, edges or 0) * id_bytes
        if accepted is not None:
            kept, most = accepted.nbytes + 2 * kept, min(most, less)  # some of them twice
        if owners is not None:
            owners.bring_rows(near if pushes else near | far)
        if kept <= most:
            self.settled = self.settled and not self._kernels.author.uses_activity
            last_step = settle if self.settled else None
            yield stream, partial(self._all_at_hand, stream, frontier, (far, near), last_step, kept)
            return
        with self._pages.lent(less) if less else nullcontext():
            yield from self._by_windows(stream, frontier, (far, near), settle, less)

    def _room_for_kept(self, stream: EdgeStream, frontier: Frontier, unexplored: int, *, alone: bool) -> int:
        """Bytes for rows that pushes have kept, or may keep (`CompactedRows`): what values leave where all have room.

        Only a push that reads all edges may keep those of vertices that are not visited: others leave out chunks
        without active rows. alone: whether a walk brings all messages.
        """
        state, pages, rows, self._unvisited = self._state, self._pages, self._state.compacted, None
        if rows is not None and not self._keeps:  # of another phase
            return rows.nbytes
        room, (_, near), page, together = 0, *self._beside(stream)
        if self._keeps and alone and stream.direction == "push" and self.owners is None:
            each = sum(pages.item_bytes[name] for name in {*state.fields, state.messages})
            held = each * -(-state.last // page) * page + AHEAD * near * together
            room = self._room - max(held, (AHEAD + 1) * page * sum(pages.item_bytes.values()))  # of the next phase
        kept = sum(some.nbytes for some in (rows, state.accepted) if some is not None)
        self._keep_room, self._reached = room - state.last // 8 - kept, 0
        if self._keep_room <= 0 or (cut := self.cut(stream, room)).count > 1:
            state.accepted = None
        elif rows is None and 0 < unexplored * stream.edge_bytes < self._keep_room:
            walked = self.stream_of(stream, 0) if cut.of_file else stream
            self._unvisited = CompactedRows() if walked.reads_all(self._kernels, frontier) else None
        return room if rows or self._unvisited or state.accepted else 0

    def _by_windows(
        self, stream: EdgeStream, frontier: Frontier, names: tuple[Collection[str], Collection[str]],
        settle: Settle | None, less: int,
    ) -> Iterator[tuple[EdgeStream, AtHand]]:  # fmt: skip
        """As `walk`; names: arrays of a window, and of rows; less: bytes of the room that are lent."""
        state, steps, pushes, owners = self._state, self._steps, stream.direction == "push", self.owners
        far, near = names
        cut, hot_first = self.cut(stream, less), self._kernels.hot_first
        self.count = cut.count
        if not self._kernels.picks:  # on cores the window takes what rows could keep
            self._pages.read_often(near if cut.count > 1 else ())
        for first, last, number in cut.parts(state.last):
            if not (pushes or frontier.everything or state.active.part(first, last).words.any()):
                continue
            walked = self.stream_of(stream, number) if cut.of_file else stream
            window = (first, last) if cut.reads > 1 else None
            empty = pushes and self._emptied <= max(first, self._own[0])
            fresh = steps.emptied(state.messages) if empty else frozenset[str]()
            with state.held(far, first, last, fresh=fresh):
                if pushes:
                    self._empty(last)
                if owners is not None:
                    owners.bring(far, [(first, last)], pushes=pushes)
                try:
                    self._kernels.hot_first = hot_first and first == 0  # the hottest vertices are the first ones
                    yield walked, partial(self._at_hand, walked, frontier, window, near)
                finally:
                    self._kernels.hot_first = hot_first
                if pushes:
                    self._pushed([(first, last)], frontier)
                else:
                    self._empty(state.last)
                if settle is not None and self.settled:
                    settle(state.part(first, last))
            if walked is not stream and walked.index.pages is not None:
                walked.index.pages.clear()
        if owners is not None and not pushes:
            owners.share_rows()

    @property
    def opened(self) -> Collection[EdgeStream]:
        """The streams of windows of the file that were walked."""
        return self._of_file.values()

    def first(self, stream: EdgeStream) -> EdgeStream:
        """The stream that a walk over all edges begins with."""
        return self.stream_of(stream, 0) if self.cut(stream).of_file else stream

    def cut(self, stream: EdgeStream, less: int = 0) -> WindowCut:
        """The windows of a walk along this stream, for which there is room, but for so many bytes."""
        (beside, page, _), adjacency = self._beside(stream), stream.directory.adjacency
        picks, along = self._kernels.picks, self._state.compacted is not None
        if picks and (along or not (self._by_file and self._has_windows(stream))):
            adjacency = replace(adjacency, windows=())  # all edges have room, and are read once
        how = {"picks": picks, "pushes": stream.direction == "push"}
        size, room = self.size(stream, less), self._room - less
        return cut_windows(adjacency, self._steps, self._state.last, size, page, beside, room, **how)

    @staticmethod
    def _has_windows(stream: EdgeStream) -> bool:
        """Whether the edges of the file's windows are among those that may be read."""
        extents = stream.pipeline.cache.extents
        return all(window.direction in extents for window in stream.directory.adjacency.windows)

    def stream_of(self, stream: EdgeStream, number: int) -> EdgeStream:
        """The stream of a window of the file."""
        window = stream.directory.adjacency.windows[number]
        key = f"{stream.direction} {window.direction}"
        if key not in self._of_file:
            self._of_file[key] = stream.along(window)
        return self._of_file[key]

    def _beside(self, stream: EdgeStream) -> tuple[tuple[int, int], int, int]:
        """What `window_vertices` takes besides the room."""
        pages, index = self._pages, stream.index.pages
        assert index is not None, "values come with the rows of the index"
        far, near = self._steps.at_hand(pages.item_bytes, self._state.messages, pushes=stream.direction == "push")
        return (far, near + pages.row_bytes), pages.rows, max(pages.range_of(index), self._together)

    def _edges_of(self, frontier: Frontier, stream: EdgeStream, most: int) -> int | None:
        """Edges of a frontier along a stream; None where they are not known, and would take too much to be counted."""
        if frontier.everything or self._steps.asks_degree:
            return None
        if stream.index is self._out:
            return frontier.edges
        if stream.owned is not None or frontier.vertices * COUNTED_BYTES > most:
            return None
        return int(stream.index.lengths_of(self._state.active.members()).sum())

    def size(self, stream: EdgeStream, less: int = 0) -> int:
        """Vertices of a window for which there is room, but for so many bytes."""
        return window_vertices(self._room - less, *self._beside(stream))

    def most_kept(self, stream: EdgeStream) -> int:
        """Bytes of edges that may be kept: a part of the room, which leaves that of a window of a page."""
        (far, near), page, together = self._beside(stream)
        room = self._room
        return min(room // KEPT_SHARE, room - far * page - AHEAD * near * together)

    def _all_at_hand(
        self, stream: EdgeStream, frontier: Frontier, names: tuple[Collection[str], Collection[str]],
        settle: Settle | None, kept_bytes: int, arrivals: Iterator[View],
    ) -> Iterator[View]:  # fmt: skip
        """The views of a push for which one look at the edges is enough, since those of its rows have room.

        Windows are of pages that edges lead to. names: arrays of a window, and of rows. kept_bytes: of the edges.
        """
        state, pages, (far, near) = self._state, self._pages, names
        with pages.lent(kept_bytes):
            every = (self._in_window(view, stream, frontier, (0, state.last)) for view in arrivals)
            kept = [view for view in every if view.e1]
            reached = np.zeros(-(-state.last // pages.rows), np.bool_)
            for view in kept:
                reached[view.neighbors // pages.rows] = True
            if self.owners is not None:
                reached = self.owners.of_all(reached)
            numbers, most = np.flatnonzero(reached).tolist(), self.size(stream, kept_bytes) // pages.rows
            groups = [numbers[begin : begin + most] for begin in range(0, len(numbers), most)]
            few = self.owners is not None and frontier.edges * FEW <= len(numbers) * pages.rows
            along = np.concatenate([state.vertices[:0], *(view.neighbors for view in kept if few)])
            ids = np.unique(along.astype(state.vertices.dtype, copy=False))
            self.count = max(1, len(groups))
            for group in groups:
                window = group[0] * pages.rows, (group[-1] + 1) * pages.rows
                runs = np.split(np.array(group), np.flatnonzero(np.diff(group) != 1) + 1)  # of pages, one after another
                spans = [(int(run[0]) * pages.rows, min(int(run[-1] + 1) * pages.rows, state.last)) for run in runs]
                with pages.held([(name, number) for name in far for number in group]):
                    if self.owners is not None and few:
                        self.owners.bring_some(far, ids[slice(*np.searchsorted(ids, window).tolist())])
                    elif self.owners is not None:
                        self.owners.bring(far, spans, pushes=True)
                    for view in kept:
                        part = view if len(groups) == 1 else self._in_window(view, stream, frontier, window)
                        part = self._accepted(part, stream, frontier)
                        with state.held(near if part.e1 else (), view.v0, view.v1):
                            yield part
                    self._pushed(spans, frontier, whole=not few)
                    if settle is not None:
                        for first, last in spans:
                            settle(state.part(first, last))

    def _in_window(
        self, view: View, stream: EdgeStream, frontier: Frontier, window: tuple[int, int], **which: Any
    ) -> View:
        """The edges of a view to the vertices of a window; which: as `WindowKernels.in_window` takes it."""
        began, pushes = time.perf_counter(), stream.direction == "push"
        found = self._kernels.in_window(view, self._state, frontier, stream.index, window, pushes=pushes, **which)
        view.record.kernel_seconds += time.perf_counter() - began
        return found

    def _accepted(self, view: View, stream: EdgeStream, frontier: Frontier) -> View:
        """The edges of a view that a push has to walk: where those are kept that are accepted, these.

        Of edges to a vertex that is reached, views of later rows have none of an earlier source.
        """
        if self._state.accepted is not None:
            again, self._reached = view.v0 < self._reached, max(view.v0, self._reached)
            view = self._in_window(view, stream, frontier, (0, self._state.last), accepted=True, again=again)
            self._state.accepted = self._kept(self._state.accepted, view)
        return view

    def _kept(self, rows: CompactedRows, view: View) -> CompactedRows | None:
        """The rows with those of a view; None where there is no room."""
        before, has_room = rows.nbytes, rows.keep(view, self._keep_room)
        self._keep_room -= rows.nbytes - before if has_room else -before
        return rows if has_room else None

    @property
    def _own(self) -> tuple[int, int]:
        """The vertices, in whole pages, whose values this process keeps."""
        (first, last), rows = self._pages.owned, self._pages.rows
        return first // rows * rows, last

    def _empty(self, until: int) -> None:
        """Let messages of the vertices up to this one be combined with nothing, if a walk begins so."""
        state, pages, until = self._state, self._pages, min(until, self._own[1])
        emptied = self._steps.emptied(state.messages)
        while emptied and self._emptied < until:
            last = min(self._emptied + pages.rows, state.last)
            with state.held(emptied, self._emptied, last, changes=emptied, fresh=emptied):
                self._kernels.empty(state.part(self._emptied, last))
            self._emptied = last

    def _at_hand(
        self, stream: EdgeStream, frontier: Frontier, window: tuple[int, int] | None, near: Collection[str],
        arrivals: Iterator[View],
    ) -> Iterator[View]:  # fmt: skip
        """The views, of edges to the window, while the values of their rows are in memory."""
        state, pushes, pages = self._state, stream.direction == "push", stream.index.pages
        assert pages is not None, "values come with the rows of the index"
        rows, unvisited = self._unvisited, Bitmap.empty(0)
        if rows is not None:
            unvisited = Bitmap.empty(state.last)
            unvisited.add_where(lambda v0, v1: np.asarray(state.target[v0:v1] == state.identity), state.last)
        for arrived in arrivals:
            view = arrived.narrowed()  # sums depend on the windows, too
            v0, v1 = view.v0, view.v1
            until = v1 + self._pages.ahead * self._pages.range_of(pages) if frontier.everything else 0
            if not pushes:
                self._empty(v1)
            with state.held(near, v0, v1, until=until, rows=stream.index):
                if window is not None:
                    view = self._in_window(view, stream, frontier, window)
                if view.e0 < view.e1:
                    yield self._accepted(view, stream, frontier)
                    if not pushes:
                        self._note_changes(frontier, v0, v1)
                    elif rows is not None:
                        which = {"accepted": True, "marks": unvisited.words}
                        rows = self._kept(rows, self._in_window(view, stream, frontier, (0, state.last), **which))
        state.compacted = state.compacted or rows

    def _pushed(self, spans: Sequence[tuple[int, int]], frontier: Frontier, *, whole: bool = True) -> None:
        """Give owners what a push has found for vertices whose pages are at hand, and note where that is.

        whole: whether all messages of these are something, not only the marked ones.
        """
        if self.owners is not None:
            self.owners.share(spans, everything=frontier.everything, whole=whole)
        for first, last in spans:
            self._note_changes(frontier, first, last)

    def _note_changes(self, frontier: Frontier, v0: int, v1: int) -> None:
        """Note the pages of messages in which vertices v0..v1-1 have got some: a sweep marks none, but reaches most."""
        state, pages, (begin, end) = self._state, self._pages, self._own
        for unit in pages.of((state.messages,), max(v0, begin), min(v1, end)):
            first = unit[1] * pages.rows
            if frontier.everything or state.touched.part(first, min(first + pages.rows, state.last)).words.any():
                pages.change(unit)
