"""Edges for a device with memory of its own: what it may hold, and the host memory from which the rest comes.

Owns the choice of the device by name, page-locked host arrays of the adjacencies, and the pipeline between the two.
Refuses a device that is not here, and graphs on disk whose edges do not fit the host memory budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.storage.budget import format_bytes
from penstock.storage.cache import Arena, Extent, HostCache
from penstock.storage.errors import InputError
from penstock.storage.reader import Reader
from penstock.transfer import cuda
from penstock.transfer.emulated import EmulatedDevice
from penstock.transfer.layout import AdjacencySize
from penstock.transfer.link import LinkReader
from penstock.transfer.options import TransferOptions
from penstock.transfer.pipeline import Pipeline
from penstock.transfer.routes.table import serving
from penstock.transfer.share import share

if TYPE_CHECKING:
    from penstock.engine.config import Config
    from penstock.storage.graph import Adjacency, Graph
    from penstock.transfer.device import Device

BATCH_CHUNKS = 64  # chunks that are decoded at a time when a graph on disk is brought into host memory


def device_of(config: Config, graph: Graph) -> Device | None:
    """The device that the options name, None for the host itself. Raises InputError where it is not here.

    "auto" is the first GPU, but the host for a graph on disk that host memory does not hold: a GPU reads edges from
    host memory so far.
    """
    name = config.device
    if name == "auto":
        free = config.devices == 1 and config.kernels == "host" and _fits(graph, config.memory_bytes)
        name = "cuda:0" if free and cuda.count() else "cpu"
    if name == "cpu":
        return None
    if config.devices != 1:
        raise InputError(f"devices is {config.devices}, and device {name} is one; give one of the two")
    if name == "emulated":
        return EmulatedDevice("emulated:0", config.thread_count, config.device_memory or 1 << 62, config.link_rate)
    return cuda.CudaDevice(cuda.number_of(name), config.device_memory)


def _fits(graph: Graph, budget: int) -> bool:
    """Whether all edges of a graph, decoded, fit host memory (or are there already)."""
    if graph.out.arrays is not None:
        return True
    sizes = [size_of(adjacency) for adjacency in {id(a): a for a in (graph.out, graph.into) if a}.values()]
    return sum(size.edges * (size.neighbor_bytes + size.weight_bytes) for size in sizes) <= budget


def size_of(adjacency: Adjacency) -> AdjacencySize:
    """What an adjacency needs of memory."""
    weight = adjacency.weight_dtype
    return AdjacencySize(
        adjacency.edges, adjacency.neighbor_dtype.itemsize, weight.itemsize if weight else 0, adjacency.chunk_edges
    )


class LinkedEdges:
    """The adjacencies that a run walks, in host memory and as far as they go on `device`.

    fixed: bytes of the device that state and indexes take. `pipeline` brings the edges; `reader` is the link.
    """

    def __init__(
        self, graph: Graph, config: Config, device: Device, adjacencies: list[Adjacency], needs: tuple[bool, int]
    ) -> None:
        weighted, fixed = needs
        self._device = device
        device.use()
        self._kept: list[Any] = []
        arrays = {a.direction: self._host_arrays(graph, a, config, weighted) for a in adjacencies}
        self.reader = LinkReader(device, arrays, keep_times=config.keep_times)
        sizes = [size_of(adjacency) for adjacency in adjacencies]
        left = config.device_edge_memory
        if left is None:
            left = max(0, device.memory_bytes - fixed)
        parts = share(left, sizes, config.partition_bytes, config.route, weights=weighted)
        options = TransferOptions(
            partition_edges=parts.partition_edges,
            slabs=parts.slabs,
            ahead=max(1, parts.slabs),
            routes=serving(device.kind),
            route=config.route,
            model=config.model,
        )
        cache = None
        if parts.slots:
            extents = [Extent(a.direction, a.edges, a.chunk_edges) for a in adjacencies]
            weights = graph.weight_dtype if weighted else None
            arena = Arena(parts.partition_edges, graph.vertex_dtype, weights, None if parts.whole else parts.slots)
            cache = HostCache(extents, arena, self._allocate)
        self.pipeline = Pipeline(graph, self.reader, device, cache, options)
        if cache is not None:
            for adjacency, count in zip(adjacencies, _shares(cache, adjacencies), strict=True):
                self._load(cache, adjacency, count, weighted)
            device.finish()

    def _allocate(self, count: int, dtype: Any) -> Any:
        array = self._device.array(count, dtype)
        self._kept.append(array)
        return array

    def _load(self, cache: HostCache, adjacency: Adjacency, count: int, weighted: bool) -> None:
        """Give an adjacency's first `count` partitions their places and bring them: what stays travels once."""
        if not count:
            return
        step = cache.partition_edges // adjacency.chunk_edges
        cache.replace((), range(cache.entry(adjacency.direction, 0), cache.entry(adjacency.direction, count)))
        chunks = np.arange(min(count * step, adjacency.chunks))
        neighbors, weights = cache.arrays(adjacency.direction, 0, count, weighted)
        self.reader.fetch(adjacency, chunks, 0, neighbors, weights).result()
        cache.mark(adjacency.direction, chunks, weighted)

    def _host_arrays(self, graph: Graph, adjacency: Adjacency, config: Config, weighted: bool) -> tuple[Any, Any]:
        if adjacency.arrays is not None:
            neighbors, weights = adjacency.arrays
            for array in (neighbors, weights if weighted else None):
                if array is not None:
                    self._device.register(array)
            return neighbors, weights if weighted else None
        size = size_of(adjacency)
        needed = adjacency.edges * (size.neighbor_bytes + size.weight_bytes * weighted)
        if needed > config.memory_bytes:
            raise InputError(
                f"{graph.path}: device {self._device.name} reads edges from host memory, and they take "
                f"{format_bytes(needed)} of --host-memory {format_bytes(config.memory_bytes)}: raise it, or use "
                "--device cpu, which reads from disk"
            )
        neighbors = self._device.host_array(adjacency.edges, adjacency.neighbor_dtype)
        kind = adjacency.weight_dtype if weighted else None
        weights = None if kind is None else self._device.host_array(adjacency.edges, kind)
        with Reader(graph, decode_threads=config.thread_count, direct_io=config.direct_io) as reader:
            for first in range(0, adjacency.chunks, BATCH_CHUNKS):
                chunks = np.arange(first, min(first + BATCH_CHUNKS, adjacency.chunks))
                reader.fetch(adjacency, chunks, 0, neighbors, weights).result()
        return neighbors, weights

    def close(self) -> None:
        """Let go of the edges on the device."""
        self.pipeline.close()
        for array in self._kept:
            self._device.free(array)
        self._kept.clear()


def _shares(cache: HostCache, adjacencies: list[Adjacency]) -> list[int]:
    """How many partitions of each adjacency have a place, in proportion to their sizes."""
    entries = [cache.entries(adjacency.direction) for adjacency in adjacencies]
    counts = [entry.stop - entry.start for entry in entries]
    places, total = cache.slots, max(1, sum(counts))
    shares = [places * count // total for count in counts]
    if shares:
        shares[0] += min(places - sum(shares), counts[0] - shares[0])
    return shares
