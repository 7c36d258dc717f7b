"""Edges of an adjacency by their numbers, for samples: in memory where they fit, else read chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.walks.memory_plan import INDEX_BYTES
from penstock.engine.walks.options import WalkResources
from penstock.engine.walks.sources import name_bytes
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import BudgetError
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.read.reader import Reader, decoder_bytes, longest_frame
from penstock.transfer.planning.host_budget import HostBudgetRequest, reader_bytes

MIB = 1 << 20
SLAB_BYTES = 32 * MIB


class ChunkedEdges:
    """Neighbors, and weights where they are asked for, by the number of their edge.

    All are in memory where they fit, else those of chunks that are read when they are asked for.
    """

    def __init__(self, graph: Graph, rows: Adjacency, resources: WalkResources, *, weighted: bool) -> None:
        self._rows, self._reader = rows, None
        self._kept: NDArray[Any] | None = None
        self._weights: NDArray[Any] | None = None
        if rows.arrays is not None:
            self._kept, self._weights = rows.arrays
            return
        budget, threads, edge = resources.host_memory, resources.threads, rows.edge_bytes(weighted)
        host = HostBudgetRequest(
            host_memory=budget,
            fixed=int(INDEX_BYTES * graph.vertices) + name_bytes(graph),
            workers=threads,
            stripes=max(1, len(graph.files) - 1),
            frame_bytes=longest_frame(graph),
            decoder_bytes=decoder_bytes(graph),
        )
        left = budget - host.fixed - reader_bytes(host, 1)
        whole = rows.edges * edge <= left
        slab = rows.edges if whole else min(left, SLAB_BYTES) // (edge * rows.chunk_edges) * rows.chunk_edges
        if slab < min(rows.chunk_edges, rows.edges):
            least = host.fixed + reader_bytes(host, 1) + rows.chunk_edges * edge
            raise BudgetError(
                "--host-memory",
                f"--host-memory {format_bytes(budget)} is too small: index and names take {format_bytes(host.fixed)}, "
                f"and reading chunks {format_bytes(least - host.fixed)}",
                -(-least // MIB),
            )
        self._slab = np.empty(slab, rows.neighbor_dtype)
        self._weight_slab = np.empty(slab, rows.weight_dtype) if weighted else None
        self._reader = Reader(graph, decode_threads=threads, reads_in_flight=1, direct_io=resources.direct_io)
        if whole:
            with self._reader:
                self._reader.fetch_all(rows, self._slab, self._weight_slab)
            self._kept, self._weights, self._reader = self._slab, self._weight_slab, None

    def targets(self, edges: NDArray[np.int64]) -> NDArray[Any]:
        """The neighbors of some edges, in their order. Raises RunError."""
        if self._kept is not None:
            return self._kept[edges]
        found = np.empty(len(edges), self._rows.neighbor_dtype)
        order = np.argsort(edges, kind="stable")
        ascending, chunk = edges[order], self._rows.chunk_edges
        first = 0
        while first < len(edges):
            e0 = int(ascending[first]) // chunk * chunk
            last = int(np.searchsorted(ascending, e0 + len(self._slab)))
            chunks = np.unique(ascending[first:last] // chunk)
            assert self._reader is not None, "closed"
            self._reader.fetch(self._rows, chunks, e0, self._slab).result()
            found[order[first:last]] = self._slab[ascending[first:last] - e0]
            first = last
        return found

    def weights_of(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the weights of rows of edges, in ascending windows: the number of an edge, and weights from it on.

        A window is valid until the next. Raises RunError.
        """
        if self._weights is not None:
            yield 0, self._weights
            return
        assert self._weight_slab is not None, "weights are asked for"
        assert self._reader is not None, "closed"
        chunk = self._rows.chunk_edges
        wanted = np.zeros(self._rows.chunks + 1, np.int64)
        filled = ends > starts
        np.add.at(wanted, starts[filled] // chunk, 1)
        np.add.at(wanted, (ends[filled] - 1) // chunk + 1, -1)
        chunks = np.flatnonzero(np.cumsum(wanted))
        first = 0
        while first < len(chunks):
            last = int(np.searchsorted(chunks, chunks[first] + len(self._slab) // chunk))
            e0 = int(chunks[first]) * chunk
            self._reader.fetch(self._rows, chunks[first:last], e0, self._slab, self._weight_slab).result()
            size = min(int(chunks[last - 1] + 1) * chunk, self._rows.edges) - e0
            yield e0, self._weight_slab[:size]
            first = last

    def close(self) -> None:
        """Stop reading."""
        if self._reader is not None:
            self._reader.close()
