"""The plain definition on whole arrays: for first runs on few edges, sooner done than kernels are compiled.

The author's functions are given arrays in place of numbers (`lifted.py`). What is said of one edge after another in
`vertex.py` is said of all at once here, with the same answers: sums are added in the same order, and what does not fit
(vectors, sums of short floats, packed edges) is left to it. An iteration sees values as they were when its view began,
so that asynchronous searches may take one more than elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.reference.lifted import lifted, numbers
from penstock.engine.kernels.reference.rows import ReferenceRowKernels
from penstock.engine.kernels.reference.vertex import ReferenceKernels, are_set
from penstock.engine.program.bindings import bind
from penstock.engine.program.combiners import COMBINERS
from penstock.engine.program.program import author_function
from penstock.engine.state.row_blocks import offsets
from penstock.engine.state.state import Frontier

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.engine.state.row_blocks import RowBlock
    from penstock.engine.state.state import State
    from penstock.storage.format.index import Index
    from penstock.transfer.values.view import View


class PlainKernels(ReferenceKernels):
    """The kernels of one program, in NumPy."""

    def __init__(self, program: Program, vertex_dtype: Any, weighted: bool, threads: int = 1) -> None:
        super().__init__(program, vertex_dtype, weighted, threads)
        self._suits = program.combine in COMBINERS and not self.author.has_vectors
        self._calls = bind(program, vertex_dtype, lifted, plain=False, weighted=weighted, arrays=True).calls
        self._has_cond = author_function(program, "cond") is not None
        self._starts: list[tuple[Index, NDArray[np.int64]]] = []

    def select(self, state: State, index: Index, scalars: tuple[Any, ...], limit: float) -> Frontier:
        """Move what is pending with a priority below `limit` into the frontier."""
        at, base, rest = np.flatnonzero(are_set(state.pending, state.last - state.first)), state.first, float("inf")
        degrees, late = self._lengths(index, at + base), at[:0]
        if self.author.has_priority and len(at):
            found = self._calls["priority"](state.arrays, scalars, at + base, degrees, base)
            priority = np.broadcast_to(found, len(at))
            due = ~(priority >= limit)
            if not due.all():
                rest, late = float(priority[~due].min()), at[~due]
            at, degrees = at[due], degrees[due]
        state.pending.clear()
        state.active.clear()
        state.pending.add(late)
        state.active.add(at)
        return Frontier(len(at), int(degrees.sum()), rest=rest)

    def send(self, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Compute what the frontier's vertices send."""
        at, base = self._senders(state, frontier), state.first
        if self.author.has_send and len(at):
            degrees = self._lengths(index, at + base)
            state.sent[at] = self._calls["send"](state.arrays, scalars, at + base, degrees, base)
        if self.author.in_place:
            state.target[:] = state.identity

    def push(self, view: View, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Send along the frontier's out-edges that the view holds."""
        if view.rows is not None or not self._suits:
            super().push(view, state, frontier, index, scalars)
            return
        rows = self._senders(state, frontier) + state.first
        rows = rows[(view.v0 <= rows) & (rows < view.v1)]
        u, places = self._edges(view, index, rows)
        v = view.neighbors[places].astype(np.intp)
        wants = self._wanting(state, scalars, v)
        if not self._merge(view, state, index, scalars, (u[wants], v[wants], places[wants])):
            super().push(view, state, frontier, index, scalars)

    def pull(
        self, view: View, state: State, frontier: Frontier, indices: tuple[Index, Index], scalars: tuple[Any, ...],
        skip: int = 0,
    ) -> None:  # fmt: skip
        """Gather along the in-edges that the view holds; where some are skipped, one after another."""
        if skip or self.author.has_suffices or not self._suits:
            super().pull(view, state, frontier, indices, scalars, skip)
            return
        whole, (into, out), base = view.narrowed(), indices, state.first
        wanting = np.arange(whole.v0, whole.v1)
        wanting = wanting[self._wanting(state, scalars, wanting)]
        v, places = self._edges(whole, into, wanting)  # edges of other rows may be missing
        u, ends = whole.neighbors[places].astype(np.intp), self.author.early_exit
        if not frontier.everything:
            kept = are_set(state.active, state.last - base)[u - base]
            u, v, places = u[kept], v[kept], places[kept]
        if ends and len(v):
            first = np.append(True, v[1:] != v[:-1])
            u, v, places = u[first], v[first], places[first]
        apart, target = self.author.combine == "sum" and not ends, state.target
        rows = slice(whole.v0 - base, whole.v1 - base)
        came = target[rows].copy()
        if apart:  # what came along other edges is added to the sum of the row
            target[rows] = state.identity
        done = self._merge(whole, state, out, scalars, (u, v, places))
        if apart:
            target[rows] = target[rows] + came if done else came
        if not done:
            super().pull(view, state, frontier, indices, scalars, skip)

    def apply(self, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Turn combined messages into new values and the next pending vertices."""
        if not self._suits:
            super().apply(state, frontier, index, scalars)
            return
        assert state.incoming is not None
        self.clear_partial(state)
        calls, base, count, arrays = self._calls, state.first, state.last - state.first, state.arrays
        is_active = np.ones(count, np.bool_) if frontier.everything else are_set(state.active, count)
        met = are_set(state.touched, count) | is_active if self.author.uses_activity else are_set(state.touched, count)
        at = np.arange(count) if frontier.everything else np.flatnonzero(met)
        if len(at):
            v, degrees = at + base, self._lengths(index, at + base)
            old = calls["load"](arrays, v, base)
            own = (*scalars, state.sent[at]) if self.author.tells_sent else scalars
            new = calls["vertex"](arrays, own, state.incoming[at], is_active[at], v, degrees, base)
            calls["store"](arrays, v, base, new)
            if self.author.resets:
                state.incoming[at] = state.identity
            if frontier.everything:
                calls["accumulate"](state.partial, at >> 12, arrays, old, own, v, degrees, base)
            at = at[np.broadcast_to(calls["active"](arrays, old, scalars, v, degrees, base), len(at)).astype(np.bool_)]
        state.touched.clear()
        if not self.author.everywhere:
            state.pending.add(at)

    def reduce(self, state: State, index: Index, scalars: tuple[Any, ...]) -> None:
        """Leave the Globals' shares of the present values in `state.partial`."""
        self.clear_partial(state)
        base, at = state.first, np.arange(state.last - state.first)
        own = (*scalars, 0) if self.author.tells_sent else scalars
        old = self._calls["load"](state.arrays, at + base, base)
        degrees = self._lengths(index, at + base)
        self._calls["accumulate"](state.partial, at >> 12, state.arrays, old, own, at + base, degrees, base)

    def link_rows(self, view: View, state: State, index: Index, done_each: int, skipped: Any, symmetric: bool) -> None:
        """Link every edge of the view."""
        if view.rows is not None:
            super().link_rows(view, state, index, done_each, skipped, symmetric)
            return
        forest, base = state.arrays[0].tolist(), state.first
        u, places = self._edges(view, index, np.arange(view.v0, view.v1))
        for a, b in zip((u - base).tolist(), (view.neighbors[places].astype(np.intp) - base).tolist(), strict=True):
            while forest[a] != a:
                forest[a] = a = forest[forest[a]]
            while forest[b] != b:
                forest[b] = b = forest[forest[b]]
            forest[max(a, b)] = min(a, b)
        state.arrays[0][:] = forest

    def compress(self, state: State, own: tuple[int, int] | None = None) -> None:
        """Let every vertex, or those of `own`, point to its root."""
        forest, rows = state.arrays[0], slice(*(own or (0, state.last - state.first)))
        roots = forest[rows]
        while (roots != forest[roots]).any():
            roots = forest[roots]
        forest[rows] = roots

    def _merge(
        self, view: View, state: State, index: Index, scalars: tuple[Any, ...], edges: tuple[NDArray[Any], ...]
    ) -> bool:
        """Send along edges (sender, target, place in the view); return whether it was done, else nothing was."""
        (u, v, places), base, arrays, target = edges, state.first, state.arrays, state.target
        if target.dtype == np.float32 and self.author.combine == "sum":
            return False
        if not len(v):
            return True
        weights = view.weights[places] if self.author.weighted and view.weights is not None else 1
        sent = state.sent[u - base] if self.author.has_send else state.sent[0]
        degrees = self._lengths(index, u) if self.author.reads_sender else 0
        value = self._calls["edge"](arrays, scalars, sent, u, v, weights, degrees, base)
        combiner, value = COMBINERS[self.author.combine], np.broadcast_to(value, len(v))
        if value.dtype.kind == "f" != target.dtype.kind and self.author.combine == "sum":
            return False
        if self.author.combine != "sum":
            old = numbers(target[v - base])
            changed = combiner.changes(old, value.astype(old.dtype) if old.dtype == np.uint64 else numbers(value))
            v, value = v[changed], value[changed]
        combiner.ufunc.at(target, v - base, value.astype(target.dtype, copy=False))
        state.touched.add(v - base)
        return True

    def _wanting(self, state: State, scalars: tuple[Any, ...], v: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of these vertices take messages."""
        if not (len(v) and self._has_cond):
            return np.ones(len(v), np.bool_)
        found = self._calls["cond"](state.arrays, scalars, v, 0, state.first)
        return np.broadcast_to(found, len(v)).astype(np.bool_)

    def _edges(self, view: View, index: Index, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """The row, and the place in the view, of every edge that the view holds of these rows."""
        starts = self._starts_of(index)
        first = np.maximum(starts[rows], view.e0)
        lengths = np.maximum(np.minimum(starts[rows + 1], view.e1) - first, 0)
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        return np.repeat(rows, lengths), np.arange(total) + np.repeat(first - view.e0 - ends + lengths, lengths)

    def _lengths(self, index: Index, rows: NDArray[Any]) -> NDArray[np.int64]:
        """How many edges these rows have."""
        starts = self._starts_of(index)
        lengths: NDArray[np.int64] = starts[rows + 1] - starts[rows]
        return lengths

    def _starts_of(self, index: Index) -> NDArray[np.int64]:
        """Where each row begins, of an index that is asked again and again."""
        starts: NDArray[np.int64] | None = next((held for known, held in self._starts if known is index), None)
        if starts is None:
            rows = np.arange(index.vertices + 1)
            starts = index.bases[rows >> index.shift] + index.offsets if index.whole else index.starts_of(rows)
            self._starts = [(index, starts), *self._starts[:1]]
        return starts

    def _senders(self, state: State, frontier: Frontier) -> NDArray[np.intp]:
        """Positions of the frontier's vertices, ascending."""
        count = state.last - state.first
        return np.arange(count) if frontier.everything else np.flatnonzero(are_set(state.active, count))


class PlainRowKernels(PlainKernels, ReferenceRowKernels):
    """The kernels of one program on whole rows; messages are put together in NumPy."""

    def collect(
        self, view: View, state: State, block: RowBlock, walk: int, out: Index, scalars: tuple[Any, ...],
        buffer: NDArray[Any],
    ) -> None:  # fmt: skip
        """Put the messages of the view's edges that belong to the block's rows where they belong in the buffer."""
        base, index, rows = state.first, block.indexes[walk], np.arange(block.first, block.last)
        place_of, starts = offsets(block), self._starts_of(index)
        shifts = place_of[1:] - starts[rows + 1] if walk else place_of[:-1] - starts[rows]
        rows = rows[np.broadcast_to(self._calls["chosen"](state.arrays, rows, base), len(rows))]
        v, places = self._edges(view, index, rows)
        if len(v):
            u = view.neighbors[places].astype(np.intp)
            weights = view.weights[places] if self.author.weighted and view.weights is not None else 1
            lengths = self._lengths(out, u)
            found = self._calls["edge"](state.arrays, scalars, 0, u, v, weights, lengths, base)
            buffer[places + view.e0 + shifts[v - block.first]] = found
