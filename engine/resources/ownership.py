"""Who walks which edges: contiguous ranges with equal numbers of edges (Lux, VLDB 2017).

Ranks divide the vertices, and with them the rows of all adjacencies: numbers of indexes in, bounds out. What a rank
leaves out is noted in its cache (`LeftOut`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from penstock.engine.state.row_blocks import start
from penstock.storage.read.partition_cache import PartitionCache, needed
from penstock.transfer.values.view import OwnedRows

if TYPE_CHECKING:
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.format.graph import Graph
    from penstock.storage.format.index import Index
    from penstock.transfer.values.rates import Rates

MARGIN = 1 << 16
"""Edges before and after the owned ones that a kernel may read: at least a block of a pull."""


@dataclass(frozen=True)
class Ownership:
    """Which vertices each rank owns: rank r those from bounds[r] to bounds[r + 1] - 1, int64 (size + 1,).

    rank: the one that this is for.
    """

    bounds: NDArray[np.int64]
    rank: int

    @classmethod
    def of(
        cls, indexes: Sequence[Index], vertices: int, rank: int, size: int, shares: Sequence[float] | None = None
    ) -> Ownership:
        """Ranges of vertices whose rows in these adjacencies together have equal numbers of edges, row by row.

        Without an index ranges have equal numbers of vertices. shares: relative speed of each rank, positive; a rank
        gets edges in proportion to it.
        """
        parts = np.arange(1, size) / size if shares is None else np.cumsum(shares)[:-1] / np.sum(shares)
        bounds = np.concatenate([[0], parts * vertices, [vertices]]).astype(np.int64)
        edges = sum(index.edges for index in indexes)
        if edges:
            bounds[1:-1] = [_row_behind(indexes, vertices, edges * part) for part in parts.tolist()]
        return cls(bounds, rank)

    @property
    def vertices(self) -> tuple[int, int]:
        """The first vertex of this rank, and the first after its last."""
        return int(self.bounds[self.rank]), int(self.bounds[self.rank + 1])

    def rows(self, index: Index) -> OwnedRows:
        """The rows of an adjacency that are this rank's."""
        v0, v1 = self.vertices
        return OwnedRows(v0, v1, start(index, v0), start(index, v1))

    def read(self, index: Index) -> tuple[int, int]:
        """The edges of an adjacency that this rank's kernels may read, first and past the last."""
        rows = self.rows(index)
        if rows.e0 == rows.e1:
            return rows.e0, rows.e0
        return max(0, rows.e0 - MARGIN), min(index.edges, rows.e1 + MARGIN)


def seconds_for_edge(stored: float, decoded: float, rates: Rates) -> float:
    """Seconds to read an edge of so many bytes on disk and decode it to so many; and to walk it once.

    Kernels then find it in no cache. stored: 0 if it is in memory.
    """
    decoding = decoded / rates.decode_bytes if stored else 0.0
    return stored / rates.disk_bytes + decoding + 1 / rates.kernel_edges


def own_rows(graph: Graph, needs: MemoryRequest, ownership: Ownership | None) -> tuple[Graph, MemoryRequest]:
    """The graph with the rows of this rank alone, and the same needs of it; as they are where a rank reads all rows."""
    if ownership is None or needs.all_rows:
        return graph, needs
    parts = {id(one): one.of_rows(*ownership.vertices) for one in needs.adjacencies}
    out, into = (None if one is None else parts.get(id(one), one) for one in (graph.out, graph.into))
    assert out is not None, "every graph has an out-adjacency"
    adjacencies = tuple(parts[id(one)] for one in needs.adjacencies)
    return graph.with_adjacencies(out, into), replace(needs, adjacencies=adjacencies)


def _row_behind(indexes: Sequence[Index], vertices: int, edges: float) -> int:
    """The first row before which the adjacencies together have at least so many edges."""
    low, high = 0, vertices
    while low < high:
        middle = (low + high) // 2
        if sum(start(index, middle) for index in indexes) < edges:
            low = middle + 1
        else:
            high = middle
    return low


class LeftOut:
    """Which chunks of a cache with a place for every partition are noted as held, and are not there."""

    def __init__(self, cache: PartitionCache, needs: MemoryRequest) -> None:
        self._cache, self._needs = cache, needs
        self._chunks = {
            one.direction: np.zeros(-(-one.edges // one.chunk_edges), np.bool_) for one in needs.adjacencies
        }

    def own(self, ownership: Ownership) -> None:
        """Note what this rank does not read with these bounds, and no longer what it does."""
        cache, weighted = self._cache, self._needs.weighted
        for one in self._needs.adjacencies:
            (first, last), each, noted = ownership.read(one.index()), one.chunk_edges, self._chunks[one.direction]
            others = np.ones(len(noted), dtype=np.bool_)
            others[first // each : -(-last // each)] = False
            absent = (cache.held(one.direction) & needed(weighted)) != needed(weighted)
            cache.unmark(one.direction, np.flatnonzero(noted & ~others), weighted)
            cache.mark(one.direction, np.flatnonzero(others & absent), weighted)
            noted[:] = others & (noted | absent)

    @property
    def edges(self) -> int:
        """Edges of the chunks that are in memory, or will be."""
        return sum(
            int(_lengths(self._chunks[one.direction], one.edges, one.chunk_edges).sum())
            for one in self._needs.adjacencies
        )


def _lengths(left_out: NDArray[np.bool_], edges: int, chunk_edges: int) -> NDArray[np.int64]:
    """Edges of the chunks that are not left out, int64."""
    starts = np.flatnonzero(~left_out) * chunk_edges
    return np.minimum(starts + chunk_edges, edges) - starts
