"""Edges for a device with memory of its own: what it may hold, and the host memory from which the rest comes.

Owns the choice of the device by name, the division of its memory, what goes there before the first iteration, and the
pipeline; `feed.py` has the host's side of the link. Refuses a device that is not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.equipment import Equipment, Needs, divide, size_of
from penstock.engine.feed import Feed
from penstock.engine.heads import RowHeads, head_bytes, index_of, longest
from penstock.engine.lane import Lane
from penstock.engine.sides import AHEAD, Walk
from penstock.storage.cache import Arena, Extent, HostCache
from penstock.storage.errors import InputError
from penstock.transfer import cuda
from penstock.transfer.emulated import EmulatedDevice
from penstock.transfer.feedback import Feedback, Threads
from penstock.transfer.layout import AdjacencySize, Layout
from penstock.transfer.options import TransferOptions
from penstock.transfer.packs import MOST_THREADS
from penstock.transfer.pipeline import Pipeline
from penstock.transfer.rates import Rates
from penstock.transfer.residency import prior
from penstock.transfer.routes.table import serving
from penstock.transfer.share import Share, Wish, share, staging_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.config import Config
    from penstock.storage.graph import Adjacency, Graph
    from penstock.transfer.device import Device


def device_of(config: Config, graph: Graph) -> Device | None:
    """The device that the options name, None for the host itself ("auto": the first GPU). InputError if not here."""
    name = config.device
    if name == "auto":
        free = config.devices == 1 and config.kernels == "host"
        name = "cuda:0" if free and cuda.count() else "cpu"
    if name == "cpu":
        return None
    if config.devices != 1:
        raise InputError(f"devices is {config.devices}, and device {name} is one; give one of the two")
    if name == "emulated":
        return EmulatedDevice("emulated:0", config.thread_count, config.device_memory or 1 << 62, config.link_rate)
    return cuda.CudaDevice(cuda.number_of(name), config.device_memory)


def fits(graph: Graph, budget: int) -> bool:
    """Whether all edges of a graph, decoded, fit host memory (or are there already)."""
    if graph.out.arrays is not None:
        return True
    sizes = [size_of(adjacency) for adjacency in {id(a): a for a in (graph.out, graph.into) if a}.values()]
    return sum(size.edges * (size.neighbor_bytes + size.weight_bytes) for size in sizes) <= budget


class LinkedEquipment(Equipment):
    """Equipment for a device with memory of its own: the pipeline is the link's, and `reader` brings what it lacks."""

    def __init__(self, graph: Graph, config: Config, needs: Needs, device: Device) -> None:
        self.graph, self.config, self.needs = graph, config, needs
        self.chunk_edges = graph.out.chunk_edges
        self._device = device
        device.use()
        self._kept: list[Any] = []
        sizes = [size_of(adjacency) for adjacency in needs.adjacencies]
        left = config.device_edge_memory
        if left is None:
            left = max(0, device.memory_bytes - needs.fixed)
        stay = config.residency != "none"
        self._wish = Wish(config.partition_bytes, config.combine, config.route, stay)
        self.heads = self._make_heads(sizes, left)
        if self.heads is not None:
            left -= head_bytes(graph.vertices, self.heads.index.edges, graph.vertex_dtype.itemsize)
        divided, parts = self._divisions(sizes, left)
        self.feed = Feed(graph, config, needs, device, divided)
        self.feedback = _feedback(config, device, self.feed)
        options = TransferOptions(
            partition_edges=parts.partition_edges,
            slabs=parts.slabs,
            ahead=max(1, parts.slabs, 0 if self.feed.source is None else self.feed.source.options.ahead),
            combine=parts.combine,
            priority=config.priority,
            gather_threads=config.thread_count,
            moving=config.residency == "value",
            routes=serving(device.kind),
            route=config.route,
            model=config.model,
        )
        cache = None
        if parts.slots:
            extents = [Extent(a.direction, a.edges, a.chunk_edges) for a in needs.adjacencies]
            weights = graph.weight_dtype if needs.weighted else None
            arena = Arena(parts.partition_edges, graph.vertex_dtype, weights, None if parts.whole else parts.slots)
            cache = HostCache(extents, arena, self._allocate)
        self.pipelines = [Pipeline(graph, self.feed.reader, device, cache, options, self.feed.source)]
        if cache is not None:
            try:
                self._fill(cache)
            except BaseException:
                self.close()
                raise

    def _fill(self, cache: HostCache) -> None:
        """Bring what is to be on the device before the first iteration."""
        adjacencies = self.needs.adjacencies
        for adjacency, count in zip(adjacencies, _shares(cache, adjacencies), strict=True):
            self._load(cache, adjacency, self._best(adjacency, count))
        self._device.finish()

    def _divisions(self, sizes: list[AdjacencySize], left: int) -> tuple[Layout | None, Share]:
        """How the host's and the device's budgets are divided, in partitions of one size.

        Where the host does not hold every edge a task is one partition, because one slab of the host holds one.
        """
        config, weighted = self.config, self.needs.weighted
        stay = config.residency != "none"
        wish = self._wish
        if self.graph.out.arrays is not None:
            return None, share(left, sizes, wish, weights=weighted)
        width = max(size.neighbor_bytes for size in sizes)
        while True:
            divided = divide(config, self.needs, self.graph, wish.partition_bytes)
            if divided.whole:
                return divided, share(left, sizes, wish, weights=weighted)
            wish = Wish(divided.partition_edges * width, 1, config.route, stay)
            parts = share(left, sizes, wish, weights=weighted)
            if parts.partition_edges == divided.partition_edges:
                return divided, parts
            wish = Wish(parts.partition_edges * width, 1, config.route, stay)

    def _make_heads(self, sizes: list[AdjacencySize], budget: int) -> RowHeads | None:
        """Heads as long as fit where a cache of edge ranges would be, for what is pulled; None where of no use."""
        total = sum(size.edges * (size.neighbor_bytes + size.weight_bytes * self.needs.weighted) for size in sizes)
        by_value = self.config.residency == "value" and self._wish.cached
        if not (self.needs.heads and by_value) or total <= budget:
            return None
        pulled = self.graph.into
        assert pulled is not None
        width = pulled.neighbor_dtype.itemsize
        each = longest(pulled.index(), width, budget - staging_bytes(budget, self._wish, self.chunk_edges * width))
        if not each:
            return None
        index = index_of(pulled.index(), each)
        return RowHeads(each, index, self._allocate(max(1, index.edges), pulled.neighbor_dtype))

    def _lane(self, number: int, walk: Walk, weighted: bool) -> Lane:
        lane = super()._lane(number, walk, weighted)
        if walk == AHEAD["pull"] and not weighted:
            lane.heads = self.heads
        return lane

    def _allocate(self, count: int, dtype: Any) -> Any:
        array = self._device.array(count, dtype)
        self._kept.append(array)
        return array

    def _best(self, adjacency: Adjacency, count: int) -> NDArray[np.int64]:
        """The `count` partitions that go to the device before anything is known of the demand, ascending."""
        if self.config.residency == "first":
            return np.arange(count)
        table = self.pipelines[0].table("out" if adjacency.direction == "out" else "in")
        size = size_of(adjacency)
        values = prior(
            table.lengths, table.v1 - table.v0, size.neighbor_bytes + size.weight_bytes * self.needs.weighted
        )
        return np.sort(np.argsort(-values, kind="stable")[:count])

    def _load(self, cache: HostCache, adjacency: Adjacency, numbers: NDArray[np.int64]) -> None:
        """Give these partitions of an adjacency their places and bring them: what stays travels once."""
        weighted, step = self.needs.weighted, cache.partition_edges // adjacency.chunk_edges
        entries = cache.entry(adjacency.direction, 0) + numbers
        cache.replace((), entries)
        cache.use[entries] = 1.0
        for first in (int(number) for number in numbers):
            chunks = np.arange(first * step, min((first + 1) * step, adjacency.chunks))
            neighbors, weights = cache.arrays(adjacency.direction, first, 1, weighted)
            ticket = self.feed.reader.fetch(adjacency, chunks, first * cache.partition_edges, neighbors, weights)
            assert ticket is not None, "the host has a slab for the one partition that is being loaded"
            ticket.result()
            cache.mark(adjacency.direction, chunks, weighted)

    def close(self) -> None:
        """Let go of the edges on the device."""
        self._device.finish()
        self.pipelines[0].close()
        self.feed.close()
        for array in self._kept:
            self._device.free(array)
        self._kept.clear()


def _feedback(config: Config, device: Device, feed: Feed) -> Feedback:
    """What corrects the rates; a link that is emulated without a rate has nothing to teach."""
    rates = config.rates or Rates.pcie5(config.thread_count)
    threads = Threads(config.thread_count, min(MOST_THREADS, config.thread_count))
    timed = device.kind != "emulated" or config.link_rate is not None
    return Feedback(rates, threads, feed.disk, corrects=config.feedback and timed)


def _shares(cache: HostCache, adjacencies: Sequence[Adjacency]) -> list[int]:
    """How many partitions of each adjacency have a place, in proportion to their sizes."""
    entries = [cache.entries(adjacency.direction) for adjacency in adjacencies]
    counts = [entry.stop - entry.start for entry in entries]
    places, total = cache.slots, max(1, sum(counts))
    shares = [places * count // total for count in counts]
    if shares:
        shares[0] += min(places - sum(shares), counts[0] - shares[0])
    return shares
