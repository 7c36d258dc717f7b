"""Where the payloads of an adjacency are, one after another, whether it is on disk or in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from penstock.storage.format.packed_layout import PackedLayout

if TYPE_CHECKING:
    from penstock.storage.format.graph import Adjacency


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
