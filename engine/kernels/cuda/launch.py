"""The kernels of one program on a GPU: the methods of `host/launch.py`, over a DeviceState.

Owns how work is cut for the device, and the few numbers that come back to the host: one small read after each
select, one after each demand. Everything else is only launched. Refuses programs with vector fields in messages by
way of numba's own word, translated by `explain`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from penstock.engine.kernels.cuda import demand, follow, fused, pull, push, union_find
from penstock.engine.kernels.cuda import frontier as frontier_kernels
from penstock.engine.kernels.cuda import push_replicas as replicas
from penstock.engine.kernels.cuda import unsettled as unsettled_kernels
from penstock.engine.kernels.cuda import vertices as vertex_kernels
from penstock.engine.kernels.cuda.driver import (
    BLOCK,
    LANES,
    TILE,
    DeviceKernel,
    blocks_for,
    blocks_together,
    compile_author,
    forget,
    loads,
    many_blocks,
    most_blocks,
    use,
)
from penstock.engine.kernels.cuda.work_queue import GROUP_SHIFT
from penstock.engine.kernels.host.launch import explain
from penstock.engine.kernels.host.union_find import most_frequent
from penstock.engine.kernels.hot_vertices import has_sums_apart, is_hot, pushes_many, sums_numbers
from penstock.engine.kernels.interface import EdgeView, VertexArrays
from penstock.engine.program.bindings import Author, bind
from penstock.engine.program.program import arguments, author_function, fields_of, functions_of
from penstock.engine.state.device_state import TALLIES, DeviceBitmap
from penstock.engine.state.fused_iterations import FusedLimits
from penstock.engine.state.state import MASKED, Frontier
from penstock.engine.state.state_arrays import StepValues
from penstock.storage.base.errors import InputError
from penstock.transfer.values.rates import LINE_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.kernels.cuda.launch_exchange import CudaExchangeKernels
    from penstock.engine.program.program import Program
    from penstock.engine.state.device_pages import DevicePages
    from penstock.engine.state.device_state import DeviceState
    from penstock.engine.state.row_prefix_cache import RowPrefixCache
    from penstock.storage.format.index import Index
    from penstock.transfer.values.task import TaskRecord
    from penstock.transfer.values.view import View

RUN_TILES = 8
"""Neighboring tiles that a block of a pull takes at most."""
RESENT = 256
"""Views of a walk whose edges sent again are counted each; those of more are with the last of them."""


@dataclass(frozen=True)
class DeviceIndex:
    """A row index on the device: `arrays` as kernels take them; `starts[t]`: the row of the first edge of tile t."""

    index: Index
    arrays: tuple[Any, Any, Any]
    starts: Any


class CudaKernels:
    """Compiled kernels for one program, vertex type and kind of weights, on one device.

    indexes: row indexes that are on the device already, by `id`; shared by all programs of a session.
    over_links: whether `fused_iterations` may read edges over a link. both_ways: whether it may push along two
    adjacencies. hot_first: whether the graph's first vertices have the most edges. picks: whether `in_window` picks
    edges.
    """

    over_links, both_ways, hot_first, picks = True, False, False, False

    def __init__(
        self, program: Program, vertex_dtype: Any, weighted: bool, device: Any, indexes: dict[int, DeviceIndex]
    ) -> None:
        self.author: Author = bind(program, vertex_dtype, compile_author, plain=False, weighted=weighted)
        self.device = device
        edge = author_function(program, "edge")
        names = () if edge is None else arguments(edge)
        self._uses_target = any(name == "target" or name.startswith("target_") for name in names)
        specs = fields_of(program).values()
        self._changing = None if any(spec.shape for spec in specs) else tuple(not spec.constant for spec in specs)
        self._steady = vertex_kernels.steady(program, self.author)
        self._fits = fused.fits(program, self.author)
        self._made = _MADE.setdefault(f"{self.author.key}{self.author.message}", {})
        self._indexes = indexes
        self._steps = StepValues.of(program)
        self._of_degree = {role for role, function in functions_of(program) if "degree" in arguments(function)}
        self._buffers: dict[str, Any] = {}
        self._marks: NDArray[np.uint32] | None = None
        self._shared: dict[int, tuple[Any, Any]] = {}
        self._exchanged: dict[tuple[Any, ...], Any] = {}
        self._readback: tuple[Any, Any, Any, Any] | None = None
        self._waiting: list[tuple[TaskRecord, int]] = []
        self._resent: tuple[Any, Any] | None = None
        self._followed: list[tuple[TaskRecord, TaskRecord]] = []

    def use(self) -> None:
        """Make the device the current one; call before a run of kernels."""
        use(self.device)

    def close(self) -> None:
        """Let go of everything on the device."""
        self._buffers.clear()
        forget()

    def exchange_kernels(self) -> CudaExchangeKernels:
        """Kernels by which ranks merge what they have found."""
        from penstock.engine.kernels.cuda.launch_exchange import CudaExchangeKernels

        return CudaExchangeKernels(self.device, self.author.combine, self._exchanged)

    def placed(self, index: Index, pages: DevicePages | None = None) -> DeviceIndex:
        """The index on the device, copied at its first use; pages: where its offsets are, if not all are there."""
        known = self._indexes if pages is None else pages.placed
        if id(index) not in known:
            tiles = -(-index.edges // TILE)
            starts = self.device.array(max(1, tiles), np.uint32 if index.vertices < 2**32 else np.uint64)
            bases = self.device.to_device(index.bases)
            offsets = self.device.to_device(index.arrays()[1]) if pages is None else pages.add_rows(index)
            known[id(index)] = found = DeviceIndex(index, (bases, offsets, np.uint64(index.shift)), starts)
            if pages is None:
                self._find_tiles(found, (0, index.vertices), (0, tiles))
        return known[id(index)]

    def _find_tiles(self, known: DeviceIndex, rows: tuple[int, int], tiles: tuple[int, int]) -> None:
        """Find the first row of some tiles among these rows."""
        rows_, tiles_ = tuple(map(np.uint64, rows)), tuple(map(np.int64, tiles))
        push.tile_rows(blocks_for(tiles[1] - tiles[0]), known.arrays, rows_, tiles_, known.starts)

    def _rows_of(self, view: View, state: DeviceState, index: Index) -> DeviceIndex:
        """The index on the device, with where the tiles of a view begin, whose rows are at hand."""
        known = self.placed(index, state.pages)
        if state.pages is not None:
            tiles = view.e0 // TILE, min(-(-view.e1 // TILE) + 1, len(known.starts))
            self._find_tiles(known, (view.v0, view.v1), tiles)
        return known

    def _parts(
        self, state: DeviceState, index: Index, marks: Collection[str] = (), *, rows: bool = True,
        values: Collection[str] = (), changes: Collection[str] = (), fresh: Collection[str] = (),
    ) -> Iterator[tuple[DeviceState, tuple[Any, Any, Any]]]:  # fmt: skip
        """The state, and the index as kernels take it; by pages, where a device has not all of them.

        marks: bitmaps of the state; pages with none of their bits are left out. rows: whether rows are needed. values,
        changes: arrays that are read, and written; fresh: those of which all is written.
        """
        pages = state.pages
        arrays = self.placed(index, pages).arrays
        if pages is None:
            yield state, arrays
            return
        small = pages.host.rows  # of which each window is a multiple
        marked = [getattr(state, name).spans_with_some(small) for name in marks]
        v1 = state.first
        while v1 < state.last:
            v0, v1 = v1, min((v1 // pages.rows + 1) * pages.rows, state.last)
            here = slice((v0 - state.first) // small, -(-(v1 - state.first) // small))
            if marked and not any(any(found[here]) for found in marked):
                continue
            until = min(v1 + pages.ahead * pages.rows, state.last)  # other windows come with their edges
            with state.held({*values, *changes}, v0, v1, changes, fresh, until, rows=index if rows else None):
                yield state.part(v0, v1), arrays

    def select(self, state: DeviceState, index: Index, scalars: tuple[Any, ...], limit: float) -> Frontier:
        """Move what is pending with a priority below `limit` into the frontier and list it."""
        if state.pages is not None:
            state.active.clear()  # of pages where nothing is pending
        found, edges, lines, rest, listed = 0, 0, 0, np.inf, 0
        for part, arrays in self._parts(state, index, ("pending",), values=self._steps.reads("priority")):
            words, base = len(part.active.words), np.uint64(part.first)
            blocks = -(-words // BLOCK)
            counts = self._buffer("counts", 3 * blocks, np.int64).reshape(3, blocks)
            rests = self._buffer("rests", blocks, np.float64)
            self._call(
                frontier_kernels.make_select, blocks, part.pending.words, part.active.words, arrays, part.arrays,
                scalars, np.float64(limit), base, counts, rests,
            )  # fmt: skip
            tallies, waiting = self._buffer("tallies", TALLIES, np.int64), np.int64(min(TALLIES, len(self._waiting)))
            frontier_kernels.sum_up(
                1, counts, rests, state.totals, state.device_readback, state.device_readback_rest, tallies, waiting,
                state.device_readback_lines,
            )  # fmt: skip
            if state.pages is None:
                frontier_kernels.enumerate_marked(
                    blocks, part.active.words, arrays, base, counts, state.totals, state.vertices, state.work
                )
            self.device.finish()
            for (record, each), runs in zip(self._waiting, state.host_readback_lines.tolist(), strict=False):
                record.lines_read += runs * each
            self._waiting.clear()
            self._note_resent()
            numbers = state.host_readback[:3].tolist()
            found, lines, edges = (sum(pair) for pair in zip((found, lines, edges), numbers, strict=True))
            rest = min(rest, float(state.host_readback_rest[0]))
        state.lines = lines
        listed = state.pages is None and 0 < found <= len(state.vertices)
        return Frontier(found, edges, listed=listed, rest=rest)

    def send(self, state: DeviceState, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Compute what the frontier's vertices send, if the program has `send` and `apply` has not done it."""
        whole, ahead, state.sent_ahead = frontier.everything, state.sent_ahead, None
        if self.author.has_send and not (whole and ahead is not None and ahead == self._sending(scalars)):
            read, sent = self._steps.reads("send"), self._steps.sends
            marks, fresh = (() if whole else ("active",)), sent - read if whole else frozenset[str]()
            rows = "send" in self._of_degree
            for part, arrays in self._parts(state, index, marks, rows=rows, values=read, changes=sent, fresh=fresh):
                blocks = self._blocks_of_all(part) if whole else blocks_for(len(part.active.words))
                self._call(
                    vertex_kernels.make_send, blocks, part.active.words, np.bool_(whole), arrays, part.arrays, scalars,
                    part.sent, np.uint64(part.first),
                )  # fmt: skip
        if self.author.in_place and state.pages is None:
            self.empty(state)

    def empty(self, state: DeviceState) -> None:
        """Let messages be combined with nothing."""
        state.target[...] = state.identity

    def push(self, view: View, state: DeviceState, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Send along the frontier's out-edges that the view holds; of a compacted view, along all of them."""
        self._push(view, state, frontier, self._rows_of(view, state, index), scalars)

    def _push(
        self, view: View, state: DeviceState, frontier: Frontier, known: DeviceIndex, scalars: tuple[Any, ...]
    ) -> None:
        """Push along rows that are at hand."""
        index, edges = known.index, self._edges_of(view)
        values = state.arrays, scalars, _vertices_of(state)
        active = state.active.words, np.bool_(frontier.everything)
        if view.rows is not None:
            self._call(
                push.make_push_compacted, self._tiles(view), edges, view.rows, view.offsets, known.arrays, *values
            )
        elif self.hot_first and self._keeps_sums(view, state, frontier, index):
            self.push_replicas(view, state, frontier, index, scalars)
        elif frontier.listed:
            self._call(
                push.make_push_list, self._blocks_of_lines(state), edges, known.arrays, self._listed(state, frontier),
                *values, self._tally(view),
            )  # fmt: skip
        else:
            self._call(push.make_push_rows, self._tiles(view), edges, known.arrays, known.starts, *active, *values)

    def push_replicas(
        self, view: View, state: DeviceState, frontier: Frontier, index: Index, scalars: tuple[Any, ...]
    ) -> None:
        """Push over rows, with the sums of the first vertices kept by each block; see `push_replicas.py`."""
        known = self.placed(index)
        self._call(
            replicas.make_push_rows_replicas, min(replicas.blocks_of(self.author), self._tiles(view)),
            self._edges_of(view), known.arrays, known.starts, state.active.words, np.bool_(frontier.everything),
            state.arrays, scalars, _vertices_of(state),
        )  # fmt: skip

    def _keeps_sums(self, view: View, state: DeviceState, frontier: Frontier, index: Index) -> bool:
        """Whether blocks keep the sums of the first vertices: many messages of which many go there."""
        if not (sums_numbers(self.author) and has_sums_apart(state)):
            return False
        least, kept = replicas.least_edges(self.author), replicas.kept_sums(self.author)
        return pushes_many(view, frontier, least) and is_hot(index, kept)

    def unmark_sent(self, view: View, state: DeviceState, frontier: Frontier, index: Index) -> None:
        """Let nothing be pending of what the frontier sends along the whole rows of the view."""
        self._call(
            frontier_kernels.unmark_sent, blocks_for((view.v1 - view.v0) // 32 + 2), state.pending.words,
            state.active.words, np.bool_(frontier.everything), self.placed(index).arrays, self._edges_of(view),
            np.uint64(state.first),
        )  # fmt: skip

    def push_resend(
        self, view: View, state: DeviceState, frontier: Frontier, index: Index, scalars: tuple[Any, ...],
        due: tuple[float, int], followed: TaskRecord,
    ) -> None:  # fmt: skip
        """Send again, some rounds, from what has become pending since and has all its edges in the view.

        The host does not wait for how much that is, which the records get after the next select.
        """
        if self._resent is None:
            self._resent = self.device.shared_array(2 * RESENT, np.int64)
        limit, rounds = due
        at = 2 * min(len(self._followed), RESENT - 1)
        self._followed.append((view.record, followed))
        first = frontier.vertices + 1 if frontier.listed else 0
        control = self._buffer("control of rounds", 2 + 14, np.int64)
        self._call(
            follow.make_follow, blocks_together(), self._edges_of(view), self.placed(index).arrays, state.pending.words,
            (state.vertices[first:], state.work[first:]), control[:2], control[2:], np.int64(rounds), np.float64(limit),
            state.arrays, scalars, _vertices_of(state), self._resent[1][at : at + 2],
        )  # fmt: skip

    def _note_resent(self) -> None:
        """Tell records how much was sent once more, which kernels have left in host memory."""
        if self._followed and self._resent is not None:
            counts = self._resent[0].reshape(-1, 2).tolist()
            for (record, followed), (vertices, edges) in zip(self._followed, counts, strict=False):
                followed.rows += vertices
                followed.edges += edges
                record.resent += edges
            self._resent[0][:] = 0
            self._followed.clear()

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

    def can_fuse(self, frontier: Frontier) -> bool:
        """Whether `fused_iterations` serves the program, and this frontier, if all edges are on the device."""
        pieces = frontier.vertices + (frontier.edges >> int(GROUP_SHIFT))
        few = frontier.edges <= fused.MOST_EDGES and pieces <= fused.MOST_PIECES
        return self._fits and frontier.listed and few

    def fused_iterations(
        self,
        view: View,
        state: DeviceState,
        frontier: Frontier,
        index: Index,
        scalars: tuple[Any, ...],
        bounds: FusedLimits,
        against: tuple[View, Index] | None = None,
    ) -> tuple[NDArray[np.int64], float]:
        """Run iterations from this frontier on, along all edges of a resident adjacency, in one launch."""
        apart, (readback, readback_here, limit, limit_here) = state.incoming is not None, self._fused_readback()
        counts = fused.COUNTS
        control, lowest = self._buffer("control", 2 * counts, np.int64), self._buffer("lowest", 3, np.float64)
        control[...] = 0
        lowest[...] = np.inf
        most = min(bounds.iterations, fused.MOST_ITERATIONS)
        numbers = most, min(bounds.edges, fused.MOST_EDGES), bounds.alpha, bounds.unexplored, bounds.before
        room = min(fused.MOST_PIECES, index.vertices + (index.edges >> int(GROUP_SHIFT)) + 1)
        pieces = self._buffer("owners", room, np.uint64), self._buffer("firsts", room, np.int64)
        joiners = self._buffer("joiners", min(fused.MOST_EDGES, index.edges + 1), np.int64)
        marks = state.pending.words, self._buffer("joined", len(state.pending.words), np.uint32)
        self._call(
            (fused.make_fused_iterations, apart), blocks_together(), self._edges_of(view),
            self.placed(index).arrays, (state.vertices, np.int64(frontier.vertices)),
            tuple(np.int64(number) for number in numbers), (np.float64(bounds.limit), np.float64(bounds.bucket)), marks,
            (pieces, joiners), (control[:1], control[counts:], lowest), (state.arrays, _vertices_of(state)),
            scalars, (state.identity, self._shares()), (readback_here, limit_here),
        )  # fmt: skip
        self.device.finish()
        done = np.array(readback[1 : 1 + 2 * int(readback[0])], dtype=np.int64).reshape(-1, 2)
        return done, max(limit[0], np.nextafter(limit[1], np.inf))

    def pull(
        self, view: View, state: DeviceState, frontier: Frontier, indices: tuple[Index, Index],
        scalars: tuple[Any, ...], skip: int = 0,
    ) -> None:  # fmt: skip
        """Gather along the in-edges that the view holds, never compacted; `indices`: of the in-, of the out-adjacency.

        skip: of every row, this many edges have been looked at before (early exit only).
        """
        assert view.rows is None, "views are compacted for pushes only"
        known = self._rows_of(view, state, indices[0]), self.placed(indices[1], state.pages)
        self._pull(view, state, frontier, known, scalars, skip)

    def _pull(
        self, view: View, state: DeviceState, frontier: Frontier, known: tuple[DeviceIndex, DeviceIndex],
        scalars: tuple[Any, ...], skip: int,
    ) -> None:  # fmt: skip
        """Gather along rows that are at hand."""
        into, out = known
        sources = out.arrays, state.active.words, np.bool_(frontier.everything)
        common = into.arrays, into.starts, sources, state.arrays, scalars, state.identity, _vertices_of(state)
        if self.author.early_exit:
            kernel = pull.make_pull_first, bool(skip or view.record.route == "zero-copy")
            skipped = self._skipped(state, skip)
            self._call(kernel, self._tiles(view), self._edges_of(view), skipped, *common, self._tally(view))
            return
        if view.record.route == "zero-copy":
            runs = (view.e1 - 1) // LANES - view.e0 // LANES + 1
            view.record.lines_read += runs * lines_of_run(view.neighbors)
        self._call((pull.make_pull, self._uses_target), self._runs(view), self._edges_of(view), *common)

    def relax_unsettled(self, view: View, state: DeviceState, index: Index, scalars: tuple[Any, ...]) -> None:
        """Relax the view's rows of unsettled vertices both ways, from who is pending or active."""
        known = self.placed(index)
        self._call(
            unsettled_kernels.make_relax_unsettled, self._tiles(view), self._edges_of(view), known.arrays, known.starts,
            state.active.words, state.arrays, scalars, _vertices_of(state),
        )  # fmt: skip

    def record_matched(self, state: DeviceState) -> None:
        """Remember who has a message now; `skip` then passes them over."""
        self._buffer("resend", len(state.touched.words), np.uint32)[...] = state.touched.words

    def _skipped(self, state: DeviceState, skip: int) -> tuple[Any, Any]:
        words = state.touched.words
        return np.int64(skip), self._buffer("resend", len(words), np.uint32) if skip else words

    def cache_row_prefixes(self, view: View, index: Index, heads: RowPrefixCache) -> None:
        """Copy what the view holds of the heads of its rows."""
        self._call(
            demand.cache_row_prefixes, blocks_for(view.v1 - view.v0), self._edges_of(view), self.placed(index).arrays,
            self.placed(heads.index).arrays, np.int64(heads.each), heads.neighbors,
        )  # fmt: skip

    def apply(self, state: DeviceState, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Turn combined messages into new values and the next pending vertices."""
        whole, paged = frontier.everything, state.pages is not None
        rows, changing = not self._of_degree.isdisjoint(("vertex", "active", "global")), self._steps.changing
        values, kept = self._steps.applies(state.messages), {state.messages} - self._steps.emptied(state.messages)
        marks = () if whole else ("touched", "active")
        ahead = self._steady is not None and not paged  # other windows may still wait for what was sent
        shares = self._shares_of(state)
        for part, arrays in self._parts(state, index, marks, rows=rows, values=values, changes=changing | kept):
            words = part.touched.words, part.active.words, part.pending.words
            mine = self._own_shares(part, shares)
            blocks = len(mine) if whole else blocks_for(len(words[0]))
            self._call(
                (vertex_kernels.make_apply, self._changing, ahead), blocks, *words, np.bool_(whole), arrays,
                part.arrays, scalars, part.incoming, part.identity, np.uint64(part.first), part.sent, mine,
            )  # fmt: skip
        if whole:
            state.sent_ahead = self._sending(scalars) if ahead else None
            state.touched.clear()
            self._fold(state, shares)

    def reduce(self, state: DeviceState, index: Index, scalars: tuple[Any, ...]) -> None:
        """Leave the Globals' values in `state.partial`."""
        shares, values = self._shares_of(state), self._steps.changing | self._steps.reads("global")
        for part, arrays in self._parts(state, index, rows="global" in self._of_degree, values=values):
            mine, count, base = self._own_shares(part, shares), np.uint64(part.last - part.first), np.uint64(part.first)
            self._call(vertex_kernels.make_reduce, len(mine), arrays, part.arrays, scalars, count, base, mine)
        self._fold(state, shares)

    def count_active(
        self, state: DeviceState, index: Index, sizes: tuple[int, int, int], table: NDArray[np.int64],
        chunks: NDArray[np.uint8], blocks: Any = None,
    ) -> None:  # fmt: skip
        """Demand of a push: see `Kernels`; table and chunks are the host's, blocks the device's."""
        counted = self._cleared(table, chunks)
        blocks = self._blocks(blocks)
        for part, arrays in self._parts(state, index, ("active",)):
            words = part.active.words
            self._call(
                demand.count_active, blocks_for(-(-len(words) // demand.WORDS_EACH)), words, arrays,
                np.uint64(part.first), tuple(np.int64(size) for size in sizes), *counted, blocks,
            )  # fmt: skip
        self._read(counted, (table, chunks))

    def add_pending(
        self, state: DeviceState, index: Index, scalars: tuple[Any, ...], partition_edges: int,
        values: NDArray[np.float64],
    ) -> None:  # fmt: skip
        """Add the active vertices' pending values to `values`, float64[partitions] of the host, where rows begin."""
        added = self._buffer("pending", len(values), np.float64)
        added[...] = 0
        for part, arrays in self._parts(state, index, ("active",), values=self._steps.reads("pending")):
            self._call(
                demand.make_add_pending, blocks_for(len(part.active.words)), part.active.words, arrays, part.arrays,
                scalars, np.uint64(part.first), np.int64(partition_edges), added,
            )  # fmt: skip
        self.device.copy_out(values, added, None)
        self.device.finish()

    def count_cond(
        self, state: DeviceState, index: Index, scalars: tuple[Any, ...], sizes: tuple[int, int, int],
        table: NDArray[np.int64], chunks: NDArray[np.uint8], skip: int = 0, blocks: Any = None,
        function: str = "cond",
    ) -> None:  # fmt: skip
        """Demand of a pull, as `count_active`; skip and function as `Kernels` says."""
        counted = self._cleared(table, chunks)
        blocks = self._blocks(blocks)
        for part, arrays in self._parts(state, index, values=self._steps.reads(function)):
            count = part.last - part.first
            self._call(
                (demand.make_count_cond, function), blocks_for(-(-count // demand.VERTICES_EACH)), np.uint64(count),
                arrays, part.arrays, scalars, np.uint64(part.first), self._skipped(part, skip),
                tuple(np.int64(size) for size in sizes), *counted, blocks,
            )  # fmt: skip
        self._read(counted, (table, chunks))

    def link_first_neighbors(self, view: View, state: DeviceState, index: Index, each: int) -> None:
        """Link the rows of the view with their first `each` neighbors."""
        self._call(
            union_find.link_first_neighbors, blocks_for(view.v1 - view.v0), self._edges_of(view),
            self.placed(index).arrays, np.int64(each), state.arrays[0], np.uint64(state.first),
        )  # fmt: skip

    def link_rows(
        self, view: View, state: DeviceState, index: Index, done_each: int, skipped: Any, symmetric: bool
    ) -> None:
        """Link the view's edges, less the first `done_each` of a row and those inside the tree `skipped`."""
        forest, known = (state.arrays[0], np.uint64(state.first)), self.placed(index)
        self._call(
            union_find.link_rows, self._tiles(view), self._edges_of(view), known.arrays, known.starts,
            np.int64(done_each), np.uint64(skipped), np.bool_(symmetric), *forest,
        )  # fmt: skip

    def mark_outside(self, state: DeviceState, index: Index, largest: Any, own: tuple[int, int]) -> None:
        """Make pending every vertex of `own` that has edges and is not in the tree `largest`; these compressed."""
        self._call(
            union_find.mark_outside, blocks_for(own[1] - own[0]), self.placed(index).arrays, state.arrays[0],
            np.uint64(largest), *map(np.uint64, own), state.pending.words, np.uint64(state.first),
        )  # fmt: skip

    def link_listed(self, view: View, state: DeviceState, frontier: Frontier, index: Index, largest: Any) -> None:
        """Link the rows of the view that lie outside the tree `largest`, which are the frontier's."""
        if not frontier.listed:
            self.link_rows(view, state, index, 0, largest, True)
            return
        self._call(
            union_find.link_listed, self._blocks_of_lines(state), self._edges_of(view), self.placed(index).arrays,
            self._listed(state, frontier), state.arrays[0], np.uint64(state.first),
        )  # fmt: skip

    def linked_outside(self, state: DeviceState, own: tuple[int, int], span: tuple[int, int]) -> Any:
        """The vertices of a span outside `own` that are no roots, and their parents behind; the host waits for it."""
        forest = state.arrays[0]
        marks = DeviceBitmap(self.device, state.last)
        self._call(union_find.mark_linked, blocks_for(len(marks.words)), forest, *map(np.int64, own), marks.words)
        lists = self.exchange_kernels()
        count = lists.marked(marks, span)
        pairs = self.device.array(2 * count, forest.dtype)
        lists.listed(marks, span, count, forest, pairs[:count], pairs[count:])
        return pairs

    def link_pairs(self, state: DeviceState, pairs: Any) -> None:
        """Link vertices of the first half of `pairs` with those of the second."""
        self._call(union_find.link_pairs, blocks_for(len(pairs) // 2), state.arrays[0], pairs)

    def compress(self, state: DeviceState, own: tuple[int, int] | None = None) -> None:
        """Let every vertex, or those of `own`, point to its root."""
        first, last = own or (0, state.last - state.first)
        self._call(union_find.compress, blocks_for(last - first), np.uint64(first), np.uint64(last), state.arrays[0])

    def largest_tree(self, state: DeviceState, own: tuple[int, int] | None = None) -> tuple[int, float]:
        """The root of (very likely) the largest tree, and about its share of vertices, as in `Kernels`."""
        forest = state.arrays[0]
        first, last = own or (0, len(forest))
        step = max(1, (last - first) // 4096)
        sample = self.device.to_host(forest[first:last:step].copy())
        if own is not None:
            sample = sample[sample != np.arange(first, last, step)]
        return most_frequent(sample)

    def marks(self, state: DeviceState) -> NDArray[np.uint32]:
        """The bitmap of the active vertices, in host memory; valid until the next select."""
        words, known = state.active.words, self._marks
        if known is None or len(known) < len(words):
            known = self._marks = self.device.host_array(len(words), np.uint32)
        self.device.copy_out(known[: len(words)], words, None)
        self.device.finish()
        return known[: len(words)]

    def mark(self, state: DeviceState, active: Any) -> None:
        """Make these vertices (integers of the host or the device, less `first`) pending, or those of a mask."""
        if active.dtype == np.bool_:
            for first in range(0, len(active), MASKED):
                part = active[first : first + MASKED]
                if not isinstance(part, np.ndarray):  # of the device
                    self.mark(state, np.flatnonzero(part) + first)
                    continue
                bits = np.packbits(part, bitorder="little")
                words = np.zeros(-(-len(bits) // 4), np.uint32)
                words.view(np.uint8)[: len(bits)] = bits
                state.pending.words[first // 32 : first // 32 + len(words)] |= self.device.to_device(words)
            return
        positions = self.device.to_device(active).astype(np.uint64)
        self._call(frontier_kernels.mark_all, blocks_for(len(positions)), positions, state.pending.words)

    def _shares(self) -> Any:
        """Every thread's share of the Globals, at what changes nothing."""
        columns = max(1, len(self.author.totals))
        rows = most_blocks() * BLOCK if self.author.totals else 1
        shares = self._buffer("shares", rows * columns, np.float64).reshape(rows, columns)
        for column, value in enumerate(self.author.partial_start):
            shares[:, column] = float(value)
        return shares

    def _shares_of(self, state: DeviceState) -> Any:
        """The share of the Globals of every block of a loop over all vertices, page after page, which blocks write."""
        blocks, pages, columns = self._blocks_of_all(state), state.pages, max(1, len(self.author.totals))
        if pages is not None:
            blocks = -(-pages.vertices // pages.host.rows) * self._blocks_of_page(pages)
        return self._buffer("shares of blocks", blocks * columns, np.float64).reshape(blocks, columns)

    def _own_shares(self, part: DeviceState, shares: Any) -> Any:
        """Those of the blocks of a page, or of all."""
        if part.pages is None:
            return shares
        each, size = self._blocks_of_page(part.pages), part.pages.host.rows
        mine = shares[part.first // size * each : -(-part.last // size) * each]
        for column, value in enumerate(self.author.partial_start):
            mine[:, column] = float(value)  # of the blocks of the other pages of the host in it
        return mine[:each]

    def _blocks_of_page(self, pages: DevicePages) -> int:
        """Blocks of a loop over a page of the device, in the shares of the first of the host's pages in it."""
        return blocks_for(pages.host.rows, many_blocks())

    def _fold(self, state: DeviceState, shares: Any) -> None:
        """Add these shares up, float64[any, globals], to be read in `state.partial`; does not wait."""
        if self.author.totals:
            self._call(vertex_kernels.make_fold, 1, shares, state.partial_here)
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

    def _blocks(self, blocks: Any) -> Any:
        """The bitmap of wanted blocks, cleared; an empty one where none is asked for."""
        if blocks is None:
            return self._buffer("no blocks", 1, np.uint32)[:0]
        blocks[...] = 0
        return blocks

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

    def _fused_readback(self) -> tuple[Any, Any, Any, Any]:
        """Where fused iterations report what they did: for the host and for the device; then its limits, likewise."""
        if self._readback is None:
            most = 1 + 2 * fused.MOST_ITERATIONS
            self._readback = *self.device.shared_array(most, np.int64), *self.device.shared_array(2, np.float64)
        return self._readback

    def _edges_of(self, view: View) -> EdgeView:
        weights = view.weights if self.author.weighted else self._buffer("no weights", 1, np.uint8)
        bounds = np.int64(view.e0), np.int64(view.e1), np.uint64(view.v0), np.uint64(view.v1)
        return EdgeView(view.neighbors, weights, *bounds)

    def _listed(self, state: DeviceState, frontier: Frontier) -> tuple[Any, Any, np.int64]:
        """The frontier's list: its vertices, the running sum of their lines, how many there are."""
        return state.vertices, state.work, np.int64(frontier.vertices)

    def _blocks_of_lines(self, state: DeviceState) -> int:
        """Blocks for the lines of the frontier's list."""
        return blocks_for(-(-state.lines // push.RUN) * LANES)

    def _tiles(self, view: View) -> int:
        """Blocks for the tiles of a view."""
        return min(most_blocks(), tiles_of(view.e0, view.e1))

    def _runs(self, view: View) -> int:
        """Blocks for runs of neighboring tiles of a view: short ones, so that reading goes on ascending."""
        tiles = tiles_of(view.e0, view.e1)
        return -(-tiles // max(1, min(RUN_TILES, tiles // many_blocks())))

    def _call(self, kernel: Any, blocks: int, *arguments_: Any) -> None:
        """Launch a kernel: one that all programs share, or what makes it of the author, alone or before its options.

        Explains what numba cannot compile.
        """
        made = self._made.get(kernel)
        if made is None:
            made = kernel
            if not isinstance(kernel, DeviceKernel):
                make, *options = kernel if isinstance(kernel, tuple) else (kernel,)
                made = make(self.author, *options)
            self._made[kernel] = made
        try:
            made(blocks, *arguments_)
        except (numba.core.errors.NumbaError, AttributeError, NotImplementedError) as error:
            # The second: a module lacks what is asked of it; the third: typed, but not for a GPU.
            raise InputError(explain(self.author.name, str(error))) from error


def _vertices_of(state: DeviceState) -> VertexArrays:
    words = state.touched.words
    return VertexArrays(state.sent, state.target, words, words, np.uint64(state.first))


def tiles_of(low: int, high: int) -> int:
    """Tiles that hold the edges, or places, [low, high)."""
    return (high - 1) // TILE - low // TILE + 1 if high > low else 0


def lines_of_run(neighbors: Any) -> int:
    """Lines of 128 bytes that an aligned run of LANES ids fills (one, too, under the simulator's short runs)."""
    return max(1, LANES * int(neighbors.dtype.itemsize) // LINE_BYTES)


_MADE: dict[str, dict[Any, DeviceKernel]] = {}
"""Kernels of this process by what they are made of, so that a second session does not compile them again."""
