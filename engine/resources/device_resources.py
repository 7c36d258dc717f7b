"""Edges for a device with memory of its own: what it may hold, and the host memory from which the rest comes.

Owns what goes there before the first iteration, and the pipeline; `memory_plan.py`
divides its memory, `host_edge_source.py` has the host's side of the link. Refuses a device that is not here.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from penstock.engine.kernels.packed.unpackers import unpacker_of
from penstock.engine.resources.direction import FORWARD, Traversal
from penstock.engine.resources.direction_cost import DegreeSample, sample_degrees
from penstock.engine.resources.edge_stream import EdgeStream
from penstock.engine.resources.host_edge_source import HostEdgeSource
from penstock.engine.resources.host_resources import HostResources, feedback_of, make_cache, numbers, ownership_of
from penstock.engine.resources.link_stream import LinkStream
from penstock.engine.resources.memory_plan import plan_memory
from penstock.engine.resources.ownership import own_rows
from penstock.engine.state.row_prefix_cache import RowPrefixCache
from penstock.storage.base.stage_clock import stage
from penstock.storage.base.timeline import Timeline
from penstock.transfer.devices.device import Device, Kind
from penstock.transfer.devices.named import device_named
from penstock.transfer.pipeline import Pipeline
from penstock.transfer.staging.fetch import fetch
from penstock.transfer.staging.partition_directory import LinkDirectory
from penstock.transfer.staging.staging import DevicePacking, Staging
from penstock.transfer.values.options import TransferOptions
from penstock.transfer.values.residency import prior
from penstock.transfer.values.task import TaskRecord

if TYPE_CHECKING:
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.ownership import Ownership
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.format.graph import Adjacency, Graph
    from penstock.storage.format.index import Index
    from penstock.storage.read.partition_cache import PartitionCache
    from penstock.transfer.staging.in_flight import Transfer
    from penstock.transfer.staging.partition_directory import PartitionDirectory
    from penstock.transfer.values.task import Direction as AdjacencyDirection

LOADED_AT_ONCE = 4
"""Partitions that are on their way to the device at once before the first iteration."""


def device_of(config: Config) -> Device:
    """The device that the options name. InputError if not here."""
    given = config.device, config.kernels, config.thread_count, config.device_memory, config.tuning.link_rate
    return device_named(*given)


def fits(graph: Graph, budget: int) -> bool:
    """Whether all edges of a graph, decoded, fit host memory (or are there already)."""
    return graph.out.arrays is not None or _edge_bytes(graph) <= budget


def fits_device(graph: Graph, config: Config, device: Device) -> bool:
    """Whether edges come to a device once at most: it computes where they are, or surely has room for all of them."""
    room = config.device_edge_memory or device.memory_bytes // 2
    kept = config.route in ("auto", "resident") and config.tuning.residency != "none"
    return device.reads_host or (kept and _edge_bytes(graph) <= room)


def _edge_bytes(graph: Graph) -> int:
    return sum(one.edges * one.edge_bytes(with_weights=True) for one in graph.adjacencies)


class DeviceResources(HostResources):
    """Equipment for a device with memory of its own: the pipeline is the link's, and `reader` brings what it lacks.

    rank, paper: as in `HostResources`. All that is planned, kept, page-locked and read is of a rank's own rows, which
    `graph` holds alone.
    """

    _of_rows = LinkStream

    def __init__(
        self,
        graph: Graph,
        config: Config,
        needs: MemoryRequest,
        device: Device,
        timeline: Timeline | None = None,
        rank: tuple[int, int] | None = None,
        moved: Ownership | None = None,
        *,
        paper: bool = False,
    ) -> None:
        self.needs, self.moved, self._paper = needs, moved, paper
        self.ownership = None if rank is None else ownership_of(graph, needs, rank, config.shares)
        graph, needs = own_rows(graph, needs, self.ownership)
        self.graph, self.config, self.own_needs = graph, config, needs
        self.chunk_edges = graph.out.chunk_edges
        self._device = device
        for one in (*needs.indexed, *needs.adjacencies) if needs.page_threads else ():
            one.index(config.thread_count, page_threads=needs.page_threads)
        device.use()
        self._kept: list[Any] = []
        self.plan = placed = plan_memory(graph, config, needs, device.memory_bytes).placed(graph, config)
        parts = placed.device
        assert parts is not None, "of a device"
        self.spare, self.host_spare = placed.spare, placed.host_spare
        self.heads: RowPrefixCache | None = None
        if placed.head_index is not None:
            pulled = graph.into
            assert pulled is not None
            held = self._allocate(max(1, placed.head_index.edges), pulled.neighbor_dtype)
            rows = (0, graph.vertices) if self.ownership is None or needs.all_rows else self.ownership.vertices
            self.heads = RowPrefixCache(placed.head_edges, placed.head_index, held, rows)
        for one in needs.adjacencies:
            one.index()
        self._degrees: dict[AdjacencyDirection, Callable[[], DegreeSample]] = {}
        self.groups, self._opened = {}, ExitStack()
        self.host = HostEdgeSource(graph, config, placed, device, timeline, paper=paper)
        self._opened.callback(self.host.close)
        try:
            self.feedback = feedback_of(config, device, self.host.disk)
            behind = self.host.source.host
            ahead = 0 if behind is None else behind.options.ahead
            options = TransferOptions(
                partition_edges=parts.partition_edges,
                slabs=parts.slabs,
                ahead=max(1, parts.slabs, ahead),
                combine=parts.combine,
                priority=config.tuning.priority,
                gather_threads=config.thread_count,
                plain_slabs=parts.plain_slabs,
                routes=placed.routes,
                route=config.route,
                model=config.tuning.model,
            )
            packed, unpacking, dtypes = placed.packed, None, (graph.out.neighbor_dtype, graph.out.weight_dtype)
            if packed is not None and not paper:
                unpacker = unpacker_of(device, config.kernels)
                unpacking = DevicePacking(device, unpacker, packed.layouts, graph.vertices)
            cache = make_cache(graph, needs, parts, packed, self._allocate)
            staging = Staging(device, self.host.source, cache, options, dtypes, unpacking, self.host.plain)
            self.pipeline = Pipeline(graph, staging, LinkDirectory)
            self._opened.callback(self.pipeline.close)
            if timeline is not None:
                self.pipeline.watch(timeline)
            if cache.room:
                self._place(cache)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def ability(graph: Graph, config: Config, device: Device) -> tuple[float, float, float]:
        """As of `HostResources`; edges that the device does not keep come over the link."""
        memory, rates = device.memory_bytes, config.rates_on(device)
        each = float(graph.out.edge_bytes(with_weights=False))
        if config.packed == "auto" and graph.out.arrays is None:
            each = min(each, graph.file_bytes / max(1, sum(one.edges for one in graph.adjacencies)))
        kept = min(memory, config.device_edge_memory or memory) if config.tuning.residency == "value" else 0
        return rates.kernel_edges, rates.copy_bytes / each, kept / each

    def group_sources(self, *_: Any, **__: Any) -> None:
        """None: on a device messages stay at their vertices' numbers."""

    def _place(self, cache: PartitionCache) -> None:
        """Choose what is to stay on the device, most value first; bring it now unless it is brought when first wanted.

        Of packed edges what fits; else partitions of each adjacency, in proportion to their numbers.
        """
        needs, values = self.own_needs, []
        for one in needs.adjacencies:
            table = self.directory(one).table
            values.append(prior(table.lengths, table.v1 - table.v0, one.edge_bytes(needs.weighted)))
        if cache.tables:
            order = np.argsort(-np.concatenate(values), kind="stable")
            entries = np.sort(order[np.cumsum(cache.sizes[order]) <= cache.room])
        else:
            places, total = cache.room // cache.partition_edges, max(1, sum(map(len, values)))
            shares = [places * len(each) // total for each in values]
            shares[0] += min(places - sum(shares), len(values[0]) - shares[0])
            best = [np.argsort(-each, kind="stable")[:most] for each, most in zip(values, shares, strict=True)]
            firsts = [cache.entry(one.direction, 0) for one in needs.adjacencies]
            entries = np.concatenate([first + np.sort(each) for first, each in zip(firsts, best, strict=True)])
        cache.replace((), entries)
        cache.use[entries] = 1.0
        if not (self.loads_later or self._paper):
            self.bring_residents()

    @property
    def loads_later(self) -> bool:
        """Whether what is to stay is brought when it is first wanted: from disk, and where there are slabs.

        Without slabs no route but `resident` brings what has a place.
        """
        return self.plan.loading and self.pipeline.options.slabs > 0

    def bring_residents(self) -> None:
        """Bring what has a place on the device and is not there yet."""
        with stage("loading"):
            for adjacency in self.own_needs.adjacencies:
                directory = self.directory(adjacency)
                lacking = (directory.starts >= 0) & ~directory.resident(self.needs.weighted)
                self._load(directory, np.flatnonzero(lacking).tolist())
            self._device.finish()

    def directory(self, adjacency: Adjacency) -> PartitionDirectory:
        """Where the edges of an adjacency are."""
        return self.pipeline.directory(cast("Any", adjacency.direction))

    def _stream(self, walk: Traversal, weighted: bool, sent: Index) -> EdgeStream:
        stream = super()._stream(walk, weighted, sent)
        stream.degrees = self._degrees.setdefault(
            stream.key, functools.cache(functools.partial(sample_degrees, stream.index))
        )
        if self.own_needs is not self.needs:
            stream.part = stream.index.edges / max(1, self.graph.edges)
        if walk == FORWARD["pull"] and not weighted:
            stream.heads = self.heads
        return stream

    @property
    def own_indexes(self) -> list[Index]:
        """Row indexes that were made for this rank's rows alone, and go with these resources."""
        pairs = zip(self.needs.adjacencies, self.own_needs.adjacencies, strict=True)
        return [part.index() for whole, part in pairs if part is not whole]

    @property
    def bytes_read(self) -> int:
        """Bytes read from disk so far; any thread may ask."""
        return 0 if self.host.disk is None else self.host.disk.bytes_read

    def _allocate(self, count: int, dtype: Any) -> Any:
        if self._paper:
            return numbers(count, dtype)
        array = self._device.array(count, dtype)
        self._kept.append(array)
        return array

    def _load(self, directory: PartitionDirectory, numbers: list[int]) -> None:
        """Bring these partitions of an adjacency to their places, several at once."""
        adjacency, options = directory.adjacency, directory.staging.options
        step, last = options.partition_edges // adjacency.chunk_edges, -(-adjacency.edges // adjacency.chunk_edges)
        coming: deque[Transfer] = deque()
        try:
            for number in numbers:
                chunks = np.arange(number * step, min((number + 1) * step, last))
                record = TaskRecord("filter", directory.direction, (number,))
                request = directory.request(number, number, chunks, self.needs.weighted, record)
                if len(coming) == LOADED_AT_ONCE:
                    _finish(coming.popleft())
                while (transfer := fetch(request, directory)) is None:
                    assert coming, "the host has a slab for a partition that is loaded alone"
                    _finish(coming.popleft())
                coming.append(transfer)
            while coming:
                _finish(coming.popleft())
        finally:
            for transfer in coming:
                transfer.release()

    def close(self) -> None:
        """Let go of the edges on the device."""
        self._device.finish()
        self._opened.close()
        for array in self._kept:
            self._device.free(array)
        self._kept.clear()
        for one in (*self.needs.indexed, *self.needs.adjacencies) if self.needs.page_threads else ():
            one.drop_index()


RESOURCES: dict[Kind, type[HostResources]] = {
    "host": HostResources, "emulated": DeviceResources, "cuda": DeviceResources,
}  # fmt: skip
"""What runs share on each kind of device."""


def _finish(transfer: Transfer) -> None:
    """Wait until a transfer has arrived, and release it."""
    try:
        transfer.view()
    finally:
        transfer.release()
