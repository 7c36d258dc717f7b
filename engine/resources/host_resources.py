"""What runs on one graph share: reader, host cache and pipeline, as the memory plan has them.

Owns the streams by which a run reaches the edges. Here it computes on the host's cores; `device_resources.py` has the
same for a device with memory of its own.
"""

from __future__ import annotations

import logging
import math
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.resources.block_stream import BlockStream
from penstock.engine.resources.edge_stream import EdgeStream
from penstock.engine.resources.memory_plan import plan_memory
from penstock.engine.resources.ownership import MARGIN, LeftOut, Ownership, seconds_for_edge
from penstock.engine.state.grouped_sources import LEAST_SWEEPS, LEAST_VERTICES, GroupedSources, place_bytes
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.slot_pool import aligned_empty
from penstock.storage.base.timeline import Timeline
from penstock.storage.read.partition_cache import Allocate, PartitionCache
from penstock.storage.read.reader import Reader
from penstock.transfer.calibration.feedback import Feedback
from penstock.transfer.devices.device import Device
from penstock.transfer.pipeline import Pipeline
from penstock.transfer.staging.edge_source import EdgeSource
from penstock.transfer.staging.gather_buffers import MOST_THREADS
from penstock.transfer.staging.staging import Staging
from penstock.transfer.values.options import TransferOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import DTypeLike, NDArray
    from penstock.engine.program.bindings import Author
    from penstock.engine.program.program import Program
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.direction import Direction, Traversal
    from penstock.engine.resources.packed_edges import PackedPlan
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.format.graph import Graph
    from penstock.storage.format.index import Index
    from penstock.transfer.planning.device_budget import DeviceBudget
    from penstock.transfer.planning.host_budget import HostBudget

_log = logging.getLogger("penstock.engine.resources.host_resources")


class HostResources:
    """Reader, cache and pipeline for some adjacencies of a graph, within a budget.

    rank: of a run of several ranks, the number of this one, and how many there are. moved: which vertices each rank
    owns, where these were moved in earlier runs. paper: whether nothing is allocated or read: a forecast asks what the
    run would do.
    """

    _of_rows: type[EdgeStream] = EdgeStream

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
        self.graph, self.config, self.needs = graph, config, needs
        for one in needs.indexed:
            one.index(config.thread_count, page_threads=needs.page_threads)
        self.moved = self.ownership = moved
        if rank is not None and moved is None:
            self.ownership = ownership_of(graph, needs, rank, config.shares)
        self._left_out: LeftOut | None = None
        needs = needs_of_rank(needs, self.ownership)
        self.reader: Reader | None = None
        self.chunk_edges = graph.out.chunk_edges
        self.plan = plan_memory(graph, config, needs, None).placed(graph, config)
        divided = self.plan.host
        self.spare = self.host_spare = self.plan.spare
        self.groups: dict[str, GroupedSources] = {}
        allocate = numbers if paper else aligned_empty
        chunks = config.partition_bytes // (self.chunk_edges * graph.out.neighbor_dtype.itemsize)
        whole = TransferOptions(max(1, chunks) * self.chunk_edges, slabs=0, ahead=2)
        options = whole if divided is None else divided.options
        if divided is None:
            cache = PartitionCache(graph.adjacencies, options.partition_edges, room=0)
        else:
            cache = make_cache(graph, needs, divided, self.plan.packed, allocate)
        kept = divided is not None and self.plan.packed is None and cache.whole and not paper
        if kept and needs.owned_edges is not None and self.ownership is not None:
            self._left_out = LeftOut(cache, needs)
            self._left_out.own(self.ownership)
        with ExitStack() as opened:
            if divided is not None and not paper:
                self.reader = opened.enter_context(open_reader(graph, config, divided, timeline))
            dtypes, packed = (graph.out.neighbor_dtype, graph.out.weight_dtype), self.plan.packed is not None
            source = EdgeSource(self.reader)
            self.pipeline = Pipeline(graph, Staging(device, source, cache, options, dtypes, kernels_unpack=packed))
            opened.callback(self.pipeline.close)
            self._opened = opened.pop_all()
        if timeline is not None:
            self.pipeline.watch(timeline)
        self.feedback = feedback_of(config, device, self.reader)

    @staticmethod
    def ability(graph: Graph, config: Config, device: Device) -> tuple[float, float, float]:
        """What is expected of a rank before anything is measured, as `starting_shares` takes it."""
        return device.rates(config.thread_count).kernel_edges, math.inf, 0.0

    def streams(
        self, directions: dict[Direction, tuple[Traversal, ...]], weighted: bool, sent: Index
    ) -> list[dict[Direction, EdgeStream]]:
        """An edge stream for each direction; and those of second walks, which go against the edges, if there are any.

        sent: the index of what each vertex sends along, which a list's blocks have not themselves.
        """
        first, second = (
            {name: self._stream(walks[at], weighted, sent) for name, walks in directions.items() if len(walks) > at}
            for at in (0, 1)
        )
        for name, stream in second.items():
            stream.both_ways = first[name].both_ways = stream.direction != first[name].direction
        return [first, second]

    def _stream(self, walk: Traversal, weighted: bool, sent: Index) -> EdgeStream:
        adjacency = self.graph.adjacency(walk.key)
        assert adjacency is not None
        index = adjacency.index() if walk.ways is None else sent
        made = self._of_rows if walk.ways is None else partial(BlockStream, spans=self._spans, ways=walk.ways)
        stream: EdgeStream = made(
            self.pipeline,
            walk.direction,
            walk.key,
            index=index,
            feedback=self.feedback,
            with_weights=weighted,
            chunk_edges=self.chunk_edges,
            edge_bytes=adjacency.edge_bytes(weighted),
        )
        if self.ownership is not None:
            stream.own(self.ownership)
        return stream

    @cached_property
    def _spans(self) -> NDArray[np.uint32]:
        """Which vertices the blocks of a list can have."""
        return self.graph.spans()

    def own(self, ownership: Ownership, streams: Iterable[EdgeStream]) -> None:
        """Let this rank own other vertices from now on, between two walks; streams: those of the run."""
        self.moved = self.ownership = ownership
        if self._left_out is not None:
            before = self._left_out.edges
            self._left_out.own(ownership)
            taken = (self._left_out.edges - before) * self.graph.out.edge_bytes(self.needs.weighted)
            self.spare, self.host_spare = self.spare - taken, self.host_spare - taken
        for stream in streams:
            stream.own(ownership)

    @property
    def most_edges(self) -> float:
        """Edges of owned rows, now or earlier, that this rank has room for; inf where it may own any."""
        if self._left_out is None:
            return math.inf
        room = self._left_out.edges + max(0, self.spare) // self.graph.out.edge_bytes(self.needs.weighted)
        return room - 2 * len(self.needs.adjacencies) * (MARGIN + self.chunk_edges)

    @cached_property
    def edge_seconds(self) -> float:
        """Seconds until an edge that this rank gets is where its kernels read it."""
        weighted, adjacencies = self.needs.weighted, self.needs.adjacencies
        edges, stored = sum(one.edges for one in adjacencies), 0
        if self.graph.out.arrays is None:
            stored = sum(int(one.chunk_bytes(weighted).sum()) for one in adjacencies)
        return seconds_for_edge(stored / max(1, edges), self.graph.out.edge_bytes(weighted), self.feedback.given)

    def group_sources(
        self, program: Program, author: Author, streams: Mapping[Direction, EdgeStream]
    ) -> GroupedSources | None:
        """What may group the messages of a program's sweeps, if that may pay and the budget has room; else None.

        Runs share it. Only edges of the cache are written to, never those of a graph from memory.
        """
        able = self.plan.packed is None and author.sweeps and not author.reads_sender and list(streams) == ["pull"]
        large = self.graph.vertices >= LEAST_VERTICES and program.max_iter >= LEAST_SWEEPS
        if not (able and large) or self.graph.out.arrays is not None or self.plan.needs.page_threads:
            return None
        stream = streams["pull"]
        if stream.key not in self.groups:
            taken = place_bytes(self.graph.vertices, self.graph.vertex_dtype.itemsize)
            if taken > self.spare:
                return None
            self.groups[stream.key] = GroupedSources(stream.index.edges)
            self.spare, self.host_spare = self.spare - taken, self.host_spare - taken
        return self.groups[stream.key]

    def give_ids_back(self, kept: GroupedSources | None) -> None:
        """Let edges in memory hold ids again, but those that the run sweeps with these groups."""
        for groups in self.groups.values():
            if groups is not kept and groups.neighbors is not None:
                groups.give_back(groups)

    @property
    def own_indexes(self) -> list[Index]:
        """Row indexes that were made for this rank's rows alone, and go with these resources."""
        return []

    @property
    def mixed(self) -> bool:
        """Whether edges in memory can no longer be read, because writing to them was interrupted."""
        return any(groups.mixed for groups in self.groups.values())

    def bring_residents(self) -> None:
        """Do nothing: edges are read when they are first wanted."""

    @property
    def bytes_read(self) -> int:
        """Bytes read from disk so far; any thread may ask."""
        rows = sum(one.index_bytes_read for one in self.needs.indexed)
        return rows if self.reader is None else rows + self.reader.bytes_read

    def log(self) -> None:
        """Tell the log how edges will travel."""
        held, pipeline = self.plan.held, self.pipeline
        places = f"{format_bytes(held.host)} of them have room in host memory, {format_bytes(held.device)} on a device"
        options = pipeline.options
        ways = ", ".join(options.routes) if options.route == "auto" else options.route
        cut = f"partitions of {options.partition_edges} edges, {options.slabs} slabs, {options.ahead} tasks ahead"
        kind = "edges" if not pipeline.cache.tables else "packed edges"
        name, edges = pipeline.device.name, f"{format_bytes(held.edges)} of {kind}"
        _log.info("%s: %s, %s; routes %s; %s", name, edges, places, ways, cut)

    def settle(self) -> None:
        """Complete the records of the last walk, once the device has done."""
        self.pipeline.device.finish()
        self.feedback.settle(self.pipeline.device)
        self.pipeline.check()

    def close(self) -> None:
        """Stop the reader and forget the caches, and indexes of which only pages are in memory."""
        self._opened.close()
        for one in self.needs.indexed if self.needs.page_threads else ():
            one.drop_index()


def ownership_of(
    graph: Graph, needs: MemoryRequest, rank: tuple[int, int], shares: tuple[float, ...] | None = None
) -> Ownership:
    """Which vertices each rank owns at the start of runs that read these edges; shares: the ranks' relative speeds."""
    return Ownership.of([one.index() for one in needs.adjacencies], graph.vertices, *rank, shares)


def needs_of_rank(needs: MemoryRequest, ownership: Ownership | None) -> MemoryRequest:
    """The needs of a rank that reads only its own edges; the same ones without ranks, and where each reads all rows."""
    if ownership is None or needs.all_rows:
        return needs
    read = (ownership.read(one.index()) for one in needs.adjacencies)
    return replace(needs, owned_edges=sum(last - first for first, last in read))


def feedback_of(config: Config, device: Device, disk: Reader | None) -> Feedback:
    """What corrects the rates."""
    decoding = config.thread_count if disk is None else disk.decode_threads
    threads = decoding, min(MOST_THREADS, config.thread_count)
    return Feedback(config.rates_on(device), threads, disk, corrects=config.tuning.feedback and device.measurable)


def open_reader(graph: Graph, config: Config, divided: HostBudget, timeline: Timeline | None) -> Reader:
    """The reader that a division of the host's memory has room for."""
    return Reader(
        graph,
        decode_threads=config.thread_count if divided.decoders is None else divided.decoders,
        reads_in_flight=divided.reads_in_flight,
        most_bytes=divided.read_bytes,
        direct_io=config.direct_io,
        throttle=config.tuning.throttle,
        timeline=timeline,
    )


def numbers(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """An array of a size, and of no memory."""
    return np.broadcast_to(np.empty(1, dtype), (count,))


def make_cache(
    graph: Graph,
    needs: MemoryRequest,
    divided: HostBudget | DeviceBudget,
    packed: PackedPlan | None,
    allocate: Allocate = aligned_empty,
    *,
    apart: bool = False,
) -> PartitionCache:
    """The cache that a division of the host's memory, or of a device's, has room for, of packed edges or of plain ones.

    apart: see `PartitionCache`.
    """
    if packed is not None:
        return PartitionCache(packed.layouts, packed.partition_edges, room=divided.words, allocate=allocate)
    dtypes, step = (graph.out.neighbor_dtype, graph.weight_dtype if needs.weighted else None), divided.partition_edges
    room = None if divided.whole else divided.slots * step
    windows = needs.adjacencies if needs.value_room and not divided.whole else ()
    stored = (*needs.adjacencies, *(window for adjacency in windows for window in adjacency.windows))
    return PartitionCache(stored, step, dtypes, room, allocate, apart=apart)
