"""Where the packed edges of an adjacency are when the payloads of its chunks are stored one after another.

A partition is a run of chunks; its *piece* is the payloads of its neighbors and, behind them, of its weights. Pieces
are what caches hold and links carry. Numbers in, numbers out: nothing here touches an array of edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from penstock.storage.format.graph import Adjacency

Ints = NDArray[np.int64]

PIECE_WORDS = 1024
"""Pieces begin at multiples of a page, so that each can be page-locked apart."""
LINE_WORDS = 32
"""Weights begin at a 128-byte line of their own."""


@dataclass(frozen=True, eq=False)
class PackedLayout:
    """The payloads of one adjacency, in 32-bit words.

    neighbors, weights: the word at which the payload of each chunk begins, int64[chunks + 1]; weights None where the
    run reads none. raw_weights: whether the weights are stored as they are (floats), not bit-packed.
    """

    direction: str
    edges: int
    chunk_edges: int
    neighbors: Ints
    weights: Ints | None = None
    raw_weights: bool = False

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return len(self.neighbors) - 1

    @cached_property
    def chunk_bytes(self) -> Ints:
        """Bytes of each chunk's payloads, int64[chunks]."""
        words = np.diff(self.neighbors)
        return np.asarray(4 * (words if self.weights is None else words + np.diff(self.weights)))

    @property
    def nbytes(self) -> int:
        """Bytes of all payloads."""
        return int(self.chunk_bytes.sum())

    def pieces(self, partition_edges: int) -> PieceTable:
        """Return the pieces of partitions of so many edges, whole chunks."""
        firsts = np.arange(0, self.chunks, partition_edges // self.chunk_edges, dtype=np.int64)
        return PieceTable(self, np.append(firsts, self.chunks))


@dataclass(frozen=True, eq=False)
class PieceTable:
    """The pieces of the partitions of an adjacency; firsts: the first chunk of each, int64[partitions + 1]."""

    layout: PackedLayout
    firsts: Ints

    @cached_property
    def weights_at(self) -> Ints:
        """The word of each piece at which its weights begin, int64[partitions]."""
        return _rounded(np.diff(self.layout.neighbors[self.firsts]), LINE_WORDS)

    @cached_property
    def sizes(self) -> Ints:
        """Words of each piece, whole pages, int64[partitions]."""
        weights = self.layout.weights
        words = self.weights_at if weights is None else self.weights_at + np.diff(weights[self.firsts])
        return _rounded(words, PIECE_WORDS)

    def neighbors(self, number: int, first: int, last: int) -> slice:
        """Return where in piece `number` the payloads of chunks [first, last) of neighbors are."""
        starts = self.layout.neighbors
        begin = int(starts[self.firsts[number]])
        return slice(int(starts[first]) - begin, int(starts[last]) - begin)

    def weights(self, number: int, first: int, last: int) -> slice:
        """Return where in piece `number` the payloads of chunks [first, last) of weights are."""
        starts = self.layout.weights
        assert starts is not None, "the layout has weights"
        begin = int(starts[self.firsts[number]]) - int(self.weights_at[number])
        return slice(int(starts[first]) - begin, int(starts[last]) - begin)


def _rounded(words: Ints, unit: int) -> Ints:
    return np.asarray(-(-words // unit) * unit, dtype=np.int64)


def packed_layout(adjacency: Adjacency, threads: int, weighted: bool) -> PackedLayout | None:
    """Return where the payloads of an adjacency are, None where it has none, or does not know their sizes.

    A graph in memory is packed when this is first asked for. A list's edges are keys, which no device unpacks.
    """
    if adjacency.blocks:
        return None
    if adjacency.arrays is not None:
        adjacency.pack(False, threads)
        if weighted:
            adjacency.pack(True, threads)
    neighbors = adjacency.payload_words(False)
    if neighbors is None:
        return None
    where = adjacency.direction, adjacency.edges, adjacency.chunk_edges, _starts(neighbors)
    if not weighted:
        return PackedLayout(*where)
    weights = adjacency.payload_words(True)
    if weights is not None:
        return PackedLayout(*where, _starts(weights))
    dtype = np.dtype(adjacency.weight_dtype)
    if dtype.kind != "f":
        return None
    firsts = np.arange(len(neighbors) + 1, dtype=np.int64) * adjacency.chunk_edges
    raw = np.minimum(firsts, adjacency.edges) * (dtype.itemsize // 4)
    return PackedLayout(*where, raw, raw_weights=True)


def _starts(words: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(words, dtype=np.int64)])
