"""Loops over the edges of a list: blocks in the order of the input, whose items are keys, source << 32 | target.

Threads take runs of edges. In a sweep every edge is sent along as it comes. Else a block is walked twice: first the
places of edges with an active end are noted, without a branch; then these are sent along, and what they touch is asked
for some places ahead. Blocks that are not wanted (`resources/block_stream.py`) are passed over. X-Stream's edge-centric
scatter and gather (SOSP 2013) in one: messages are combined at once, atomically, where Penstock keeps them anyway.
Nothing is fused, and nothing is sent once more from a view: both need rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.host.atomics import prefetch
from penstock.engine.kernels.host.device_functions import degree_of, is_marked
from penstock.engine.kernels.host.jit import inline, loop_kernel
from penstock.engine.kernels.host.launch import SMALL, HostKernels, _vertices_of, kernel_index
from penstock.engine.kernels.host.push import make_take
from penstock.engine.kernels.host.union_find import link
from penstock.engine.kernels.interface import HALF, LOWER, WAYS, EdgeView, VertexArrays, WaysName
from penstock.engine.program.bindings import Author
from penstock.storage.format.schema import LIST_BLOCK

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.state.state import Frontier, State
    from penstock.storage.format.index import Index
    from penstock.transfer.values.view import View

BLOCK = np.int64(LIST_BLOCK)
AHEAD = np.int64(16)
"""Edges between a message and the one whose sender and receiver are asked for."""
PICKED_AHEAD = np.int64(8)  # the same among edges with an active end
STEPS = 32
"""Runs of edges for each thread, so that the last ones to end do not matter."""
ALL_BLOCKS = np.ones(1, np.bool_)


def make_send(author: Author, take: Any) -> Any:
    """Inlined: send along edge `e` of the view (less e0) from `u` to `v`."""
    edge, cond, has_send, weighted = author.calls["edge"], author.calls["cond"], author.has_send, author.weighted

    @inline
    def send(view, e, u, v, index, fields, scalars, vertices):  # type: ignore[no-untyped-def]
        target, base = vertices.target, vertices.base
        if cond(fields, scalars, v, np.int64(0), base):
            w = view.weights[np.uint64(e)] if weighted else np.uint8(1)
            message = vertices.sent[u - base] if has_send else vertices.sent[0]
            degree = degree_of(index, u)
            take(vertices, v - base, target.dtype.type(edge(fields, scalars, message, u, v, w, degree, base)))

    return send


def make_ask(author: Author, ways: WaysName) -> Any:
    """Inlined: let what a message along an edge reads and writes come nearer; key: the edge's."""
    forward, reverse, _ = WAYS[ways]
    has_send = author.has_send

    @inline
    def ask(key, vertices):  # type: ignore[no-untyped-def]
        source, target = (key >> HALF) - vertices.base, (key & LOWER) - vertices.base
        if has_send:
            if forward:
                prefetch(vertices.sent, source)
                prefetch(vertices.target, target)
            if reverse:
                prefetch(vertices.sent, target)
                prefetch(vertices.target, source)
        else:
            prefetch(vertices.target, source)
            prefetch(vertices.target, target)

    return ask


def make_push_blocks(author: Author, ways: WaysName) -> Any:
    """Kernel: send along the view's edges whose sender is active (all of them if `whole`).

    A step is a run of `step` edges. wanted: bool by block of the whole list, read unless `whole`. picked: uint16, a row
    of LIST_BLOCK for each step.
    """
    forward, reverse, loops_once = WAYS[ways]
    send, ask = make_send(author, make_take(author)), make_ask(author, ways)

    @inline
    def sweep(view, low, high, index, fields, scalars, vertices):  # type: ignore[no-untyped-def]
        ahead = view.e1 - view.e0 - AHEAD
        for e in range(low, high):
            if e < ahead:
                ask(view.neighbors[np.uint64(e + AHEAD)], vertices)
            pair = view.neighbors[np.uint64(e)]
            u, v = pair >> HALF, pair & LOWER
            if forward:
                send(view, e, u, v, index, fields, scalars, vertices)
            if reverse and not (loops_once and u == v):
                send(view, e, v, u, index, fields, scalars, vertices)

    @inline
    def pick(view, low, high, active, picked, base):  # type: ignore[no-untyped-def]
        count = np.int64(0)
        for e in range(low, high):
            pair = view.neighbors[np.uint64(e)]
            picked[count] = np.uint16(e - low)
            found = False
            if forward:
                found |= is_marked(active, (pair >> HALF) - base)
            if reverse:
                found |= is_marked(active, (pair & LOWER) - base)
            count += np.int64(found)
        return count

    @inline
    def push_picked(view, low, count, picked, index, active, fields, scalars, vertices):  # type: ignore[no-untyped-def]
        base = vertices.base
        for i in range(count):
            if i + PICKED_AHEAD < count:
                ask(view.neighbors[np.uint64(low + np.int64(picked[i + PICKED_AHEAD]))], vertices)
            e = low + np.int64(picked[i])
            pair = view.neighbors[np.uint64(e)]
            u, v = pair >> HALF, pair & LOWER
            if forward and (not reverse or is_marked(active, u - base)):
                send(view, e, u, v, index, fields, scalars, vertices)
            if reverse and not (loops_once and u == v) and (not forward or is_marked(active, v - base)):
                send(view, e, v, u, index, fields, scalars, vertices)

    @loop_kernel(f"{author.key}{ways}{LIST_BLOCK}", grain=1)
    def push_blocks(  # type: ignore[no-untyped-def]
        first_step, end_step, view, index, active, whole, wanted, picked, step, fields, scalars, vertices
    ):
        view, vertices = EdgeView(*view), VertexArrays(*vertices)
        for number in range(first_step, end_step):
            low = view.e0 + number * step
            end = min(low + step, view.e1)
            if whole:
                sweep(view, low - view.e0, end - view.e0, index, fields, scalars, vertices)
                continue
            while low < end:
                block = low // BLOCK
                high = min(end, (block + np.int64(1)) * BLOCK)
                if wanted[block]:
                    count = pick(view, low - view.e0, high - view.e0, active, picked[number], vertices.base)
                    push_picked(view, low - view.e0, count, picked[number], index, active, fields, scalars, vertices)
                low = high

    return push_blocks


@loop_kernel("link_blocks", grain=1)
def link_blocks(first_step, end_step, keys, step, forest, base):  # type: ignore[no-untyped-def]
    """Link every edge."""
    for number in range(first_step, end_step):
        low = np.int64(number * step)
        high = min(low + step, len(keys))
        for e in range(low, high):
            if e + AHEAD < len(keys):
                soon = keys[np.uint64(e + AHEAD)]
                prefetch(forest, (soon >> HALF) - base)
                prefetch(forest, (soon & LOWER) - base)
            pair = keys[np.uint64(e)]
            link(forest, (pair >> HALF) - base, (pair & LOWER) - base)


class HostBlockKernels(HostKernels):
    """The kernels of one program over a list: those of `launch.py`, of which pushes and links walk blocks."""

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
            (make_push_blocks, self.ways), small, steps, self._edges_of(view), kernel_index(index),
            state.active.words, whole, ALL_BLOCKS if whole else self._wanted, self._picked, step, state.arrays, scalars,
            _vertices_of(state),
        )  # fmt: skip

    def link_rows(self, view: View, state: State, index: Index, done_each: int, skipped: Any, symmetric: bool) -> None:
        """Link every edge of the view: first some, whose trees are made flat, so that the others' links are short."""
        first = min(view.e1 - view.e0, len(state.arrays[0]))
        for keys in (view.neighbors[:first], view.neighbors[first:]):
            small, steps, step = self._runs(len(keys))
            if steps:
                self._call(link_blocks, small, steps, keys, step, state.arrays[0], np.uint64(state.first))
                self.compress(state)

    def _runs(self, edges: int) -> tuple[bool, int, int]:
        """How edges are cut for threads: whether they are few, how many runs, edges of a run."""
        step = max(LIST_BLOCK, -(-edges // (self.threads * STEPS)))
        return edges < SMALL, -(-edges // step), step
