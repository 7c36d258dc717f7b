"""What a run would take before it runs: memory, and the bytes and seconds of a sweep over every edge.

Owns the forecast: the session's own divisions (`host_resources.py`, `device_memory_plan.py`), and the session's own
cost model over pipelines whose caches are numbers without memory. Refuses to read an edge, to start a thread or to
allocate what it counts. How many sweeps a program needs, and which edges a search visits, only the run can tell.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.resources.device_memory_plan import (
    DeviceMemoryPlan,
    cache_shares,
    initial_residents,
    link_options,
    link_rates,
    plan_device_memory,
)
from penstock.engine.resources.host_edge_source import host_staging
from penstock.engine.resources.host_resources import budget_of, host_division, host_options, host_rates, make_cache
from penstock.engine.state.row_prefix_cache import prefix_bytes
from penstock.transfer.devices.host import HostDevice
from penstock.transfer.pipeline import Pipeline
from penstock.transfer.planning.host_budget import HostBudget, reader_bytes
from penstock.transfer.planning.plan import make_plan
from penstock.transfer.staging.edge_source import LinkSource, LocalReader
from penstock.transfer.staging.host_to_device import PinnedReader
from penstock.transfer.staging.staged_reader import StagedReader
from penstock.transfer.values.cost import RESOURCES, Cost
from penstock.transfer.values.rates import LINE_BYTES
from penstock.transfer.values.task import whole_demand

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray
    from penstock.engine.planning.requirements import RunRequirements
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.direction import Direction
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.format.graph import Graph
    from penstock.storage.read.partition_cache import HostCache
    from penstock.transfer.devices.device import Device
    from penstock.transfer.values.rates import Rates


@dataclass(frozen=True)
class Memory:
    """Bytes by what takes them, within a budget. whole: every edge that is read has its place, and travels once."""

    budget: int
    parts: dict[str, int]
    whole: bool

    @property
    def total(self) -> int:
        """Bytes in all."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class Sweep:
    """One iteration over every edge: seconds that each resource works, bytes read from disk and brought over a link.

    disk_bytes: of the chunks alone; reads of whole pages, and over small gaps, bring a little more. routes: how many
    partitions travel, or stay, by which route.
    """

    cost: Cost
    disk_bytes: int
    link_bytes: int
    routes: dict[str, int]

    @property
    def seconds(self) -> float:
        """Its predicted duration: the busiest resource's seconds, for all of them work at the same time."""
        return self.cost.busiest

    @property
    def limit(self) -> str:
        """The busiest resource."""
        return RESOURCES[int(np.argmax(self.cost))]


@dataclass(frozen=True)
class Forecast:
    """What a program would take.

    device: where it runs. directions: those in which it may walk, none where it reads no edges; the sweeps are in
    `direction`. placement: None in host memory, else memory of the device. loading: bytes that come from disk and go
    over the link before the first iteration. most_iterations: None where the program sets no bound. everywhere: whether
    each of them is such a sweep. phases: whether the sweeps are only those of the first of several programs that follow
    one another.
    """

    program: str
    device: str
    directions: tuple[Direction, ...]
    direction: Direction
    host: Memory
    placement: Memory | None
    partition_bytes: int
    loading: tuple[int, int]
    first: Sweep
    later: Sweep
    most_iterations: int | None
    everywhere: bool
    phases: bool = False

    @property
    def most_seconds(self) -> float | None:
        """Seconds of all iterations at most; None where their number, or what they walk, cannot be known before."""
        if self.most_iterations is None or not self.everywhere or self.phases:
            return None
        sweeps = self.most_iterations
        return min(sweeps, 1) * self.first.seconds + max(0, sweeps - 1) * self.later.seconds


@dataclass
class _Paper:
    """Equipment on paper: a pipeline that plans and cannot read, and what it would hold."""

    host: Memory
    pipeline: Pipeline
    rates: Rates
    caches: tuple[HostCache | None, ...]
    placement: Memory | None = None
    loading: tuple[int, int] = (0, 0)


UNBOUNDED = 1 << 60
"""Iterations that no program means."""


def forecast(
    graph: Graph, config: Config, device: Device | None, asks: RunRequirements | None, needs: MemoryRequest
) -> Forecast:
    """Predict a run of a program that asks for this, None for one that runs no other; needs: of the equipment.

    Raises InputError where a budget cannot work, as the run would.
    """
    paper = (
        _host(graph, config, needs) if device is None or asks is None else _linked(graph, config, asks, needs, device)
    )
    walked = {} if asks is None else asks.directions
    direction: Direction = "pull" if "pull" in walked else "push"
    keys: list[Any] = [walk.key for walk in walked.get(direction, ())]
    weighted = asks is not None and asks.weighted
    first = _sweep(paper, keys, weighted)
    _keep(paper.caches, needs.weighted)
    later = _sweep(paper, keys, weighted)
    most = 0 if asks is None else asks.program.max_iter
    return Forecast(
        program="" if asks is None else type(asks.program).__name__,
        device="cpu" if device is None else device.name,
        directions=tuple(walked),
        direction=direction,
        host=paper.host,
        placement=paper.placement,
        partition_bytes=paper.pipeline.options.partition_edges * graph.vertex_dtype.itemsize,
        loading=paper.loading,
        first=first,
        later=later,
        most_iterations=None if most >= UNBOUNDED else most,
        everywhere=asks is None or asks.program.everywhere,
    )


def _host(graph: Graph, config: Config, needs: MemoryRequest) -> _Paper:
    divided = host_division(graph, config, needs)
    cache = None if divided is None else make_cache(graph, needs, divided, _numbers)
    device = HostDevice("host:0", config.thread_count)
    pipeline = Pipeline(graph, LocalReader(), device, cache, host_options(graph, config, divided))
    host = _host_memory(graph, config, needs, divided)
    return _Paper(replace(host, parts=host.parts | _held("cache", cache)), pipeline, host_rates(config), (cache,))


def _linked(graph: Graph, config: Config, asks: RunRequirements, needs: MemoryRequest, device: Device) -> _Paper:
    placed = plan_device_memory(graph, replace(config, packed="never"), needs, device.memory_bytes)
    divided, parts = placed.divided, placed.parts
    host = _host_memory(graph, config, needs, divided)
    source: LinkSource
    held, ahead, read, brought = None, 0, 0, 0
    width = graph.out.edge_bytes(needs.weighted)
    if divided is None:
        source = PinnedReader(device, {})
    else:
        held = make_cache(graph, needs, divided, _numbers, apart=divided.whole)
        staging = host_staging(graph, divided, HostDevice("host", config.thread_count), None, held)
        source, ahead = StagedReader(device, staging, needs.adjacencies), staging.options.ahead
        kept = {"edges": needs.edge_bytes} if divided.whole else _held("cache", held)
        host = replace(host, parts=host.parts | kept)
    options = link_options(config, device.kind, parts, ahead)
    cache = make_cache(graph, needs, parts, _numbers)
    pipeline = Pipeline(graph, source, device, cache, options)
    if cache is not None:
        edges = _place(pipeline, needs)
        later = divided is not None and divided.whole and parts.slabs > 0 and asks.program.combine != "union"
        if not later:  # else it travels when it is first wanted
            read, brought = _bring(cache, held, needs), edges * width
    slab = parts.partition_edges * parts.combine * width
    if "compaction" in options.routes:
        host = replace(host, parts=host.parts | {"gathered": parts.slabs * slab})
    budget, heads = _device_memory(placed, needs, graph, device)
    held_here = heads | {"slabs": parts.slabs * slab} | _held("cache", cache)
    placement = Memory(budget, held_here, whole=parts.whole)
    return _Paper(host, pipeline, link_rates(config, device.kind), (cache, held), placement, (read, brought))


def _device_memory(
    placed: DeviceMemoryPlan, needs: MemoryRequest, graph: Graph, device: Device
) -> tuple[int, dict[str, int]]:
    """The ceiling, and what is taken besides slabs and cache."""
    index = placed.head_index
    heads = 0 if index is None else prefix_bytes(graph.vertices, index.edges, graph.vertex_dtype.itemsize)
    return device.memory_bytes, {"state and index": needs.device_bytes, "heads of rows": heads}


def _host_memory(graph: Graph, config: Config, needs: MemoryRequest, divided: HostBudget | None) -> Memory:
    """All but what caches take."""
    parts = {
        "state": needs.state_bytes,
        "index": needs.index_bytes,
        "ids": needs.id_bytes,
        "program": needs.working_bytes,
        "other": needs.other_bytes,
    }
    if divided is not None:
        budget = budget_of(config, needs, graph, config.partition_bytes)
        parts["reader"] = reader_bytes(budget, divided.reads_in_flight)
        parts["slabs"] = divided.slab_bytes
    return Memory(config.memory_bytes, parts, whole=divided is None or divided.whole)


def _numbers(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """An array of a size, and of no memory."""
    return np.broadcast_to(np.empty(1, dtype), (count,))


def _held(name: str, cache: HostCache | None) -> dict[str, int]:
    return {name: 0 if cache is None else cache.nbytes}


def _place(pipeline: Pipeline, needs: MemoryRequest) -> int:
    """Give places on the device to what is chosen for it before the first iteration; return its edges."""
    cache, brought = pipeline.cache, 0
    assert cache is not None
    for adjacency, count in zip(needs.adjacencies, cache_shares(cache, needs.adjacencies), strict=True):
        table = pipeline.directory("out" if adjacency.direction == "out" else "in").table
        numbers = initial_residents(needs, adjacency, table, count)
        cache.replace((), cache.entry(adjacency.direction, 0) + numbers)
        brought += int(table.lengths[numbers].sum())
    return brought


def _bring(cache: HostCache, held: HostCache | None, needs: MemoryRequest) -> int:
    """Note that what has a place on the device is there; return the bytes that the host, if it holds all, has read."""
    if held is None or not held.whole:
        _keep((cache, held), needs.weighted)
        return 0
    _keep((cache,), needs.weighted)
    read = 0
    for adjacency in needs.adjacencies:
        chunks = np.flatnonzero(cache.held(adjacency.direction))
        held.mark(adjacency.direction, chunks, needs.weighted)
        read += int(adjacency.chunk_bytes(needs.weighted)[chunks].sum())
    return read


def _keep(caches: tuple[HostCache | None, ...], weighted: bool) -> None:
    """Note that every partition with a place has its edges there by now, in all caches along the way."""
    for cache in [cache for cache in caches if cache is not None]:
        for direction, extent in cache.extents.items():
            step = cache.partition_edges // extent.chunk_edges
            placed = np.repeat(cache.starts[cache.entries(direction)] >= 0, step)[: extent.chunks]
            cache.mark(direction, np.flatnonzero(placed), weighted)


def _sweep(paper: _Paper, keys: list[Any], weighted: bool) -> Sweep:
    """A walk over every edge as things are now."""
    seconds, disk, link = np.zeros(len(RESOURCES)), 0, 0
    routes: Counter[str] = Counter()
    for key in keys:
        pipeline = paper.pipeline
        directory = pipeline.directory(key)
        demand = whole_demand(
            directory.table, edge_bytes=directory.adjacency.edge_bytes(weighted), with_weights=weighted
        )
        residency = pipeline.residency(demand)
        disk += int(residency.disk_bytes.sum())
        copied = directory.table.lengths * ~directory.resident(weighted) * directory.adjacency.edge_bytes(weighted)
        in_place = demand.lines * LINE_BYTES
        for task in make_plan(demand, directory.table, residency, paper.rates, pipeline.options).tasks:
            seconds += task.cost
            routes[task.route] += len(task.partitions)
            if not pipeline.device.reads_host:
                moved = in_place if task.route == "zero-copy" else copied
                link += int(moved[list(task.partitions)].sum())
    return Sweep(Cost(*seconds.tolist()), disk, link, dict(routes))
