"""Neighbors, and weights, by the numbers of their edges: of memory, or of the chunks that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.queries.walk_memory import SLAB_BYTES
from penstock.engine.resources.config import Config
from penstock.engine.resources.requirements_types import index_bytes, name_bytes
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.read.reader import Reader
from penstock.transfer.planning.host_budget import HostBudgetRequest, reader_bytes


class ChunkedEdges:
    """Neighbors, and weights where they are asked for, by the number of their edge.

    All are in memory where they fit, else those of chunks that are read when they are asked for. kept: the neighbors
    of all edges, if they are in memory.
    """

    def __init__(self, graph: Graph, rows: Adjacency, config: Config, *, weighted: bool) -> None:
        self._graph, self._config, self._rows = graph, config, rows
        self._reader: Reader | None = None
        self.kept: NDArray[Any] | None = None
        self._weights: NDArray[Any] | None = None
        if rows.arrays is not None:
            self.kept, self._weights = rows.arrays
            return
        threads, edge = config.thread_count, rows.edge_bytes(weighted)
        host = HostBudgetRequest.of(graph, config.memory_bytes, index_bytes(rows) + name_bytes(graph), threads)
        reading = reader_bytes(host, 1)
        left = host.left - reading
        whole = rows.edges * edge <= left
        slab = rows.edges if whole else min(left, SLAB_BYTES) // (edge * rows.chunk_edges) * rows.chunk_edges
        if slab < min(rows.chunk_edges, rows.edges):
            raise host.refusal("index and names", "reading chunks", reading + rows.chunk_edges * edge)
        self._slab = np.empty(slab, rows.neighbor_dtype)
        self._weight_slab = np.empty(slab, rows.weight_dtype) if weighted else None
        reader = self._reader = self._opened(threads)
        if whole:
            with reader:
                reader.fetch_all(rows, self._slab, self._weight_slab)
            self.kept, self._weights, self._reader = self._slab, self._weight_slab, None

    def _opened(self, threads: int) -> Reader:
        return Reader(self._graph, decode_threads=threads, reads_in_flight=1, direct_io=self._config.direct_io)

    def reopen(self) -> None:
        """Read by a thread of this process, which was forked: it has none of those that its parent started."""
        if self._reader is not None:
            self._reader = self._opened(1)

    def targets(self, edges: NDArray[np.int64]) -> NDArray[Any]:
        """The neighbors of some edges, in their order. Raises RunError."""
        if self.kept is not None:
            return self.kept[edges]
        found = np.empty(len(edges), self._rows.neighbor_dtype)
        chunks = (edges // self._rows.chunk_edges).astype(np.min_scalar_type(self._rows.chunks))  # two bytes: fast
        order, counts, first = np.argsort(chunks, kind="stable"), np.bincount(chunks), 0
        before = np.cumsum(counts)
        for e0, end in self._windows(np.flatnonzero(counts), None):
            last = int(before[(end - 1) // self._rows.chunk_edges])
            here = order[first:last]
            found[here] = self._slab[edges[here] - e0]
            first = last
        return found

    def first(self, count: int) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the neighbors of the first edges, so many, in pieces: the number of an edge, and those from it on."""
        if self.kept is not None:
            yield 0, self.kept[:count]
            return
        for e0, end in self._windows(np.arange(-(-count // self._rows.chunk_edges)), None):
            yield e0, self._slab[: min(end, count) - e0]

    def _windows(self, chunks: NDArray[np.int64], weights: NDArray[Any] | None) -> Iterator[tuple[int, int]]:
        """Read ascending chunks into the slab, as many at once as it has room for; yield the edges [e0, e1) of each."""
        assert self._reader is not None, "closed"
        chunk, first = self._rows.chunk_edges, 0
        while first < len(chunks):
            last = int(np.searchsorted(chunks, chunks[first] + len(self._slab) // chunk))
            e0 = int(chunks[first]) * chunk
            self._reader.fetch(self._rows, chunks[first:last], e0, self._slab, weights).result()
            yield e0, min(int(chunks[last - 1] + 1) * chunk, self._rows.edges)
            first = last

    def weights_of(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the weights of rows of edges, in ascending windows: the number of an edge, and weights from it on.

        A window is valid until the next. Raises RunError.
        """
        if self._weights is not None:
            yield 0, self._weights
            return
        assert self._weight_slab is not None, "weights are asked for"
        chunk = self._rows.chunk_edges
        wanted = np.zeros(self._rows.chunks + 1, np.int64)
        filled = ends > starts
        np.add.at(wanted, starts[filled] // chunk, 1)
        np.add.at(wanted, (ends[filled] - 1) // chunk + 1, -1)
        for e0, end in self._windows(np.flatnonzero(np.cumsum(wanted)), self._weight_slab):
            yield e0, self._weight_slab[: end - e0]

    def close(self) -> None:
        """Stop reading."""
        if self._reader is not None:
            self._reader.close()
