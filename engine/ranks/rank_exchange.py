"""Merging the states of all ranks after each walk over edges.

Every rank has found messages along the edges that it owns. Afterwards the accumulators and marks of all ranks are the
same to the bit, so that all of them take the same next step. Nothing here depends on how long anything took.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.combiners import COMBINERS
from penstock.engine.ranks.communicator import Listed, gather_few, gather_parts, starts_of
from penstock.engine.ranks.marked import marked, marked_values, put_listed, put_marked, unite_words
from penstock.engine.state.device_state import bitmap_words
from penstock.engine.state.state import SPAN, Bitmap, State

if TYPE_CHECKING:
    from penstock.engine.ranks.communicator import Communicator

Ints = NDArray[np.int64]
_Marks = tuple[NDArray[np.uint64], NDArray[np.intp]]
"""Words of a bitmap, (spans, 64), and which spans these are."""

LISTED_SHARE, MARKED_SHARE = 0.03, 0.5
"""Of the vertices: up to so many messages are handed out with ids, up to so many with a bitmap; more as they are."""
FEW = 1 << 15
"""Up to so many messages of all ranks, with ids, in one gather of host memory: 256 KiB to 512 KiB."""
SLICED_SHARE = 0.1
"""After a pull, from so many on as they are: slices need no ids, which take longer to find than slices to copy."""


def room_for_few(vertices: int) -> int:
    """How many messages of all ranks, with ids, go in one gather of host memory."""
    return min(FEW, int(LISTED_SHARE * vertices))


def form_of(total: int, vertices: int, *, pulled: bool) -> Literal["nothing", "few", "dense", "listed"]:
    """How so many messages of all ranks are exchanged; all ranks ask with the same numbers."""
    if total == 0:
        return "nothing"
    if total <= room_for_few(vertices):
        return "few"
    return "dense" if total > (SLICED_SHARE if pulled else MARKED_SHARE) * vertices else "listed"


def takes_ids(total: int, vertices: int) -> bool:
    """Whether listed messages go with ids, and not with a bitmap."""
    return total <= LISTED_SHARE * vertices


class RankExchange:
    """Between the states of ranks, which hold the same vertices."""

    def __init__(self, state: State, combiner: str, ranks: Communicator) -> None:
        self.state, self.ranks = state, ranks
        self._combiner = combiner
        self._few: Listed | None = None

    def share_messages(self, everything: bool, bounds: Ints | None = None) -> None:
        """Give all ranks the same accumulators and marks.

        everything: all vertices have messages, and marks do not count. bounds: of a pull, the vertices that each rank
        owns, and alone has found messages for; None: any rank may have found some for any vertex.
        """
        if everything:
            if bounds is not None:
                self.ranks.gather_slices(self.state.target, bounds)
            else:
                self._combine_slices(self.state.target, self._merge)
            return
        own = (
            (0, self.state.last) if bounds is None else (int(bounds[self.ranks.rank]), int(bounds[self.ranks.rank + 1]))
        )
        spans = _spans(self.state.touched, own)
        marks = _words(self.state.touched, spans, own)
        found = self._room(room_for_few(self.state.last))
        count = int(np.bitwise_count(marks).sum())
        ids = marked(marks, spans) if count <= len(found[0]) else np.zeros(0, np.int64)
        counts = gather_few(self.ranks, count, (ids.astype(found[0].dtype), self.state.target[ids]), found)
        form = form_of(int(counts.sum()), self.state.last, pulled=bounds is not None)
        if form == "few":
            self._merge_listed(found, starts_of(counts), bounds)
        elif form == "dense":
            self._share_dense(bounds)
        elif form == "listed":
            self._share_listed((marks, spans), counts, bounds)
        self._pass_on_marks()

    def _share_dense(self, bounds: Ints | None) -> None:
        state = self.state
        if bounds is None:
            self._combine_slices(state.target, self._merge)
        else:
            self.ranks.gather_slices(state.target, bounds)
        self._combine_slices(_shared_words(state), np.bitwise_or)
        unite_words(state.touched.words, np.empty((0, len(state.touched.words)), np.uint64), state.touched.summary)

    def _room(self, few: int) -> Listed:
        """Lists of vertices and messages, not filled, kept from call to call."""
        target = self.state.target
        if self._few is None or len(self._few[0]) != few:
            self._few = np.empty(few, self.state.vertices.dtype), np.empty((few, *target.shape[1:]), target.dtype)
        return self._few

    def _share_listed(self, ours: _Marks, counts: Ints, bounds: Ints | None) -> None:
        """Exchange messages with their ids, or with a bitmap in their place."""
        state, ranks, starts = self.state, self.ranks, starts_of(counts)
        values = gather_parts(ranks, marked_values(*ours, state.target), counts)
        if takes_ids(int(starts[-1]), state.last):
            ids = gather_parts(ranks, marked(*ours).astype(state.vertices.dtype), counts)
            self._merge_listed((ids, values), starts, bounds)
            return
        bits = np.zeros_like(state.touched.words)
        marks, spans = ours
        bits.reshape(-1, 64)[spans] = marks
        gathered = ranks.gather_numbers(bits.view(np.uint32)[: bitmap_words(state.last)])
        words = np.zeros((ranks.size, len(bits)), bits.dtype)
        words.view(np.uint32)[:, : gathered.shape[1]] = gathered
        every = np.arange(len(bits) // 64)
        for rank in self._merged(bounds):
            there, found = words[rank].reshape(-1, 64), values[starts[rank] : starts[rank + 1]]
            if bounds is None:
                found = self._merge(marked_values(there, every, state.target), found)
            put_marked(there, every, found, state.target)
        unite_words(state.touched.words, words, state.touched.summary)

    def _merge_listed(self, found: Listed, starts: Ints, bounds: Ints | None) -> None:
        """Merge the messages of all ranks; rank r has items starts[r] to starts[r + 1] - 1 of the lists."""
        touched, target = self.state.touched, self.state.target
        for rank in self._merged(bounds):
            ids, values = (array[starts[rank] : starts[rank + 1]] for array in found)
            if bounds is None:
                values = self._merge(target[ids], values)
            put_listed(ids, values, target, touched.words, touched.summary)

    @property
    def _merge(self) -> np.ufunc:
        """How two messages become one."""
        return COMBINERS[self._combiner].ufunc

    def _merged(self, bounds: Ints | None) -> list[int]:
        """Whose messages are still to be merged into this rank's, in this order.

        Floats from nothing on, in the order of ranks, so that all get the same bits; of what was pulled, and of
        integers, its own are there already.
        """
        state, every = self.state, range(self.ranks.size)
        if bounds is None and state.incoming is not None and state.target.dtype.kind == "f":
            words, spans = state.touched.words.reshape(-1, 64), np.flatnonzero(state.touched.summary)
            nothing = np.full_like(marked_values(words[spans], spans, state.target), state.identity)
            put_marked(words[spans], spans, nothing, state.target)
            return list(every)
        return [rank for rank in every if rank != self.ranks.rank]

    def _combine_slices(self, whole: NDArray[Any], merge: np.ufunc) -> None:
        """Combine one array per rank: each rank a slice of it, in the order of ranks; all get the result."""
        bounds = np.linspace(0, len(whole), self.ranks.size + 1).astype(np.int64)
        ours = whole[bounds[self.ranks.rank] : bounds[self.ranks.rank + 1]]
        found = np.empty((self.ranks.size, *ours.shape), ours.dtype)
        self.ranks.exchange_slices(whole, bounds, found)
        ours[...] = found[0]
        for other in found[1:]:
            merge(ours, other, out=ours)
        self.ranks.gather_slices(whole, bounds)

    def _pass_on_marks(self) -> None:
        """Make pending what was marked, where marks of a walk are kept apart only for the exchange."""
        state = self.state
        if state.incoming is None and state.touched is not state.pending:
            state.pending.unite(state.touched)
            state.touched.clear()


def _shared_words(state: State) -> NDArray[np.uint32]:
    """The marks of a walk as all ranks exchange them, those on devices too."""
    return state.touched.words.view(np.uint32)[: bitmap_words(state.last)]


def _spans(bitmap: Bitmap, own: tuple[int, int]) -> NDArray[np.intp]:
    """Spans of 4096 vertices with marks, as far as they hold vertices of `own`."""
    first, last = own[0] // SPAN, -(-own[1] // SPAN)
    return np.flatnonzero(bitmap.summary[first:last]) + first


def _words(bitmap: Bitmap, spans: NDArray[np.intp], own: tuple[int, int]) -> NDArray[np.uint64]:
    """The words of these spans, uint64 (spans, 64), without marks of vertices outside `own`."""
    words = bitmap.words.reshape(-1, 64)[spans]
    for edge, at in zip(own, (0, -1), strict=True):
        if len(spans) and edge % SPAN and spans[at] == edge // SPAN:
            inside = np.arange(SPAN) >= edge % SPAN if at == 0 else np.arange(SPAN) < edge % SPAN
            words[at] &= np.packbits(inside, bitorder="little").view(np.uint64)
    return words
