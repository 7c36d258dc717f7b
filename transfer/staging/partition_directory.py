"""One adjacency as a pipeline sees it: where its edges are now, and the means to bring the rest.

Owns the answers that need the cache's books: what is resident, which wanted chunks are missing, where a
partition lies. Refuses to start anything itself; routes do that. Nothing here waits.
"""

from __future__ import annotations

import logging
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.storage.read.partition_cache import HostCache, contiguous, needed
from penstock.transfer.devices.device import Device
from penstock.transfer.staging.fetch import ChunkReader
from penstock.transfer.staging.gather_buffers import GatherBuffers
from penstock.transfer.staging.slab_pool import Slabs
from penstock.transfer.values.residency import Residency, age, choose, traffic
from penstock.transfer.values.task import Demand, Direction, Ints, PartitionTable, RowIndex, partitions

_log = logging.getLogger("penstock.transfer.staging.partition_directory")
DENSE = 0.5
"""Share of a slot's bytes that must be wanted for a partition to be brought whole, and so to stay on a device."""


class AdjacencyArrays(Protocol):
    """What transfer asks of one adjacency of a graph (storage/format/graph.py)."""

    @property
    def direction(self) -> str:
        """Return "out" or "in", whichever it is stored as."""

    @property
    def edges(self) -> int:
        """Return the edges stored."""

    @property
    def chunk_edges(self) -> int:
        """Return the edges of every chunk but the last."""

    @property
    def neighbor_dtype(self) -> DTypeLike:
        """Return the type of a decoded neighbor."""

    @property
    def weight_dtype(self) -> DTypeLike | None:
        """Return the type of a decoded weight, None where there are none."""

    @property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any] | None] | None:
        """Return neighbors and weights of an in-memory graph, None for a file."""

    def chunk_bytes(self, with_weights: bool) -> Ints:
        """Return the compressed bytes of every chunk."""

    def index(self) -> RowIndex:
        """Return the row index."""


class PartitionDirectory:
    """An adjacency, its partitions, and what carries its edges: cache, slabs, reader, device."""

    def __init__(
        self,
        adjacency: AdjacencyArrays,
        direction: Direction,
        device: Device,
        partition_edges: int,
        moving: bool = False,
    ) -> None:
        self.adjacency = adjacency
        self.moving = moving
        self.direction = direction
        self.device = device
        self.table = _table(adjacency, direction, partition_edges)
        self.cache: HostCache | None = None
        self.slabs: Slabs | None = None
        self.reader: ChunkReader | None = None
        self.packs: GatherBuffers | None = None  # for a device behind a link: where gathered edges wait for their copy
        self.source: PartitionDirectory | None = None  # of the host behind a link, where that does not hold every edge
        self.in_memory = adjacency.arrays is not None and device.reads_host
        self._linked = not device.reads_host
        self._key = adjacency.direction
        self._step = max(1, self.table.partition_edges // adjacency.chunk_edges)
        self._chunks = -(-adjacency.edges // adjacency.chunk_edges)
        self._bounds = np.arange(0, self._chunks, self._step)
        self._chunk_bytes: dict[bool, Ints] = {}
        self._whole: dict[bool, Residency] = {}

    def edge_bytes(self, with_weights: bool) -> int:
        """Return d: bytes of an edge over all arrays read."""
        weight = self.adjacency.weight_dtype if with_weights else None
        extra = 0 if weight is None else np.dtype(weight).itemsize
        return np.dtype(self.adjacency.neighbor_dtype).itemsize + extra

    def whole(self, with_weights: bool) -> bool:
        """Return whether the entire adjacency lies in one array that the device reads."""
        if self.in_memory or not self._chunks:
            return True
        return self.cache is not None and self.cache.complete(self._key, with_weights)

    def whole_arrays(self, with_weights: bool) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return neighbors and weights of the entire adjacency; it must be `whole`."""
        arrays = self.adjacency.arrays
        if self.in_memory and arrays is not None:
            return arrays[0], arrays[1] if with_weights else None
        return self.placed(0, len(self.table), with_weights)

    def wanted(self, demand: Demand, first: int, last: int) -> Ints:
        """Return the chunks wanted of partitions first..last (inclusive), ascending."""
        c0, c1 = first * self._step, min((last + 1) * self._step, self._chunks)
        if demand.whole:
            return np.arange(c0, c1, dtype=np.int64)
        mask = np.repeat(demand.wanted[first : last + 1], self._step)[: c1 - c0]
        if demand.wanted_chunks is not None:
            mask &= demand.wanted_chunks[c0:c1] != 0
        return np.asarray(np.flatnonzero(mask) + c0, dtype=np.int64)

    def here(self, with_weights: bool) -> NDArray[np.bool_]:
        """Return which partitions the device reads without any transfer, bool[p]."""
        if self.whole(with_weights):
            return np.ones(len(self.table), dtype=bool)
        if self.cache is None:
            return np.zeros(len(self.table), dtype=bool)
        return np.logical_and.reduceat(self._held(with_weights), self._bounds)

    def hits(self, demand: Demand) -> int:
        """Return how many chunks a demand finds in the cache when the adjacency is `whole`."""
        if self.in_memory:
            return 0
        if demand.wanted_chunks is None or demand.whole:
            return self._chunks
        return int(np.count_nonzero(demand.wanted_chunks))

    def missing(self, chunks: Ints, with_weights: bool) -> Ints:
        """Return those chunks that the cache does not hold."""
        assert self.cache is not None
        bits = needed(with_weights)
        absent = (self.cache.held(self._key)[chunks] & bits) != bits
        return np.asarray(chunks[absent], dtype=np.int64)

    def kept(self, first: int, last: int) -> bool:
        """Return whether partitions first..last have places in the cache, one after another."""
        if self.cache is None:
            return False
        return contiguous(self.starts[first : last + 1], self.table.partition_edges)

    def placed(self, first: int, count: int, with_weights: bool) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the cache's arrays of `count` partitions that lie one after another."""
        assert self.cache is not None
        return self.cache.arrays(self._key, first, count, with_weights)

    def entries(self, first: int, last: int) -> list[int]:
        """Return the cache entries of partitions first..last."""
        assert self.cache is not None
        return [self.cache.entry(self._key, number) for number in range(first, last + 1)]

    @property
    def starts(self) -> Ints:
        """Where each partition lies in the cache arena, -1 for nowhere, int64[p]."""
        if self.cache is None:
            return np.full(len(self.table), -1, dtype=np.int64)
        return self.cache.starts[self.cache.entries(self._key)]

    @property
    def key(self) -> str:
        """The direction under which the cache knows the adjacency."""
        return self._key

    def residency(self, demand: Demand, elsewhere: NDArray[np.bool_] | None = None) -> Residency:
        """Return where the edges of this demand lie; chooses first what the cache keeps from now on.

        elsewhere: partitions that a device behind a link holds, bool[p].
        """
        if self.whole(demand.with_weights):
            return self._wholly(demand.with_weights)
        self._keep(demand, self._wanted_mask(demand), elsewhere)
        absent = self.absent(demand)
        disk_bytes, decode_bytes = self.to_read(absent, demand.with_weights)
        return Residency(
            resident=~self.partitions_of(absent),
            places=self.starts.copy(),
            disk_bytes=disk_bytes,
            decode_bytes=decode_bytes,
            edge_bytes=self.edge_bytes(demand.with_weights),
            lacking_bytes=self.decoded(absent, demand.with_weights) if self._linked else None,
        )

    def to_read(self, absent: NDArray[np.bool_], with_weights: bool) -> tuple[Ints, Ints]:
        """Return the compressed bytes of these chunks and what they decode to, int64[p] each.

        0 behind a link: what such a device lacks is in host memory, decoded, or read from disk by the host's stage.
        """
        if self._linked:
            nothing = np.zeros(len(self.table), dtype=np.int64)
            return nothing, nothing
        stored = np.add.reduceat(self._sizes(with_weights) * absent, self._bounds)
        return stored, self.decoded(absent, with_weights)

    def decoded(self, chunks: NDArray[np.bool_], with_weights: bool) -> Ints:
        """Return the bytes of these chunks when they are decoded, int64[p]."""
        count = np.add.reduceat(chunks, self._bounds, dtype=np.int64)
        edges = np.minimum(count * self.adjacency.chunk_edges, self.table.lengths)
        return np.asarray(edges * self.edge_bytes(with_weights))

    def absent(self, demand: Demand) -> NDArray[np.bool_]:
        """Return which chunks are wanted and not here, bool[chunks]."""
        wanted = self._wanted_mask(demand)
        return wanted if self.cache is None else wanted & ~self._held(demand.with_weights)

    @property
    def held_partitions(self) -> NDArray[np.bool_]:
        """Which partitions the cache holds, if only in part, bool[p]."""
        if self.cache is None:
            return np.zeros(len(self.table), dtype=bool)
        return self.partitions_of(self.cache.held(self._key) != 0)

    def partitions_of(self, chunks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which partitions hold any of these chunks, bool[p]."""
        return np.logical_or.reduceat(chunks, self._bounds)

    def _wholly(self, with_weights: bool) -> Residency:
        known = self._whole.get(with_weights)
        if known is None:
            none = np.zeros(len(self.table), dtype=np.int64)
            here = np.ones(len(self.table), dtype=bool)
            d = self.edge_bytes(with_weights)
            known = Residency(here, none, none, none, d, whole=True)
            self._whole[with_weights] = known
        return known

    def _wanted_mask(self, demand: Demand) -> NDArray[np.bool_]:
        """Return which chunks are wanted, bool[chunks]."""
        if demand.whole:
            return np.ones(self._chunks, dtype=bool)
        mask = np.repeat(demand.wanted, self._step)[: self._chunks]
        return mask if demand.wanted_chunks is None else mask & (demand.wanted_chunks != 0)

    def _held(self, with_weights: bool) -> NDArray[np.bool_]:
        assert self.cache is not None
        bits = needed(with_weights)
        return np.asarray((self.cache.held(self._key) & bits) == bits)

    def _sizes(self, with_weights: bool) -> Ints:
        if with_weights not in self._chunk_bytes:
            self._chunk_bytes[with_weights] = self.adjacency.chunk_bytes(with_weights)
        return self._chunk_bytes[with_weights]

    def _keep(self, demand: Demand, chunks: NDArray[np.bool_], elsewhere: NDArray[np.bool_] | None) -> None:
        """Note what is wanted, and let the cache keep what was wanted most and is not kept elsewhere."""
        cache = self.cache
        if cache is None or cache.whole or (self._linked and not self.moving):
            return
        mine = cache.entries(self._key)
        if self._linked:
            d, step = self.edge_bytes(demand.with_weights), self.table.partition_edges
            counts = traffic(self.table.lengths, demand.lines, demand.wanted, d, step)
            total, least = len(self.table), DENSE
        else:
            counts = np.add.reduceat(chunks, self._bounds, dtype=np.float64)
            total, least = self._chunks, 0.0
        if elsewhere is not None:
            cache.use[mine][elsewhere & (counts == 0)] = 0.0  # a place for whoever wants it, unless it is read just now
            counts[elsewhere] = 0.0
        cache.use[:] = age(cache.use, counts, mine, total)
        wanted = np.zeros(len(cache.use), dtype=bool)
        wanted[mine] = counts > least
        choice = choose(cache.use, cache.starts >= 0, wanted, cache.busy, cache.free)
        cache.replace(choice.evict, choice.admit)
        if len(choice.evict) or len(choice.admit):
            where = f"{len(choice.evict)} partitions lose their place in the cache, {len(choice.admit)} get one"
            _log.debug("%s, %s-edges: %s", self.device.name, self._key, where)


def _table(adjacency: AdjacencyArrays, direction: Direction, partition_edges: int) -> PartitionTable:
    chunk = adjacency.chunk_edges
    return partitions(adjacency.index(), direction, adjacency.edges, partition_edges, chunk)
