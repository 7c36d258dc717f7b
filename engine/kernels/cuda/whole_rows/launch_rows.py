"""A GPU's kernels for programs on whole rows: the methods of `host/whole_rows/launch_rows.py` on a GPU.

The same as `launch.py` otherwise. Owns how the rows of a block are cut for the device; nothing but the Globals'
sums, once an iteration, comes back to the host.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.cuda.driver import LANES, TILE, blocks_for, most_blocks
from penstock.engine.kernels.cuda.launch import _MADE, CudaKernels, DeviceIndex, lines_of_run, tiles_of
from penstock.engine.kernels.cuda.whole_rows import rows, sort, triangles, vectors
from penstock.engine.kernels.interface import EdgeView
from penstock.engine.program.program import author_function, fields_of
from penstock.engine.state.row_blocks import start

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.engine.state.device_state import DeviceState
    from penstock.engine.state.oriented_rows import DeviceOrientedRows
    from penstock.engine.state.row_blocks import RowBlock
    from penstock.engine.state.state import Frontier
    from penstock.storage.format.index import Index
    from penstock.transfer.values.view import View

STEP = 1 << 20


class CudaRowKernels(CudaKernels):
    """Compiled kernels for one program on whole rows, on one device."""

    def __init__(
        self, program: Program, vertex_dtype: Any, weighted: bool, device: Any, indexes: dict[int, DeviceIndex]
    ) -> None:
        super().__init__(program, vertex_dtype, weighted, device, indexes)
        self._width = program.message_shape[0] if program.message_shape else 0
        shapes = [spec.shape for spec in fields_of(program).values()]
        if any(shapes):
            self.author = replace(self.author, calls={**self.author.calls, "store": vectors.make_store(program)})
        key = f"rows {self.author.key}{self.author.message}{self._width}{shapes}"
        self._made = _MADE.setdefault(key, {})
        vertex = author_function(program, "vertex")
        self._sorts = vertex is not None and "sort" in vertex.__code__.co_names
        self._open: Any = None  # the Globals' shares while an iteration adds them up
        self._long: dict[tuple[int, ...], tuple[tuple[Index, ...], tuple[NDArray[np.int64], ...]]] = {}

    def close(self) -> None:
        """Let go of everything on the device; what is needed again comes anew."""
        self._open = None
        super().close()

    def collect(
        self, view: View, state: DeviceState, block: RowBlock, walk: int, out: Index, scalars: tuple[Any, ...],
        buffer: Any,
    ) -> None:  # fmt: skip
        """Put the messages of the view's edges that belong to the block's rows where they belong in the buffer."""
        blocks, part = self._part(view, block, walk)
        self._call(
            rows.make_collect,
            blocks,
            *part,
            self.placed(out).arrays,
            state.arrays,
            scalars,
            np.uint64(state.first),
            buffer,
        )

    def apply_rows(
        self, state: DeviceState, following: tuple[Any, ...], block: RowBlock, out: Index, scalars: tuple[Any, ...],
        buffer: Any,
    ) -> None:  # fmt: skip
        """Run `vertex` on the rows of the block; new values go to `following`, shares of the Globals are added up.

        The sums of the blocks so far are in `state.partial`.
        """
        if self._sorts:
            self._sort(block, buffer)
        self._call(
            rows.make_apply_rows, blocks_for(block.last - block.first), self._layout(block), self.placed(out).arrays,
            state.arrays, following, scalars, np.uint64(state.first), buffer, self._open,
        )  # fmt: skip
        self._fold(state, self._open)

    def clear_partial(self, state: DeviceState) -> None:
        """Set the Globals' shares to what changes nothing."""
        self._open = self._shares()
        self._fold(state, self._open)

    def copy_rows(self, view: View, block: RowBlock, walk: int, buffer: Any) -> None:
        """Put the neighbors that the view holds of the block's rows where they belong in the buffer."""
        blocks, part = self._part(view, block, walk)
        self._call(rows.copy_rows, blocks, *part, buffer)

    def count_neighbors(self, block: RowBlock, buffer: Any, neighbors: Any) -> None:
        """neighbors[v], zero before, = distinct neighbors of the block's rows, the vertices themselves not counted."""
        count = block.messages
        self._call(
            triangles.count_neighbors,
            _tiles(0, count),
            self._layout(block),
            buffer,
            np.int64(count),
            neighbors,
            np.uint64(0),
        )

    def keep(self, block: RowBlock, buffer: Any, neighbors: Any, kept: DeviceOrientedRows) -> None:
        """Append to `kept` the edges that belong to the block's rows."""
        count = block.messages
        tiles = count // TILE + 1
        layout, number = self._layout(block), np.int64(count)
        ranks, totals = self._buffer("ranks", count + 1, np.int32), self._buffer("ranked", tiles, np.int64)
        self._call(
            triangles.rank_kept,
            min(most_blocks(), tiles),
            layout,
            buffer,
            number,
            neighbors,
            np.uint64(0),
            ranks,
            totals,
        )
        self._call(triangles.sum_ranks, 1, totals, np.int64(tiles), kept.filled)
        row = kept.append(block.last - block.first)
        blocks = min(most_blocks(), max(tiles, blocks_for(block.last - block.first)))
        self._call(triangles.keep_rows, blocks, layout, buffer, number, ranks, totals, np.int64(row), kept.arrays)

    def intersect(
        self,
        ones: DeviceOrientedRows,
        others: DeviceOrientedRows,
        each: int,
        state: DeviceState,
        scalars: tuple[Any, ...],
    ) -> None:
        """Give the corners of every triangle with its first edge from `ones` to `others` their messages."""
        self._call(
            triangles.make_intersect, self._groups(ones), ones.arrays, others.arrays, np.int64(each), scalars,
            state.incoming, np.uint64(state.first),
        )  # fmt: skip

    def count_sides(self, ones: DeviceOrientedRows, others: DeviceOrientedRows, sides: Any, other_sides: Any) -> None:
        """Add 1 to each edge of every triangle with its first edge from `ones` to `others`."""
        self._call(triangles.count_sides, self._groups(ones), ones.arrays, others.arrays, sides, other_sides)

    @staticmethod
    def _groups(ones: DeviceOrientedRows) -> int:
        """Blocks of threads that have a group for the edges of these rows."""
        edges = min(len(ones.targets), most_blocks() * TILE)  # more than that stride
        return blocks_for(-(-edges // int(triangles.RUN)) * int(triangles.GROUP))

    def pull(
        self, view: View, state: DeviceState, frontier: Frontier, indices: tuple[Index, Index],
        scalars: tuple[Any, ...], skip: int = 0,
    ) -> None:  # fmt: skip
        """Combine the vectors that come along the view's edges; `indices`: of the in-, of the out-adjacency."""
        index, out = indices
        self._note_lines(view, view.e0, view.e1)
        into = self._rows_of(view, state, index)
        self._call(
            (vectors.make_pull_vectors, self._width), _tiles(view.e0, view.e1), self._edges_of(view), into.arrays,
            into.starts, self.placed(out, state.pages).arrays, state.arrays, scalars, state.incoming,
            np.uint64(state.first),
        )  # fmt: skip

    def apply(self, state: DeviceState, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Turn summed messages into new values; of vectors, on all vertices."""
        if not self._width:
            super().apply(state, frontier, index, scalars)
            return
        shares, steps = self._shares(), self._steps
        rows, values = not self._of_degree.isdisjoint(("vertex", "global")), steps.applies(state.messages)
        for part, arrays in self._parts(state, index, rows=rows, values=values, changes=steps.changing):
            self._call(
                (vectors.make_apply_vectors, self._width), blocks_for(part.last - part.first), arrays, part.arrays,
                scalars, part.incoming, np.uint64(part.first), shares,
            )  # fmt: skip
        self._fold(state, shares)

    def _part(self, view: View, block: RowBlock, walk: int) -> tuple[int, tuple[Any, ...]]:
        """Blocks of threads for the edges of the view that belong to the block, and the arrays that select them."""
        first, last = block.edges(walk)
        low = max(first, view.e0)
        high = max(low, min(last, view.e1))
        self._note_lines(view, low, high)
        known, edges = self.placed(block.indexes[walk]), self._edges_of(view)
        here = slice(low - view.e0, high - view.e0)
        weights = edges.weights[here] if self.author.weighted else edges.weights
        rows = np.uint64(block.first), np.uint64(block.last)
        edges = EdgeView(edges.neighbors[here], weights, np.int64(low), np.int64(high), *rows)
        return _tiles(low, high), (edges, known.arrays, known.starts, self._layout(block), np.bool_(walk > 0))

    def _note_lines(self, view: View, low: int, high: int) -> None:
        """Say how many lines are read where edges [low, high) come over the link in place."""
        if view.record.route == "zero-copy" and high > low:
            view.record.lines_read += ((high - 1) // LANES - low // LANES + 1) * lines_of_run(view.neighbors)

    def _layout(self, block: RowBlock) -> tuple[Any, ...]:
        """A block as kernels take it (`rows.py`)."""
        arrays = [self.placed(index).arrays for index in block.indexes]
        origin = sum(start(index, block.first) for index in block.indexes)
        span = np.uint64(block.first), np.uint64(block.last)
        return arrays[0], arrays[-1], np.bool_(len(arrays) > 1), *span, np.int64(origin)

    def _sort(self, block: RowBlock, buffer: Any) -> None:
        """Sort every row's messages."""
        count = block.messages
        windows = -(-count // sort.SHORT)
        layout = self._layout(block)
        self._call(sort.make_sort_windows, min(most_blocks(), windows), layout, buffer, np.int64(count))
        table = self._chunks(block)
        if not len(table):
            return
        chunks = self._buffer("row chunks", table.size, np.int64).reshape(-1, 3)
        self.device.copy_in(chunks, table, None)
        blocks = min(most_blocks(), len(table))
        self._call(sort.make_sort_chunks, blocks, chunks, buffer)
        for run, gap in sort.merges(int((table[:, 2] - table[:, 1]).max())):
            self._call(sort.merge_far, blocks, chunks, buffer, np.int64(run), np.int64(gap))
            if 1 << gap == TILE:
                self._call(sort.make_merge_near, blocks, chunks, buffer, np.int64(run))

    def _chunks(self, block: RowBlock) -> NDArray[np.int64]:
        """Chunks of the block's long rows, int64 (n, 3): where each begins, where its row begins and where it ends."""
        vertices, places, lengths = self._long_rows(block.indexes)
        here = slice(*np.searchsorted(vertices, (block.first, block.last)).tolist())
        begins, sizes = places[here] - sum(start(index, block.first) for index in block.indexes), lengths[here]
        counts = -(-sizes // TILE)
        numbers = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        row = np.repeat(begins, counts)
        return np.stack([row + numbers * TILE, row, np.repeat(begins + sizes, counts)], axis=1)

    def _long_rows(self, indexes: tuple[Index, ...]) -> tuple[NDArray[np.int64], ...]:
        """Rows too long for a window: vertices, edges before them in all walks together, and lengths; found once."""
        key = tuple(id(index) for index in indexes)
        if key not in self._long:
            found = []
            for first in range(0, indexes[0].vertices, STEP):
                last = min(first + STEP, indexes[0].vertices)
                starts = np.sum([index.starts(first, last + 1) for index in indexes], axis=0)
                lengths = np.diff(starts)
                long = np.flatnonzero(lengths > sort.SHORT)
                found.append((first + long, starts[long], lengths[long]))
            arrays = tuple(np.concatenate(parts) for parts in zip(*found, strict=True))
            self._long[key] = indexes, arrays  # as long as they are here no other index has their ids
        return self._long[key][1]


def _tiles(low: int, high: int) -> int:
    """Blocks for the tiles of edges, or places, [low, high)."""
    return min(most_blocks(), tiles_of(low, high))
