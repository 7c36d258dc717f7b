"""The definition of right: every kernel in plain Python, one edge after another, nothing clever.

Slow by intention. Same methods as `host/launch.py`, same State, so a whole run can use either; fields are
read as Python numbers, so there is no overflow and no rounding but the fields' own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.bindings import bind
from penstock.engine.program.combiners import COMBINERS
from penstock.engine.state.fused_iterations import NO_FRONTIERS, FusedLimits
from penstock.engine.state.state import Bitmap, Frontier

if TYPE_CHECKING:
    from penstock.engine.kernels.host.launch_exchange import HostExchangeKernels
    from penstock.engine.program.program import Program
    from penstock.engine.state.row_prefix_cache import RowPrefixCache
    from penstock.engine.state.state import State
    from penstock.storage.format.index import Index
    from penstock.transfer.values.task import TaskRecord
    from penstock.transfer.values.view import View

Send = Callable[[int, int, int, int], bool]


def are_set(bitmap: Bitmap, count: int | None = None) -> NDArray[np.bool_]:
    """Which of the first positions are set; None: of all that it has."""
    return np.unpackbits(bitmap.words.view(np.uint8), count=count, bitorder="little").view(np.bool_)


def marked(bitmap: Bitmap) -> list[int]:
    """Positions of the set bits, ascending."""
    return [int(at) for at in np.flatnonzero(are_set(bitmap))]


def row(index: Index, v: int) -> tuple[int, int]:
    """First and past-the-last edge of row v."""
    if index.whole:  # asked for each edge: a call of a kernel takes eight times as long
        starts, offsets, block = index.bases.item, index.offsets.item, index.shift
        return starts(v >> block) + offsets(v), starts((v + 1) >> block) + offsets(v + 1)
    start, end = index.starts(v, v + 2)
    return int(start), int(end)


def touch(bitmap: Bitmap, at: int) -> None:
    """Set the bit of one position."""
    word = at >> 6
    bitmap.words[word] = bitmap.words.item(word) | 1 << (at & 63)
    bitmap.summary[word >> 6] = bitmap.summary.item(word >> 6) | 1 << (word & 63)


class ReferenceKernels:
    """The kernels of one program, in plain Python."""

    over_links = both_ways = False
    loads = 0

    def __init__(self, program: Program, vertex_dtype: Any, weighted: bool, threads: int = 1) -> None:
        self.author = bind(program, vertex_dtype, lambda function: function, plain=True, weighted=weighted)
        self.threads = threads
        self._known: list[tuple[Index, list[int]]] = []

    def use(self) -> None:
        """Nothing to take: one thread."""

    def select(self, state: State, index: Index, scalars: tuple[Any, ...], limit: float) -> Frontier:
        """Move what is pending with a priority below `limit` into the frontier."""
        call = self.author.calls["priority"] if self.author.has_priority else None
        base, row_of = state.first, self._rows(index)
        chosen, kept, rest, edges = [], [], float("inf"), 0
        for at in marked(state.pending):
            start, end = row_of(at + base)
            p = call(state.arrays, scalars, at + base, end - start, base) if call else None
            if p is not None and p >= limit:
                kept.append(at)
                rest = min(rest, p)
            else:
                chosen.append(at)
                edges += end - start
        state.pending.clear()
        state.active.clear()
        state.pending.add(np.array(kept, dtype=np.uint64))
        state.active.add(np.array(chosen, dtype=np.uint64))
        return Frontier(len(chosen), edges, rest=rest)

    def can_fuse(self, frontier: Frontier) -> bool:
        """Never: starting an iteration costs the host too little."""
        return False

    def fused_iterations(
        self, view: View, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...], bounds: FusedLimits,
        against: tuple[View, Index] | None = None,
    ) -> tuple[NDArray[np.int64], float]:  # fmt: skip
        """Run no iteration, as `can_fuse` says."""
        return NO_FRONTIERS, bounds.limit

    def exchange_kernels(self) -> HostExchangeKernels:
        """Kernels by which ranks merge what they have found: those of the cores, which change no answer."""
        from penstock.engine.kernels.host.launch_exchange import HostExchangeKernels  # Numba takes long to import

        return HostExchangeKernels(self.author.combine)

    def close(self) -> None:
        """Nothing to let go of."""

    def marks(self, state: State) -> NDArray[np.uint64]:
        """The bitmap of the active vertices, in host memory; valid until the next select."""
        return state.active.words

    def mark(self, state: State, active: NDArray[Any]) -> None:
        """Make these vertices (less `first`) pending, or those where a mask (bool, from `first` on) is True."""
        state.pending.add(active)

    def send(self, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Compute what the frontier's vertices send."""
        if self.author.has_send:
            call, base, degree = self.author.calls["send"], state.first, self._degrees(index)
            for at in self._frontier(state, frontier):
                state.sent[at] = call(state.arrays, scalars, at + base, degree(at + base), base)
        if self.author.in_place:
            state.target[:] = state.identity

    def push(self, view: View, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Send along the frontier's out-edges that the view holds; of a packed view, along all of them."""
        base, send, neighbors = state.first, self._messages_of(view, state, scalars), view.neighbors
        if view.rows is not None:
            for e, u in self._sources(view, index):
                start, end = row(index, u)
                send(e, u, neighbors.item(e - view.e0), end - start)
            return
        row_of = self._rows(index)
        for u in (at + base for at in self._frontier(state, frontier) if view.v0 <= at + base < view.v1):
            start, end = row_of(u)
            first = max(start, view.e0)
            for e, v in enumerate(neighbors[first - view.e0 : max(0, min(end, view.e1) - view.e0)].tolist(), first):
                send(e, u, v, end - start)

    def unmark_sent(self, view: View, state: State, frontier: Frontier, index: Index) -> None:
        """Let nothing be pending of what the frontier sends along the whole rows of the view."""
        pending = set(marked(state.pending))
        for at in pending & set(self._frontier(state, frontier)):
            start, end = row(index, at + state.first)
            if view.v0 <= at + state.first < view.v1 and view.e0 <= start and end <= view.e1:
                pending.discard(at)
        state.pending.clear()
        state.pending.add(np.array(sorted(pending), dtype=np.uint64))

    def push_resend(
        self, view: View, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...],
        due: tuple[float, int], followed: TaskRecord,
    ) -> None:  # fmt: skip
        """Send once more, from what has become pending since and has all its edges in the view; as often as asked."""
        base, priority, send = state.first, self.author.calls["priority"], self._messages_of(view, state, scalars)
        limit, rounds = due
        for _ in range(rounds):
            taken = []
            for at in marked(state.pending):
                start, end = row(index, at + base)
                degree = end - start
                now = not self.author.has_priority or priority(state.arrays, scalars, at + base, degree, base) < limit
                if view.v0 <= at + base < view.v1 and view.e0 <= start and end <= view.e1 and now:
                    taken.append(at)
            left = np.array(sorted(set(marked(state.pending)) - set(taken)), dtype=np.uint64)
            state.pending.clear()
            state.pending.add(left)
            for at in taken:
                start, end = row(index, at + base)
                followed.rows += 1
                followed.edges += end - start
                view.record.resent += end - start
                for e in range(start, end):
                    send(e, at + base, view.neighbors.item(e - view.e0), end - start)

    def pull(
        self,
        view: View,
        state: State,
        frontier: Frontier,
        indices: tuple[Index, Index],
        scalars: tuple[Any, ...],
        skip: int = 0,
    ) -> None:
        """Gather along the in-edges that the view holds, less the first `skip` of each row, which were here before.

        Views are packed for pushes only.
        """
        assert view.rows is None, "views are packed for pushes only"
        view, (into, out) = view.narrowed(), indices
        active = self._frontier(state, frontier)
        active = active if isinstance(active, range) else set(active)
        matched, ends = self._found(state, skip), self.author.early_exit or self.author.has_suffices
        neighbors, degree, send = view.neighbors, self._degrees(out), self._messages_of(view, state, scalars)
        row_of, target, apart = self._rows(into), state.target, self.author.combine == "sum" and not ends
        for v in range(view.v0, view.v1):
            start, end = row_of(v)
            if v - state.first in matched:
                continue
            first, came = max(start + skip, view.e0), target.item(v - state.first) if apart else 0
            if apart:  # what came along other edges is added to the sum of the row
                target[v - state.first] = state.identity
            for e, u in enumerate(neighbors[first - view.e0 : max(0, min(end, view.e1) - view.e0)].tolist(), first):
                if u - state.first in active:
                    sent = send(e, u, v, degree(u))
                    if sent and ends and (self.author.early_exit or self._has_sufficed(state, scalars, v)):
                        break
            if apart:
                target[v - state.first] += came

    def _has_sufficed(self, state: State, scalars: tuple[Any, ...], v: int) -> bool:
        """Whether a vertex needs no message besides those that came."""
        if not self.author.has_suffices:
            return False
        assert state.incoming is not None, "programs with `suffices` accumulate"
        return bool(
            self.author.calls["suffices"](state.arrays, scalars, state.incoming[v - state.first].item(), v, state.first)
        )

    def apply(self, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Turn combined messages into new values and the next pending vertices."""
        assert state.incoming is not None
        calls, base = self.author.calls, state.first
        self.clear_partial(state)
        active = set(self._frontier(state, frontier))
        touched = set(marked(state.touched)) | (active if self.author.uses_activity else set())
        everyone, messages, degree = range(state.last - state.first), state.incoming, self._degrees(index)
        arrived_at = messages.item if messages.ndim == 1 else messages.__getitem__
        following = []
        for at in everyone if frontier.everything else sorted(touched):
            v, edges = at + base, degree(at + base)
            old = calls["load"](state.arrays, v, base)
            own = (*scalars, state.sent.item(at)) if self.author.tells_sent else scalars
            new = calls["vertex"](state.arrays, own, arrived_at(at), at in active, v, edges, base)
            calls["store"](state.arrays, v, base, new)
            if self.author.resets:
                messages[at] = state.identity
            if frontier.everything:
                calls["accumulate"](state.partial, at >> 12, state.arrays, old, own, v, edges, base)
            if calls["active"](state.arrays, old, scalars, v, edges, base):
                following.append(at)
        state.touched.clear()
        if not self.author.everywhere:
            state.pending.add(np.array(following, dtype=np.uint64))

    def reduce(self, state: State, index: Index, scalars: tuple[Any, ...]) -> None:
        """Leave the Globals' shares of the present values in `state.partial`."""
        self.clear_partial(state)
        base, degree = state.first, self._degrees(index)
        scalars = (*scalars, 0) if self.author.tells_sent else scalars
        for at in range(state.last - base):
            old = self.author.calls["load"](state.arrays, at + base, base)
            self.author.calls["accumulate"](
                state.partial, at >> 12, state.arrays, old, scalars, at + base, degree(at + base), base
            )

    def count_active(
        self,
        state: State,
        index: Index,
        sizes: tuple[int, int, int],
        table: NDArray[np.int64],
        chunks: NDArray[np.uint8],
        blocks: NDArray[np.uint32] | None = None,
    ) -> None:
        """Demand of a push, as `Kernels` says."""
        self._count(marked(state.active), state, index, sizes, table, chunks, 0, blocks)

    def add_pending(
        self, state: State, index: Index, scalars: tuple[Any, ...], partition_edges: int, values: NDArray[np.float64]
    ) -> None:
        """Add the active vertices' pending values to the partitions where their rows begin."""
        call, base = self.author.calls["pending"], state.first
        for at in marked(state.active):
            start, end = row(index, at + base)
            if end > start:
                values[start // partition_edges] += call(state.arrays, scalars, at + base, end - start, base)

    def count_cond(
        self,
        state: State,
        index: Index,
        scalars: tuple[Any, ...],
        sizes: tuple[int, int, int],
        table: NDArray[np.int64],
        chunks: NDArray[np.uint8],
        skip: int = 0,
        blocks: NDArray[np.uint32] | None = None,
        function: str = "cond",
    ) -> None:
        """Demand of a pull, as `Kernels` says."""
        cond, base = self.author.calls[function], state.first
        found = self._found(state, skip)
        everyone = range(state.last - base)
        wanting = [at for at in everyone if at not in found and cond(state.arrays, scalars, at + base, 0, base)]
        self._count(wanting, state, index, sizes, table, chunks, skip, blocks)

    def relax_unsettled(self, view: View, state: State, index: Index, scalars: tuple[Any, ...]) -> None:
        """Relax the rows of unsettled vertices both ways, from who is pending or active."""
        base, send = state.first, self._messages_of(view, state, scalars)
        for v in range(view.v0, view.v1):
            start, end = row(index, v)
            if start == end or not self._unsettled(state, scalars, v - base):
                continue
            for e in range(max(start, view.e0), min(end, view.e1)):
                u = int(view.neighbors[e - view.e0])
                if self._waits(state, u - base):
                    first, last = row(index, u)
                    send(e, u, v, last - first)
            if view.e0 <= start and end <= view.e1 and self._waits(state, v - base):
                state.pending.words[(v - base) >> 6] &= ~(np.uint64(1) << np.uint64((v - base) & 63))
                for e in range(start, end):
                    send(e, v, view.neighbors.item(e - view.e0), end - start)

    def _unsettled(self, state: State, scalars: tuple[Any, ...], at: int) -> bool:
        return bool(self.author.calls["unsettled"](state.arrays, scalars, at + state.first, 0, state.first))

    def _waits(self, state: State, at: int) -> bool:
        """Whether a vertex is pending or active."""
        both = int(state.pending.words[at >> 6]) | int(state.active.words[at >> 6])
        return bool(both >> (at & 63) & 1)

    def record_matched(self, state: State) -> None:
        """Remember who has a message now; `skip` then passes them over."""
        state.resend_bitmap[:] = state.touched.words

    def _found(self, state: State, skip: int) -> set[int]:
        return set(marked(Bitmap(state.resend_bitmap, state.touched.summary))) if skip else set()

    def cache_row_prefixes(self, view: View, index: Index, heads: RowPrefixCache) -> None:
        """Copy what the view holds of the heads of its rows."""
        for e, u in self._sources(view, index):
            start, at = row(index, u)[0], row(heads.index, u)[0]
            if e < start + heads.each:
                heads.neighbors[at + e - start] = view.neighbors[e - view.e0]

    def link_first_neighbors(self, view: View, state: State, index: Index, each: int) -> None:
        """Link the rows of the view with their first `each` neighbors."""
        for e, u in self._sources(view, index):
            if e - row(index, u)[0] < each:
                self._link(state, u, int(view.neighbors[e - view.e0]))

    def link_rows(self, view: View, state: State, index: Index, done_each: int, skipped: Any, symmetric: bool) -> None:
        """Link every edge of the view (there is nothing to be gained by skipping here)."""
        for e, u in self._sources(view, index):
            self._link(state, u, int(view.neighbors[e - view.e0]))

    def mark_outside(self, state: State, index: Index, largest: Any, own: tuple[int, int]) -> None:
        """Make pending every vertex of `own` that has edges and is not in the tree `largest`."""
        outside = [v for v in range(*own) if state.arrays[0][v] != largest]
        state.pending.add(np.array([v for v in outside if len(set(row(index, v + state.first))) == 2], dtype=np.uint64))

    def link_listed(self, view: View, state: State, frontier: Frontier, index: Index, largest: Any) -> None:
        """Link the frontier's rows of the view: of others it need not hold the edges."""
        active = set(self._frontier(state, frontier))
        for e, u in self._sources(view, index):
            if u - state.first in active:
                self._link(state, u, int(view.neighbors[e - view.e0]))

    def linked_outside(self, state: State, own: tuple[int, int], span: tuple[int, int]) -> NDArray[Any]:
        """The vertices of a span outside `own` that are no roots, and their parents."""
        forest = state.arrays[0]
        found = [v for v in range(*span) if forest[v] != v and not own[0] <= v < own[1]]
        return np.array([*found, *forest[found]], dtype=forest.dtype)

    def link_pairs(self, state: State, pairs: NDArray[Any]) -> None:
        """Link vertices of the first half of `pairs` with those of the second."""
        for v, parent in pairs.reshape(2, -1).T.tolist():
            self._link(state, v + state.first, parent + state.first)

    def compress(self, state: State, own: tuple[int, int] | None = None) -> None:
        """Let every vertex, or those of `own`, point to its root."""
        for v in range(*(own or (0, state.last - state.first))):
            state.arrays[0][v] = self._root(state, v)

    def largest_tree(self, state: State, own: tuple[int, int] | None = None) -> tuple[int, float]:
        """The root of the largest tree, and its share of vertices."""
        roots = state.arrays[0]
        if own is not None:
            roots = np.array([roots[v] for v in range(*own) if roots[v] != v], dtype=roots.dtype)
            if not len(roots):
                return -1, 0.0
        counts = np.bincount(roots, minlength=1)
        return int(np.argmax(counts)), float(counts.max() / max(1, counts.sum()))

    def _root(self, state: State, v: int) -> int:
        while int(state.arrays[0][v]) != v:
            v = int(state.arrays[0][v])
        return v

    def _link(self, state: State, u: int, v: int) -> None:
        a, b = self._root(state, u - state.first), self._root(state, v - state.first)
        state.arrays[0][max(a, b)] = min(a, b)

    def _count(
        self,
        positions: list[int],
        state: State,
        index: Index,
        sizes: tuple[int, int, int],
        table: NDArray[np.int64],
        chunks: NDArray[np.uint8],
        skip: int = 0,
        blocks: NDArray[np.uint32] | None = None,
    ) -> None:
        partition_edges, chunk_edges, line_edges = sizes
        columns = 3 if blocks is None else 4
        if blocks is not None:
            blocks[:] = 0
        for at in positions:
            start, end = row(index, at + state.first)
            seen: dict[int, set[int]] = {}
            for e in range(start + skip, end):
                chunks[e // chunk_edges] = 1
                table[e // partition_edges * columns + 1] += 1
                seen.setdefault(e // partition_edges, set()).add(e // line_edges)
            for partition, lines in seen.items():
                table[partition * columns] += 1
                table[partition * columns + 2] += len(lines)
            if blocks is not None and end > start + skip:
                self._mark_blocks(start + skip, end, partition_edges, table, blocks)

    def _mark_blocks(
        self, start: int, end: int, partition_edges: int, table: NDArray[np.int64], blocks: NDArray[np.uint32]
    ) -> None:
        """Mark the blocks of 256 edges that row [start, end) touches; count the new ones where they begin."""
        for block in range(start // 256, (end - 1) // 256 + 1):
            bit = np.uint32(1 << block % 32)
            if not blocks[block // 32] & bit:
                blocks[block // 32] |= bit
                table[block * 256 // partition_edges * 4 + 3] += 1

    def _rows(self, index: Index) -> Callable[[int], tuple[int, int]]:
        """`row` of an index whose rows are asked for again and again: numbers of Python are kept."""
        if not index.whole:
            return partial(row, index)
        starts = next((starts for known, starts in self._known if known is index), None)
        if starts is None:
            rows = np.arange(index.vertices + 1)
            starts = (index.bases[rows >> index.shift] + index.offsets).tolist()
            self._known = [(index, starts), *self._known[:1]]
        return lambda v: (starts[v], starts[v + 1])

    def _degrees(self, index: Index) -> Callable[[int], int]:
        """Return what tells how many edges a row has."""
        rows = self._rows(index)

        def degree(v: int) -> int:
            start, end = rows(v)
            return end - start

        return degree

    def _messages_of(self, view: View, state: State, scalars: tuple[Any, ...]) -> Send:
        """Return what sends along an edge (number, sender, target, sender's degree): whether the target wants it."""
        author, base, e0 = self.author, state.first, view.e0
        cond, edge = author.calls["cond"], author.calls["edge"]
        merge, sums = COMBINERS[author.combine].merge, author.combine == "sum"
        arrays, target, touched, each = state.arrays, state.target, state.touched, 1 if author.has_send else 0
        sent_by, old_of = state.sent.item, target.item
        weight_of = view.weights.item if author.weighted and view.weights is not None else None
        marks_of = touched.words.item

        def send(e: int, u: int, v: int, degree: int) -> bool:
            if not cond(arrays, scalars, v, 0, base):
                return False
            weight = 1 if weight_of is None else weight_of(e - e0)
            value = edge(arrays, scalars, sent_by((u - base) * each), u, v, weight, degree, base)
            old = old_of(v - base)
            new = merge(old, value)
            if sums or new != old:
                target[v - base] = new
                if not marks_of((v - base) >> 6) >> (v - base & 63) & 1:  # a call for each message takes longer
                    touch(touched, v - base)
            return True

        return send

    def _sources(self, view: View, index: Index) -> Iterator[tuple[int, int]]:
        if view.rows is not None and view.offsets is not None:
            for i, u in enumerate(view.rows):
                yield from ((e, int(u)) for e in range(int(view.offsets[i]), int(view.offsets[i + 1])))
            return
        for u in range(view.v0, view.v1):
            start, end = row(index, u)
            yield from ((e, u) for e in range(max(start, view.e0), min(end, view.e1)))

    def _frontier(self, state: State, frontier: Frontier) -> Any:
        return range(state.last - state.first) if frontier.everything else marked(state.active)

    def clear_partial(self, state: State) -> None:
        """Set the Globals' shares to what changes nothing."""
        if self.author.totals:
            state.partial[:] = self.author.partial_start
