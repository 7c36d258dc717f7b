"""Where the edges of one adjacency are now, partition by partition, for one pipeline.

A directory answers from the cache's records: what is resident, which wanted chunks are missing, where a partition is
stored. To ask for `residency` also chooses what the cache keeps. It starts nothing and never waits; routes do.
"""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.encoding.payload import BLOCK as BLOCK_EDGES
from penstock.storage.read.partition_cache import PartitionCache, contiguous, needed
from penstock.transfer.staging.in_flight import EdgeRequest
from penstock.transfer.staging.staging import Staging
from penstock.transfer.values.residency import DENSE, Residency, age, choose, traffic
from penstock.transfer.values.task import (
    Demand,
    Direction,
    Ints,
    PartitionTable,
    Task,
    TaskRecord,
    partitions,
)
from penstock.transfer.values.view import Payloads

if TYPE_CHECKING:
    from penstock.storage.format.graph import Adjacency

ALL = slice(None)
"""Of arrays with an item for each partition: all of them."""
BLOCKS = "blocks"
"""The route whose bytes over the link are those of wanted blocks, not known from a copy."""

NO_CHUNKS = np.zeros(0, dtype=np.int64)

_log = logging.getLogger("penstock.transfer.staging.partition_directory")


class PartitionDirectory:
    """The partitions of one adjacency, `table`, as a pipeline walks it in a direction.

    Arrays have one item per partition (bool[p], int64[p]) or per chunk (bool[chunks]). The cache numbers the partitions
    of all its adjacencies as entries; `_entries` is this adjacency's range of them. unpacks: whether edges are packed,
    and kernels see them unpacked.
    """

    def __init__(self, adjacency: Adjacency, direction: Direction, staging: Staging) -> None:
        partition_edges, chunk = staging.options.partition_edges, adjacency.chunk_edges
        self.adjacency = adjacency
        self.direction = direction
        self.staging = staging
        self.table: PartitionTable = partitions(adjacency.index(), direction, adjacency.edges, partition_edges, chunk)
        self.pieces = staging.cache.tables.get(adjacency.direction)
        self.unpacks = self.pieces is not None and not staging.kernels_unpack
        self.in_memory = adjacency.arrays is not None
        self._cache = staging.cache
        self._key = adjacency.direction
        self._entries = self._cache.entries(self._key)
        self._partition_chunks = max(1, partition_edges // chunk)
        self._chunks = -(-adjacency.edges // chunk)
        self._first_chunks = np.arange(0, self._chunks, self._partition_chunks)
        self._chunk_bytes: dict[bool, Ints] = {}
        self._whole: dict[bool, Residency] = {}

    def whole(self, with_weights: bool) -> bool:
        """Return whether the entire adjacency is stored in one array that the device reads: plain, not packed."""
        if self.in_memory or not self._chunks:
            return True
        return self.pieces is None and self._cache.complete(self._key, with_weights)

    def whole_arrays(self, with_weights: bool) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return neighbors and weights of the entire adjacency; it must be `whole`."""
        arrays = self.adjacency.arrays
        if self.in_memory and arrays is not None:
            return arrays[0], arrays[1] if with_weights else None
        return self.cached_arrays(0, len(self.table), with_weights)

    def wanted(self, demand: Demand, first: int, last: int) -> Ints:
        """Return the chunks wanted of partitions first..last (inclusive), ascending."""
        c0, c1 = first * self._partition_chunks, min((last + 1) * self._partition_chunks, self._chunks)
        if demand.whole:
            return np.arange(c0, c1, dtype=np.int64)
        mask = np.repeat(demand.active_edges[first : last + 1] > 0, self._partition_chunks)[: c1 - c0]
        if demand.wanted_chunks is not None:
            mask &= demand.wanted_chunks[c0:c1] != 0
        return np.asarray(np.flatnonzero(mask) + c0, dtype=np.int64)

    def resident(self, with_weights: bool) -> NDArray[np.bool_]:
        """Return which partitions the device reads without any transfer, bool[p]."""
        if self.whole(with_weights):
            return np.ones(len(self.table), dtype=bool)
        return self.filled(self.held(with_weights))

    @property
    def reads_disk(self) -> bool:
        """Whether some edges may have to be read from disk."""
        return not self.in_memory

    @property
    def host_cache(self) -> PartitionCache | None:
        """The cache in host memory, None where there is none."""
        return self._cache

    def lacking(self, with_weights: bool) -> float:
        """Return the share of the chunks that memory does not hold."""
        return 1.0 - float(self.held(with_weights).mean())

    def held(self, with_weights: bool) -> NDArray[np.bool_]:
        """Return which chunks the cache holds, bool[chunks]."""
        bits = needed(with_weights)
        return np.asarray((self._cache.held(self._key) & bits) == bits)

    def filled(self, chunks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which partitions have all of their chunks among these, bool[p]."""
        return np.logical_and.reduceat(chunks, self._first_chunks)

    def record(self, task: Task, demand: Demand) -> TaskRecord:
        """Return the record of a task that starts: what it is about, nothing done yet."""
        edges = self.table.lengths if demand.whole else demand.active_edges
        record = TaskRecord(task.route, demand.direction, task.partitions, predicted=task.cost)
        if len(task.partitions) == 1:  # as most tasks of a sweep: sums over arrays of one item take longer than they
            number = task.partitions[0]
            record.edges, record.lines = int(edges[number]), int(demand.lines[number])
            record.wanted = int(record.edges > 0)
            record.rows = record.wanted if demand.whole else int(demand.active_vertices[number])
            return record
        part = slice(task.partitions[0], task.partitions[-1] + 1)
        record.edges, record.lines = int(edges[part].sum()), int(demand.lines[part].sum())
        record.wanted = int(np.count_nonzero(edges[part]))
        record.rows = record.wanted if demand.whole else int(demand.active_vertices[part].sum())
        return record

    def block_bytes(self, request: EdgeRequest, demand: Demand) -> int:
        """Return the bytes of the payloads of the wanted blocks of a request's partitions."""
        return int(self._block_bytes(demand, slice(request.first, request.last + 1)).sum())

    def _block_bytes(self, demand: Demand, part: slice = ALL) -> Ints:
        """Return the bytes of the payloads of the wanted blocks: their share of each partition's payloads, int64."""
        if demand.whole or demand.blocks is None:
            return self._payload_bytes[part]
        return np.asarray(
            self._payload_bytes[part] * demand.blocks[part] // -(-self.table.lengths[part] // BLOCK_EDGES)
        )

    @cached_property
    def _payload_bytes(self) -> Ints:
        """Bytes of the payloads of each partition, int64[p]."""
        assert self.pieces is not None, "payloads are of packed edges"
        return np.asarray(np.add.reduceat(self.pieces.layout.chunk_bytes, self._first_chunks))

    def request(self, first: int, last: int, chunks: Ints, with_weights: bool, record: TaskRecord) -> EdgeRequest:
        """Return the request for chunks, ascending, of partitions first..last (inclusive)."""
        table = self.table
        edges, rows = (int(table.e0[first]), int(table.e1[last])), (int(table.v0[first]), int(table.v1[last]))
        cached = self.is_cached(first, last)
        where = *edges, *rows, cached
        payloads = None
        if self.staging.kernels_unpack and self.pieces is not None:  # where those of its chunks are in its piece
            layout, (c0, c1) = self.pieces.layout, self.pieces.firsts[first : first + 2].tolist()
            payloads = Payloads(layout.neighbors[c0 : c1 + 1] - layout.neighbors[c0], layout.chunk_edges)
        return EdgeRequest(self.adjacency, first, last, *where, chunks, with_weights, record, self.pieces, payloads)

    def task_request(self, task: Task, demand: Demand) -> EdgeRequest:
        """Return the request for the edges of a task."""
        first, last = task.partitions[0], task.partitions[-1]
        chunks = self.wanted(demand, first, last)
        return self.request(first, last, chunks, demand.with_weights, self.record(task, demand))

    @cached_property
    def all_rows(self) -> tuple[int, int]:
        """The first row of all edges, and the one after the last."""
        return (int(self.table.v0[0]), int(self.table.v1[-1])) if len(self.table) else (0, 0)

    def whole_request(self, with_weights: bool, record: TaskRecord) -> EdgeRequest:
        """Return the request for all edges, which are in page-locked host memory: of no chunk in particular."""
        where = 0, len(self.table) - 1, 0, self.table.edges, *self.all_rows
        return EdgeRequest(self.adjacency, *where, False, NO_CHUNKS, with_weights, record)

    def hits(self, demand: Demand) -> int:
        """Return how many chunks a demand finds in the cache when the adjacency is `whole`."""
        if self.in_memory:
            return 0
        if demand.wanted_chunks is None or demand.whole:
            return self._chunks
        return int(np.count_nonzero(demand.wanted_chunks))

    def missing(self, chunks: Ints, with_weights: bool) -> Ints:
        """Return those chunks that the cache does not hold."""
        bits = needed(with_weights)
        absent = (self._cache.held(self._key)[chunks] & bits) != bits
        return np.asarray(chunks[absent], dtype=np.int64)

    def is_cached(self, first: int, last: int) -> bool:
        """Return whether partitions first..last have places in the cache, one after another; packed, only one has."""
        places = self.starts[first : last + 1]
        if self.pieces is not None and first != last:
            return False
        return bool(places[0] >= 0) and (first == last or contiguous(places, self.table.partition_edges))

    def cached_arrays(self, first: int, count: int, with_weights: bool) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the cache's arrays of `count` partitions that lie one after another; of a packed one, its piece."""
        return self._cache.arrays(self._key, first, count, with_weights)

    def entries(self, first: int, last: int) -> list[int]:
        """Return the cache entries of partitions first..last."""
        return [self._cache.entry(self._key, number) for number in range(first, last + 1)]

    @property
    def starts(self) -> Ints:
        """Place of each partition in the cache arena, -1 for none, int64[p]."""
        return self._cache.starts[self._entries]

    @property
    def key(self) -> str:
        """The name of the adjacency in the cache."""
        return self._key

    def residency(self, demand: Demand, elsewhere: NDArray[np.bool_] | None = None) -> Residency:
        """Return where the edges of this demand lie, after choosing what the cache keeps from now on.

        Kept partitions of this demand stay in place until the next call. elsewhere: given for the host's cache of a
        device behind a link: partitions of which the device holds some, so that the host need not keep them, bool[p].
        """
        with_weights = demand.with_weights
        self.staging.unpin()
        if self.whole(with_weights):
            return self._wholly(with_weights)
        wanted = self._wanted_mask(demand)
        self._keep(demand, wanted, elsewhere)
        absent, places = wanted & ~self.held(with_weights), self._places()
        if not self._cache.whole:
            self.staging.pin(np.flatnonzero((places >= 0) & demand.wanted) + self._entries.start)
        return Residency(
            resident=~self.partitions_of(absent),
            places=places,
            edge_bytes=self.adjacency.edge_bytes(with_weights),
            **self._brought(demand, wanted, absent),
        )

    def _brought(self, demand: Demand, wanted: NDArray[np.bool_], absent: NDArray[np.bool_]) -> dict[str, Any]:
        """Return what a `Residency` says of bringing these absent chunks of those that are wanted."""
        weights = demand.with_weights
        return {"disk_bytes": self.stored(absent, weights), "decode_bytes": self.decoded(absent, weights)}

    def _places(self) -> Ints:
        """Where each partition is, for a plan that joins neighbors, int64[p].

        Packed ones all join in a slab, but none does where kernels unpack them: a view is of one piece then.
        """
        starts = self.starts
        if self.pieces is None:
            return starts.copy()
        return np.where(starts >= 0, self.table.e0 * (2 if self.staging.kernels_unpack else 1), starts)

    def _unpacked(self, demand: Demand, part: slice = ALL) -> Ints:
        """Return how many edges are unpacked of each partition when it is brought whole, int64."""
        if demand.whole or demand.blocks is None:
            return self.table.lengths[part]
        return np.minimum(demand.blocks[part] * BLOCK_EDGES, self.table.lengths[part])

    def unpacked_bytes(self, request: EdgeRequest, demand: Demand) -> int:
        """Return the bytes of the plain edges that the wanted chunks or blocks of a request are unpacked to."""
        if demand.whole:
            edges = request.e1 - request.e0
        elif demand.blocks is None:
            begins = request.chunks * self.adjacency.chunk_edges
            edges = int((np.minimum(begins + self.adjacency.chunk_edges, self.adjacency.edges) - begins).sum())
        else:
            edges = int(self._unpacked(demand, slice(request.first, request.last + 1)).sum())
        return edges * self.adjacency.edge_bytes(request.with_weights)

    def decoded(self, chunks: NDArray[np.bool_], with_weights: bool) -> Ints:
        """Return the bytes of these chunks as they are staged, decoded or packed, int64[p]."""
        if self.pieces is not None:
            return np.asarray(np.add.reduceat(self.pieces.layout.chunk_bytes * chunks, self._first_chunks))
        return self._plain(chunks, with_weights)

    def stored(self, chunks: NDArray[np.bool_], with_weights: bool) -> Ints:
        """Return the bytes of these chunks on disk, int64[p]."""
        return np.asarray(np.add.reduceat(self._sizes(with_weights) * chunks, self._first_chunks))

    def _plain(self, chunks: NDArray[np.bool_], with_weights: bool) -> Ints:
        """Return the bytes of the plain edges of these chunks, int64[p]."""
        count = np.add.reduceat(chunks, self._first_chunks, dtype=np.int64)
        edges = np.minimum(count * self.adjacency.chunk_edges, self.table.lengths)
        return np.asarray(edges * self.adjacency.edge_bytes(with_weights))

    @property
    def partly_held(self) -> NDArray[np.bool_]:
        """Which partitions the cache holds, if only in part, bool[p]."""
        return self.partitions_of(self._cache.held(self._key) != 0)

    def partitions_of(self, chunks: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which partitions hold any of these chunks, bool[p]."""
        return np.logical_or.reduceat(chunks, self._first_chunks)

    def _wholly(self, with_weights: bool) -> Residency:
        known = self._whole.get(with_weights)
        if known is None:
            none = np.zeros(len(self.table), dtype=np.int64)
            here = np.ones(len(self.table), dtype=bool)
            d = self.adjacency.edge_bytes(with_weights)
            known = Residency(here, none, none, none, d, whole=True)
            self._whole[with_weights] = known
        return known

    def _wanted_mask(self, demand: Demand) -> NDArray[np.bool_]:
        """Return which chunks are wanted, bool[chunks]."""
        if demand.whole:
            return np.ones(self._chunks, dtype=bool)
        mask = np.repeat(demand.wanted, self._partition_chunks)[: self._chunks]
        return mask if demand.wanted_chunks is None else mask & (demand.wanted_chunks != 0)

    def _sizes(self, with_weights: bool) -> Ints:
        if with_weights not in self._chunk_bytes:
            self._chunk_bytes[with_weights] = self.adjacency.chunk_bytes(with_weights)
        return self._chunk_bytes[with_weights]

    def _keep(self, demand: Demand, chunks: NDArray[np.bool_], elsewhere: NDArray[np.bool_] | None) -> None:
        """Add what is wanted to the use of each partition, and let the cache replace some by others that are used more.

        Partitions that are kept elsewhere count 0.
        """
        cache = self._cache
        if cache.whole or not cache.room:
            return
        mine = cache.entries(self._key)
        counts, total, least = self._counts(demand, chunks)
        if elsewhere is not None:
            cache.use[mine][elsewhere & (counts == 0)] = 0.0  # the first to be replaced, unless it is wanted now
            counts[elsewhere] = 0.0
        cache.use[:] = age(cache.use, counts, mine, total)
        wanted = np.zeros(len(cache.use), dtype=bool)
        wanted[mine] = counts > least
        evict, admit = choose(cache.use, cache.starts >= 0, wanted, cache.busy, cache.free, cache.sizes)
        cache.replace(evict, admit)
        if len(evict) or len(admit):
            where = f"{len(evict)} partitions lose their place in the cache, {len(admit)} get one"
            _log.debug("%s, %s-edges: %s", self.staging.device.name, self._key, where)

    def _counts(self, demand: Demand, chunks: NDArray[np.bool_]) -> tuple[NDArray[np.float64], int, float]:
        """Return the use of each partition, float64[p]: its wanted chunks.

        And the most that they can add up to, and what a partition without a place must exceed to get one.
        """
        return np.add.reduceat(chunks, self._first_chunks, dtype=np.float64), self._chunks, 0.0


class LinkDirectory(PartitionDirectory):
    """The same of a device behind a link, to which edges come from host memory, whose cache may lack some."""

    def __init__(self, adjacency: Adjacency, direction: Direction, staging: Staging) -> None:
        super().__init__(adjacency, direction, staging)
        self.in_memory = False

    @property
    def reads_disk(self) -> bool:
        """Whether host memory may lack edges."""
        return self.staging.source.staged

    @property
    def host_cache(self) -> PartitionCache | None:
        """The cache by way of which edges come."""
        return self.staging.source.cache

    def lacking(self, with_weights: bool) -> float:
        """Return the share of the chunks that neither the device nor the host holds."""
        source = self.staging.link if self.pieces is None else self.staging.packed_link
        held, table = self.filled(source.complete(self.adjacency, with_weights)), self.table
        here = float(table.lengths[self.resident(with_weights)].sum()) / max(1, table.edges)
        return (1.0 - here) * (1.0 - float(held.mean()))

    def _brought(self, demand: Demand, wanted: NDArray[np.bool_], absent: NDArray[np.bool_]) -> dict[str, Any]:
        weights, staging, nothing = demand.with_weights, self.staging, np.zeros(len(self.table), dtype=np.int64)
        found: dict[str, Any] = {"lacking_bytes": self.decoded(absent, weights)}
        staged = staging.source.residency(self.adjacency, demand, absent, self.partly_held)
        if staged is None:
            found |= {"disk_bytes": nothing, "decode_bytes": nothing}
        else:  # all of whose bytes are 0 where the host's cache has every edge
            places = self.table.e0 if staged.whole else staged.places
            found |= {"disk_bytes": staged.disk_bytes, "decode_bytes": staged.decode_bytes, "host_places": places}
        if staging.plain is not None:  # stored beside packed ones
            lacks = wanted & ~staging.plain.complete(self.adjacency, weights) if staging.plain.staged else None
            found["plain_disk_bytes"] = nothing if lacks is None else self.stored(lacks, weights)
            found["plain_decode_bytes"] = nothing if lacks is None else self._plain(lacks, weights)
        if self.pieces is not None:
            found["unpacked_edges"] = self._unpacked(demand)
            if demand.blocks is not None or staging.options.route == BLOCKS:
                found["block_bytes"] = self._block_bytes(demand)
        return found

    def _counts(self, demand: Demand, chunks: NDArray[np.bool_]) -> tuple[NDArray[np.float64], int, float]:
        """Return the `traffic` of each partition, as a share of a slot."""
        if self.pieces is None:
            d = self.adjacency.edge_bytes(demand.with_weights)
            found = traffic(self.table.lengths * d, demand.lines, demand.wanted, self.table.partition_edges * d)
        else:
            found = traffic(self._block_bytes(demand), demand.lines, demand.wanted, 4 * self.pieces.sizes)
        return found, len(self.table), DENSE
