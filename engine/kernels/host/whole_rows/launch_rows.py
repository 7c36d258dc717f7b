"""The host's kernels for programs on whole rows: messages kept apart, corners of triangles, vectors.

The same as `launch.py` otherwise. `reference/rows.py` defines the answer.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.host.launch import SMALL, SPAN, HostKernels, kernel_index, own_index
from penstock.engine.kernels.host.whole_rows import rows, triangles
from penstock.engine.state.row_blocks import RowOffsets

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.state.oriented_rows import OrientedRows
    from penstock.engine.state.row_blocks import RowBlock
    from penstock.engine.state.state import Frontier, State
    from penstock.storage.format.index import Index
    from penstock.transfer.values.view import View


class HostRowKernels(HostKernels):
    """Compiled kernels for one program on whole rows."""

    @cached_property
    def _offsets(self) -> RowOffsets:
        return RowOffsets()

    def close(self) -> None:
        """Give the memory of row offsets back."""
        self._offsets.release()

    def collect(
        self, view: View, state: State, block: RowBlock, walk: int, out: Index, scalars: tuple[Any, ...],
        buffer: NDArray[Any],
    ) -> None:  # fmt: skip
        """Put the messages of the view's edges that belong to the block's rows where they belong in the buffer."""
        edges = self._part(view, block, walk)
        cut, size = self._cut(len(edges[0]))
        self._call(
            rows.make_collect, *cut, edges, kernel_index(block.indexes[walk]), kernel_index(out), state.arrays, scalars,
            np.uint64(state.first), self._offsets.of(block), walk > 0, size, buffer,
        )  # fmt: skip

    def apply_rows(
        self, state: State, following: tuple[Any, ...], block: RowBlock, out: Index, scalars: tuple[Any, ...],
        buffer: NDArray[Any],
    ) -> None:  # fmt: skip
        """Run `vertex` on the rows of the block; new values go to `following`, shares of the Globals to `partial`."""
        span = np.uint64(block.first), np.uint64(block.last)
        spans = -(-(block.last - state.first) // SPAN) - (block.first - state.first) // SPAN
        self._call(
            rows.make_apply_rows, block.messages < SMALL, spans, span, kernel_index(out), state.arrays, following,
            scalars, np.uint64(state.first), self._offsets.of(block), buffer, state.partial,
        )  # fmt: skip

    def copy_rows(self, view: View, block: RowBlock, walk: int, buffer: NDArray[Any]) -> None:
        """Put the neighbors that the view holds of the block's rows where they belong in the buffer."""
        edges = self._part(view, block, walk)
        cut, size = self._cut(len(edges[0]))
        index = kernel_index(block.indexes[walk])
        self._call(rows.copy_rows, *cut, edges, index, self._offsets.of(block), walk > 0, size, buffer)

    def count_neighbors(self, block: RowBlock, buffer: NDArray[Any], neighbors: NDArray[np.int64]) -> None:
        """neighbors[v] = distinct neighbors of the block's rows, the vertices themselves not counted."""
        count = block.last - block.first
        self._call(triangles.count_neighbors, block.messages < SMALL, count, *self._sets(block), buffer, neighbors)

    def keep(self, block: RowBlock, buffer: NDArray[Any], neighbors: NDArray[np.int64], kept: OrientedRows) -> None:
        """Append to `kept` the edges that belong to the block's rows."""
        counts = np.zeros(block.last - block.first, dtype=np.int64)
        sets, cut = self._sets(block), (block.messages < SMALL, len(counts))
        self._call(triangles.count_kept, *cut, *sets, buffer, neighbors, counts)
        starts, targets, arcs = kept.extend(counts)
        self._call(triangles.keep_rows, *cut, *sets, buffer, neighbors, starts, int(counts.max()), targets, arcs)

    def intersect(
        self, ones: OrientedRows, others: OrientedRows, each: int, state: State, scalars: tuple[Any, ...]
    ) -> None:
        """Give the corners of every triangle with its first edge from `ones` to `others` their messages."""
        small, rows, (begins, users, longest) = self._users(ones, others)
        self._call(
            triangles.make_intersect, small, rows, ones.arrays, others.arrays, begins, users, longest, each, scalars,
            state.incoming, np.uint64(state.first),
        )  # fmt: skip

    def count_sides(
        self, ones: OrientedRows, others: OrientedRows, sides: NDArray[np.int32], other_sides: NDArray[np.int32]
    ) -> None:
        """Add 1 to each edge of every triangle with its first edge from `ones` to `others`."""
        small, rows, users = self._users(ones, others)
        self._call(triangles.count_sides, small, rows, ones.arrays, others.arrays, *users, sides, other_sides)

    def _users(self, ones: OrientedRows, others: OrientedRows) -> tuple[bool, int, tuple[Any, ...]]:
        """Whether `ones` are few, the rows of `others`, and which rows of `ones` have each of them (`list_users`)."""
        small, rows = len(ones.targets) < SMALL, len(others.starts) - 1
        low, high = np.uint64(others.first), np.uint64(others.last)
        begins = np.zeros(rows + 1, dtype=np.int64)
        self._call(triangles.count_users, small, len(ones.starts) - 1, ones.arrays, low, high, begins)
        np.cumsum(begins, out=begins)
        users = np.empty(begins[-1], dtype=ones.targets.dtype)
        self._call(triangles.list_users, small, len(ones.starts) - 1, ones.arrays, low, high, begins, users)
        longest = max(int(np.diff(kept.starts).max(initial=1)) for kept in {ones, others})
        return small, rows, (begins, users, longest)

    def pull(
        self, view: View, state: State, frontier: Frontier, indices: tuple[Index, Index], scalars: tuple[Any, ...],
        skip: int = 0,
    ) -> None:  # fmt: skip
        """Combine the vectors that come along the view's edges; `indices`: of the in-, of the out-adjacency."""
        assert state.incoming is not None
        view, small, blocks, block = self._owned_blocks(view)
        base = np.uint64(state.first)
        values = np.zeros((blocks, 2, state.incoming.shape[1]), dtype=state.incoming.dtype)
        partials = np.zeros(blocks, np.uint64), values, np.zeros(blocks, np.bool_)
        into, out = indices
        state.walked = max(state.walked, view.e1 - view.e0)
        found = kernel_index(into) if view.offsets is None else own_index(view.offsets)
        self._call(
            rows.make_pull_vectors, small, blocks, self._edges_of(view), found, kernel_index(out), block,
            state.arrays, scalars, state.incoming, base, partials,
        )  # fmt: skip
        self._call_alone(rows.make_reduce_vector_partials, partials, scalars, state.incoming, base)

    def _part(self, view: View, block: RowBlock, walk: int) -> tuple[Any, ...]:
        """The parts of an `EdgeView` of the edges of the view that belong to the block."""
        first, last = block.edges(walk)
        low = max(first, view.e0)
        high = max(low, min(last, view.e1))
        neighbors, weights, *_ = self._edges_of(view)
        here = slice(low - view.e0, high - view.e0)
        weights = weights[here] if self.author.weighted else weights
        return neighbors[here], weights, low, high, np.uint64(block.first), np.uint64(block.last)

    def _sets(self, block: RowBlock) -> tuple[Any, ...]:
        """First row, positions, and where the second walk's neighbors begin in each row."""
        positions = self._offsets.of(block)
        first = block.indexes[0].degrees(block.first, block.last)
        return np.uint64(block.first), positions, positions[:-1] + first
