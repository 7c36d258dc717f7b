"""What a run would take before it runs: memory, and the bytes and seconds of a sweep over every edge.

Owns the forecast: the run's own cost model over its own resources on paper, whose caches are numbers. Refuses to read
an edge, to start a thread or to allocate what it counts. How many sweeps a program needs, and which edges a search
visits, only the run can tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.execution.windows import WindowCut
from penstock.engine.planning.rank_forecast import (
    HOST_MPI,
    PACKED,
    ROWS,
    SCATTERED,
    TRIANGLES,
    exchange_seconds,
    exchanged_bytes,
    vertex_seconds,
)
from penstock.engine.planning.requirements import device_page, gathers_ahead, windows_of
from penstock.engine.program.program import UNBOUNDED, author_function
from penstock.engine.resources.device_resources import DeviceResources
from penstock.engine.resources.host_resources import HostResources
from penstock.transfer.devices.device import Device
from penstock.transfer.planning.plan import make_plan
from penstock.transfer.values.cost import RESOURCES, Cost
from penstock.transfer.values.rates import LINE_BYTES, TASK_SECONDS
from penstock.transfer.values.task import whole_demand

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from penstock.engine.planning.requirements import RunRequirements
    from penstock.engine.program.program import Program
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.direction import Direction
    from penstock.engine.resources.memory_plan import HeldBytes, Memory
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.format.graph import Graph
    from penstock.storage.read.partition_cache import PartitionCache
    from penstock.transfer.pipeline import Pipeline
    from penstock.transfer.values.rates import Rates
    from penstock.transfer.values.view import OwnedRows


@dataclass(frozen=True)
class Sweep:
    """One iteration over every edge: seconds that each resource works, bytes read from disk and brought over a link.

    disk_bytes: of the chunks alone; reads of whole pages, and over small gaps, bring a little more. routes: how many
    partitions travel, or stay, by which route. edges: those of the rows that it walks. vertices: seconds in which every
    vertex sends and gets its value, where that is known. exchange: seconds in which ranks hand out what they found.
    value_bytes: of values of vertices, read from their file and written to it; value_seconds: what is waited for them.
    Of a device value_bytes go over the link, and file_bytes from and to the file of what host memory has no room for;
    value_tasks: its views of rows and its pages, each of which the host begins.
    """

    cost: Cost
    disk_bytes: int
    link_bytes: int
    routes: dict[str, int]
    exchange: float = 0.0
    vertices: float = 0.0
    edges: int = 0
    value_bytes: int = 0
    value_seconds: float = 0.0
    file_bytes: int = 0
    value_tasks: int = 0

    @property
    def seconds(self) -> float:
        """Its predicted duration: the busiest resource's seconds, for all work at the same time; then what follows."""
        return self.cost.busiest + self.value_seconds + self.vertices + self.exchange

    @property
    def limit(self) -> str:
        """The busiest resource, or what follows where that takes longer: values of vertices, the exchange of ranks."""
        follows = {"values": self.value_seconds, "exchange": self.exchange}
        longest = max(follows, key=lambda name: follows[name])
        return longest if follows[longest] > self.cost.busiest else RESOURCES[int(np.argmax(self.cost))]

    def by_windows(
        self, cut: WindowCut, moved: int, vertices: int, index_bytes: int, rates: Rates, value_rate: float
    ) -> Sweep:
        """The same with values of so many vertices elsewhere, so many bytes of which come and go, so many a second.

        index_bytes: of row indexes that it reads from disk. Edges are read, and decoded, as often as the cut says
        and, if more than once, each window picks its own; kernels walk each edge once.
        """
        picked = cut.count * ROW_PICKS * vertices + cut.reads * EDGE_PICKS * self.edges if cut.reads > 1 else 0.0
        disk = cut.reads * self.cost.disk + index_bytes / rates.disk_bytes
        decode = cut.reads * self.cost.decode
        kernel = self.cost.kernel + picked / rates.kernel_edges + decode
        return replace(
            self,
            cost=self.cost._replace(disk=disk, decode=decode, kernel=kernel),
            disk_bytes=cut.reads * self.disk_bytes + index_bytes,
            value_bytes=moved,
            value_seconds=moved / value_rate,
        )

    def of_class(self, program: Program) -> Sweep:
        """The same of a program whose edges take the cores longer than a plain pull's, if they do."""
        longer = TRIANGLES if author_function(program, "corner") else ROWS if program.combine == "all" else 1.0
        return replace(self, cost=self.cost._replace(kernel=self.cost.kernel * longer))

    def on_cores(self, rates: Rates, vertices: float, *, packed: bool) -> Sweep:
        """The same of kernels that ask for messages ahead, on cores that decode edges besides; packed: kernels do.

        Edges that stay have their messages grouped.
        """
        stay = set(self.routes) <= {"resident"}
        share = PACKED if packed else 1.0 if stay else SCATTERED
        kernel = self.edges / (rates.sweep_edges * share) + self.cost.decode
        return replace(self, cost=self.cost._replace(kernel=kernel), vertices=vertices)


@dataclass(frozen=True)
class Forecast:
    """What a program would take.

    device: where it runs. directions: those in which it may walk, none where it reads no edges; the sweeps are in
    `direction`. placement: None in host memory, else memory of the device. held: edges that have room where. loading:
    bytes that come from disk and go over the link before the first iteration. most_iterations: None where the program
    sets no bound. everywhere: whether each of them is such a sweep. phases: whether the sweeps are only those of the
    first of several programs that follow one another. ranks: how many processes share the edges; all else is then of
    the first of them. windows: in how many parts a sweep has the values of vertices in memory, value_room bytes, and
    edge_reads: how often it reads the edges for them; the others are in a file of value_file bytes in these folders, or
    nowhere else, if that is 0. device_room: bytes of values and rows that a device has, 0 for all or where there is
    none. The sweeps are then in the direction that takes longer. compiles: whether its kernels are not compiled yet.
    """

    program: str
    device: str
    directions: tuple[Direction, ...]
    direction: Direction
    host: Memory
    placement: Memory | None
    held: HeldBytes
    partition_bytes: int
    loading: tuple[int, int]
    first: Sweep
    later: Sweep
    most_iterations: int | None
    everywhere: bool
    phases: bool = False
    ranks: int = 1
    windows: int = 1
    edge_reads: int = 1
    value_room: int = 0
    device_room: int = 0
    value_file: int = 0
    value_folders: tuple[Path, ...] = ()
    compiles: bool = False

    @property
    def most_seconds(self) -> float | None:
        """Seconds of all iterations at most; None where their number, or what they walk, cannot be known before."""
        if self.most_iterations is None or not self.everywhere or self.phases:
            return None
        sweeps = self.most_iterations
        return min(sweeps, 1) * self.first.seconds + max(0, sweeps - 1) * self.later.seconds


TASKS_OF_RANGE = 3
"""Of a range of rows that a device has at once, for each window: its view, a page of its rows and one of its values."""
ROW_PICKS, EDGE_PICKS = 1.7, 2.6
"""How many edges of a plain sweep take as long as picking those of a row, and each of its edges, for a window: two
passes (`kernels/host/demand.py`), 4.3 and 6.6 ns on a core that walks an edge in 2.5 (R-MAT 24 x 2)."""


def forecast(
    graph: Graph,
    config: Config,
    device: Device,
    asks: RunRequirements | None,
    needs: MemoryRequest,
    rank: tuple[int, int] | None = None,
) -> Forecast:
    """Predict a run of a program that asks for this, None for one that runs no other; needs: of the equipment.

    rank: of several that share the edges, the number of this one, and how many there are.
    Raises InputError where a budget cannot work, as the run would.
    """
    own, loading = None, (0, 0)
    if device.reads_host or asks is None:
        cores = Device(threads=config.thread_count)
        paper = HostResources(graph, config, needs, cores, rank=rank, paper=True)
        own = None if needs.all_rows else paper.ownership
    else:
        paper = DeviceResources(graph, config, needs, device, rank=rank, paper=True)
        if asks.program.combine == "union" or not paper.loads_later:
            loading = _load(paper)
    pipeline = paper.pipeline
    walked = {} if asks is None else asks.directions
    size = 1 if rank is None else rank[1]
    direction, cut, moved = _slowest(graph, asks, needs, size)
    keys: list[Any] = [walk.key for walk in walked.get(direction, ())]
    if needs.device_room:
        keys = [one.direction for one in needs.adjacencies]
    weighted = asks is not None and asks.needs.weighted
    owned = None if own is None else {one.direction: own.rows(one.index()) for one in needs.adjacencies}
    first = _sweep(pipeline, paper.feedback.given, keys, weighted, owned)
    _keep(_used(pipeline, set(first.routes)), needs.weighted)
    later = _sweep(pipeline, paper.feedback.given, keys, weighted, owned)
    sweeps = asks is not None and asks.program.everywhere and gathers_ahead(asks.program, config, asks.directions)
    shared = graph.vertices // size if needs.value_room else graph.vertices
    rates, vertices = paper.feedback.given, vertex_seconds(shared, config.thread_count)
    if needs.value_room:
        index = index_disk_bytes(needs, cut) // size
        rate = rates.copy_bytes if needs.device_room else rates.disk_bytes
        first, later = (one.by_windows(cut, moved, shared, index, rates, rate) for one in (first, later))
        left = tasks = 0
        if needs.device_room and asks is not None:
            _, left = windows_of(graph, asks, needs, direction, size, of_file=True)
            ranges = -(-graph.vertices // device_page(graph, device.grain, needs.page_threads))
            tasks = TASKS_OF_RANGE * cut.count * ranges
        waited = first.value_seconds + left / rates.disk_bytes + tasks * TASK_SECONDS
        first, later = (
            replace(one, vertices=vertices, file_bytes=left, value_seconds=waited, value_tasks=tasks)
            for one in (first, later)
        )
    elif sweeps and device.reads_host:
        packed = paper.plan.packed is not None
        first, later = (one.on_cores(rates, vertices, packed=packed) for one in (first, later))
    elif asks is not None and device.reads_host:
        first, later = (one.of_class(asks.program) for one in (first, later))
    if size > 1 and asks is not None:
        width = graph.vertex_dtype.itemsize
        handed = exchanged_bytes(asks.program, "pull" if needs.value_room else direction, graph.vertices, width)
        exchange = exchange_seconds(handed, size, HOST_MPI)
        first, later = (replace(_shared(one, needs, size), exchange=exchange) for one in (first, later))
    most = 0 if asks is None else asks.program.max_iter
    return Forecast(
        program="" if asks is None else type(asks.program).__name__,
        device=device.name,
        directions=tuple(walked),
        direction=direction,
        host=paper.plan.host_memory,
        placement=paper.plan.device_memory,
        held=paper.plan.held,
        partition_bytes=pipeline.options.partition_edges * graph.out.neighbor_dtype.itemsize,
        loading=loading,
        first=first,
        later=later,
        most_iterations=None if most >= UNBOUNDED else most,
        everywhere=asks is None or asks.program.everywhere,
        ranks=size,
        windows=cut.count,
        edge_reads=cut.reads,
        value_room=needs.value_room,
        device_room=needs.device_room,
    )


def index_disk_bytes(needs: MemoryRequest, cut: WindowCut) -> int:
    """Bytes on disk of the row indexes that a walk by windows reads: of each window of the file its own."""
    of_file = [window for one in needs.adjacencies for window in one.windows or (one,)] if cut.of_file else []
    read, times = (of_file, cut.reads) if of_file else (needs.adjacencies, cut.count)
    return times * sum(int(one.degrees.lengths.sum()) for one in read if one.degrees is not None)


def _slowest(
    graph: Graph, asks: RunRequirements | None, needs: MemoryRequest, ranks: int
) -> tuple[Direction, WindowCut, int]:
    """The direction of the sweeps, with windows and bytes of values: pulls, unless pushes read edges more often."""
    walked = {} if asks is None else asks.directions
    direction: Direction = "pull" if "pull" in walked else "push"
    if asks is None or not needs.value_room:
        return direction, WindowCut(max(1, graph.vertices), 1, 1), 0
    each: list[tuple[Direction, WindowCut, int]] = [
        (way, *windows_of(graph, asks, needs, way, ranks)) for way in walked
    ]
    return max(each, key=lambda one: (one[1].reads, one[1].count, one[2]))


def _shared(sweep: Sweep, needs: MemoryRequest, ranks: int) -> Sweep:
    """A rank's sweep; where each rank reads all rows, it computes on its share of them."""
    return replace(sweep, cost=sweep.cost._replace(kernel=sweep.cost.kernel / ranks)) if needs.all_rows else sweep


def _used(pipeline: Pipeline, routes: set[str]) -> list[PartitionCache | None]:
    """The caches that fill when edges come by these routes: that of plain edges beside packed ones apart."""
    link, caches = pipeline.staging.plain, [pipeline.cache, pipeline.source.cache]
    if "zero-copy" not in routes or link is None or link.cache is None:
        return caches
    return [link.cache] if routes == {"zero-copy"} else [*caches, link.cache]


def _keep(caches: Iterable[PartitionCache | None], weighted: bool) -> None:
    """Note that every partition with a place has its edges there by now, in all caches along the way."""
    for cache in caches:
        if cache is not None:
            for direction in cache.extents:
                cache.mark(direction, np.flatnonzero(_placed(cache, direction)), weighted)


def _placed(cache: PartitionCache, direction: str) -> NDArray[np.bool_]:
    """Which chunks are of partitions with a place, bool[chunks]."""
    extent = cache.extents[direction]
    step = cache.partition_edges // extent.chunk_edges
    return np.repeat(cache.starts[cache.entries(direction)] >= 0, step)[: extent.chunks]


def _load(paper: DeviceResources) -> tuple[int, int]:
    """Note that what has a place on the device is there; return the bytes from disk and over the link that it takes.

    From disk: where the host keeps all that it reads.
    """
    needs, cache, host = paper.own_needs, paper.pipeline.cache, paper.pipeline.source.cache
    whole = host is not None and host.whole
    _keep([cache, None if whole else host], needs.weighted)
    read = brought = 0
    for one in needs.adjacencies:
        directory, chunks = paper.directory(one), _placed(cache, one.direction)
        brought += int(directory.decoded(chunks, needs.weighted).sum())
        if host is not None and whole:
            host.mark(one.direction, np.flatnonzero(chunks), needs.weighted)
            read += int(directory.stored(chunks, needs.weighted).sum())
    return read, brought


def _sweep(
    pipeline: Pipeline, rates: Rates, keys: list[Any], weighted: bool, owned: dict[str, OwnedRows] | None
) -> Sweep:
    """A walk over every edge as things are now; owned: over those of one rank, by adjacency."""
    seconds, disk, link, edges = np.zeros(len(RESOURCES)), 0, 0, 0
    routes: Counter[str] = Counter()
    for key in keys:
        directory = pipeline.directory(key)
        demand = whole_demand(
            directory.table, edge_bytes=directory.adjacency.edge_bytes(weighted), with_weights=weighted
        )
        if owned is not None:
            rows, table = owned[directory.adjacency.direction], directory.table
            mine = np.minimum(table.e1, rows.e1) - np.maximum(table.e0, rows.e0)
            demand = replace(demand, active_edges=np.maximum(mine, 0), whole=False)
        edges += int(demand.active_edges.sum())
        residency = pipeline.residency(demand)
        copied = residency.lacking_bytes  # None: nothing is
        copied = np.zeros(len(directory.table), np.int64) if copied is None else copied
        stored = {"zero-copy": residency.plain_disk_bytes}
        by_route = {"zero-copy": demand.lines * LINE_BYTES, "blocks": residency.block_bytes}
        for task in make_plan(demand, directory.table, residency, rates, pipeline.options).tasks:
            seconds += task.cost
            routes[task.route] += len(task.partitions)
            read = stored.get(task.route)
            disk += int((residency.disk_bytes if read is None else read)[list(task.partitions)].sum())
            moved = by_route.get(task.route)
            link += int((copied if moved is None else moved)[list(task.partitions)].sum())
    return Sweep(Cost(*seconds.tolist()), disk, link, dict(routes), edges=edges)
