"""Keys of edges, source << 32 | target, as graphs in the order of their input hold them: made, taken apart, bounded.

Vertices are below 2^32. The bounds of a block of edges tell which sources and targets may be in it, as in the chunk
index of X-Stream's successors and in the block meta data of WolfGraph (Zhu et al.).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit

_SHIFT = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


def edge_keys(sources: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the keys of edges, uint64 (edges,)."""
    keys = np.empty((len(sources), 2), np.uint32)
    keys[:, 1] = sources
    keys[:, 0] = targets
    return keys.view(np.uint64).reshape(-1)


def sources_of_keys(keys: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the sources of keys, a view (edges,)."""
    return keys.view(np.uint32)[1::2]


def targets_of_keys(keys: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the targets of keys, a view (edges,)."""
    return keys.view(np.uint32)[::2]


@jit
def fill_spans(keys: Any, block: int, spans: Any) -> int:
    """Fill spans[k] with the least and greatest source, and the least and greatest target of the k-th ``block`` keys.

    Parameters
    ----------
    keys : ndarray of uint64, (edges,)
        Edges.
    block : int
        How many of them are a block.
    spans : ndarray of uint32, (blocks, 4)
        Is filled.

    Returns
    -------
    int
        How many edges lead from a vertex to itself.
    """
    loops = 0
    for k in range(len(spans)):
        low_source = low_target = np.uint32(0xFFFFFFFF)
        high_source = high_target = np.uint32(0)
        for e in range(k * block, min((k + 1) * block, len(keys))):
            source = np.uint32(keys[e] >> _SHIFT)
            target = np.uint32(keys[e] & _LOW)
            low_source = min(low_source, source)
            high_source = max(high_source, source)
            low_target = min(low_target, target)
            high_target = max(high_target, target)
            loops += source == target
        spans[k, 0] = low_source
        spans[k, 1] = high_source
        spans[k, 2] = low_target
        spans[k, 3] = high_target
    return loops


def spans_of(keys: NDArray[np.uint64], block: int) -> tuple[NDArray[np.uint32], int]:
    """Return the bounds of every block of keys, uint32 (blocks, 4), and how many edges lead from a vertex to itself."""
    spans = np.empty((-(-len(keys) // block), 4), np.uint32)
    return spans, int(fill_spans(keys, block, spans))
