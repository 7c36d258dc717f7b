"""A graph without a file, a reader that answers when the test says so, and a clock that only sleeping moves.

Owns stand-ins for storage: edge i of an adjacency has neighbor `7 * i + 1` and weight `i % 251`, so every position
can be checked. The reader logs what happens and refuses to write anywhere after a cancel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from penstock.storage.base.errors import RunError
from penstock.storage.read.partition_cache import PartitionCache
from penstock.transfer.devices.device import Device
from penstock.transfer.pipeline import Pipeline
from penstock.transfer.staging.edge_source import EdgeSource
from penstock.transfer.staging.staging import Staging
from penstock.transfer.values.options import TransferOptions
from penstock.transfer.values.task import Demand

CHUNK = 8


class SleepingClock:
    """In the place of the module `time`: only sleeping takes time."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def neighbors_of(edges):
    return (7 * np.asarray(edges) + 1).astype(np.uint32)


def weights_of(edges):
    return (np.asarray(edges) % 251).astype(np.uint8)


class FakeIndex:
    def __init__(self, offsets):
        self.offsets = np.asarray(offsets)
        self.bases, self.edges = self.offsets[:1], int(self.offsets[-1])

    def rows_of(self, edges):
        return np.searchsorted(self.offsets, edges, side="right").astype(np.int64) - 1

    def arrays(self):
        return np.zeros(1, np.int64), self.offsets, 32


class FakeAdjacency:
    def __init__(self, offsets, direction="out", in_memory=False):
        self.direction = direction
        self.offsets = np.asarray(offsets, dtype=np.int64)
        self.edges = int(self.offsets[-1])
        self.chunk_edges = CHUNK
        self.chunks = -(-self.edges // CHUNK)
        self.neighbor_dtype = np.dtype(np.uint32)
        self.weight_dtype = np.dtype(np.uint8)
        every = np.arange(self.edges)
        self.arrays = (neighbors_of(every), weights_of(every)) if in_memory else None

    def edge_bytes(self, with_weights):
        return 5 if with_weights else 4

    def chunk_bytes(self, with_weights):
        return np.full(self.chunks, 20 if with_weights else 16, dtype=np.int64)

    def index(self):
        return FakeIndex(self.offsets)


@dataclass
class Sized:
    """What the division of a budget asks of an adjacency: its edges, and bytes of a neighbor and of a weight."""

    edges: int
    neighbor_bytes: int
    weight_bytes: int = 0
    chunk_edges: int = 262_144

    def edge_bytes(self, with_weights):
        return self.neighbor_bytes + (self.weight_bytes if with_weights else 0)


@dataclass
class FakeGraph:
    out: FakeAdjacency
    into: FakeAdjacency | None = None

    def adjacency(self, name):
        return self.out if name == "out" else self.into


@dataclass
class Arrived:
    bytes: int
    chunks: int
    read_seconds: float = 0.5
    decode_seconds: float = 0.25


@dataclass
class FakeTicket:
    reader: FakeReader
    number: int
    adjacency: FakeAdjacency
    chunks: Any
    first_edge: int
    neighbors: Any
    weights: Any
    arrived: bool = False
    cancelled: bool = False

    def arrive(self):
        assert not self.cancelled, "a cancelled ticket may not write"
        if self.arrived:
            return
        for c in self.chunks:
            edges = np.arange(c * CHUNK, min((c + 1) * CHUNK, self.adjacency.edges))
            self.neighbors[edges - self.first_edge] = neighbors_of(edges)
            if self.weights is not None:
                self.weights[edges - self.first_edge] = weights_of(edges)
        self.arrived = True
        self.reader.log.append(("arrive", self.number))

    @property
    def done(self):
        return self.arrived or self.number in self.reader.failing

    def result(self):
        if self.number in self.reader.failing:
            raise RunError(f"read of fetch {self.number} failed")
        self.reader.log.append(("wait" if not self.arrived else "take", self.number))
        self.arrive()
        size = self.adjacency.chunk_bytes(self.weights is not None)[self.chunks].sum()
        return Arrived(int(size), len(self.chunks))

    def cancel(self):
        self.cancelled = True
        self.reader.log.append(("cancel", self.number))


@dataclass
class FakeReader:
    """`instant`: a fetch has arrived when it returns; `failing`: numbers of fetches whose result raises."""

    instant: bool = False
    failing: set[int] = field(default_factory=set)
    refusing: set[int] = field(default_factory=set)
    tickets: list[FakeTicket] = field(default_factory=list)
    log: list[tuple[str, int]] = field(default_factory=list)

    def fetch(self, adjacency, chunks, first_edge, neighbors, weights):
        number = len(self.tickets)
        assert np.all(np.diff(chunks) > 0)
        ticket = FakeTicket(self, number, adjacency, np.array(chunks), first_edge, neighbors, weights)
        self.tickets.append(ticket)
        self.log.append(("fetch", number))
        if number in self.refusing:
            raise OSError("no fetch")
        if self.instant and number not in self.failing:
            ticket.arrive()
        return ticket

    @property
    def chunks(self):
        """How many chunks were asked for in all."""
        return sum(len(t.chunks) for t in self.tickets)

    @property
    def open(self):
        """Fetches that neither arrived nor were cancelled."""
        return [t.number for t in self.tickets if not (t.arrived or t.cancelled or t.number in self.failing)]


def rows(edges, vertices=17):
    """Offsets of a graph with rows of changing length, some empty, one long."""
    cuts = np.sort(np.r_[0, 0, (np.arange(1, vertices - 3) * 37) % (edges + 1), edges, edges])
    return cuts.astype(np.int64)


def make(partitions=6, step=2, slots=None, slabs=2, instant=True, tail=3, weights=True, **options):
    """Return (pipeline, reader) of a graph with that many partitions of `step` chunks; `slots` 0: no cache."""
    edges = partitions * step * CHUNK - tail
    graph = FakeGraph(FakeAdjacency(rows(edges)))
    cache = make_cache(graph, step, slots, weights)
    reader = FakeReader(instant=instant)
    settings = TransferOptions(step * CHUNK, slabs=slabs, **{"ahead": max(2, slabs), **options})
    return pipeline_of(graph, reader, cache, settings), reader


def pipeline_of(graph, reader, cache, options, device="cpu"):
    dtypes = graph.out.neighbor_dtype, graph.out.weight_dtype
    return Pipeline(graph, Staging(Device(device), EdgeSource(reader), cache, options, dtypes))


def make_cache(graph, step, slots, weights=True):
    adjacencies = [a for a in (graph.out, graph.into) if a is not None]
    room = None if slots is None else slots * step * CHUNK
    return PartitionCache(adjacencies, step * CHUNK, (np.uint32, np.uint8 if weights else None), room)


def demand_of(table, chunks=None, with_weights=False, direction="out"):
    """Return a demand for some chunks (None: everything) of a table's adjacency."""
    total = -(-table.edges // CHUNK)
    step = table.partition_edges // CHUNK
    marks = np.ones(total, np.uint8) if chunks is None else np.zeros(total, np.uint8)
    if chunks is not None:
        marks[list(chunks)] = 1
    per = np.add.reduceat(marks, np.arange(0, total, step), dtype=np.int64)
    return Demand(
        direction, per.copy(), per * CHUNK, per, np.zeros(len(table)), None if chunks is None else marks, with_weights
    )


def wanted_edges(view, demand):
    """Return the edges of a view that its demand wants."""
    edges = np.arange(view.e0, view.e1)
    return edges if demand.wanted_chunks is None else edges[demand.wanted_chunks[edges // CHUNK] > 0]


def check(view, demand):
    """Assert that a view shows the right edges wherever its demand looks; return those edges."""
    edges = wanted_edges(view, demand)
    assert len(view.neighbors) == view.e1 - view.e0
    np.testing.assert_array_equal(view.neighbors[edges - view.e0], neighbors_of(edges))
    if demand.with_weights:
        np.testing.assert_array_equal(view.weights[edges - view.e0], weights_of(edges))
    else:
        assert view.weights is None
    return edges
