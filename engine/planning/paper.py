"""Equipment on paper: what a run would hold where, and pipelines that plan and cannot read.

Owns the session's own divisions of memory (`host_resources.py`, `device_memory_plan.py`) without the memory: caches are
numbers. Refuses, through these divisions, budgets that cannot work.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.resources.device_memory_plan import (
    DeviceMemoryPlan,
    link_options,
    link_rates,
    place_residents,
    plan_device_memory,
)
from penstock.engine.resources.host_edge_source import host_staging, packed_cache, packed_staging
from penstock.engine.resources.host_resources import budget_of, divide_for_cores, host_options, host_rates, make_cache
from penstock.engine.state.row_prefix_cache import prefix_bytes
from penstock.storage.read.packed_cache import PackedCache
from penstock.transfer.devices.host import HostDevice
from penstock.transfer.pipeline import Pipeline
from penstock.transfer.planning.host_budget import HostBudget, reader_bytes
from penstock.transfer.staging.edge_source import LocalReader
from penstock.transfer.staging.link_reader import LinkReader
from penstock.transfer.staging.staging import Staging

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.packed_edges import PackedPlan
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.format.graph import Adjacency, Graph
    from penstock.storage.read.partition_cache import HostCache
    from penstock.transfer.devices.device import Device
    from penstock.transfer.staging.partition_directory import PartitionDirectory
    from penstock.transfer.values.options import TransferOptions
    from penstock.transfer.values.rates import Rates

    Cache = HostCache | PackedCache


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


@dataclass
class PaperEquipment:
    """A pipeline that plans and cannot read, and what it would hold.

    caches: of the device and of the host. loading: bytes from disk and over the link before the first iteration. plain:
    the host's cache of plain edges beside packed ones. packed: whether the cores' kernels decode edges.
    """

    host: Memory
    pipeline: Pipeline
    rates: Rates
    caches: tuple[Cache | None, ...]
    placement: Memory | None = None
    loading: tuple[int, int] = (0, 0)
    plain: Cache | None = None
    packed: bool = False

    def used(self, routes: Collection[str]) -> tuple[Cache | None, ...]:
        """Return the caches that fill when edges come by these routes: that of plain edges beside packed ones apart."""
        in_place = "zero-copy" in routes and self.plain is not None
        others = () if in_place and set(routes) == {"zero-copy"} else self.caches
        return (*others, self.plain) if in_place else others


def on_host(graph: Graph, config: Config, needs: MemoryRequest) -> PaperEquipment:
    """What a run on the cores would hold."""
    divided, packed = divide_for_cores(graph, config, needs)
    device, options, source = (
        HostDevice("host:0", config.thread_count),
        host_options(graph, config, divided),
        LocalReader(),
    )
    host, staging = _host_memory(graph, config, needs, divided), None
    cache: Cache | None
    if packed is None:
        cache = None if divided is None else make_cache(graph, needs, divided, _numbers)
    else:
        cache = packed.cache(_numbers)
        staging = packed.staging(device, source, cache, options, graph)
        host = replace(host, parts=host.parts | {"slabs": packed.host.buffer_bytes})
    pipeline = Pipeline(graph, source, device, cache, options, staging)
    kept = _held("cache", cache)
    if needs.owned_edges is not None and host.whole:  # of a rank: it touches no other part of its cache
        kept["cache"] = min(kept["cache"], needs.owned_edges * graph.out.edge_bytes(needs.weighted))
    host, rates = replace(host, parts=host.parts | kept), host_rates(config)
    return PaperEquipment(host, pipeline, rates, (cache,), packed=packed is not None)


def behind_link(graph: Graph, config: Config, needs: MemoryRequest, device: Device, *, later: bool) -> PaperEquipment:
    """What a device with memory of its own would hold, and the host for it.

    later: whether what is to stay on the device may travel when it is first wanted, where host memory loads edges.
    """
    placed = plan_device_memory(graph, config, needs, device.memory_bytes)
    divided, parts, packed = placed.divided, placed.parts, placed.packed
    host = _host_memory(graph, config, needs, divided)
    width = graph.out.edge_bytes(needs.weighted)
    source, plain, held = _sources(graph, config, needs, device, placed)
    ahead = 0 if source.host is None else source.host.options.ahead
    options = link_options(config, device.kind, parts, ahead, packed)
    cache: Cache | None
    if packed is None:
        cache = make_cache(graph, needs, parts, _numbers)
        pipeline = Pipeline(graph, source, device, cache, options)
        loading = divided is not None and divided.whole
        kept = {} if divided is None else {"edges": needs.edge_bytes} if loading else _held("cache", held[0])
    else:
        cache = packed_cache(packed, packed.budget.words, _numbers)
        pipeline = _packed_pipeline(graph, (source, plain), device, cache, options, packed)
        loading, kept = packed.loading, _packed_host(needs, packed, divided, held)
        host = replace(host, whole=divided is None or loading)
    host = replace(host, parts=host.parts | kept)
    read, brought = 0, 0
    if cache is not None:
        placed_bytes = _place(pipeline, needs)
        if not (later and loading and parts.slabs > 0):  # else it travels when it is first wanted
            read, brought = _bring(cache, held, needs), placed_bytes
    slab = parts.partition_edges * parts.combine * width
    if "compaction" in options.routes:
        host = replace(host, parts=host.parts | {"gathered": parts.slabs * slab})
    budget, heads = _device_memory(placed, needs, graph, device)
    slabs = parts.slabs * slab if packed is None else packed.budget.staged_bytes
    here = heads | {"slabs": slabs} | _held("cache", cache)
    return PaperEquipment(
        host,
        pipeline,
        link_rates(config, device.kind),
        (cache, *held[:1]),
        Memory(budget, here, whole=parts.whole),
        (read, brought),
        held[1] if len(held) > 1 else None,
    )


def _sources(
    graph: Graph, config: Config, needs: MemoryRequest, device: Device, placed: DeviceMemoryPlan
) -> tuple[LinkReader, LinkReader | None, tuple[Cache | None, ...]]:
    """What would bring edges to the device, and plain ones beside packed ones; the host's caches of both."""
    divided, packed, host = placed.divided, placed.packed, HostDevice("host", config.thread_count)
    if divided is None:
        pinned = LinkReader(device)
        return (pinned, None, ()) if packed is None else (LinkReader(device, packed=True), pinned, ())
    plain, held = None, None
    if packed is None or packed.plain:
        held = make_cache(graph, needs, divided, _numbers, apart=divided.whole)
        staging = host_staging(graph, divided, host, None, held)
        plain = LinkReader(device, host=staging, adjacencies=needs.adjacencies)
    if packed is None:
        assert plain is not None
        return plain, None, (held,)
    assert packed.budget.host is not None, "a graph on disk has its host's memory divided"
    pieces = packed_cache(packed, packed.budget.host.words, _numbers)
    staging = packed_staging(graph, packed, host, None, pieces)
    source = LinkReader(device, host=staging, adjacencies=needs.adjacencies)
    return source, plain, (pieces, held)


def _packed_pipeline(
    graph: Graph,
    sources: tuple[LinkReader, LinkReader | None],
    device: Device,
    cache: PackedCache | None,
    options: TransferOptions,
    packed: PackedPlan,
) -> Pipeline:
    dtypes = graph.out.neighbor_dtype, graph.out.weight_dtype
    staging = Staging(device, sources[0], cache, options, dtypes, packed.packing, None, sources[1])
    return Pipeline(graph, sources[0], device, cache, options, staging)


def _packed_host(
    needs: MemoryRequest, packed: PackedPlan, divided: HostBudget | None, held: tuple[Cache | None, ...]
) -> dict[str, int]:
    """What host memory keeps of packed edges, and of plain ones beside them."""
    if packed.budget.host is None:
        return {"packed edges": sum(layout.nbytes for layout in packed.layouts if not layout.raw_weights)}
    kept = {"buffers": packed.budget.host.buffer_bytes} | _held("packed edges", held[0])
    return kept | ({"edges": needs.edge_bytes} if packed.plain and divided is not None else {})


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
        parts["reader"] = reader_bytes(budget, divided.reads_in_flight, one_by_one=divided.one_by_one)
        parts["slabs"] = divided.slab_bytes
    return Memory(config.memory_bytes, parts, whole=divided is None or divided.whole)


def _numbers(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """An array of a size, and of no memory."""
    return np.broadcast_to(np.empty(1, dtype), (count,))


def _held(name: str, cache: Cache | None) -> dict[str, int]:
    return {name: 0 if cache is None else cache.nbytes}


def _place(pipeline: Pipeline, needs: MemoryRequest) -> int:
    """Give places on the device to what is chosen for it before the first iteration; return the bytes that it takes."""
    cache = pipeline.cache
    assert cache is not None
    tables = {one.direction: _directory(pipeline, one).table for one in needs.adjacencies}
    place_residents(cache, needs, tables)
    if isinstance(cache, PackedCache):
        return sum(int(cache.tables[key].layout.chunk_bytes[_placed(cache, key)].sum()) for key in tables)
    brought = 0
    for one in needs.adjacencies:
        placed = cache.starts[cache.entries(one.direction)] >= 0
        brought += int(tables[one.direction].lengths[placed].sum()) * one.edge_bytes(needs.weighted)
    return brought


def _directory(pipeline: Pipeline, adjacency: Adjacency) -> PartitionDirectory:
    return pipeline.directory("out" if adjacency.direction == "out" else "in")


def _placed(cache: Cache, direction: str) -> NDArray[np.int64]:
    """Which chunks are of partitions with a place, ascending."""
    extent = cache.extents[direction]
    step = cache.partition_edges // extent.chunk_edges
    return np.flatnonzero(np.repeat(cache.starts[cache.entries(direction)] >= 0, step)[: extent.chunks])


def _bring(cache: Cache, held: tuple[Cache | None, ...], needs: MemoryRequest) -> int:
    """Note that what has a place on the device is there; return the bytes that the host, if it holds all, has read."""
    host = held[0] if held else None
    if host is None or not host.whole:
        keep((cache, *held[:1]), needs.weighted)
        return 0
    keep((cache,), needs.weighted)
    read = 0
    for adjacency in needs.adjacencies:
        chunks = np.flatnonzero(cache.held(adjacency.direction))
        host.mark(adjacency.direction, chunks, needs.weighted)
        read += int(adjacency.chunk_bytes(needs.weighted)[chunks].sum())
    return read


def keep(caches: tuple[Cache | None, ...], weighted: bool) -> None:
    """Note that every partition with a place has its edges there by now, in all caches along the way."""
    for cache in [cache for cache in caches if cache is not None]:
        for direction in cache.extents:
            cache.mark(direction, _placed(cache, direction), weighted)
