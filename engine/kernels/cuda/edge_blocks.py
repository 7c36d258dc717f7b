"""The kernels of one program on a GPU over a list: those of `launch.py`, of which pushes and links walk blocks.

Nothing is fused, and nothing is sent once more from a view: both need rows.

Threads of a block take a block of edges at a time; neighboring threads read neighboring keys. Sums are combined at two
levels, as in WolfGraph (Zhu et al., FGCS 2020): a block of threads adds what it sends in shared memory, for the
vertices that came first to their places there, and to the target once at its end. In the order of an input nothing is
known of which vertices are hot; but the more edges lead to a vertex, the likelier it comes first, so that most places
are those of hot vertices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from penstock.engine.kernels.cuda.device_functions import COMBINE, degree_of, is_marked, mark
from penstock.engine.kernels.cuda.driver import (
    BLOCK,
    SIMULATED,
    DeviceKernel,
    blocks_for,
    blocks_sharing,
    cuda,
    device,
    kernel,
    most_blocks,
)
from penstock.engine.kernels.cuda.launch import CudaKernels, _vertices_of
from penstock.engine.kernels.cuda.union_find import link
from penstock.engine.kernels.hot_vertices import has_sums_apart, sums_numbers
from penstock.engine.kernels.interface import HALF, LOWER, WAYS, WaysName
from penstock.engine.program.bindings import Author
from penstock.storage.format.schema import LIST_BLOCK

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.state.device_state import DeviceState
    from penstock.engine.state.state import Frontier
    from penstock.storage.format.index import Index
    from penstock.transfer.values.view import View

EDGES = np.int64(LIST_BLOCK)
SLOTS = 16 if SIMULATED else 1024
"""Vertices whose sums a block of threads keeps; a power of two."""
EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
SPREAD = np.uint64(0x9E3779B1)
SLOT_SHIFT = np.uint64(32 - (SLOTS.bit_length() - 1))
AT_ONCE = 6
"""Blocks of a multiprocessor that keep sums."""
EDGES_EACH = 1 if SIMULATED else 16
"""Edges of a view for each sum that is kept: with fewer, adding them up takes a part of the time."""


def blocks_that_keep(author: Author) -> int:
    """Blocks of a launch that keep sums: as many as run at once."""
    return blocks_sharing(SLOTS * (8 + author.message.itemsize), AT_ONCE)


def make_take(author: Author) -> Any:
    """Device function: combine a message with what vertex `v` has, and mark it."""
    combine = COMBINE[author.combine]

    @device
    def take(arrays, v, value, kept):  # type: ignore[no-untyped-def]
        if combine(arrays.target, v - arrays.base, value):
            mark(arrays.touched, v - arrays.base)

    return take


@device
def take_kept(arrays, v, value, kept):  # type: ignore[no-untyped-def]
    """Device function: the same of a sum, which stays in shared memory where `v` has a place there.

    kept: vertices by place, EMPTY where none is, and their sums.
    """
    vertices, sums = kept
    slot = np.int64(((v * SPREAD) & LOWER) >> SLOT_SHIFT)
    owner = vertices[slot]
    if owner == EMPTY:
        owner = cuda.atomic.cas(vertices, slot, EMPTY, v)
        if owner == EMPTY:
            owner = v
    if owner == v:
        cuda.atomic.add(sums, slot, value)
    else:
        cuda.atomic.add(arrays.target, v - arrays.base, value)
        mark(arrays.touched, v - arrays.base)


def make_send(author: Author, take: Any) -> Any:
    """Device function: send along edge `e` of the view from `u` to `v`; take: what becomes of the message."""
    edge, cond, has_send, weighted = author.calls["edge"], author.calls["cond"], author.has_send, author.weighted

    @device
    def send(view, e, u, v, index, fields, scalars, arrays, kept):  # type: ignore[no-untyped-def]
        target, base = arrays.target, arrays.base
        if cond(fields, scalars, v, np.int64(0), base):
            message = arrays.sent[u - base] if has_send else arrays.sent[0]
            w = view.weights[np.uint64(e - view.e0)] if weighted else np.uint8(1)
            degree = degree_of(index, u)
            take(arrays, v, target.dtype.type(edge(fields, scalars, message, u, v, w, degree, base)), kept)

    return send


def make_walk(ways: WaysName, send: Any) -> Any:
    """Device function: send along the view's edges whose sender is active; all threads of all blocks call it."""
    forward, reverse, loops_once = WAYS[ways]

    @device
    def walk(view, index, active, whole, wanted, fields, scalars, arrays, kept):  # type: ignore[no-untyped-def]
        base = arrays.base
        block = view.e0 // EDGES + np.int64(cuda.blockIdx.x)
        while block * EDGES < view.e1:
            if whole or wanted[block] != 0:
                e = max(block * EDGES, view.e0) + np.int64(cuda.threadIdx.x)
                end = min((block + np.int64(1)) * EDGES, view.e1)
                while e < end:
                    pair = view.neighbors[np.uint64(e - view.e0)]
                    u, v = pair >> HALF, pair & LOWER
                    if forward and (whole or is_marked(active, u - base)):
                        send(view, e, u, v, index, fields, scalars, arrays, kept)
                    if reverse and not (loops_once and u == v) and (whole or is_marked(active, v - base)):
                        send(view, e, v, u, index, fields, scalars, arrays, kept)
                    e += np.int64(BLOCK)
            block += np.int64(cuda.gridDim.x)

    return walk


def make_push_blocks(author: Author, ways: WaysName) -> DeviceKernel:
    """Kernel: push along the view's edges; wanted: uint8 by block of the whole list, read unless `whole`."""
    walk = make_walk(ways, make_send(author, make_take(author)))

    @kernel
    def push_blocks(view, index, active, whole, wanted, fields, scalars, arrays):  # type: ignore[no-untyped-def]
        walk(view, index, active, whole, wanted, fields, scalars, arrays, arrays)

    return push_blocks


def make_push_blocks_kept(author: Author, ways: WaysName) -> DeviceKernel:
    """Kernel: the same of sums, at two levels."""
    walk = make_walk(ways, make_send(author, take_kept))
    kind = numba.from_dtype(author.message)

    def push_blocks(view, index, active, whole, wanted, fields, scalars, arrays):  # type: ignore[no-untyped-def]
        vertices = cuda.shared.array(SLOTS, np.uint64)
        sums = cuda.shared.array(SLOTS, kind)
        for at in range(cuda.threadIdx.x, SLOTS, BLOCK):
            vertices[at] = EMPTY
            sums[at] = sums.dtype.type(0)
        cuda.syncthreads()
        walk(view, index, active, whole, wanted, fields, scalars, arrays, (vertices, sums))
        cuda.syncthreads()
        for at in range(cuda.threadIdx.x, SLOTS, BLOCK):
            if vertices[at] != EMPTY:
                cuda.atomic.add(arrays.target, vertices[at] - arrays.base, sums[at])
                mark(arrays.touched, vertices[at] - arrays.base)

    return kernel(push_blocks, AT_ONCE)


@kernel
def link_blocks(view, forest, base):  # type: ignore[no-untyped-def]
    """Kernel: link every edge of the view."""
    e = np.int64(cuda.blockIdx.x) * np.int64(BLOCK) + np.int64(cuda.threadIdx.x)
    while e < view.e1 - view.e0:
        pair = view.neighbors[np.uint64(e)]
        link(forest, (pair >> HALF) - base, (pair & LOWER) - base)
        e += np.int64(cuda.gridDim.x) * np.int64(BLOCK)


class CudaBlockKernels(CudaKernels):
    """Compiled kernels over blocks of edges."""

    ways: WaysName = "forward"
    keeps_sums = True
    """Whether blocks of threads keep sums, where many are added up."""
    _wanted: NDArray[np.bool_] | None = None

    def choose_blocks(self, wanted: NDArray[np.bool_] | None) -> None:
        """Walk only these blocks from now on; None: all."""
        self._wanted = wanted

    def can_fuse(self, frontier: Frontier) -> bool:
        """Never: an iteration walks blocks, whatever its frontier is."""
        return False

    def push(self, view: View, state: DeviceState, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Send along the view's edges of which an active vertex is at the end that sends."""
        edges, whole = view.e1 - view.e0, frontier.everything
        push, blocks = make_push_blocks, min(most_blocks(), edges // LIST_BLOCK + 2)
        if self.keeps_sums and sums_numbers(self.author) and has_sums_apart(state):
            together = blocks_that_keep(self.author)
            sent = edges if whole else min(edges, frontier.edges)
            if sent >= EDGES_EACH * SLOTS * together:
                push, blocks = make_push_blocks_kept, min(together, blocks)
        self._call(
            (push, self.ways), blocks, self._edges_of(view), self.placed(index).arrays, state.active.words,
            np.bool_(whole), self._marked(whole), state.arrays, scalars, _vertices_of(state),
        )  # fmt: skip

    def _marked(self, whole: bool) -> Any:
        """Which blocks are wanted, where kernels read it: the last walk's have ended when a frontier is known."""
        if whole:
            return self._buffer("all blocks", 1, np.uint8)
        assert self._wanted is not None, "blocks of a frontier have been chosen"
        chunks, here = self._shared_chunks(len(self._wanted))
        chunks[:] = self._wanted
        return here

    def link_rows(
        self, view: View, state: DeviceState, index: Index, done_each: int, skipped: Any, symmetric: bool
    ) -> None:
        """Link every edge of the view."""
        self._call(
            link_blocks, blocks_for(view.e1 - view.e0), self._edges_of(view), state.arrays[0], np.uint64(state.first)
        )
