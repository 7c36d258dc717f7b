"""The kernels of one program on the CPU cores: Numba, parallel over edges.

Owns how work is cut for the host. `reference/` has the same methods in plain Python and defines the answers; `cuda/`
has them for a GPU (`interface.py` lists them). Each kernel is compiled at its first use and cached. Only one thread of
a process may call them at a time, which Numba's workqueue threading layer requires.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from penstock.engine.kernels import hot_vertices
from penstock.engine.kernels.host import demand, due, early_pull, fused, packed_sweep, pull, push, union_find
from penstock.engine.kernels.host import frontier as frontier_kernels
from penstock.engine.kernels.host import group_sources as grouping
from penstock.engine.kernels.host import vertices as vertex_kernels
from penstock.engine.kernels.host.jit import JitKernel, compile_author, inline, use_workers
from penstock.engine.kernels.host.launch_exchange import HostExchangeKernels
from penstock.engine.kernels.host.vertices import fill
from penstock.engine.kernels.hot_vertices import has_sums_apart, is_hot, pushes_many, sums_numbers
from penstock.engine.kernels.interface import SCRATCH, STEP_EDGES
from penstock.engine.program.bindings import Author, bind
from penstock.engine.program.program import arguments, functions_of
from penstock.engine.program.program_description import describe_program, described_program
from penstock.engine.state.fused_iterations import FusedLimits
from penstock.engine.state.state import Frontier
from penstock.engine.state.state_arrays import StepValues
from penstock.storage.base.errors import InputError
from penstock.storage.base.kernel_loading import signature_of
from penstock.storage.encoding.packed_store import malformed

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.kernels.interface import OpenPairs
    from penstock.engine.program.program import Program
    from penstock.engine.state.grouped_sources import GroupedSources
    from penstock.engine.state.row_prefix_cache import RowPrefixCache
    from penstock.engine.state.state import Bitmap, State
    from penstock.engine.state.unmatched_rows import UnmatchedRows
    from penstock.storage.format.index import Index
    from penstock.transfer.values.task import TaskRecord
    from penstock.transfer.values.view import View

LARGEST_BLOCK = 65536
SMALLEST_BLOCK = 2048
SMALL = 1 << 14  # edges (or vertices) below which one thread is faster than waking several
PIECES = 8  # of a selection, for each thread
FEW_WORDS = 1 << 12  # of a bitmap that one thread looks through sooner than several wake up
SPAN = int(demand.SPAN)
NO_WEIGHTS = np.zeros(1, dtype=np.uint8)
IsWanted = Callable[["State"], bool]
Vertices = tuple[int, int]
"""The first, and the first that is not meant."""
Used = tuple[frozenset[str], frozenset[str], frozenset[str]]
"""Arrays of values that a step reads, those that it writes, and those of which it writes all."""
NONE = frozenset[str]()
NOTHING: Used = NONE, NONE, NONE


def _bitmap(marks: Bitmap) -> tuple[Any, Any]:
    """The two arrays of a bitmap: one bit per vertex, one summary bit per word."""
    return marks.words, marks.summary


def _is_active(part: State) -> bool:
    """Whether a part of the state has active vertices."""
    return bool(part.active.words.any())


def _is_reached(part: State) -> bool:
    """Whether a part of the state has active vertices, or some that messages have reached."""
    return _is_active(part) or bool(part.touched.words.any())


def _vertices_of(state: State) -> tuple[Any, ...]:
    """The parts of `VertexArrays`."""
    return state.sent, state.target, state.touched.words, state.touched.summary, np.uint64(state.first)


def kernel_index(index: Index) -> tuple[Any, Any, Any]:
    """An index as kernels take it: bases, offsets, shift. The rows that they ask for are at hand (`Index.parts`)."""
    return index.bases, index.offsets, np.uint64(index.shift)


def _span(vertices: Vertices) -> tuple[Any, Any]:
    return np.uint64(vertices[0]), np.uint64(vertices[1])


def own_index(offsets: NDArray[Any]) -> tuple[Any, Any, Any]:
    """The offsets of a view's rows, as kernels take an index."""
    return NO_BASES, offsets, np.uint64(63)


class HostKernels:
    """Compiled kernels for one program, vertex type and kind of weights, on `threads` threads.

    over_links: whether `fused_iterations` may read edges over a link: not here, for an emulated link could not count
    them. both_ways: whether it may push along two adjacencies. loads: always 0; on a GPU, the kernels compiled or
    loaded so far. all_threads: those of all ranks together, by which edges are cut into blocks. `state.walked` is about
    how many edges and vertices the iteration walks; where it is below SMALL, most kernels run on one thread. hot_first:
    whether the graph's first vertices have the most edges. picks: whether `in_window` picks edges. phases: how many the
    run has, as far as is known.
    """

    over_links, both_ways, hot_first, picks = False, True, False, True
    loads = phases = 0

    def __init__(
        self, program: Program, vertex_dtype: Any, weighted: bool, threads: int, all_threads: int | None = None
    ) -> None:
        compiler = inline if program.combine == "merge" else compile_author
        self.author: Author = bind(program, vertex_dtype, compiler, plain=False, weighted=weighted)
        self._program, self._vertex_dtype = program, np.dtype(vertex_dtype)
        self._steps = StepValues.of(program)
        self._window_rows: demand.WindowRows | None = None
        self.threads = min(threads, int(numba.config.NUMBA_NUM_THREADS))
        self.all_threads = all_threads or self.threads
        self._fusable = fused.fits(program, self.author)
        self._steady = due.is_steady(program, self.author)
        self._small_pushes = 0  # list pushes on one thread so far; `can_fuse` waits for some
        self._made = _MADE.setdefault(self.author.key, {})
        self._scratch = np.zeros((0, SCRATCH), vertex_dtype)
        self._of_degree = {role for role, function in functions_of(program) if "degree" in arguments(function)}

    def use(self) -> None:
        """Take the threads that this device may use; call before a run of kernels. Raises as `use_workers`."""
        use_workers(self.threads)

    def _parts(
        self, state: State, index: Index, is_wanted: IsWanted | None = None, *, rows: bool = True,
        used: Used = NOTHING,
    ) -> Iterator[State]:  # fmt: skip
        """The state; in parts, one after the other, where an index or a state has not all at hand, each with its rows.

        is_wanted: whether a part needs rows or values, None: each does. rows: whether rows are needed.
        """
        values, changes, fresh = used
        indexed, paged = index.pages if rows else None, state.pages if values or changes else None
        if indexed is None and paged is None:
            yield state
            return
        values |= changes
        if self._steady:
            state.lows  # noqa: B018 (parts of it are taken)
        step = paged.rows if paged is not None else 1
        if index.pages is not None:
            step = index.pages.together if paged is None else paged.range_of(index.pages)
        for first in range(state.first - state.first % step, state.last, step):
            v0, v1 = max(first, state.first), min(first + step, state.last)
            part = state.part(v0, v1)
            if is_wanted is not None and not is_wanted(part):
                yield part
                continue
            at_hand = nullcontext() if indexed is None else indexed.held(indexed.of_rows(v0, v1))
            with at_hand, state.held(values, v0, v1, changes, fresh, min(v1 + step, state.last)):
                yield part

    def select(self, state: State, index: Index, scalars: tuple[Any, ...], limit: float) -> Frontier:
        """Move what is pending with a priority below `limit` into the frontier and list it."""
        small = state.walked < SMALL and (limit == state.selected_below or len(state.pending.words) < FEW_WORDS)
        state.selected_below = limit
        steady, plain = due.make_select_due, frontier_kernels.make_select
        rows = state.compacted is None  # else edges are not counted
        found, edges, low, listed = 0, 0, np.inf, rows

        def is_looked_at(part: State) -> bool:
            if not self._steady:
                return bool(part.pending.words.any())
            waiting, _, lows = part.lows
            return bool(part.pending.summary.any() or (lows[waiting != 0] < limit).any())

        for part in self._parts(state, index, is_looked_at, rows=rows, used=self._read(state, "priority")):
            pending, active, arrays, base = part.pending, part.active, kernel_index(index), np.uint64(part.first)
            pieces = 1 if small else min(self.threads * PIECES, len(pending.summary))
            counts, rest = np.zeros((pieces, 2), dtype=np.int64), np.empty(pieces, dtype=np.float64)
            marks, lows = (active.words, active.summary), (part.lows,) if self._steady else ()
            values = (part.arrays, scalars) if self.author.has_priority else ((), ())
            self._call(
                steady if self._steady else plain, small, pieces, pending.words, pending.summary, *marks, *lows, arrays,
                *values, limit, base, counts, rest,
            )  # fmt: skip
            vertices, more = (counts[0] if pieces == 1 else counts.sum(axis=0)).tolist()
            low = min(low, float(rest[0] if pieces == 1 else rest.min()))
            listed = listed and found + vertices < len(state.work)
            if vertices and listed:
                work = state.work[found:]  # the running sum of the listed vertices' edges
                listing = arrays, base, counts, state.vertices[found:], work
                self._call(frontier_kernels.enumerate_marked, small, pieces, *marks, *listing)
                if edges:  # of parts before
                    work[: vertices + 1] += edges
            found, edges = found + vertices, edges + more
        return Frontier(found, edges if rows else 0, listed=listed and found > 0, rest=low)

    def can_fuse(self, frontier: Frontier) -> bool:
        """Whether `fused_iterations` serves the program, and this frontier, if all edges are in memory."""
        few = max(frontier.edges, frontier.vertices) <= fused.MOST_EDGES
        many = self._small_pushes + self.phases >= fused.PATIENCE or self._fused  # each phase begins with a small one
        return self._fusable and frontier.listed and few and many

    @property
    def _fused(self) -> bool:
        """Whether a kernel for fused iterations is loaded in this process."""
        made = (kernel for key, kernel in self._made.items() if isinstance(key, tuple) and key[0] in _FUSED)
        return any(kernel.is_loaded for kernel in made)

    def fused_iterations(
        self, view: View, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...], bounds: FusedLimits,
        against: tuple[View, Index] | None = None,
    ) -> tuple[NDArray[np.int64], float]:  # fmt: skip
        """Run iterations from this frontier on, along all edges of a resident adjacency or of two, in one call."""
        apart, both = state.incoming is not None, against is not None
        by_bucket = fused.by_bucket(self.author, apart=apart)
        shared = self.threads >= fused.LEAST_THREADS
        kernel = (_FUSED[1], both, shared) if by_bucket else (_FUSED[0], apart, both)
        other, other_index = (view, index) if against is None else against
        readback = np.empty((min(bounds.iterations, fused.MOST_ITERATIONS), 2), dtype=np.int64)
        number, limit = self._call_alone(
            kernel, self._edges_of(view), kernel_index(index), (self._edges_of(other), kernel_index(other_index)),
            state.vertices, frontier.vertices, state.lists, fused.numbers_of(bounds, len(readback), self.threads),
            self._marks(state), _bitmap(state.active), state.arrays, scalars, state.identity,
            _vertices_of(state), readback,
        )  # fmt: skip
        state.walked = int(readback[number - 1].sum()) if number else state.walked
        return readback[:number].copy(), limit

    def _marks(self, state: State) -> tuple[Any, ...]:
        """Who is pending, as fused iterations have it: where none waits, those are marked that go on."""
        waiting, *lows = state.lows
        return state.pending.words, waiting if self._steady else state.pending.summary, *lows

    def close(self) -> None:
        """Do nothing: host kernels hold nothing that must be freed."""

    def marks(self, state: State) -> NDArray[np.uint64]:
        """The bitmap of the active vertices, in host memory; valid until the next select."""
        return state.active.words

    def mark(self, state: State, active: NDArray[Any]) -> None:
        """Make these vertices (less `first`) pending, or those where a mask (bool, from `first` on) is True."""
        state.pending.add(active)
        if active.dtype != np.bool_:
            state.walked = len(active)  # all that is pending: the selection need not wake threads for a few

    def send(self, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Compute what the frontier's vertices send, if the program has `send`."""
        state.walked = frontier.edges + frontier.vertices
        if self.author.has_send:
            used = NOTHING if state.pages is None else self._sending(state, frontier)
            is_wanted, rows = None if frontier.everything else _is_active, "send" in self._of_degree
            for part in self._parts(state, index, is_wanted, rows=rows, used=used):
                self._call(
                    vertex_kernels.make_send, part.walked < SMALL, len(part.active.summary), *_bitmap(part.active),
                    frontier.everything, kernel_index(index), part.arrays, scalars, part.sent,
                    self._places(part, frontier), part.identity, np.uint64(part.first),
                )  # fmt: skip
        elif self.author.in_place and state.pages is None:
            self.empty(state)

    def _sending(self, state: State, frontier: Frontier) -> Used:
        read, sent = self._steps.reads("send"), self._steps.sends
        emptied = self._steps.emptied(state.messages) if self.author.in_place else NONE
        return read | emptied, sent, (sent | emptied) - read if frontier.everything else NONE

    def _applying(self, state: State) -> Used:
        steps, messages = self._steps, state.messages
        return steps.applies(messages), steps.changing | ({messages} - steps.emptied(messages)), NONE

    def _read(self, state: State, *roles: str) -> Used:
        """What functions of these roles read, where values are in pages."""
        return NOTHING if state.pages is None else (self._steps.reads(*roles), NONE, NONE)

    def empty(self, state: State) -> None:
        """Let messages be combined with nothing."""
        fill(state.target, state.identity, threads=self.threads)

    def _places(self, state: State, frontier: Frontier) -> NDArray[Any]:
        """Where messages go in `sent`; no items: every one to its vertex' number."""
        groups = state.groups
        placed = groups is not None and groups.neighbors is not None and frontier.everything
        return groups.places if placed else state.vertices[:0]  # type: ignore[union-attr, return-value]

    def _group(self, view: View, state: State, out: Index) -> None:
        """Put messages together where that pays, when edges are first swept that are all there.

        Edges of which some were grouped earlier are those of a rank that has got more of them.
        """
        groups = state.groups
        if groups is None or not groups.serves(view):
            return
        whole, placed = view.neighbors, groups.neighbors is not None
        if view.owned is not None:  # others' edges are not here
            view = view.part(view.owned.e0 - LARGEST_BLOCK, view.owned.e1 + LARGEST_BLOCK)
        if placed:
            grouping.widen(groups, whole, (view.e0, view.e1), self.threads)
        else:
            groups.give_back = self._ungroup
            grouping.group(groups, whole, (view.e0, view.e1), kernel_index(out), out.vertices, self.threads)
        if groups.neighbors is not None and not placed:  # nothing has been gathered yet
            grouping.move(groups, state.sent, state.target, state.identity, self.threads)

    def exchange_kernels(self) -> HostExchangeKernels:
        """Kernels by which ranks merge what they have found."""
        return HostExchangeKernels(self.author.combine)

    def _ungroup(self, groups: GroupedSources) -> None:
        self.use()
        grouping.ungroup(groups, self.threads)

    def in_window(
        self, view: View, state: State, frontier: Frontier, index: Index, window: Vertices, *, pushes: bool,
        accepted: bool = False, again: bool = False, marks: NDArray[np.uint64] | None = None,
    ) -> View:  # fmt: skip
        """What a view holds of edges to these vertices; for pushes that of active rows, compacted (`WindowKernels`)."""
        if self._window_rows is None:
            self._window_rows = demand.WindowRows(state.last, self._vertex_dtype)
        whole, rows = marks is None and (frontier.everything or not pushes), state.vertices[:0]
        most = view.e1 - view.e0 if whole or marks is not None else min(view.e1 - view.e0, frontier.edges or view.e1)
        places, found = view, kernel_index(index)
        if view.rows is not None and view.offsets is not None:
            rows, places, found = view.rows, replace(view, v0=0, v1=len(view.rows)), own_index(view.offsets)
            whole = whole or state.compacted is None
        wanted = state.active.words if marks is None else marks, whole, np.uint64(state.first), rows
        values, touched = state.target.reshape(-1), state.touched.words
        nothing, values = values.dtype.type(state.identity), values if accepted else values[:0]
        meant = np.uint64(window[0]), np.uint64(window[1]), values, nothing, touched if again else touched[:0]

        def run(kernel: JitKernel, steps: int, *arguments: Any) -> None:
            self._call(kernel, most < SMALL, steps, *arguments)

        picked = self._window_rows.narrowed(run, places, found, wanted, meant, compacts=pushes)
        return replace(picked, v0=view.v0, v1=view.v1)

    def push(self, view: View, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Send along the frontier's out-edges that the view holds; of a compacted view, along all of them."""
        edges, arrays = self._edges_of(view), kernel_index(index)
        values = state.arrays, scalars, _vertices_of(state)
        active = state.active.words, frontier.everything
        if view.rows is not None:
            cut, block = self._cut(view.e1)
            rows, marked = (view.rows, view.offsets), (active[0], active[1] or state.compacted is None)
            self._call(push.make_push_compacted, *cut, edges, *rows, arrays, *marked, block, *values)
        elif self.hot_first and self._push_replicas(view, state, frontier, index, scalars):
            return
        elif frontier.listed:
            first, last = self._listed_part(view, state, frontier)
            if first < last:
                work = int(state.work[last]) - int(state.work[first])
                cut, block = self._cut(min(frontier.edges, view.e1 - view.e0), work)
                self._small_pushes += cut[0]
                listed = state.vertices, state.work, first, last
                self._call(push.make_push_list, *cut, edges, arrays, listed, block, *values)
        else:
            cut, block = self._cut(view.e1 - view.e0)
            self._call(push.make_push_rows, *cut, edges, arrays, *active, block, *values)

    def _push_replicas(
        self, view: View, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...]
    ) -> bool:
        """Push over rows with the sums of hot vertices kept apart, if that pays; see `push.py`."""
        parts, kept = self.threads * push.PARTS, push.kept_sums(self.author)
        if not (self.threads > 1 and sums_numbers(self.author) and has_sums_apart(state) and is_hot(index, kept)):
            return False
        if not pushes_many(view, frontier, hot_vertices.EDGES_EACH * kept * parts):
            return False
        block = -(-(view.e1 - view.e0) // parts)
        sums = np.zeros((-(-(view.e1 - view.e0) // block), kept), self.author.message)
        self._call(
            push.make_push_rows_replicas, False, len(sums), self._edges_of(view), kernel_index(index),
            state.active.words, frontier.everything, block, state.arrays, scalars, _vertices_of(state), sums,
        )  # fmt: skip
        target = state.target[:kept]
        target += sums.sum(axis=0, dtype=sums.dtype)[: len(target)]
        return True

    def unmark_sent(self, view: View, state: State, frontier: Frontier, index: Index) -> None:
        """Let nothing be pending of what the frontier sends along the whole rows of the view."""
        words = ((view.v1 - 1 - state.first) >> 6) - ((view.v0 - state.first) >> 6) + 1 if view.v1 > view.v0 else 0
        self._call(
            frontier_kernels.unmark_sent, view.v1 - view.v0 < SMALL, words, state.pending.words,
            state.active.words, frontier.everything, kernel_index(index), self._edges_of(view), np.uint64(state.first),
        )  # fmt: skip

    def push_resend(
        self, view: View, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...],
        due: tuple[float, int], followed: TaskRecord,
    ) -> None:  # fmt: skip
        """Send again, from vertices that are pending, have a priority below `limit` and all their edges in the view."""
        (limit, rounds), values = due, (state.arrays, scalars)
        edges, arrays = self._edges_of(view), kernel_index(index)
        words = ((view.v1 - 1 - state.first) >> 6) - ((view.v0 - state.first) >> 6) + 1 if view.v1 > view.v0 else 0
        for _ in range(rounds):
            taken = np.zeros(2, dtype=np.int64)
            self._call(
                frontier_kernels.make_select_in_view, view.v1 - view.v0 < SMALL, words, state.pending.words,
                state.resend_bitmap, arrays, edges, *values, float(limit), np.uint64(state.first), taken,
            )  # fmt: skip
            if not taken[0]:
                return
            followed.rows += int(taken[0])
            followed.edges += int(taken[1])
            view.record.resent += int(taken[1])
            (_, blocks), block = self._cut(view.e1 - view.e0)
            few, resend = bool(taken[1] < SMALL), (state.resend_bitmap, False)
            self._call(push.make_push_rows, few, blocks, edges, arrays, *resend, block, *values, _vertices_of(state))

    def pull(
        self, view: View, state: State, frontier: Frontier, indices: tuple[Index, Index], scalars: tuple[Any, ...],
        skip: int = 0,
    ) -> None:  # fmt: skip
        """Gather along the in-edges that the view holds, never compacted; `indices`: of the in-, of the out-adjacency.

        skip: so many first edges of every row were pulled before, from the row prefixes (early exit only).
        """
        assert view.rows is None, "views are compacted for pushes only"
        into, out = indices
        if view.payloads is not None:
            self._sweep_packed(view, state, indices, scalars)
            return
        if frontier.everything and self.author.sweeps:
            self._group(view, state, out)
        view, small, blocks, block = self._owned_blocks(view)
        partials = np.zeros(blocks, np.uint64), np.zeros(blocks, state.sent.dtype), np.zeros(blocks, np.bool_)
        state.walked = max(state.walked, view.e1 - view.e0)
        vertices, edges = _vertices_of(state), self._edges_of(view)
        rows = kernel_index(into) if view.offsets is None else own_index(view.offsets)
        if frontier.everything and self.author.sweeps:
            self._call(
                pull.make_sweep, small, blocks, edges, rows, kernel_index(out), block, pull.SECOND_LEVEL,
                state.arrays, scalars, state.identity, vertices, partials,
            )  # fmt: skip
            self._call_alone(pull.make_reduce_partials, partials, *vertices[1:])
            return
        sources = kernel_index(out), state.active.words, frontier.everything, block, state.arrays, scalars
        if self.author.early_exit:
            skipped, kept = self._skipped(state, skip), _kept(state.unmatched if skip == 0 else None, view)
            found = vertices, partials, kept
            self._call(early_pull.make_early_pull, small, blocks, edges, rows, skipped, *sources, *found)
        else:
            self._call(pull.make_pull, small, blocks, edges, rows, *sources, state.identity, vertices, partials)
        self._call_alone(pull.make_reduce_partials, partials, *vertices[1:])

    def _sweep_packed(self, view: View, state: State, indices: tuple[Index, Index], scalars: tuple[Any, ...]) -> None:
        """Gather along the packed edges of a view, all of whose sources send. Raises RunError for ids of no vertex."""
        assert view.payloads is not None, "the view is packed"
        assert self.author.sweeps, "only sweeps unpack what they read"
        (into, out), payloads = indices, view.payloads
        parts = -(-payloads.chunk_edges // STEP_EDGES)
        steps = parts * (len(payloads.starts) - 1)
        partials = np.zeros(steps, np.uint64), np.zeros(steps, state.sent.dtype), np.zeros(steps, np.bool_)
        if self._scratch.shape[0] < steps:
            self._scratch = np.zeros((steps, SCRATCH), self._scratch.dtype)
        flaws, vertices = np.zeros(steps, np.uint8), _vertices_of(state)
        edges = (
            view.neighbors,
            payloads.starts,
            payloads.chunk_edges,
            view.e0,
            view.e1,
            np.uint64(view.v0),
            np.uint64(view.v1),
        )
        state.walked = max(state.walked, view.e1 - view.e0)
        self._call(
            packed_sweep.make_packed_sweep, view.e1 - view.e0 < SMALL, steps, edges, kernel_index(into),
            kernel_index(out), np.uint64(out.vertices), state.arrays, scalars, state.identity, vertices,
            self._scratch, partials, flaws,
        )  # fmt: skip
        if flaws.any():
            raise malformed(view.e0 // payloads.chunk_edges + int(flaws.argmax()) // parts)
        self._call_alone(pull.make_reduce_partials, partials, *vertices[1:])

    def pull_unmatched(self, state: State, index: Index, scalars: tuple[Any, ...]) -> None:
        """Gather along the rows that the last pull kept; index: of the out-adjacency."""
        rows = state.unmatched
        assert rows is not None, "rows are kept only where there is room for them"
        state.walked = max(state.walked, rows.used)
        self._call(
            early_pull.make_pull_unmatched, rows.used < SMALL, rows.segments, (rows.items, rows.starts, rows.taken),
            kernel_index(index), state.active.words, state.arrays, scalars, _vertices_of(state),
        )  # fmt: skip

    def apply(self, state: State, frontier: Frontier, index: Index, scalars: tuple[Any, ...]) -> None:
        """Turn combined messages into new values and the next pending vertices."""
        self.clear_partial(state)
        rows = not self._of_degree.isdisjoint(("vertex", "active", "global"))
        used = NOTHING if state.pages is None else self._applying(state)
        is_wanted = None if frontier.everything else _is_reached
        for part in self._parts(state, index, is_wanted, rows=rows, used=used):
            incoming = part.sent if self.author.tells_sent else part.incoming
            self._call(
                vertex_kernels.make_apply, part.walked < SMALL, len(part.touched.summary), *_bitmap(part.touched),
                *_bitmap(part.active), *_bitmap(part.pending), frontier.everything, kernel_index(index), part.arrays,
                scalars, incoming, self._places(part, frontier), part.identity, np.uint64(part.first), part.partial,
            )  # fmt: skip

    def reduce(self, state: State, index: Index, scalars: tuple[Any, ...]) -> None:
        """Leave the Globals' shares of the present values in `state.partial`."""
        self.clear_partial(state)
        used = self._steps.changing | self._steps.reads("global"), NONE, NONE
        for part in self._parts(state, index, rows="global" in self._of_degree, used=used):
            count, base, spans = part.last - part.first, np.uint64(part.first), len(part.partial)
            arrays = kernel_index(index), part.arrays
            self._call(vertex_kernels.make_reduce, count < SMALL, spans, *arrays, scalars, count, base, part.partial)

    def count_active(
        self, state: State, index: Index, sizes: tuple[int, int, int], table: NDArray[np.int64],
        chunks: NDArray[np.uint8], blocks: Any = None,
    ) -> None:  # fmt: skip
        """Demand of a push, as `Kernels` says."""
        blocks = _cleared(blocks)
        for part in self._parts(state, index, _is_active):
            self._call(
                demand.count_active, part.walked < SMALL, len(part.active.summary), *_bitmap(part.active),
                kernel_index(index), np.uint64(part.first), sizes, table, chunks, blocks,
            )  # fmt: skip

    def add_pending(
        self, state: State, index: Index, scalars: tuple[Any, ...], partition_edges: int, values: NDArray[np.float64]
    ) -> None:
        """Add the active vertices' pending values to `values`, float64[partitions], where their rows begin."""
        for part in self._parts(state, index, _is_active, used=self._read(state, "pending")):
            self._call(
                demand.make_add_pending, part.walked < SMALL, len(part.active.summary), *_bitmap(part.active),
                kernel_index(index), part.arrays, scalars, np.uint64(part.first), partition_edges, values,
            )  # fmt: skip

    def count_cond(
        self, state: State, index: Index, scalars: tuple[Any, ...], sizes: tuple[int, int, int],
        table: NDArray[np.int64], chunks: NDArray[np.uint8], skip: int = 0, blocks: Any = None,
        function: str = "cond",
    ) -> None:  # fmt: skip
        """Demand of a pull, as `count_active`; skip and function as `Kernels` says."""
        blocks = _cleared(blocks)
        for part in self._parts(state, index, used=self._read(state, function)):
            count, base = part.last - part.first, np.uint64(part.first)
            self._call(
                (demand.make_count_cond, function), count < SMALL, -(-count // SPAN), np.uint64(count),
                kernel_index(index), part.arrays, scalars, base, self._skipped(part, skip), sizes, table, chunks,
                blocks,
            )  # fmt: skip

    def relax_unsettled(self, view: View, state: State, index: Index, scalars: tuple[Any, ...]) -> None:
        """Relax the view's rows of unsettled vertices both ways, from who is pending or active."""
        (small, blocks), block = self._cut(view.e1 - view.e0)
        state.walked = max(state.walked, view.e1 - view.e0)
        self._call(
            push.make_relax_unsettled, small, blocks, self._edges_of(view), kernel_index(index), state.active.words,
            block, state.arrays, scalars, _vertices_of(state),
        )  # fmt: skip

    def record_matched(self, state: State) -> None:
        """Remember the vertices that have a message now; `skip` then passes over them."""
        state.resend_bitmap[:] = state.touched.words

    def _skipped(self, state: State, skip: int) -> tuple[int, Any]:
        return skip, state.resend_bitmap if skip else state.touched.words

    def cache_row_prefixes(self, view: View, index: Index, heads: RowPrefixCache) -> None:
        """Copy the first edges of rows (`heads.each` at most) that the view holds into the cache."""
        self._call(
            demand.cache_row_prefixes, view.v1 - view.v0 < SMALL, view.v1 - view.v0, self._edges_of(view),
            kernel_index(index), kernel_index(heads.index), heads.each, heads.neighbors,
        )  # fmt: skip

    def link_first_neighbors(self, view: View, state: State, index: Index, each: int) -> None:
        """Link the rows of the view with their first `each` neighbors."""
        self._call(
            union_find.link_first_neighbors, view.v1 - view.v0 < SMALL, -(-(view.v1 - view.v0) // union_find.PIECE),
            self._edges_of(view), kernel_index(index), each, state.arrays[0], np.uint64(state.first),
        )  # fmt: skip

    def link_rows(self, view: View, state: State, index: Index, done_each: int, skipped: Any, symmetric: bool) -> None:
        """Link the view's edges, less the first `done_each` of a row and those inside the tree `skipped`."""
        forest = state.arrays[0], np.uint64(state.first)
        cut, block = self._cut(view.e1 - view.e0)
        self._call(
            union_find.link_rows, *cut, self._edges_of(view), kernel_index(index), done_each, skipped, symmetric,
            block, *forest,
        )  # fmt: skip

    def mark_outside(self, state: State, index: Index, largest: Any, own: Vertices) -> None:
        """Make pending every vertex of `own` that has edges and is not in the tree `largest`; these compressed."""
        forest, base = state.arrays[0], state.first

        def is_outside(first: int, last: int) -> NDArray[np.bool_]:
            outside: NDArray[np.bool_] = forest[first:last] != largest
            outside[: max(0, own[0] - first)] = False
            outside[max(0, own[1] - first) :] = False
            return outside & (index.degrees(base + first, base + last) > 0)

        state.pending.add_where(is_outside, len(forest))

    def link_listed(self, view: View, state: State, frontier: Frontier, index: Index, largest: Any) -> None:
        """Link the rows of the view that lie outside the tree `largest`, which are the frontier's."""
        self.link_rows(view, state, index, 0, np.uint64(largest), True)

    def linked_outside(self, state: State, own: Vertices, span: Vertices) -> NDArray[Any]:
        """The vertices of a span outside `own` that are no roots, and behind these their parents."""
        forest, vertices = state.arrays[0], span[1] - span[0]
        pieces = -(-vertices // union_find.PIECE)
        found, counts = np.empty(vertices, forest.dtype), np.zeros(pieces, np.int64)
        begins = map(np.uint64, (span[0], *own))
        self._call(union_find.list_linked, vertices < SMALL, pieces, forest, *begins, found, counts)
        parts = [found[at * union_find.PIECE :][:count] for at, count in enumerate(counts.tolist())]
        linked = np.concatenate([forest[:0], *parts])
        return np.concatenate([linked, forest[linked]])

    def link_pairs(self, state: State, pairs: NDArray[Any]) -> None:
        """Link vertices of the first half of `pairs` with those of the second."""
        count = len(pairs) // 2
        self._call(union_find.link_pairs, count < SMALL, count, state.arrays[0], pairs)

    def compress(self, state: State, own: Vertices | None = None) -> None:
        """Let every vertex, or those of `own`, point to its root."""
        first, last = own or (0, len(state.arrays[0]))
        self._call(union_find.compress, last - first < SMALL, last - first, np.uint64(first), state.arrays[0])

    def largest_tree(self, state: State, own: Vertices | None = None) -> tuple[int, float]:
        """The root of (very likely) the largest tree, and about its share of vertices, as in `Kernels`."""
        if own is not None:
            return union_find.most_linked(state.arrays[0], *own)
        return union_find.most_frequent(state.arrays[0])

    def link_held(
        self, view: View, state: State, index: Index, held: int, giant: int, pairs: OpenPairs, *, symmetric: bool
    ) -> None:
        """Link the view's edges where the trees of vertices before `held` are in memory, as in `WindowKernels`."""
        cut, block = self._cut(view.e1 - view.e0)
        self._call(
            union_find.link_held, *cut, self._edges_of(view), kernel_index(index), block, state.arrays[0],
            *_span((held, giant)), _bitmap(state.active), tuple(pairs), symmetric,
        )  # fmt: skip

    def drop_joined_pairs(self, state: State, held: int, giant: int, pairs: OpenPairs) -> None:
        """Keep of the pairs of `link_held` those that are not joined by what became active since."""
        count, spans = int(pairs.listed[0]), _span((held, giant))
        self._call(
            union_find.drop_joined_pairs, count < SMALL, count, pairs.ends, state.arrays[0], *spans,
            _bitmap(state.active),
        )  # fmt: skip
        left = pairs.ends[:count][pairs.ends[:count, 1] > 0]
        pairs.ends[:count] = 0
        pairs.ends[: len(left)] = left
        pairs.listed[0] = len(left)

    def link_window(self, view: View, state: State, index: Index, window: Vertices, pairs: OpenPairs) -> bool:
        """Link the view's edges to a window as far as its trees and those of the rows lead, as in `WindowKernels`."""
        changed, (cut, block) = np.zeros(1, np.bool_), self._cut(view.e1 - view.e0)
        self._call(
            union_find.link_window, *cut, self._edges_of(view), kernel_index(index), block, state.arrays[0],
            _span(window), tuple(pairs), changed,
        )  # fmt: skip
        return bool(changed[0])

    def join_pairs(self, state: State, window: Vertices, pairs: OpenPairs) -> None:
        """Join the listed pairs as far as the trees of a window lead."""
        count, changed = int(pairs.listed[0]), np.zeros(1, np.bool_)
        self._call(
            union_find.link_listed_pairs, count < SMALL, count, pairs.ends, state.arrays[0], _span(window), changed
        )

    def compress_held(self, state: State, vertices: Vertices, window: Vertices) -> bool:
        """Let vertices point to where the trees of a window lead; whether this has changed any."""
        (first, last), changed = vertices, np.zeros(1, np.bool_)
        self._call(
            union_find.compress_held, last - first < SMALL, last - first, np.uint64(first), state.arrays[0],
            _span(window), changed,
        )  # fmt: skip
        return bool(changed[0])

    def clear_partial(self, state: State) -> None:
        """Set the Globals' shares to what changes nothing."""
        if self.author.totals:
            state.partial[:] = self.author.partial_start

    def _listed_part(self, view: View, state: State, frontier: Frontier) -> tuple[int, int]:
        """Which entries of the frontier's list lie in the view's rows."""
        listed = state.vertices[: frontier.vertices]
        ends = np.array((view.v0, view.v1), listed.dtype)  # of another type, the list would be copied to that
        first = int(np.searchsorted(listed, ends[0])) if view.v0 > state.first else 0
        last = int(np.searchsorted(listed, ends[1])) if view.v1 < state.last else frontier.vertices
        return first, last

    def _edges_of(self, view: View) -> tuple[Any, ...]:
        """The parts of an `EdgeView`."""
        weights = view.weights if self.author.weighted else NO_WEIGHTS
        return view.neighbors, weights, view.e0, view.e1, np.uint64(view.v0), np.uint64(view.v1)

    def _cut(self, edges: int, walked: int | None = None) -> tuple[tuple[bool, int], int]:
        """How a kernel over so many edges is cut: (whether they are few, blocks), edges of a block.

        walked: edges that are cut into blocks, if those of the view do not say.
        """
        block = SMALL if edges < SMALL else max(SMALLEST_BLOCK, min(LARGEST_BLOCK, edges // (self.all_threads * 16)))
        walked = edges if walked is None else walked
        return (walked < SMALL, -(-walked // block)), block

    def _owned_blocks(self, view: View) -> tuple[View, bool, int, int]:
        """How a pull over a view is cut, as `_cut`, and of the view the blocks with owned rows."""
        (small, blocks), block = self._cut(view.e1 - view.e0)
        own = view.owned
        if own is None:
            return view, small, blocks, block
        first = max(0, own.e0 - view.e0) // block
        end = min(blocks, -(-(own.e1 - view.e0) // block))
        return view.part(view.e0 + first * block, view.e0 + end * block), small, end - first, block

    def _call(self, kernel: Any, small: bool, steps: int, *arguments: Any) -> None:
        """Run a kernel of so many steps, on one thread where the work is small, as `_call_alone` does."""
        self._call_alone(kernel, 1 if small else max(1, min(self.threads, steps)), steps, *arguments)

    def _call_alone(self, kernel: Any, *arguments: Any) -> Any:
        """Run a kernel, as `kernel` takes it, as it is; explain what Numba cannot compile."""
        made = self._made.get(kernel) or self.kernel(kernel)
        try:
            return made(*arguments)
        except (
            numba.core.errors.NumbaError,
            AttributeError,
        ) as error:  # the latter: a module lacks what is asked of it
            if isinstance(error.__cause__ or error.__context__, MemoryError):
                raise MemoryError(f"compiling the kernel {made.__name__}") from error
            raise InputError(explain(self.author.name, str(error))) from error

    def kernel(self, kernel: Any) -> JitKernel:
        """A kernel for the program: one that all share, or what makes it of the author, alone or before its options."""
        made = kernel
        if not isinstance(kernel, JitKernel):
            make, *options = kernel if isinstance(kernel, tuple) else (kernel,)
            made = make(self.author, *options)
            made.origin = made.origin or partial(self._describe, make, options)
        self._made[kernel] = made
        return made  # type: ignore[no-any-return]

    def _describe(self, make: Callable[..., JitKernel], options: list[Any]) -> dict[str, Any]:
        """How another process makes a kernel; raises TypeError where it cannot."""
        told = {"vertices": str(self._vertex_dtype), "weighted": self.author.weighted, "options": options}
        told |= {"program": describe_program(self._program), "module": make.__module__, "name": make.__name__}
        return {"target": [__name__, compile_kernel.__name__], **told}


def compile_kernel(request: dict[str, Any]) -> None:
    """Compile and keep what another process asks for: a kernel of a program, for arguments of some types."""
    program = described_program(request["program"])
    kernels = HostKernels(program, np.dtype(request["vertices"]), request["weighted"], 1)
    make = getattr(importlib.import_module(request["module"]), request["name"])
    kernels.kernel((make, *request["options"])).compile_types(signature_of(request["types"]))


_FUSED = fused.make_fused_iterations, fused.make_fused_buckets
NO_STARTS, NO_SEGMENTS = np.zeros(1, np.int64), np.zeros(1, np.uint64)
NO_BASES = np.zeros(1, np.int64)
NO_BLOCKS = np.zeros(0, np.uint32)
_MADE: dict[str, dict[Any, JitKernel]] = {}
"""Kernels of this process by what they are made of, so that a second session does not load them again."""


def _kept(rows: UnmatchedRows | None, view: View) -> tuple[Any, Any, Any]:
    """Where a pull keeps rows that it read in vain; an array of no items where it keeps none."""
    if rows is None:
        return view.neighbors[:0], NO_STARTS, NO_SEGMENTS
    return rows.items, rows.starts, rows.taken


def _cleared(blocks: Any) -> Any:
    """A bitmap of wanted blocks, cleared; an empty one where none is asked for."""
    if blocks is None:
        return NO_BLOCKS
    blocks[...] = 0
    return blocks


def explain(program: str, trouble: str) -> str:
    """One sentence, for the author of `program`, out of Numba's many about what it cannot compile."""
    lines = [line.strip() for line in trouble.splitlines() if line.strip()]
    files = [line for line in lines if line.startswith("File ")]
    places = [line for line in files if "penstock adapter" not in line and "engine/kernels" not in line]
    telling = ("No implementation", "Invalid", "Cannot", "NameError", "Untyped", "Unknown attribute", "undefined")
    at = next((at for at, line in enumerate(lines) if any(word in line for word in telling)), 0)
    cause = lines[at]
    if cause.endswith("signature:") and at + 1 < len(lines):  # what was called stands in the next line
        cause = f"there is no {lines[at + 1].removeprefix('>>> ')}"
    why = next((f": {line.partition('TypingError: ')[2]}" for line in lines if "TypingError: " in line), "")
    where = f" ({places[-1].rstrip(':')})" if places else ""
    return f"program {program}: Numba cannot compile one of its functions: {cause}{why}{where}"
