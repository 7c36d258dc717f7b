"""The edges of an adjacency as bounded pieces of sources, targets and weights, whose vertices are internal ids.

A piece is a chunk, so that each is decoded once. Of an undirected graph, which stores an edge in the rows of both its
ends, pieces have each edge once unless both are asked for.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from penstock.storage.encoding.edge_keys import sources_of_keys, targets_of_keys

Edges = tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]
"""Sources, targets and weights, if there are any, of as many edges."""


class RowStarts(Protocol):
    """Where each row's edges begin; see `Index`."""

    @property
    def vertices(self) -> int:
        """Number of rows."""

    def starts(self, v0: int, v1: int) -> NDArray[np.int64]:
        """Return the starts of rows v0..v1-1."""

    def row_of(self, edge: int) -> int:
        """Return the row that holds an edge."""


class StoredRows(Protocol):
    """Edges by row; see `Adjacency`."""

    @property
    def edges(self) -> int:
        """Number of edges."""

    @property
    def chunk_edges(self) -> int:
        """Edges of every chunk but the last."""

    @property
    def neighbor_dtype(self) -> np.dtype[Any]:
        """Of the neighbors."""

    @property
    def weight_dtype(self) -> np.dtype[Any] | None:
        """Of the weights, None without."""

    def index(self, threads: int | None = None) -> RowStarts:
        """Return where rows begin."""

    def edges_in(self, first: int, last: int, *, weights: bool = True) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the neighbors and weights of edges first..last-1."""


class _Pieces:
    """Edges chunk by chunk; pieces may be read by several threads at once.

    entries: of the adjacency. count: of pieces. selects: whether pieces have another number of edges than entries.
    """

    def __init__(self, rows: StoredRows, vertex_dtype: np.dtype[Any], *, selects: bool) -> None:
        self._rows, self.entries, self.selects = rows, rows.edges, selects
        self.count = -(-rows.edges // rows.chunk_edges)
        self.vertex_dtype, self.weight_dtype = vertex_dtype, rows.weight_dtype

    def stored(self, piece: int) -> int:
        """How many entries of the adjacency a piece stands for."""
        step = self._rows.chunk_edges
        return min(step, self._rows.edges - piece * step)


class EdgePieces(_Pieces):
    """Edges of an out-adjacency.

    once: leave out one of the two entries of each edge of an undirected graph.
    """

    def __init__(self, rows: StoredRows, *, once: bool) -> None:
        super().__init__(rows, rows.neighbor_dtype, selects=once)
        self._index = rows.index()

    def read(self, piece: int) -> Edges:
        """The edges of a piece. Raises RunError where they cannot be read."""
        first = piece * self._rows.chunk_edges
        last = first + self.stored(piece)
        targets, weights = self._rows.edges_in(first, last)
        sources = self._sources(first, last)
        if not self.selects:
            return sources, targets, weights
        kept = sources <= targets
        return sources[kept], targets[kept], None if weights is None else weights[kept]

    def _sources(self, first: int, last: int) -> NDArray[Any]:
        """The row of each edge first..last-1."""
        v0, v1 = self._index.row_of(first), self._index.row_of(last - 1) + 1
        starts = np.clip(self._index.starts(v0, v1 + 1), first, last)
        return np.repeat(np.arange(v0, v1, dtype=self.vertex_dtype), starts[1:] - starts[:-1])


class ListPieces(_Pieces):
    """Edges that are stored in the order of the input.

    both: of an undirected graph, which has each edge once there, give the reverse of each, too, but of self-loops.
    """

    def __init__(self, rows: StoredRows, *, both: bool) -> None:
        super().__init__(rows, np.dtype(np.uint32), selects=both)

    def read(self, piece: int) -> Edges:
        """The edges of a piece. Raises RunError where they cannot be read."""
        first = piece * self._rows.chunk_edges
        keys, weights = self._rows.edges_in(first, first + self.stored(piece))
        sources, targets = sources_of_keys(keys), targets_of_keys(keys)
        if not self.selects:
            return np.ascontiguousarray(sources), np.ascontiguousarray(targets), weights
        other = sources != targets
        ends = np.concatenate([sources, targets[other]]), np.concatenate([targets, sources[other]])
        return *ends, None if weights is None else np.concatenate([weights, weights[other]])
