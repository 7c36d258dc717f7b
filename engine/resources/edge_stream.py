"""The stream of one direction's edges.

It has the demand of each iteration (asked of the kernels only where edges may have to travel) and a rank's share of the
edges. Views come from the pipeline; where a share cuts one, it is narrowed, never copied.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.resources.direction import Direction, can_choose
from penstock.engine.resources.direction_cost import DirectionSide, Progress, own_part
from penstock.engine.resources.ownership import Ownership
from penstock.engine.state.state import SPAN, Frontier
from penstock.storage.encoding.payload import BLOCK
from penstock.transfer.values.cost import KERNEL, Cost, line_seconds
from penstock.transfer.values.rates import LINE_BYTES
from penstock.transfer.values.task import Demand, Plan, Task, TaskRecord, whole_demand

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.kernels.interface import Kernels
    from penstock.engine.resources.direction import Situation
    from penstock.engine.resources.direction_cost import DegreeSample, LinkReading
    from penstock.engine.state.device_state import VertexState
    from penstock.engine.state.row_prefix_cache import RowPrefixCache
    from penstock.storage.format.graph import Adjacency
    from penstock.storage.format.index import Index
    from penstock.storage.format.row_pages import RowPages
    from penstock.transfer.calibration.feedback import Basis, Feedback
    from penstock.transfer.devices.device import Event
    from penstock.transfer.pipeline import Pipeline
    from penstock.transfer.prefetch_queue import PrefetchQueue
    from penstock.transfer.values.rates import Rates
    from penstock.transfer.values.task import Direction as AdjacencyDirection
    from penstock.transfer.values.task import Ints
    from penstock.transfer.values.view import OwnedRows, View

FEW_EDGES = 1 << 14  # kernels that walk fewer are of another kind: not worth waking many threads for
WIDE = 15
"""A frontier of more than this part of the edges leaves few vertices behind that nothing was found for."""
REUSED = 0.25
"""Share of a pull's first reading that counts where what is read stays in memory: pulls of the next iterations read the
same rows, while a push of many vertices, and the pull that follows at the widest frontier, read both adjacencies."""
DENSE = 256  # edges of a frontier for each partition: hardly one has none
NOTHING_PENDING = np.zeros(1)


@dataclass
class EdgeStream:
    """Edges of one direction.

    direction: push or pull. key: which adjacency holds them, "out", "in" (the same one in an undirected graph) or a
    window's name. owned: of a run of several ranks, the rows that are this one's; only their edges are walked. mine:
    the partitions with these edges, bool (partitions,), where the cores share a graph; None for all of them. counted:
    the vertices among which it counts what it wants, with those of the edges beside its own that kernels may read.
    part: a rank's share of all edges, where it has an adjacency of its own rows. both_ways: whether an iteration walks
    another stream, too, and one of them is pushed and one pulled. complete: bring all chunks of a
    partition, not just the wanted ones: for local rounds, which walk other rows too. heads: the first edges of every
    row, kept on the device; only the edges after them travel. degrees: samples those of the adjacency's rows, once;
    None on a device that reads host memory. expected: the record of what a pull read last behind row prefixes, and
    requests it was to take. carries: whether this iteration brings partitions whole, for rows to follow (`cel.py`).
    """

    pipeline: Pipeline
    direction: Direction
    key: AdjacencyDirection
    index: Index
    feedback: Feedback
    with_weights: bool
    chunk_edges: int
    edge_bytes: int
    mine: NDArray[np.bool_] | None = None
    counted: tuple[int, int] | None = None
    owned: OwnedRows | None = None
    part: float = 1.0
    both_ways: bool = False
    complete: bool = False
    heads: RowPrefixCache | None = None
    degrees: Callable[[], DegreeSample] | None = None
    plan_seconds: float = 0.0
    carries: bool = False
    expected: tuple[TaskRecord, float] | None = field(default=None, init=False)
    _side: tuple[int, DirectionSide] | None = field(default=None, init=False)
    _started: PrefetchQueue | None = field(default=None, init=False)
    _basis: Basis | None = field(default=None, init=False)
    _sweep: Demand | None = field(default=None, init=False)
    _sweep_basis: Basis | None = field(default=None, init=False)
    _resident: bool = field(default=False, init=False)
    _looked: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        self.directory = self.pipeline.directory(self.key)
        caches = self.pipeline.cache, self.pipeline.source.cache
        self.caches = [cache for cache in caches if cache is not None]

    def own(self, ownership: Ownership) -> None:
        """Walk the rows that this rank owns from now on; between two walks."""
        self.release()
        self.owned, self._side = ownership.rows(self.index), None
        table, (first, last) = self.directory.table, ownership.read(self.index)
        self.mine = (table.e0 < last) & (table.e1 > first)
        self.counted = self._spans_of(first, last)

    def _spans_of(self, first: int, last: int) -> tuple[int, int]:
        """The vertices of whole spans of a state that have the rows of edges first..last-1."""
        if first == last:
            return 0, 0
        v0, v1 = self.index.rows_of(np.array([first, last - 1])).tolist()
        return v0 // SPAN * SPAN, min((v1 // SPAN + 1) * SPAN, self.index.vertices)

    def along(self, adjacency: Adjacency) -> EdgeStream:
        """The stream of a window of the same edges; pages of its rows are read as those of this one."""
        threads = 0 if self.index.pages is None else self.index.pages.threads
        index = adjacency.index(threads or None, page_threads=threads)
        found = replace(self, key=adjacency.direction, index=index)
        if self.owned is not None:
            found.own(Ownership(np.array([self.owned.v0, self.owned.v1]), 0))
        return found

    @property
    def resident(self) -> bool:
        """Whether all edges are in memory, so that nothing has to travel; looked up where the cache has changed."""
        changes = self.caches[0].changes
        if changes != self._looked:
            self._looked, self._resident = changes, self.directory.whole(self.with_weights)
        return self._resident

    @property
    def in_one_view(self) -> bool:
        """Whether all edges come together, however few are wanted: those of one chunk, to the cores of one process."""
        return self.index.edges <= self.chunk_edges and self.pipeline.device.reads_host and self.owned is None

    @property
    def linked(self) -> bool:
        """Whether some edges come over a link."""
        return False

    @property
    def from_disk(self) -> bool:
        """Whether some edges may still have to be read from disk."""
        return not self.resident and self.directory.reads_disk

    @property
    def reads_again(self) -> bool:
        """Whether cores read edges from disk again, in one iteration after another, for lack of memory."""
        return self.from_disk and not self.pipeline.cache.whole

    def has_all(self, view: View) -> bool:
        """Whether all edges of a view are there, of rows that were not wanted too: not those between resident ones."""
        parts = view.record.partitions
        return view.record.route != "resident" or bool(self.here[parts[0] : parts[-1] + 1].all())

    def carriers_pay(self, frontier: Frontier, sent: int, *, passed: bool) -> bool:
        """Whether a push had best bring partitions whole, since rows follow them; the rest as of `Carriers.saved`."""
        return False

    @property
    def scans(self) -> bool:
        """Whether an iteration reads most edges, however few its frontier has: never, where they are in rows."""
        return False

    @property
    def skip(self) -> int:
        """How many edges of every row need not travel, because they are among the heads."""
        return 0 if self.heads is None else self.heads.each

    def situated(
        self, seen: Callable[..., Situation], frontier: Frontier, streams: dict[Direction, EdgeStream],
        first: Callable[[EdgeStream], EdgeStream], *, keeps: bool, unvisited: tuple[int, int],
    ) -> Situation:  # fmt: skip
        """What the direction rule sees, and what it needs to know of where edges are: on cores, reading from disk.

        That is what it takes a push of this frontier, and a pull, in edges pushed meanwhile. seen: makes it, of what is
        the same everywhere. first: the stream that a walk begins with. keeps: whether a pull keeps the rows that it
        reads in vain. After one of a wide frontier there is room for them, and the iterations that follow read nothing,
        while a push leaves it to the next of them to read everything. unvisited: how many vertices are, and how many of
        those with edges, if a pull looks at no others.
        """
        found = seen(on_cores=True, unvisited=unvisited[1])
        if not (found.from_disk and can_choose(found)):
            return found
        push, pull = streams["push"], streams["pull"]
        rate, again = push.feedback.given.kernel_edges, 1.0
        if keeps and frontier.edges * WIDE > pull.index.edges:
            again = REUSED
        of_push, of_pull = push.now, pull.now
        reads = of_push.fetch_seconds * of_push.touched(frontier.vertices) * rate
        read = of_pull.fetch_seconds * of_pull.touched(found.unvisited) * rate
        return replace(found, fetched=(reads, read * again))

    @property
    def now(self) -> DirectionSide:
        """Where the edges are now; reckoned anew where that has changed."""
        changes = sum(cache.changes for cache in self.caches)
        if self._side is None or self._side[0] != changes:
            self._side = changes, self._reckoned()
        return self._side[1]

    def _reckoned(self) -> DirectionSide:
        directory, edges = self.directory, max(1, self.index.edges)
        chunks, here = -(-edges // self.chunk_edges), float(directory.table.lengths[self.here].sum()) / edges
        pieces, plain = directory.pieces, edges * self.edge_bytes
        copied = 1.0 if pieces is None else pieces.layout.nbytes / plain
        if not self.from_disk:
            return DirectionSide(chunks, here, copied=copied)
        rates, sizes = self.feedback.given, directory.adjacency.chunk_bytes(self.with_weights)
        seconds = max(float(sizes.sum()) / rates.disk_bytes, plain * copied / rates.decode_bytes)
        cache = directory.host_cache
        again = REUSED if self.direction == "pull" and cache is not None and cache.whole else 1.0
        return DirectionSide(chunks, here, seconds * directory.lacking(self.with_weights) * again, copied)

    def fill_heads(self, kernels: Kernels[Any], state: VertexState) -> list[TaskRecord]:
        """Bring every edge once, and keep the heads; returns records of what moved."""
        if self.heads is None or self.heads.filled:
            return []
        everyone = Frontier(self.index.vertices, self.index.edges, everything=True)
        with self.views(kernels, state, everyone, ()) as views:
            for view in views:
                kernels.cache_row_prefixes(view, self.index, self.heads)
        self.heads.filled = True
        return self.records

    @property
    def here(self) -> NDArray[np.bool_]:
        """Which partitions are where the device reads them at once, bool (partitions,)."""
        return self.directory.resident(self.with_weights)

    @contextmanager
    def views(
        self,
        kernels: Kernels[Any],
        state: VertexState,
        frontier: Frontier,
        scalars: tuple[Any, ...],
        only: NDArray[np.bool_] | None = None,
        rows: Demand | None = None,
        behind: LinkReading | None = None,
    ) -> Iterator[Iterator[View]]:
        """Open the views that this iteration needs, each valid until the next is asked for; only: of which partitions.

        A task may reach over partitions that are not wanted, and may not be there: what is not of `only` is cut off.
        rows: what is wanted in place of the frontier's rows (`unsettled`). behind: what a pull is expected to read
        behind row prefixes, where that is too little to be counted (`few_behind`). However the block ends, nothing
        stays in flight. If it ends without an exception, the walk's records correct the rates (`Feedback`).
        """
        began = time.perf_counter()
        queue, self._started = self._started, None
        if queue is None or not self.pipeline.has_started(queue):
            queue = None
            rates = self._begin(frontier if rows is None else None)
            if rows is not None:
                demand, plan = rows, self.pipeline.plan(rows, rates, resident=self.resident)
            elif behind is not None:
                demand, plan = self._at_once(behind.rows, behind.edges, behind.requests, rates)
            else:
                demand, plan = self._planned(kernels, state, frontier, (scalars, rates), only)
            self.plan_seconds = time.perf_counter() - began
        else:
            demand, plan = queue.demand, queue.plan
        resident = self.resident or plan.resident
        with closing(self.pipeline.arrivals(plan, demand, queue)) as arrivals:
            views = self._timed(arrivals, kernels) if self.pipeline.device.runs_ahead and not resident else arrivals
            if self.owned is not None:
                views = self._owned_parts(views, kernels)
            elif only is not None:
                views = chain.from_iterable(self._narrowed(view, only) for view in views)
            yield views if self.index.pages is None else self._with_rows(views, self.index.pages, state)
        if not resident:  # else nothing was unpacked, and nothing is learnt
            self.pipeline.check()
            self.feedback.note(self.records, self._basis)

    @property
    def records(self) -> list[TaskRecord]:
        """The records of the pipeline's last walk; another stream with the same pipeline may have walked since."""
        return self.pipeline.records

    def _begin(self, frontier: Frontier | None) -> Rates:
        """The rates of the walk that begins now; keeps the cost laws and factors behind them for `Feedback.note`.

        frontier: None where the rows of unsettled vertices are walked.
        """
        rates = self.feedback.begin(self.pipeline.device, self._kind(frontier))
        if not self.resident:
            self._basis = self.feedback.watch()
        return rates

    def read_ahead(self, kernels: Kernels[Any], state: VertexState, free: Event) -> None:
        """Plan the next walk over every edge, and start what may be on its way at once; kernels may still be at work.

        Of edges that are not `resident`. free: the event after which no kernel reads the edges of the last walk. If no
        `views` follows, call `drain`.
        """
        began = time.perf_counter()
        everyone = Frontier(self.index.vertices, self.index.edges, everything=True)
        kept = None if self._sweep is None else self.pipeline.kept_plan(self._sweep)
        if self._sweep is None or kept is None:
            demand, plan = self._planned(kernels, state, everyone, ((), self._begin(everyone)), None)
            self._started = self.pipeline.start(plan, demand, free)
        else:
            self._basis = self._sweep_basis
            self._started = self.pipeline.start(kept, self._sweep, free)
            self.feedback.settle(self.pipeline.device)
        self.plan_seconds = time.perf_counter() - began

    def drain(self) -> list[TaskRecord]:
        """Wait for what was started for a walk that does not come, and free it; returns records of what moved."""
        started, self._started = self._started, None
        return [] if started is None or not self.pipeline.has_started(started) else started.drain()

    def release(self) -> None:
        """Cancel and free what was started."""
        started, self._started = self._started, None
        if started is not None:
            started.release()

    def _planned(
        self,
        kernels: Kernels[Any],
        state: VertexState,
        frontier: Frontier,
        known: tuple[tuple[Any, ...], Rates],
        only: NDArray[np.bool_] | None,
    ) -> tuple[Demand, Plan]:
        """The demand of this iteration and its plan; known: scalars and rates; only: of which partitions."""
        scalars, rates = known
        if only is None and not self.carries and self.slight(frontier):
            own = self._own(frontier)
            lines = self._lines_of(own) if state.lines is None else int(state.lines * self.part)
            return self._at_once(own.vertices, own.edges, lines, rates)
        demand, packable = self._demand(kernels, state, frontier, scalars), self._is_packable(kernels)
        if demand.packable != packable:
            demand = replace(demand, packable=packable)
        if demand is self._sweep:
            self._sweep_basis = self._basis
        if only is not None:
            demand = replace(demand, active_edges=np.where(only, demand.active_edges, 0), whole=False)
        plan = self.pipeline.plan(demand, rates, resident=self.resident, whole=self.carries)
        if not demand.whole and any(task.route == "compaction" for task in plan.tasks):
            demand = replace(demand, marks=kernels.marks(state))
        return demand, plan

    def _timed(self, arrivals: Iterator[View], kernels: Kernels[Any]) -> Iterator[View]:
        """The same views, with events around each one's kernels, which the launching thread does not wait for.

        A view whose kernel was compiled or loaded meanwhile corrects no rates.
        """
        device = self.pipeline.device
        for view in arrivals:
            loads, began = kernels.loads, device.event(None)
            yield view
            view.record.spans += ((KERNEL, began, device.event(None)),)
            if kernels.loads != loads:
                view.record.predicted = None

    def _demand(
        self, kernels: Kernels[Any], state: VertexState, frontier: Frontier, scalars: tuple[Any, ...]
    ) -> Demand:
        if self.resident:
            own = self._own(frontier)
            return self._totals(own.vertices, own.edges, own.edges * self.edge_bytes // LINE_BYTES + 1)
        table = self.directory.table
        if frontier.everything or self.reads_all(kernels, frontier):
            packable, demand = self._is_packable(kernels), self._sweep
            if demand is None or demand.packable != packable:
                demand = whole_demand(table, edge_bytes=self.edge_bytes, with_weights=self.with_weights)
                demand = self._sweep = replace(demand, packable=packable)
            return self._only_mine(demand)
        blocks = self._block_marks()
        counts, chunks, sizes = self._tables(blocks)
        mine = state if self.counted is None else state.part(*self.counted)
        if self.direction == "push":
            kernels.count_active(mine, self.index, sizes, counts.reshape(-1), chunks, blocks)
        else:
            kernels.count_cond(mine, self.index, scalars, sizes, counts.reshape(-1), chunks, self.skip, blocks)
        vertices, edges, lines, *touched = np.ascontiguousarray(counts.T)
        read = None
        if self.direction == "pull" and kernels.author.early_exit:
            read, edges, lines = self._read_early(frontier, vertices, edges, lines)
        pending = edges.astype(np.float64)
        if self.direction == "push" and kernels.author.has_pending and self.pipeline.options.priority:
            pending = np.zeros(len(table))
            kernels.add_pending(mine, self.index, scalars, table.partition_edges, pending)
        wanted = None if self.complete or self.carries else chunks
        asked = self.key, vertices, edges, lines, pending, wanted, self.with_weights
        marked = touched[0] if touched else None
        return self._only_mine(Demand(*asked, read_edges=read, blocks=marked, block_marks=blocks))

    def reads_all(self, kernels: Kernels[Any], frontier: Frontier) -> bool:
        """Whether the cores read all edges unasked: one chunk, or where rows would be read to find some unwanted."""
        table = self.directory.table
        asks = self.direction == "pull" or (kernels.author.has_pending and self.pipeline.options.priority)
        dense = frontier.edges >= DENSE * len(table) and frontier.vertices >= len(table)  # not of a hub alone
        dense = dense and self.index.pages is not None
        return table.edges <= self.chunk_edges or (dense and not asks)

    def _is_packable(self, kernels: Kernels[Any]) -> bool:
        """Whether active rows may be gathered."""
        return self.direction == "push" and kernels.author.combine != "union"

    def _tables(self, blocks: Any) -> tuple[Ints, NDArray[np.uint8], tuple[int, int, int]]:
        """Room for what kernels count of every partition and of every chunk, and the sizes by which they do.

        blocks: marks of wanted blocks, which are counted too; None: they are not.
        """
        table = self.directory.table
        counts = np.zeros((len(table), 3 if blocks is None else 4), dtype=np.int64)
        chunks = np.zeros(-(-table.edges // self.chunk_edges), dtype=np.uint8)
        return counts, chunks, (table.partition_edges, self.chunk_edges, max(1, LINE_BYTES // self.edge_bytes))

    def unsettled(self, kernels: Kernels[Any], state: VertexState, scalars: tuple[Any, ...]) -> Demand | None:
        """What reading the rows of all unsettled vertices needs; None: not to be counted, which does not pay here."""
        return None

    def _block_marks(self) -> Any:
        """The bitmap of wanted blocks; None: edges are plain, all of them are wanted, or chunks are no whole blocks."""
        unpacking = self.pipeline.staging.unpacking
        if unpacking is None or self.complete or self.chunk_edges % BLOCK:
            return None
        return unpacking.marks(self.directory.key, self.directory.table.edges)

    def slight(self, frontier: Frontier) -> bool:
        """Whether a push reads all of its rows in place over a link at once, for a plan would not pay."""
        return False

    def _own(self, frontier: Frontier) -> Frontier:
        """About the part of a frontier that is in a rank's own rows."""
        if self.part == 1.0:
            return frontier
        return replace(frontier, vertices=int(frontier.vertices * self.part), edges=int(frontier.edges * self.part))

    def _lines_of(self, frontier: Frontier) -> int:
        return frontier.vertices + frontier.edges * self.edge_bytes // LINE_BYTES

    def few_behind(self, known: Situation | None, frontier: Frontier) -> LinkReading | None:
        """What a pull reads behind row prefixes, where that is expected to be little; None where it is to be counted.

        It is then read in place at once, for a plan would not pay.
        """
        return None

    def progress(self, known: Situation, frontier: Frontier) -> tuple[Progress, Frontier]:
        """How far a search has come in the rows that it has, and the frontier's part of them."""
        at = Progress(known.vertices, known.edges, known.unvisited, known.unexplored_edges)
        if self.owned is None or self.index.edges == known.edges:
            return at, frontier
        rows = (self.owned.v1 - self.owned.v0) / max(1, known.vertices)
        return own_part(at, frontier, rows, self.index.edges / max(1, known.edges))

    def _at_once(self, rows: float, edges: float, lines: float, rates: Rates) -> tuple[Demand, Plan]:
        """Everything by zero-copy, in one view over all partitions; the demand holds totals."""
        demand = self._totals(rows, edges, lines)
        run_bytes = np.float64(edges * self.edge_bytes / max(1, rows))
        cost = Cost(
            link=float(line_seconds(np.float64(lines), np.float64(rows), run_bytes, rates)),
            kernel=rates.kernel_latency + edges / rates.kernel_edges + rows / rates.kernel_rows,
        )
        return demand, Plan(self.key, (Task("zero-copy", self.directory.table.numbers, cost),), whole=True)

    def _kind(self, frontier: Frontier | None) -> tuple[Direction, bool, bool]:
        """The kind of a walk: `Feedback` fits the seconds of kernels for each kind apart."""
        if frontier is None:
            return "pull", False, False
        return self.direction, frontier.everything, frontier.edges < FEW_EDGES

    def _read_early(self, frontier: Frontier, vertices: Ints, edges: Ints, lines: Ints) -> tuple[Ints, Ints, Ints]:
        """Edges that pulls read of each partition before they leave early; those that come for that, and their lines.

        The first edge from an active vertex is found after about as many as there are for one such edge.
        """
        density = self._own(frontier).edges / max(1, self.directory.table.edges)
        probes = max(1.0, 1.0 / max(density, 1e-9))
        return np.minimum(edges, np.ceil(vertices * probes).astype(np.int64)), edges, lines

    def _totals(self, rows: float, edges: float, lines: float) -> Demand:
        """Demand of which only the totals matter: all edges are read in one view."""
        vertices, wanted, read = np.array([[int(rows)], [max(1, int(edges))], [int(lines)]], dtype=np.int64)
        return Demand(self.key, vertices, wanted, read, NOTHING_PENDING, None, self.with_weights)

    def _only_mine(self, demand: Demand) -> Demand:
        """The demand of this rank's partitions."""
        if self.mine is None:
            return demand
        return replace(demand, active_edges=np.where(self.mine, demand.active_edges, 0), whole=False)

    def _owned_parts(self, views: Iterator[View], kernels: Kernels[Any]) -> Iterator[View]:
        """What is owned of each view."""
        own = self.owned
        assert own is not None, "all rows are this device's"
        for view in views:
            if view.rows is not None:  # gathered rows are owned ones
                yield view
            elif view.e0 < own.e1 and own.e0 < view.e1 and own.e0 < own.e1:
                yield self._owned_part(view, own, kernels)

    def _owned_part(self, view: View, own: OwnedRows, kernels: Kernels[Any]) -> View:
        """What is owned of a view: by its note where pulls sum, which may depend on the order, else cut out.

        Not beside a push: all ranks' messages of a vertex count then, not those of the row's owner alone.
        """
        part, sums = replace(view, owned=own), kernels.author.combine == "sum"
        return part if self.direction == "pull" and sums and not self.both_ways else part.narrowed()

    def _with_rows(self, views: Iterator[View], pages: RowPages, state: VertexState) -> Iterator[View]:
        """The views, in parts whose rows of the index are at hand, or come with the values (`StatePages.of_rows`)."""
        index, together = self.index, state.pages is not None and state.pages.row_bytes
        size = pages.together if state.pages is None else state.pages.range_of(pages)
        for view in views:
            for v0, v1 in pages.ranges(view.v0, view.v1, size):
                e0 = view.e0 if v0 == view.v0 else index.start_of_page(v0)
                e1 = view.e1 if v1 == view.v1 else index.start_of_page(v1)
                part = view.part(e0, e1, (v0, v1))
                if part.e0 < part.e1:
                    with nullcontext() if together else pages.held(pages.of_rows(v0, v1)):
                        yield part

    def _narrowed(self, view: View, only: NDArray[np.bool_]) -> Iterator[View]:
        """The parts of a view that are of these partitions, as views of their own."""
        table = self.directory.table
        wanted = np.flatnonzero(only & (table.e1 > view.e0) & (table.e0 < view.e1))
        for run in np.split(wanted, np.flatnonzero(np.diff(wanted) != 1) + 1) if len(wanted) else []:
            yield view.part(
                int(table.e0[run[0]]), int(table.e1[run[-1]]), (int(table.v0[run[0]]), int(table.v1[run[-1]]))
            )
