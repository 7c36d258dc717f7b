"""A run whose combiner is `union`: linking trees instead of sending messages.

With the edges at hand: link the first two neighbors of every vertex, compress, find the largest tree, link only what
is outside it, compress. Where most edges have to come from elsewhere they are linked in one pass, as they arrive, but
for rows of a tree that has become large meanwhile;
unless what is here already leads to so many of the vertices whose rows are not that a large tree will hold most of
these: then it is linked first, and the rows of its vertices need not come (`_reach`). The edges of a list, which has no
rows, are linked in one pass. Kernels and the idea's source are
in `kernels/host/union_find.py`.

Where memory has no room for all trees it has those of one window (`_PagedTrees`). All edges are linked in one pass, if
one tree becomes large early: a vertex behind the window is marked, if it is in it, and few other pairs are left to be
joined at the end. Else windows follow:

    for each window: its trees -> for each view of rows: theirs -> the edges between them, as far as these trees lead
    pairs of vertices that edges join elsewhere: for each window that has some, the last first, as far as its trees lead
    for each window, the first first: it, and those behind it, point to what its trees lead to

A parent is no larger than its child. So no tree leads out of the first window, nor back into one that is behind; in the
last step what it leads to are roots.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from penstock.engine.execution.shared_loop import SharedLoop
from penstock.engine.execution.windows import Windows
from penstock.engine.kernels.interface import OpenPairs
from penstock.engine.program.earlier_answer import joined_ends
from penstock.engine.ranks.communicator import broadcast
from penstock.engine.resources.packed_edges import AT_HAND
from penstock.engine.state.records import IterationRecord
from penstock.engine.state.state import Frontier
from penstock.transfer.staging.unpacked import sample_neighbors

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.execution.loop import Loop
    from penstock.engine.kernels.interface import WindowKernels
    from penstock.engine.ranks.communicator import ArrayRanks
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.storage.format.index import Index
    from penstock.transfer.values.view import View

    Link = Callable[[Loop, View], Any]
    Vertices = tuple[int, int]

SAMPLED = 2
LARGE = 0.2  # share of the vertices that the largest tree must hold for its rows to be worth leaving out
APART = 0.9  # of what each rank has linked of its own vertices, that its own tree must hold to be left out
REACH = (
    0.5  # edges at hand for each vertex whose row is not, above which that vertex is likely to be in their largest tree
)
SAMPLES = 16, 256  # partitions, and consecutive edges of each, that are looked at to learn where edges lead
PAIRS_SHARE = 8
"""Vertices for a byte of pairs that are still to be joined, where there are several windows."""
KEPT_FREE = 7 / 8
"""Of the pairs that have room, as many are free when others are joined without the trees of their vertices."""
FIRST_SHARE = 64
"""Edges that are linked at once until a tree is large: this part of the pairs that have room."""
ENDS = 4096
"""Of as many ends of edges it is looked at in which trees they are."""
NO_COMPONENT = np.uint64(2**64 - 1)


def link_components(loop: Loop) -> Iterator[IterationRecord]:
    """Link every edge of the graph; at the end each vertex points to the smallest id of its component.

    A run that goes on from a checkpoint keeps the trees and links again: which edges were linked depends on what was in
    memory then, and linking twice changes nothing.
    """
    if loop.finished:
        return
    if isinstance(loop.windows, Windows):
        yield from _link_by_windows(loop, loop.windows)
        return
    listed = loop.graph.layout != "rows"
    symmetric = not loop.graph.directed and not listed
    if loop.gathered(loop.streams["push"].resident).all() and not listed:
        yield from _link_from(loop, _link_first)
        return
    here = _at_hand(loop) if symmetric else None
    if here is not None:
        yield from _link_from(loop, _link_rows, here)
        return
    leaves = symmetric and not isinstance(loop, SharedLoop)
    record = _pass(loop, partial(_link_rows, symmetric=symmetric), leaves_out=leaves)
    _join(loop, record)
    loop.converged = loop.finished = True
    yield record


def _link_from(loop: Loop, first: Link, here: NDArray[np.bool_] | None = None) -> Iterator[IterationRecord]:
    """Link some edges; then the rows of vertices outside the largest tree.

    first: what is done with edges at first. here: the partitions that it is done with, whose edges it links all; the
    others come later. None: all partitions, and the first SAMPLED edges of each row.

    An edge is stored in both its rows, so an edge that was not read yet and joins two trees is in a row outside the
    largest one. A rank that leaves out the rows of a tree of its own needs to know at the end that all ranks' trees are
    parts of one: else the rows outside that are linked once more.
    """
    record = _pass(loop, first, only=here)
    tree = _largest_tree(loop, record)
    yield record
    outside = _link_outside(loop, tree, here)
    if outside is not None:
        _join(loop, outside)
    if outside is not None and tree.apart and not loop.graph.directed and not _is_one(loop, tree.root):
        yield outside
        root, share = loop.kernels.largest_tree(loop.state)
        outside = _link_outside(loop, _Tree(root, share), here)
        if outside is not None:
            _join(loop, outside)
    loop.converged = loop.finished = True
    if outside is not None:
        yield outside


@dataclass(frozen=True)
class _Tree:
    """A tree whose rows may be left out: its root, and its share of the vertices; apart: each rank has its own."""

    root: int
    share: float
    apart: bool = False


def _largest_tree(loop: Loop, record: IterationRecord) -> _Tree:
    """The largest tree after the first pass.

    Of each rank's own vertices, where it holds nearly all that each of them has linked: then trees are joined at the
    end only. Else trees are joined now.
    """
    kernels, state = loop.kernels, loop.state
    if isinstance(loop, SharedLoop):
        began, own = time.perf_counter(), loop.ownership.vertices
        kernels.compress(state, own)
        root, share = kernels.largest_tree(state, own)
        apart = loop.gathered(share).min() >= APART
        record.seconds += time.perf_counter() - began
        if apart:
            return _Tree(root, share, apart=True)
    _join(loop, record)
    return _Tree(*kernels.largest_tree(state))


def _link_outside(loop: Loop, tree: _Tree, here: NDArray[np.bool_] | None) -> IterationRecord | None:
    """Link what the first pass has not linked, but for what lies inside the tree; here: as in `_link_from`.

    None where nothing lies outside, and the trees are joined.
    """
    symmetric = not loop.graph.directed
    if here is None:
        root = NO_COMPONENT if tree.root < 0 else np.uint64(tree.root)
        return _pass(loop, partial(_link_rows, done_each=SAMPLED, skipped=root, symmetric=symmetric))
    if tree.share < LARGE:
        return _pass(loop, _link_rows, only=~here)
    kernels, state, largest = loop.kernels, loop.state, np.uint64(tree.root)
    kernels.mark_outside(state, loop.out, largest, loop.owned_vertices)
    frontier = kernels.select(state, loop.out, (), math.inf)
    if not tree.apart and loop.gathered(frontier.vertices).sum() == 0:
        return None

    def link(loop: Loop, view: View) -> None:
        kernels.link_listed(view, state, frontier, loop.streams["push"].index, largest)

    return _pass(loop, link, only=~here, frontier=frontier)


def _link_first(loop: Loop, view: View) -> None:
    loop.kernels.link_first_neighbors(view, loop.state, loop.streams["push"].index, SAMPLED)


def _link_rows(
    loop: Loop, view: View, *, done_each: int = 0, skipped: Any = NO_COMPONENT, symmetric: bool = True
) -> None:
    loop.kernels.link_rows(view, loop.state, loop.streams["push"].index, done_each, skipped, symmetric)


def _is_one(loop: Loop, root: int) -> bool:
    """Whether what were trees of the ranks are parts of one now; root: of this rank's. The forest is joined."""
    state = loop.state
    label = int(state.to_host(state.arrays[0][root : root + 1])[0])
    return bool(np.ptp(loop.gathered(label)) == 0)


def _at_hand(loop: Loop) -> NDArray[np.bool_] | None:
    """Which partitions to link first, bool (partitions,); None where that does not pay in some rank."""
    stream, own = loop.streams["push"], loop.owned_vertices
    table = stream.directory.table
    mine = (table.v0 < own[1]) & (table.v1 > own[0])
    here = stream.here & mine
    if loop.gathered(here.sum() / max(1, mine.sum())).min() < AT_HAND:
        return None
    found = loop.gathered(_reached_share(stream, here, own))
    return here if found.min() * len(found) >= REACH else None


def _reached_share(stream: EdgeStream, here: NDArray[np.bool_], own: tuple[int, int]) -> float:
    """Edges at hand that lead to vertices whose rows are not, for each of these vertices; from a sample of the edges.

    Where edges lead anywhere that is many; on a grid, whose rows lead to their neighbors, it is none, and nothing of
    what is still to come could be left out. here: bool (partitions,), one at least, not all of them. own: the rows that
    count; those of other ranks lead to them as ours do.
    """
    table = stream.directory.table
    several, edges = SAMPLES
    numbers = np.flatnonzero(here)
    found = []
    for number in numbers[np.linspace(0, len(numbers) - 1, min(several, len(numbers))).astype(np.int64)].tolist():
        found.append(sample_neighbors(stream.directory, number, edges).astype(np.int64))
    targets = np.concatenate(found)
    starts = stream.index.starts_of(targets)
    away = ~here[np.minimum(starts // table.partition_edges, len(here) - 1)]
    away &= (targets >= own[0]) & (targets < own[1])
    absent = own[1] - own[0] - int((table.v1 - table.v0)[here].sum())
    return float(away.mean() * table.lengths[here].sum() / max(1, absent))


def _pass(
    loop: Loop,
    link: Link,
    *,
    only: NDArray[np.bool_] | None = None,
    frontier: Frontier | None = None,
    leaves_out: bool = False,
) -> IterationRecord:
    """Link the edges that the stream brings.

    only: which partitions to bring. frontier: whose rows are wanted, of ranks each rank's own; None for all.
    leaves_out: whether rows of a tree are not linked once it is large: an edge between two of them lies inside it, and
    any other is in a row that is linked.
    """
    began, tree = time.perf_counter(), -1
    vertices, edges = loop.graph.vertices, loop.graph.edges
    if frontier is None:
        frontier = Frontier(vertices, edges, everything=True)
    else:
        vertices, edges = loop.gathered(frontier.vertices, frontier.edges).sum(axis=0).astype(int).tolist()
    record = IterationRecord(loop.iteration, "push", vertices, edges)
    if not frontier.empty:
        loop.kernels.use()
        stream = loop.streams["push"]
        with stream.views(loop.kernels, loop.state, frontier, (), only) as views:
            for number, view in enumerate(views, start=1):
                started = time.perf_counter()
                link(loop, view)
                if not stream.resident and number & (number - 1) == 0:
                    # After views 1, 2, 4, 8 ...: flat trees make the links of the next views short.
                    loop.kernels.compress(loop.state)
                    if leaves_out:
                        tree = _root_of_large(loop, tree)
                        link = partial(_link_rows, skipped=NO_COMPONENT if tree < 0 else np.uint64(tree))
                view.record.kernel_seconds += time.perf_counter() - started
        record.tasks.extend(stream.records)
    record.index_bytes = loop.index_bytes_read()
    record.seconds = time.perf_counter() - began
    loop.iteration += 1
    return record


def _root_of_large(loop: Loop, tree: int) -> int:
    """The root, after compressing, of the tree that has this vertex; of no vertex (-1) of the largest, if it is large.

    It stays the same tree: an edge between two that were left out at different times would be missed.
    """
    if tree >= 0:
        return int(loop.state.to_host(loop.state.arrays[0][tree : tree + 1])[0])
    root, share = loop.kernels.largest_tree(loop.state)
    return root if share >= LARGE else -1


def _join(loop: Loop, record: IterationRecord) -> None:
    """Join all forests, so that all ranks have the same, and every vertex points to its root."""
    began = time.perf_counter()
    if isinstance(loop, SharedLoop):
        with loop.exchanging(record):
            _join_ranks(loop, loop.arrays)
    else:
        loop.kernels.compress(loop.state)
    record.seconds += time.perf_counter() - began


def _join_ranks(loop: SharedLoop, ranks: ArrayRanks) -> None:
    """Join the forests of all ranks in each of them.

    Every vertex takes the parent that its owner has found, which hands out its slice: a parent is never larger than its
    child, so that these make a forest too. What a rank has found of others' vertices, few of which are no roots there,
    is listed, and linked by all. This goes by ranges of vertices, so that lists take little memory: what is linked in
    one may hang up vertices of the next, and these are listed there. Then each rank points its own vertices to their
    roots, and hands them out.
    """
    kernels, state, ownership, exchange = loop.kernels, loop.state, loop.ownership, loop.exchange
    forest = state.arrays[0]
    for first in range(0, state.last, exchange.at_once):
        span = first, min(first + exchange.at_once, state.last)
        ours = kernels.linked_outside(state, ownership.vertices, span)
        lengths = loop.gathered(len(ours)).ravel().astype(int).tolist()
        ranks.gather_slices(forest, np.clip(ownership.bounds, *span))
        for rank, length in enumerate(lengths):
            if length:
                pairs = ours if rank == ranks.rank else state.empty(length, forest.dtype)
                broadcast(ranks, pairs, rank)
                kernels.link_pairs(state, pairs)
    kernels.compress(state, ownership.vertices)
    ranks.gather_slices(forest, ownership.bounds)


def _link_by_windows(loop: Loop, windows: Windows) -> Iterator[IterationRecord]:
    """Link every edge where memory has the trees of a window of vertices, and of the rows at hand."""
    stream, pages, last = loop.streams["push"], loop.state.pages, loop.graph.vertices
    assert pages is not None, "trees are in pages"
    kept = 0 if windows.cut(stream).count == 1 else min(windows.most_kept(stream), last // PAIRS_SHARE)
    pairs = OpenPairs.within(kept, loop.graph.vertex_dtype)
    with pages.lent(kept):
        cut = windows.cut(stream, kept)
        trees = _PagedTrees(loop, pairs, windows.size(stream, kept))

        def passes() -> Iterator[tuple[int, EdgeStream, Callable[[EdgeStream, IterationRecord], bool]]]:
            if cut.count > 1 and not loop.iteration:
                yield 1, stream, trees.link_once
            for first, behind, number in cut.parts(last):
                walked = windows.stream_of(stream, number) if cut.of_file else stream
                yield cut.count, walked, partial(trees.link, window=(first, behind))

        began = time.perf_counter()
        for count, walked, link in passes():
            windows.count = count
            record = IterationRecord(loop.iteration, "push", last, walked.index.edges)
            loop.converged = loop.finished = link(walked, record)
            record.index_bytes = loop.index_bytes_read()
            windows.note(record)
            record.seconds = time.perf_counter() - began
            loop.iteration += 1
            yield record
            if loop.finished:
                return
            began = time.perf_counter()


class _PagedTrees:
    """Trees of which memory has some pages, and what pairs of vertices have still to be joined.

    size: vertices of a window for which there is room beside a range of rows.
    """

    def __init__(self, loop: Loop, pairs: OpenPairs, size: int) -> None:
        assert loop.state.pages is not None, "trees are in pages"
        self._state, self._pages, self._last = loop.state, loop.state.pages, loop.graph.vertices
        self._kernels = cast("WindowKernels[Any]", loop.kernels)
        self._pairs, self._size, self._names = pairs, size, tuple(loop.state.fields)
        self._symmetric = not loop.graph.directed

    def link_once(self, stream: EdgeStream, record: IterationRecord) -> bool:
        """Link all edges while the trees of a window alone are in memory; return whether that sufficed.

        It does where one tree becomes large early. Vertices behind the window are marked if they are in it; other pairs
        with one of them are listed, and joined at the end.
        """
        kernels, state, pairs = self._kernels, self._state, self._pairs
        kernels.use()
        everything = Frontier(self._last, stream.index.edges, everything=True)
        with self._held((0, self._size), changes=True):
            with stream.views(kernels, state, everything, ()) as views:
                giant = self._link_held(views, stream.index)
            if giant is not None:
                self._hang(giant)
        record.tasks.extend(stream.records)
        pairs.ends[:], pairs.listed[0] = 0, 0
        state.active.clear()
        return giant is not None

    def _link_held(self, views: Iterator[View], index: Index) -> int | None:
        """Link the edges of the views; return a vertex of the large tree (none: `size`), None where pairs take much."""
        kernels, state, pairs, size, number = self._kernels, self._state, self._pairs, self._size, 0
        giant = size
        for view in views:
            began = time.perf_counter()
            while view.e0 < view.e1:
                if 2 * pairs.free < len(pairs.ends):
                    kernels.drop_joined_pairs(state, size, giant, pairs)
                    if 2 * pairs.free < len(pairs.ends):
                        return None
                part = view.part(view.e0, view.e0 + (pairs.free if giant < size else len(pairs.ends) // FIRST_SHARE))
                kernels.link_held(part, state, index, size, giant, pairs, symmetric=self._symmetric)
                view, number = view.part(part.e1, view.e1), number + 1
                if number & (number - 1) == 0:
                    self._compress((0, size))
                    giant = self._root_of_most(part) if giant == size else giant
            view.record.kernel_seconds += time.perf_counter() - began
        kernels.drop_joined_pairs(state, size, giant, pairs)
        return giant if pairs.free >= KEPT_FREE * len(pairs.ends) else None

    def _root_of_most(self, view: View) -> int:
        """The root of a tree that has many of the vertices that edges lead to (compressed ones); `size`: of none."""
        ends = view.neighbors[:: max(1, len(view.neighbors) // ENDS)]
        ends = ends[ends < self._size]
        roots, counts = np.unique(self._state.arrays[0][ends], return_counts=True)
        return int(roots[counts.argmax()]) if len(ends) and counts.max() >= LARGE * len(ends) else self._size

    def _hang(self, giant: int) -> None:
        """Join the listed pairs, and let the vertices behind the window, too, point to their roots."""
        forest, words, window = self._state.arrays[0], self._state.active.words, (0, self._size)
        self._compress(window)
        ends, root = self._pairs.ends[: int(self._pairs.listed[0])].T.copy(), giant
        near = ends < self._size
        ends[near] = forest[ends[near]]
        if giant < self._size:
            root = int(forest[giant])
            marked = np.unique(ends[~near])
            marked = marked[words[marked >> 6] >> (marked & 63) & 1 == 1]
            ends = np.hstack([ends, np.stack([np.full_like(marked, root), marked])])
        names, roots = joined_ends(ends)
        near = names < self._size
        forest[names[near]] = roots[near]
        self._compress(window)
        for rows in self._pages.spans(self._size, self._last):
            here = slice(*np.searchsorted(names, rows))
            bits = np.unpackbits(words[rows[0] // 64 : -(-rows[1] // 64)].view(np.uint8), bitorder="little")
            with self._held(rows, changes=True):
                if giant < self._size:
                    forest[slice(*rows)][bits[: rows[1] - rows[0]].view(np.bool_)] = forest[root]
                forest[names[here]] = roots[here]

    def link(self, stream: EdgeStream, record: IterationRecord, window: Vertices) -> bool:
        """Link the edges that lead to a window; of a symmetric graph, from it and what is behind it; whether all are.

        Then every vertex points to its root.
        """
        self._kernels.use()
        everything = Frontier(self._last, stream.index.edges, everything=True)
        only = stream.directory.table.v1 > window[0] if self._symmetric and window[0] else None
        with stream.views(self._kernels, self._state, everything, (), only) as views:
            for number, view in enumerate(views, start=1):
                self._link_view(view, stream.index, window)
                if number & (number - 1) == 0:
                    self._compress(window)
        record.tasks.extend(stream.records)
        self._compress(window)
        if window[1] == self._last:
            self.join()
            self.flatten()
        return window[1] == self._last

    def _link_view(self, view: View, index: Index, window: Vertices) -> None:
        while view.e0 < view.e1:
            if 2 * self._pairs.free < len(self._pairs.ends):
                self.join()
            part = view.part(view.e0, view.e0 + self._pairs.free)
            rows = view.v0, view.v1
            with self._held(window, changes=True), self._held(rows, ahead=index):
                began = time.perf_counter()
                changed = self._kernels.link_window(part, self._state, index, window, self._pairs)
                changed |= self._kernels.compress_held(self._state, rows, window)
                view.record.kernel_seconds += time.perf_counter() - began
                if changed:
                    self._note_changes(rows)
            view = view.part(part.e1, view.e1)

    def join(self) -> None:
        """Join the listed pairs, in each window that has some, the last one first."""
        ends = self._pairs.ends[: int(self._pairs.listed[0])]
        while len(ends) and (top := int(ends[:, 1].max())):
            first = top // self._size * self._size
            window = first, min(first + self._size, self._last)
            with self._held(window, changes=True):
                self._kernels.join_pairs(self._state, window, self._pairs)
        self._pairs.listed[0] = 0

    def flatten(self) -> None:
        """Let every vertex point to its root."""
        step = self._pages.rows
        for first in range(0, self._last, self._size):
            window = first, min(first + self._size, self._last)
            self._compress(window)
            for v0 in range(window[1], self._last, step):
                rows = v0, min(v0 + step, self._last)
                with self._held(window), self._held(rows):
                    if self._kernels.compress_held(self._state, rows, window):
                        self._note_changes(rows)

    def _compress(self, window: Vertices) -> None:
        with self._held(window, changes=True):
            self._kernels.compress_held(self._state, window, window)

    def _held(
        self, vertices: Vertices, *, changes: bool = False, ahead: Index | None = None
    ) -> AbstractContextManager[None]:
        """Have the trees of some vertices at hand; ahead: of an index whose rows are wanted, those behind come then."""
        until = 0
        if ahead is not None and ahead.pages is not None:
            until = vertices[1] + self._pages.ahead * self._pages.range_of(ahead.pages)
        return self._state.held(self._names, *vertices, changes=self._names if changes else (), until=until, rows=ahead)

    def _note_changes(self, rows: Vertices) -> None:
        for unit in self._pages.of(self._names, *rows):
            self._pages.change(unit)
