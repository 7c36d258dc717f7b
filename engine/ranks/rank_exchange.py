"""Merging the states of all ranks after each walk over edges.

Every rank has found messages along the edges that it owns. Afterwards the accumulators and marks of all ranks are the
same to the bit, so that all of them take the same next step; but for what stays with owners (`owned_steps.py`). Nothing
here depends on how long anything took, nor on where a state is: of a device, marks and messages stay there, and how
many there are comes to the host. Few messages come with that number, in memory that kernels write and read in place,
and go by way of the hosts. Of values in a file owners alone have theirs (`owned_values.py`): `give_owners`, `gather`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from penstock.engine.ranks.communicator import gather_few, starts_of
from penstock.engine.state.state import SPAN
from penstock.engine.state.state_arrays import SENT

if TYPE_CHECKING:
    from penstock.engine.kernels.cuda.launch_exchange import CudaExchangeKernels
    from penstock.engine.kernels.host.launch_exchange import HostExchangeKernels
    from penstock.engine.ranks.communicator import ArrayRanks, Communicator
    from penstock.engine.state.device_state import VertexState
    from penstock.engine.state.state import Bitmap

    Kernels = HostExchangeKernels | CudaExchangeKernels

Ints = NDArray[np.int64]
Span = tuple[int, int]
"""Of vertices, the first and the first that is not meant."""

LISTED_SHARE, MARKED_SHARE = 0.03, 0.5
"""Of the vertices: up to so many messages are handed out with ids, up to so many with a bitmap; more as they are."""
FEW = 1 << 15
"""Up to so many messages of all ranks, with ids, in one gather of host memory: 256 KiB to 512 KiB."""
SLICED_SHARE = 0.1
"""After a pull, from so many on as they are: slices need no ids, which take longer to find than slices to copy."""


def room_for_few(vertices: int) -> int:
    """How many messages of all ranks, with ids, go in one gather of host memory."""
    return min(FEW, int(LISTED_SHARE * vertices))


def form_of(total: int, vertices: int, *, pulled: bool) -> Literal["nothing", "dense", "marked", "listed"]:
    """How so many messages of all ranks are exchanged; all ranks ask with the same numbers."""
    if total == 0:
        return "nothing"
    if total > (SLICED_SHARE if pulled else MARKED_SHARE) * vertices:
        return "dense"
    return "marked" if total > LISTED_SHARE * vertices else "listed"


class RankExchange:
    """Between this rank's state and those of the others, which hold the same vertices.

    ranks: for counts, which are the host's, and few messages. arrays: for all others, where the state is. at_once: how
    many vertices' messages travel at once; all ranks construct it at the same time, and agree on that. found: messages
    of all ranks in the last exchange.
    """

    def __init__(self, state: VertexState, kernels: Kernels, ranks: Communicator, arrays: ArrayRanks) -> None:
        # of the state's kind: its arrays and bitmaps are what the kernels take
        self.state: Any = state
        self.kernels: Any = kernels
        self.ranks, self.arrays = ranks, arrays
        self.found = 0
        most = self.kernels.exchanged_at_once if state.pages is None else state.pages.rows
        self.at_once = int(ranks.gather_numbers(np.array([most])).min())

    def share_messages(self, everything: bool, bounds: Ints | None = None, owners: Ints | None = None) -> bool:
        """Give all ranks the same accumulators and marks; return whether they have them.

        everything: all vertices have messages, and marks do not count. bounds: of a pull, the vertices that each rank
        owns, and alone has found messages for; None: any rank may have found some for any vertex. owners: if messages
        are more than a few, each rank gets those of these vertices of its own, and no marks but these; None: all do.
        """
        if everything:
            self._share_values(bounds, (0, self.state.last))
            self.found = self.state.last
            return True
        state, rank, few = self.state, self.ranks.rank, room_for_few(self.state.last)
        own = (0, state.last) if bounds is None else (int(bounds[rank]), int(bounds[rank + 1]))
        ours, found = (
            self.kernels.shared_lists(name, few, state.vertices.dtype, state.target.dtype) for name in ("ours", "found")
        )
        counts = gather_few(self.ranks, int(self.kernels.count(state.touched, own, state.target, ours)), ours, found)
        starts = starts_of(counts)
        self.found = int(starts[-1])
        if owners is not None and self.found > few:
            if bounds is None:
                self._push_to_owners(owners)
            mine = int(owners[rank]), int(owners[rank + 1])
            self.kernels.copy_marks(state.touched, mine, state.touched.words.view(np.uint32))
            return False
        if self.found > few:
            self._share_many(own, starts, bounds)
        elif self.found:
            self._merge(found.ids_here, found.values_here, starts, bounds)
        if state.incoming is None and state.touched is not state.pending:
            self.kernels.move_marks(state.touched, state.pending)
        return True

    def share_own_marks(self, marks: Bitmap, bounds: Ints) -> None:
        """Give all ranks the marks of all vertices, of which each rank has those of its own; in host memory."""
        words = marks.words
        first = np.minimum(bounds[:-1] // 64, len(words) - 1)  # this word may be another rank's, too
        cut = self.ranks.gather_numbers(words[first[self.ranks.rank]][np.newaxis])
        self.arrays.gather_slices(words, -(-bounds // 64))
        np.bitwise_or.at(words, first, cut.ravel())
        marks.summarize()

    def _push_to_owners(self, bounds: Ints) -> None:
        """Give owners what other ranks have found for their vertices: of a part of each rank's at a time."""
        step = -(-self.at_once // self.ranks.size)
        for first in range(0, int(np.diff(bounds).max()), step):
            ends = np.minimum(bounds[:-1] + first, bounds[1:]), np.minimum(bounds[:-1] + first + step, bounds[1:])
            parts = [*zip(*(each.tolist() for each in ends), strict=True)]
            self._list_to_owners(parts, *self._counts_for([parts]))

    def _counts_for(self, parts: Sequence[Sequence[Span]]) -> Ints:
        """How many messages each rank has for each other one, int64 (len(parts), ranks, owners); parts: of owners."""
        rank, marked = self.ranks.rank, self.kernels.marked
        ours = [[0 if one == rank else marked(self.state.touched, span) for one, span in enumerate(of)] for of in parts]
        return np.moveaxis(self.ranks.gather_numbers(np.array(ours)), 0, 1)

    def _list_to_owners(self, parts: Sequence[Span], counts: Ints) -> None:
        """Give each rank what others have found for a part of its vertices; counts: of `_counts_for`."""
        if not counts.any():
            return
        state, kernels, rank, size = self.state, self.kernels, self.ranks.rank, self.ranks.size
        starts = starts_of(counts.max(axis=0))
        room = int(starts[rank + 1] - starts[rank])
        dtypes = {"ids": state.vertices.dtype, "values": state.target.dtype}
        ours = [kernels.buffer(name, int(starts[-1]), dtype) for name, dtype in dtypes.items()]
        found = [kernels.buffer(f"found {name}", size * room, dtype) for name, dtype in dtypes.items()]
        for part, begin, count in zip(parts, starts[:-1].tolist(), counts[rank].tolist(), strict=True):
            listed = (one[begin : begin + count] for one in ours)
            kernels.listed(state.touched, part, count, state.target, *listed)
        for mine, theirs in zip(ours, found, strict=True):
            self.arrays.exchange_slices(mine, starts, theirs.reshape(size, room))
        for other, count in enumerate(counts[:, rank].tolist()):
            part = other * room, other * room + count
            kernels.merge(*found, part, state.target, state.touched, instead=False)

    def gather(self, name: str, bounds: Ints, span: Span) -> None:
        """Give all ranks the values that owners have of a range of vertices, in an array of which it is in memory."""
        first, last = span
        self.arrays.gather_slices(self.values(name)[first:last], np.clip(bounds, first, last) - first)

    def values(self, name: str) -> Any:
        """An array of values of all vertices."""
        return self.state.sent if name == SENT else self.state.fields.get(name, self.state.target)

    def gather_marks(self, marks: Any, bounds: Ints, span: Span) -> None:
        """Give all ranks the marks that owners have of a range of vertices; it and bounds: whole spans."""
        (first, last), rank = span, self.ranks.rank
        part, spans = marks.part(first, last), -(-(np.clip(bounds, first, last) - first) // SPAN)
        self.arrays.gather_slices(part.words, (SPAN // 64) * spans)
        for begin, end in ((0, spans[rank]), (spans[rank + 1], spans[-1])):
            part.part(SPAN * int(begin), SPAN * int(end)).summarize()

    def give_owners(self, bounds: Ints, spans: Sequence[Span], *, everything: bool, whole: bool = True) -> None:
        """Combine all ranks' messages of ranges of vertices, and give each, and its mark, to the owner of the vertex.

        They are in memory, whole spans; what other ranks have there is of no more use, and loses its marks. everything:
        as in `share_messages`. whole: whether messages that are not marked are what nothing was combined with.
        """
        state, rank = self.state, self.ranks.rank
        if not whole and self._give_few(spans, (int(bounds[rank]), int(bounds[rank + 1]))):
            return
        cuts = [np.clip(bounds, *span) for span in spans]
        parts = [[*pairwise(cut.tolist())] for cut in cuts]
        for span, cut, part, counts in zip(spans, cuts, parts, self._counts_for(parts), strict=True):
            if not (everything or (whole and counts.sum() > MARKED_SHARE * (span[1] - span[0]))):
                self._list_to_owners(part, counts)
                continue
            self._slices_to_owners(state.target[slice(*span)], cut - span[0])
            if state.touched is not state.pending:
                marks = state.touched.part(*span)
                words = (SPAN // 32) * -(-(cut - span[0]) // SPAN)
                self._slices_to_owners(marks.words.view(np.uint32), words, "or")
                marks.summarize()

    def _give_few(self, spans: Sequence[Span], mine: Span) -> bool:
        """Give owners the marked messages of ranges of vertices in one gather, if they are few; return whether so."""
        state, few = self.state, room_for_few(self.state.last)
        ours, found = (
            self.kernels.shared_lists(name, few, state.vertices.dtype, state.target.dtype) for name in ("ours", "found")
        )
        counts = [int(self.kernels.marked(state.touched, span)) for span in spans]
        ends = starts_of(np.array(counts))
        for number, span in enumerate(spans if ends[-1] <= few else ()):
            here = slice(int(ends[number]), int(ends[number + 1]))
            self.kernels.listed(state.touched, span, counts[number], state.target, ours.ids[here], ours.values[here])
        starts = starts_of(gather_few(self.ranks, int(ends[-1]), ours, found))
        if starts[-1] > few:
            return False
        if starts[-1]:
            self._merge(found.ids_here, found.values_here, starts, None, mine)
        return True

    def _slices_to_owners(self, whole: Any, bounds: Ints, combiner: str | None = None) -> None:
        """Combine one array per rank, in the order of ranks; each gets its slice of the result."""
        size, rank = self.ranks.size, self.ranks.rank
        step = max(1, 2 * self.at_once // size)
        for first in range(0, len(whole), step):
            some = whole[first : first + step]
            cuts = np.clip(bounds, first, first + len(some)) - first
            ours = some[int(cuts[rank]) : int(cuts[rank + 1])]
            found = self.kernels.buffer("slices", size * len(ours), whole.dtype)
            self.arrays.exchange_slices(some, cuts, found.reshape(size, len(ours)))
            self.kernels.combine(found, ours, combiner)

    def _share_many(self, own: Span, starts: Ints, bounds: Ints | None) -> None:
        """Exchange messages by ranges of vertices, so that what travels at once takes little memory.

        own: whose messages are this rank's. starts: where those of each rank begin among all.
        """
        state, step = self.state, -(-self.at_once // SPAN) * SPAN
        dense = False
        for first in range(0, state.last, step):
            span = first, min(first + step, state.last)
            mine = min(max(own[0], first), span[1]), min(max(own[1], first), span[1])
            if step < state.last:
                count = self.kernels.marked(state.touched, mine)
                starts = starts_of(self.ranks.gather_numbers(np.array([count])).ravel())
            form = form_of(int(starts[-1]), span[1] - first, pulled=bounds is not None)
            if form == "nothing":
                continue
            if form == "dense":
                self._share_values(bounds, span)
                dense = True
            else:
                self._share_listed(mine, starts, bounds, span if form == "marked" else None)
        if dense:
            self.combine_marks(state.touched)

    def begin_settling(self) -> None:
        """Let a walk of unsettled rows take, and give back, the marks of all pending vertices."""
        self.kernels.move_marks(self.state.pending, self.state.touched)

    def share_settled(self, bounds: Ints) -> None:
        """Give all ranks the same values and pending vertices after a walk of unsettled rows.

        Who has sent what it has along its row is pending no more, says the rank that owns the row; unless another rank
        has found a better value for it.
        """
        state, rank, size = self.state, self.ranks.rank, self.ranks.size
        first, last = int(bounds[rank]), int(bounds[rank + 1])
        target, ours = state.target, state.target[first:last]
        found = self.kernels.buffer("slices", size * len(ours), target.dtype)
        self.arrays.exchange_slices(target, bounds, found.reshape(size, len(ours)))
        self.kernels.settle(found, rank, ours, state.touched, state.pending, first)
        self.arrays.gather_slices(target, bounds)
        self.combine_marks(state.pending)
        state.touched.clear()

    def _share_values(self, bounds: Ints | None, span: Span) -> None:
        """Exchange the values of a range of vertices."""
        if bounds is None:
            self._combine_slices(self.state.target[slice(*span)])
        else:
            self.arrays.gather_slices(self.state.target, np.clip(bounds, *span))

    def _share_listed(self, own: Span, starts: Ints, bounds: Ints | None, marked: Span | None) -> None:
        """Exchange messages with their ids; marked: whole spans, with whose bitmap in the place of these."""
        state, kernels, rank = self.state, self.kernels, self.ranks.rank
        total, ours = int(starts[-1]), slice(int(starts[rank]), int(starts[rank + 1]))
        ids = kernels.buffer("ids", total, state.vertices.dtype)
        values = kernels.buffer("values", total, state.target.dtype)
        kernels.listed(state.touched, own, ours.stop - ours.start, state.target, ids[ours], values[ours])
        self.arrays.gather_slices(values, starts)
        if marked is not None:
            self._list_marked(own, marked, ids, starts.tolist())
        else:
            self.arrays.gather_slices(ids, starts)
        self._merge(ids, values, starts, bounds)

    def _list_marked(self, own: Span, span: Span, ids: Any, starts: list[int]) -> None:
        """List in `ids` what other ranks have marked in a span, by their bitmaps of it."""
        (first, last), size = span, self.ranks.size
        marks = self.state.touched.part(first, last)
        words = marks.words.nbytes // 4
        found = self.kernels.buffer("bitmaps", size * words, np.uint32)
        bitmaps = [found[rank * words : (rank + 1) * words] for rank in range(size)]
        self.kernels.copy_marks(marks, (own[0] - first, own[1] - first), bitmaps[self.ranks.rank])
        self.arrays.gather_slices(found, words * np.arange(size + 1))
        for rank, bitmap in enumerate(bitmaps):
            if rank != self.ranks.rank:
                listed = ids[starts[rank] : starts[rank + 1]]
                self.kernels.enumerated(bitmap, (0, last - first), listed)
                if first:
                    listed += listed.dtype.type(first)

    def _merge(self, ids: Any, values: Any, starts: Ints, bounds: Ints | None, own: Span | None = None) -> None:
        """Merge what all ranks have listed; rank r has items starts[r] to starts[r + 1] - 1 of ids and values.

        What this rank pulled is there already, and no vertex is two ranks'. Sums of floats begin from nothing, in the
        order of ranks: the same bits everywhere. own: of which vertices messages are merged, None: of all.
        """
        state, rank, parts = self.state, self.ranks.rank, [*pairwise(starts.tolist())]
        if own is not None:  # each list is ascending
            cuts = [np.searchsorted(ids[low:high], np.array(own)) + low for low, high in parts]
            parts = [(int(low), int(high)) for low, high in cuts]
        mine = parts[rank]
        if bounds is not None:
            parts = [(0, mine[0]), (mine[1], parts[-1][1])]
        elif state.incoming is not None and state.target.dtype.kind == "f":
            self.kernels.reset(ids, mine, state.target, state.identity)
        else:
            del parts[rank]
        for part in parts:
            self.kernels.merge(ids, values, part, state.target, state.touched, instead=bounds is not None)

    def combine_marks(self, bitmap: Any) -> None:
        """Set what any rank has marked."""
        self._combine_slices(bitmap.words.view(np.uint32), "or")
        bitmap.summarize()

    def _combine_slices(self, whole: Any, combiner: str | None = None) -> None:
        """Combine one array per rank: each rank a slice of it, in the order of ranks; all get the result."""
        size, rank, step = self.ranks.size, self.ranks.rank, self.at_once
        for first in range(0, len(whole), step):
            some = whole[first : first + step]
            bounds = np.linspace(0, len(some), size + 1).astype(np.int64)
            ours = some[int(bounds[rank]) : int(bounds[rank + 1])]
            found = self.kernels.buffer("slices", size * len(ours), whole.dtype)
            self.arrays.exchange_slices(some, bounds, found.reshape(size, len(ours)))
            self.kernels.combine(found, ours, combiner)
            self.arrays.gather_slices(some, bounds)
