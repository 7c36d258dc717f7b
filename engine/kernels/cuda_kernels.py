"""The kernels of one program on a GPU: the methods of `host.py`, over a DeviceState.

Owns how work is cut for the device, and the few numbers that come back to the host: one small read after each
select, one after each demand. Everything else is only launched. Refuses programs with vector fields in messages by
way of numba's own word, translated by `explain`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from penstock.engine.kernels import cuda_apply as applies
from penstock.engine.kernels import cuda_demand, cuda_heads, cuda_packed, cuda_passed, cuda_pull, cuda_rounds
from penstock.engine.kernels import cuda_edges as edges
from penstock.engine.kernels import cuda_forest as forest_kernels
from penstock.engine.kernels import cuda_stretch as stretches
from penstock.engine.kernels import cuda_vertices as vertices
from penstock.engine.kernels.cuda import (
    BLOCK,
    LANES,
    TILE,
    Kernel,
    blocks_for,
    blocks_together,
    compile_author,
    forget,
    loads,
    many_blocks,
    most_blocks,
    use,
)
from penstock.engine.kernels.cuda_queue import GROUP_SHIFT
from penstock.engine.kernels.forest import most_frequent
from penstock.engine.kernels.host import explain
from penstock.engine.kernels.passed import Passed
from penstock.engine.program.bindings import Author, bind
from penstock.engine.program.program import arguments, author_function, fields_of
from penstock.engine.state.device_state import TALLIES
from penstock.engine.state.frontier import Frontier
from penstock.engine.state.fused_limits import FusedIterations, FusedLimits
from penstock.storage.base.errors import InputError
from penstock.transfer.values.rates import LINE_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.engine.state.device_state import DeviceState
    from penstock.engine.state.row_prefix_cache import RowPrefixCache
    from penstock.storage.format.index import Index
    from penstock.transfer.values.task import TaskRecord
    from penstock.transfer.values.view import View


RUN_TILES = 8
"""Neighboring tiles that a block of a pull takes at most."""


@dataclass(frozen=True)
class PlacedIndex:
    """A row index on the device: `arrays` as kernels take them; `starts[t]`: the row of the first edge of tile t."""

    index: Index
    arrays: tuple[Any, Any, Any]
    starts: Any


class CudaKernels:
    """Compiled kernels for one program, vertex type and kind of weights, on one device.

    indexes: row indexes that are on the device already, by `id`; shared by all programs of a session.
    over_links: whether `stretch` may read edges over a link.
    """

    over_links = True

    def __init__(
        self, program: Program, vertex_dtype: Any, weighted: bool, device: Any, indexes: dict[int, PlacedIndex]
    ) -> None:
        self.author: Author = bind(program, vertex_dtype, compile_author, plain=False)
        self.weighted = weighted
        self.device = device
        edge = author_function(program, "edge")
        names = () if edge is None else arguments(edge)
        self._uses_target = any(name == "target" or name.startswith("target_") for name in names)
        specs = fields_of(program).values()
        self._changing = None if any(spec.shape for spec in specs) else tuple(not spec.constant for spec in specs)
        self._steady = applies.steady(program, self.author)
        self._fits = stretches.fits(program, self.author)
        self._made = _MADE.setdefault(f"{self.author.fingerprint}{weighted}{self.author.message}", {})
        self._indexes = indexes
        self._buffers: dict[str, Any] = {}
        self._marks: dict[str, NDArray[np.uint32]] = {}
        self._shared: dict[int, tuple[Any, Any]] = {}
        self._spoken: tuple[Any, Any, Any, Any] | None = None
        self._waiting: list[tuple[TaskRecord, int]] = []

    def use(self) -> None:
        """Make the device the current one; call before a run of kernels."""
        use(self.device)

    def close(self) -> None:
        """Let go of everything on the device."""
        self._buffers.clear()
        forget()

    def placed(self, index: Index) -> PlacedIndex:
        """The index on the device, copied at its first use."""
        found = self._indexes.get(id(index))
        if found is None:
            bases, offsets, shift = index.arrays()
            arrays = self.device.to_device(bases), self.device.to_device(offsets), np.uint64(shift)
            tiles = -(-index.edges // TILE)
            starts = self.device.array(max(1, tiles), np.uint32 if index.vertices < 2**32 else np.uint64)
            edges.tile_rows(blocks_for(tiles), arrays, np.uint64(index.vertices), np.int64(tiles), starts)
            found = self._indexes[id(index)] = PlacedIndex(index, arrays, starts)
        return found

    def select(self, state: DeviceState, index: Index, scalars: tuple[Any, ...], limit: float) -> Frontier:
        """Move what is pending with a priority below `limit` into the frontier and list it."""
        words, base, skew = len(state.active.words), np.uint64(state.first), np.int64(0)
        blocks = -(-words // BLOCK)
        counts = self._buffer("counts", 3 * blocks, np.int64).reshape(3, blocks)
        rests = self._buffer("rests", blocks, np.float64)
        arrays = self.placed(index).arrays
        self._call(
            "select", blocks, state.pending.words, state.active.words, arrays, skew, state.arrays, scalars,
            np.float64(limit), base, counts, rests,
        )  # fmt: skip
        tallies, waiting = self._buffer("tallies", TALLIES, np.int64), np.int64(min(TALLIES, len(self._waiting)))
        vertices.sum_up(
            1, counts, rests, state.totals, state.told_here, state.told_rest_here, tallies, waiting,
            state.told_lines_here,
        )  # fmt: skip
        vertices.enumerate_marked(
            blocks, state.active.words, arrays, skew, base, counts, state.totals, state.vertices, state.work
        )
        self.device.finish()
        for (record, each), runs in zip(self._waiting, state.told_lines.tolist(), strict=False):
            record.lines_read += runs * each
        self._waiting.clear()
        count, state.lines, total = (int(number) for number in state.told[:3])
        listed = 0 < count <= len(state.vertices)
        return Frontier(count, total, listed=listed, rest=float(state.told_rest[0]))

    def send(self, state: DeviceState, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Compute what the frontier's vertices send, where the program says so and `apply` has not done it."""
        whole, ahead, state.sent_ahead = frontier.everything, state.sent_ahead, None
        if self.author.has_send and not (whole and ahead is not None and ahead == self._sending(scalars)):
            blocks = self._blocks_of_all(state) if whole else blocks_for(len(state.active.words))
            self._call(
                "send", blocks, state.active.words, np.bool_(whole), self.placed(index).arrays, state.arrays, scalars,
                state.sent, np.uint64(state.first),
            )  # fmt: skip

    def push(self, view: View, state: DeviceState, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Send along the frontier's out-edges that the view holds; of a packed view, along all of them."""
        known = self.placed(index)
        common = state.arrays, scalars, state.sent, state.target, state.touched.words, np.uint64(state.first)
        edges_of, rows = self._edges_of(view), self._rows_of(view)
        whole = np.bool_(frontier.everything)
        if view.rows is not None:
            self._call(
                "push_packed", self._tiles(view), edges_of, np.int64(view.e1), view.rows, view.offsets,
                np.int64(len(view.rows)), known.arrays, state.active.words, np.bool_(True), *common,
            )  # fmt: skip
        elif frontier.listed:
            self._call(
                "push_list", blocks_for(-(-state.lines // edges.RUN) * LANES), edges_of, np.int64(view.e1), rows,
                known.arrays, np.int64(0), state.vertices, state.work, np.int64(frontier.vertices), *common,
                self._tally(view),
            )  # fmt: skip
        else:
            self._call(
                "push_rows", self._tiles(view), edges_of, np.int64(view.e1), rows, known.arrays, known.starts,
                state.active.words, whole, *common,
            )  # fmt: skip

    def push_again(self, view: View, state: DeviceState, index: Index, scalars: tuple[Any, ...], limit: float) -> None:
        """Send once more, from what has become pending since and has all its edges in the view."""
        known, base, edges_of = self.placed(index), np.uint64(state.first), self._edges_of(view)
        rows, e1 = self._rows_of(view), np.int64(view.e1)
        again = self._buffer("again", len(state.pending.words), np.uint32)
        self._call(
            "take", blocks_for((view.v1 - view.v0) // 32 + 2), state.pending.words, again, known.arrays,
            edges_of[2], e1, rows, state.arrays, scalars, np.float64(limit), base,
        )  # fmt: skip
        self._call(
            "push_rows", self._tiles(view), edges_of, e1, rows, known.arrays, known.starts, again, np.bool_(False),
            state.arrays, scalars, state.sent, state.target, state.touched.words, base,
        )  # fmt: skip

    def take_passed(
        self, state: DeviceState, index: Index, scalars: tuple[Any, ...], limit: float, where: Passed
    ) -> NDArray[np.uint32]:
        """Take what is pending and lies in passed chunks; marks in host memory, valid until the next such take."""
        again, table = self._take(state.pending.words, state, index, (scalars, limit), where)
        self.device.copy_out(where.table, table, None)
        self.device.finish()
        return self._to_pinned("taken", again) if where.table.any() else np.zeros(len(again), np.uint32)

    def _take(
        self, within: Any, state: DeviceState, index: Index, due: tuple[Any, float], where: Passed
    ) -> tuple[Any, Any]:
        scalars, limit = due
        again = self._buffer("again", len(state.pending.words), np.uint32)
        chunks, here = self._shared_chunks(len(where.chunks))
        chunks[:] = where.chunks
        table, seen = self._buffer("table", len(where.table), np.int64), self._buffer("chunks", len(chunks), np.uint8)
        table[...] = 0
        self._call(
            "take_passed", blocks_for(len(again)), state.pending.words, within, again, self.placed(index).arrays, here,
            seen, tuple(np.int64(size) for size in where.sizes), table, state.arrays, scalars, np.float64(limit),
            np.uint64(state.first),
        )  # fmt: skip
        return again, table

    def _shared_chunks(self, count: int) -> tuple[Any, Any]:
        """One byte for every chunk, which the host writes and kernels read in place; nothing reads it between takes."""
        known = self._shared.get(count)
        if known is None:
            known = self._shared[count] = self.device.shared_array(count, np.uint8)
        return known

    @property
    def loads(self) -> int:
        """How many kernels have been compiled or loaded so far."""
        return loads()

    def can_stretch(self, frontier: Frontier) -> bool:
        """Whether `stretch` serves the program, and this frontier, if all edges are on the device."""
        pieces = frontier.vertices + (frontier.edges >> int(GROUP_SHIFT))
        few = frontier.edges <= stretches.MOST_EDGES and pieces <= stretches.MOST_PIECES
        return self._fits and frontier.listed and few

    def stretch(
        self,
        view: View,
        state: DeviceState,
        frontier: Frontier,
        index: Index,
        scalars: tuple[Any, ...],
        bounds: FusedLimits,
    ) -> FusedIterations:
        """Run iterations from this frontier on, along all edges of a resident adjacency, in one launch."""
        apart, (told, told_here, limit, limit_here) = state.incoming is not None, self._told()
        control, lowest = self._buffer("control", 32, np.int64), self._buffer("lowest", 3, np.float64)
        control[...] = 0
        lowest[...] = np.inf
        most = min(bounds.iterations, stretches.MOST_ITERATIONS)
        numbers = most, min(bounds.edges, stretches.MOST_EDGES), bounds.alpha, bounds.unexplored, bounds.before
        room = min(stretches.MOST_PIECES, index.vertices + (index.edges >> int(GROUP_SHIFT)) + 1)
        pieces = self._buffer("owners", room, np.uint64), self._buffer("firsts", room, np.int64)
        joiners = self._buffer("joiners", min(stretches.MOST_EDGES, index.edges + 1), np.int64)
        marks = state.pending.words, self._buffer("joined", len(state.pending.words), np.uint32)
        self._call(
            "stretch apart" if apart else "stretch", blocks_together(), self._edges_of(view),
            self.placed(index).arrays, (state.vertices, np.int64(frontier.vertices)),
            tuple(np.int64(number) for number in numbers), (np.float64(bounds.limit), np.float64(bounds.bucket)), marks,
            (pieces, joiners), (control[:1], control[16:], lowest), (state.arrays, state.sent, np.uint64(state.first)),
            scalars, state.target, (state.incoming if apart else state.target, state.identity, self._shares()),
            (told_here, limit_here),
        )  # fmt: skip
        self.device.finish()
        done = told[1 : 1 + 2 * int(told[0])].reshape(-1, 2).tolist()
        return FusedIterations(
            [(vertices, edges) for vertices, edges in done], max(limit[0], np.nextafter(limit[1], np.inf))
        )

    def pull(
        self, view: View, state: DeviceState, frontier: Frontier, indices: tuple[Index, Index],
        scalars: tuple[Any, ...], skip: int = 0,
    ) -> None:  # fmt: skip
        """Gather along the in-edges that the view holds, never packed; `indices`: of the in-, of the out-adjacency.

        skip: of every row, this many edges have been looked at before (early exit only).
        """
        assert view.rows is None, "views are packed for pushes only"
        into, out = (self.placed(index) for index in indices)
        first = self.author.early_exit
        rows = (self._rows_of(view), self._passed(state, skip)) if first else (self._rows_of(view),)
        tally = (self._tally(view),) if first else ()
        if not first and view.record.route == "zero-copy":
            runs = (view.e1 - 1) // LANES - view.e0 // LANES + 1
            view.record.lines_read += runs * lines_of_run(view.neighbors)
        name, blocks = "pull", self._runs(view)
        if first:
            name = "pull_first" if skip or view.record.route == "zero-copy" else "pull_first_here"
            blocks = self._tiles(view)
        self._call(
            name, blocks, self._edges_of(view),
            np.int64(view.e1), *rows, into.arrays, into.starts, out.arrays, state.active.words,
            np.bool_(frontier.everything), state.arrays, scalars, state.sent, state.identity, state.target,
            state.touched.words, np.uint64(state.first), *tally,
        )  # fmt: skip

    def note_found(self, state: DeviceState) -> None:
        """Remember who has a message now; `skip` then passes them over."""
        self._buffer("again", len(state.touched.words), np.uint32)[...] = state.touched.words

    def _passed(self, state: DeviceState, skip: int) -> tuple[Any, Any]:
        words = state.touched.words
        return np.int64(skip), self._buffer("again", len(words), np.uint32) if skip else words

    def keep_heads(self, view: View, index: Index, heads: RowPrefixCache) -> None:
        """Copy what the view holds of the heads of its rows."""
        self._call(
            "keep_heads", blocks_for(view.v1 - view.v0), self._edges_of(view), np.int64(view.e1), self._rows_of(view),
            self.placed(index).arrays, self.placed(heads.index).arrays, np.int64(heads.each), heads.neighbors,
        )  # fmt: skip

    def apply(self, state: DeviceState, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Turn combined messages into new values and the next pending vertices."""
        whole, words = frontier.everything, (state.touched.words, state.active.words, state.pending.words)
        blocks = self._blocks_of_all(state) if whole else blocks_for(len(words[0]))
        shares = self._shares_of(blocks)
        self._call(
            "apply", blocks, *words, np.bool_(whole), self.placed(index).arrays, state.arrays, scalars,
            state.incoming, state.identity, np.uint64(state.first), state.sent, shares,
        )  # fmt: skip
        if whole:
            state.sent_ahead = self._sending(scalars)
            state.touched.clear()
            self._fold(state, shares)

    def reduce(self, state: DeviceState, index: Index, scalars: tuple[Any, ...]) -> None:
        """Leave the Globals' values in `state.partial`."""
        count, blocks = state.last - state.first, self._blocks_of_all(state)
        shares = self._shares_of(blocks)
        self._call(
            "reduce", blocks, self.placed(index).arrays, state.arrays, scalars, np.uint64(count),
            np.uint64(state.first), shares,
        )  # fmt: skip
        self._fold(state, shares)

    def count_active(
        self, state: DeviceState, index: Index, sizes: tuple[int, int, int], table: NDArray[np.int64],
        chunks: NDArray[np.uint8],
    ) -> None:  # fmt: skip
        """Demand of a push: table int64[partitions * 3] (vertices, edges, lines), chunks uint8, both of the host."""
        counted = self._cleared(table, chunks)
        self._call(
            "count_active", blocks_for(len(state.active.words)), state.active.words, self.placed(index).arrays,
            np.uint64(state.first), tuple(np.int64(size) for size in sizes), *counted,
        )  # fmt: skip
        self._read(counted, (table, chunks))

    def add_pending(
        self, state: DeviceState, index: Index, scalars: tuple[Any, ...], partition_edges: int,
        values: NDArray[np.float64],
    ) -> None:  # fmt: skip
        """Add the active vertices' pending values to `values`, float64[partitions] of the host, where rows begin."""
        added = self._buffer("pending", len(values), np.float64)
        added[...] = 0
        self._call(
            "add_pending", blocks_for(len(state.active.words)), state.active.words, self.placed(index).arrays,
            state.arrays, scalars, np.uint64(state.first), np.int64(partition_edges), added,
        )  # fmt: skip
        self.device.copy_out(values, added, None)
        self.device.finish()

    def count_wanting(
        self, state: DeviceState, index: Index, scalars: tuple[Any, ...], sizes: tuple[int, int, int],
        table: NDArray[np.int64], chunks: NDArray[np.uint8], skip: int = 0,
    ) -> None:  # fmt: skip
        """Demand of a pull, as `count_active`; skip as in `pull`."""
        counted = self._cleared(table, chunks)
        count = state.last - state.first
        self._call(
            "count_wanting", blocks_for(count), np.uint64(count), self.placed(index).arrays, state.arrays, scalars,
            np.uint64(state.first), self._passed(state, skip), tuple(np.int64(size) for size in sizes), *counted,
        )  # fmt: skip
        self._read(counted, (table, chunks))

    def link_heads(self, view: View, state: DeviceState, index: Index, each: int) -> None:
        """Link the rows of the view with their first `each` neighbors."""
        self._call(
            "link_heads", blocks_for(view.v1 - view.v0), self._edges_of(view), np.int64(view.e1), self._rows_of(view),
            self.placed(index).arrays, np.int64(each), state.arrays[0], np.uint64(state.first),
        )  # fmt: skip

    def link_rows(
        self, view: View, state: DeviceState, index: Index, done_each: int, skipped: Any, symmetric: bool
    ) -> None:
        """Link the view's edges, less the first `done_each` of a row and those inside the tree `skipped`."""
        forest, known = (state.arrays[0], np.uint64(state.first)), self.placed(index)
        self._call(
            "link_rows", self._tiles(view), self._edges_of(view), np.int64(view.e1), self._rows_of(view), known.arrays,
            known.starts, np.int64(done_each), np.uint64(skipped), np.bool_(symmetric), *forest,
        )  # fmt: skip

    def mark_outside(self, state: DeviceState, index: Index, giant: Any) -> None:
        """Make pending every vertex that has edges and lies outside the tree `giant`; forest compressed."""
        self._call(
            "mark_outside", blocks_for(state.last - state.first), self.placed(index).arrays, state.arrays[0],
            np.uint64(giant), state.pending.words, np.uint64(state.first),
        )  # fmt: skip

    def link_listed(self, view: View, state: DeviceState, frontier: Frontier, index: Index, giant: Any) -> None:
        """Link the rows of the view that lie outside the tree `giant`, which are the frontier's."""
        if not frontier.listed:
            self.link_rows(view, state, index, 0, giant, True)
            return
        self._call(
            "link_listed", blocks_for(-(-state.lines // edges.RUN) * LANES), self._edges_of(view),
            np.int64(view.e1), self._rows_of(view), self.placed(index).arrays, np.int64(0), state.vertices, state.work,
            np.int64(frontier.vertices), state.arrays[0], np.uint64(state.first),
        )  # fmt: skip

    def join_forests(self, state: DeviceState, other: DeviceState) -> None:
        """Join in `state` what is joined in `other`."""
        self._call("merge_forests", blocks_for(state.last - state.first), state.arrays[0], other.arrays[0])

    def compress(self, state: DeviceState) -> None:
        """Let every vertex point to its root."""
        self._call("compress", blocks_for(state.last - state.first), state.arrays[0])

    def largest_tree(self, state: DeviceState) -> tuple[int, float]:
        """The root of (very likely) the largest tree, and about its share of the vertices; forest compressed."""
        forest = state.arrays[0]
        return most_frequent(self.device.to_host(forest[:: max(1, len(forest) // 4096)].copy()))

    def marks(self, state: DeviceState) -> NDArray[np.uint32]:
        """The bitmap of the active vertices, in host memory; valid until the next select."""
        return self._to_pinned("active", state.active.words)

    def _to_pinned(self, name: str, words: Any) -> NDArray[np.uint32]:
        """A bitmap in host memory, in the place of this name."""
        known = self._marks.get(name)
        if known is None or len(known) < len(words):
            known = self._marks[name] = self.device.host_array(len(words), np.uint32)
        self.device.copy_out(known[: len(words)], words, None)
        self.device.finish()
        return known[: len(words)]

    def mark(self, state: DeviceState, active: Any) -> None:
        """Make these vertices (integers of the host or the device, less `first`) pending."""
        positions = self.device.to_device(active).astype(np.uint64)
        self._call("mark_all", blocks_for(len(positions)), positions, state.pending.words)

    def _shares(self) -> Any:
        """Every thread's share of the Globals, at what changes nothing."""
        columns = max(1, len(self.author.totals))
        rows = most_blocks() * BLOCK if self.author.totals else 1
        shares = self._buffer("shares", rows * columns, np.float64).reshape(rows, columns)
        for column, value in enumerate(self.author.partial_start):
            shares[:, column] = float(value)
        return shares

    def _shares_of(self, blocks: int) -> Any:
        """Every block's share of the Globals, which the blocks write."""
        columns = max(1, len(self.author.totals))
        return self._buffer("shares of blocks", blocks * columns, np.float64).reshape(blocks, columns)

    def _fold(self, state: DeviceState, shares: Any) -> None:
        """Add these shares up, float64[any, globals], to be read in `state.partial`; does not wait."""
        if self.author.totals:
            self._call("fold", 1, shares, state.partial_here)
            state.adding = True

    def _sending(self, scalars: tuple[Any, ...]) -> tuple[float, ...] | None:
        """What `send` reads besides fields, where a sweep may do it for the next one; None where it may not."""
        return None if self._steady is None else tuple(float(scalars[at]) for at in self._steady)

    def _blocks_of_all(self, state: DeviceState) -> int:
        """Blocks for a loop over all vertices."""
        return blocks_for(state.last - state.first, many_blocks())

    def _cleared(self, table: NDArray[Any], chunks: NDArray[Any]) -> tuple[Any, Any]:
        counted = self._buffer("table", len(table), np.int64), self._buffer("chunks", len(chunks), np.uint8)
        for array in counted:
            array[...] = 0
        return counted

    def _read(self, counted: tuple[Any, Any], places: tuple[NDArray[Any], NDArray[Any]]) -> None:
        for source, target in zip(counted, places, strict=True):
            self.device.copy_out(target, source, None)
        self.device.finish()

    def _buffer(self, name: str, count: int, dtype: Any) -> Any:
        """Scratch of the device, kept from launch to launch."""
        known = self._buffers.get(name)
        if known is None or len(known) < count:
            if known is not None:
                self.device.free(known)
            known = self._buffers[name] = self.device.array(max(1, count), dtype)
            known[...] = 0
        return known[:count]

    def _tally(self, view: View) -> tuple[Any, Any]:
        """Whether a kernel counts the lines it reads, which is where they come over the link, and where it counts.

        The view's record hears of it after the next select, which brings the numbers along with its own.
        """
        tallies = self._buffer("tallies", TALLIES, np.int64)
        if view.record.route != "zero-copy":
            return np.bool_(False), tallies
        slot = min(len(self._waiting), TALLIES - 1)
        self._waiting.append((view.record, lines_of_run(view.neighbors)))
        return np.bool_(True), tallies[slot : slot + 1]

    def _told(self) -> tuple[Any, Any, Any, Any]:
        """Where a stretch says what it did: for the host and for the device; then its limits, likewise."""
        if self._spoken is None:
            most = 1 + 2 * stretches.MOST_ITERATIONS
            self._spoken = *self.device.shared_array(most, np.int64), *self.device.shared_array(2, np.float64)
        return self._spoken

    def _edges_of(self, view: View) -> tuple[Any, Any, Any]:
        weights = view.weights if self.weighted else self._buffer("no weights", 1, np.uint8)
        return view.neighbors, weights, np.int64(view.e0)

    def _rows_of(self, view: View) -> tuple[Any, Any]:
        return np.uint64(view.v0), np.uint64(view.v1)

    def _tiles(self, view: View) -> int:
        """Blocks for the tiles of a view."""
        return min(most_blocks(), tiles_of(view.e0, view.e1))

    def _runs(self, view: View) -> int:
        """Blocks for runs of neighboring tiles of a view: short ones, so that reading goes on ascending."""
        tiles = tiles_of(view.e0, view.e1)
        return -(-tiles // max(1, min(RUN_TILES, tiles // many_blocks())))

    def _call(self, name: str, blocks: int, *arguments_: Any) -> None:
        """Launch a kernel; explain what numba cannot compile."""
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = self._make(name)
        try:
            made(blocks, *arguments_)
        except (numba.core.errors.NumbaError, AttributeError, NotImplementedError) as error:
            # The second: a module lacks what is asked of it; the third: typed, but not for a GPU.
            raise InputError(explain(self.author.name, str(error))) from error

    def _make(self, name: str) -> Kernel:
        if name in _SHARED:
            return _SHARED[name]
        if name in ("stretch", "stretch apart"):
            return stretches.make_stretch(self.author, self.weighted, name == "stretch apart")
        if name == "pull":
            return cuda_pull.make_pull(self.author, self.weighted, self._uses_target)
        if name in _BY_EDGE:
            return _BY_EDGE[name](self.author, self.weighted)
        if name == "apply":
            return applies.make_apply(self.author, self._changing, self._steady is not None)
        return _BY_VERTEX[name](self.author)


def tiles_of(low: int, high: int) -> int:
    """Tiles that hold the edges, or places, [low, high)."""
    return (high - 1) // TILE - low // TILE + 1 if high > low else 0


def lines_of_run(neighbors: Any) -> int:
    """Lines of 128 bytes that an aligned run of LANES ids fills (one, too, under the simulator's short runs)."""
    return max(1, LANES * int(neighbors.dtype.itemsize) // LINE_BYTES)


_MADE: dict[str, dict[str, Kernel]] = {}
"""Kernels of this process by what they are made of, so that a second session does not compile them again."""
_BY_EDGE: dict[str, Callable[[Author, bool], Kernel]] = {
    "push_list": edges.make_push_list,
    "push_rows": edges.make_push_rows,
    "push_packed": cuda_packed.make_push_packed,
    "pull_first": cuda_pull.make_pull_first,
    "pull_first_here": partial(cuda_pull.make_pull_first, linked=False),
}
_BY_VERTEX: dict[str, Callable[[Author], Kernel]] = {
    "select": vertices.make_select,
    "send": applies.make_send,
    "reduce": applies.make_reduce,
    "fold": applies.make_fold,
    "count_wanting": cuda_demand.make_count_wanting,
    "take": cuda_rounds.make_take,
    "take_passed": cuda_passed.make_take_passed,
    "add_pending": cuda_demand.make_add_pending,
}
_SHARED: dict[str, Kernel] = {
    "mark_all": vertices.mark_all,
    "keep_heads": cuda_heads.keep_heads,
    "count_active": cuda_demand.count_active,
    "link_heads": forest_kernels.link_heads,
    "link_rows": forest_kernels.link_rows,
    "mark_outside": forest_kernels.mark_outside,
    "link_listed": forest_kernels.link_listed,
    "merge_forests": forest_kernels.merge_forests,
    "compress": forest_kernels.compress,
}
