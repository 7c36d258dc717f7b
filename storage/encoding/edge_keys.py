"""Keys of edges, source << 32 | target, as graphs in the order of their input hold them: made, taken apart, bounded.

Vertices are below 2^32. The bounds of a block of edges tell which sources and targets may be in it, as in the chunk
index of X-Stream's successors and in the block meta data of WolfGraph (Zhu et al.).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit

_SHIFT = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_BYTE, _TWO, _THREE = np.uint32(8), np.uint32(16), np.uint32(24)


def edge_keys(sources: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the keys of edges, uint64 (edges,)."""
    keys = np.empty(len(sources), np.uint64)
    fill_keys(sources, targets, keys)
    return keys


def fill_keys(sources: NDArray[Any], targets: NDArray[Any], keys: NDArray[np.uint64]) -> None:
    """Write the keys of edges, uint64 (edges,)."""
    sources_of_keys(keys)[:] = sources
    targets_of_keys(keys)[:] = targets


def sources_of_keys(keys: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the sources of keys, a view (edges,)."""
    return keys.view(np.uint32)[1::2]


def targets_of_keys(keys: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the targets of keys, a view (edges,)."""
    return keys.view(np.uint32)[::2]


@jit
def count_ids(ids: Any, others: Any, low: Any, counts: Any) -> None:
    """Count the vertices of ``ids``, of which edge i is left out where it is ``others[i]``, too; (0,): none is."""
    for i in range(len(ids)):
        if len(others) and ids[i] == others[i]:
            continue
        vertex = np.uint64(ids[i])
        count = np.uint8(low[vertex] + np.uint8(1))
        low[vertex] = count
        if count == np.uint8(0):
            counts[vertex] += counts.dtype.type(256)


def count_ends(sources: NDArray[Any], targets: NDArray[Any], low: Sequence[Any], counts: Sequence[Any]) -> None:
    """Count the ends of edges: the low bytes of counts apart, since more of a small array is in the cache.

    Parameters
    ----------
    sources, targets : ndarray of uint32 or uint64, (edges,)
        Vertices. Each array is counted on its own: two arrays of counts at a time would not fit the cache.
    low, counts : ndarrays of uint8, and of uint32 or uint64, (vertices,)
        Together degrees of sources, and of targets; a single pair counts both ends, and a self-loop once.
    """
    count_ids(sources, sources[:0], low[0], counts[0])
    count_ids(targets, sources if len(counts) == 1 else targets[:0], low[-1], counts[-1])


@jit
def shuffle_keys(keys: Any, planes: Any) -> None:
    """Write byte b of every key to planes[b], uint8 (8, items or more); zeros behind them."""
    for b in range(8):
        shift = np.uint64(8 * b)
        plane = planes[b]
        for i in range(len(keys)):
            plane[i] = np.uint8(keys[i] >> shift & np.uint64(255))
        plane[len(keys) :] = 0


@jit
def restore_keys(planes: Any, halves: Any) -> int:
    """Write keys again, as uint32 (2 * items,): each target and then its source. Return the largest, -1 for none."""
    t0, t1, t2, t3 = planes[0], planes[1], planes[2], planes[3]
    s0, s1, s2, s3 = planes[4], planes[5], planes[6], planes[7]
    items = len(halves) // 2
    largest = np.uint32(0)
    for i in range(items):
        target = np.uint32(t0[i]) | np.uint32(t1[i]) << _BYTE | np.uint32(t2[i]) << _TWO | np.uint32(t3[i]) << _THREE
        source = np.uint32(s0[i]) | np.uint32(s1[i]) << _BYTE | np.uint32(s2[i]) << _TWO | np.uint32(s3[i]) << _THREE
        halves[2 * i] = target
        halves[2 * i + 1] = source
        largest = max(largest, max(source, target))
    return int(largest) if items else -1


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
        some = keys[k * block : (k + 1) * block]
        same = np.uint32(0)
        for e in range(len(some)):  # from 0 on, and 32 bits alone: so the compiler takes several at a time
            source = np.uint32(some[e] >> _SHIFT)
            target = np.uint32(some[e] & _LOW)
            low_source = min(low_source, source)
            high_source = max(high_source, source)
            low_target = min(low_target, target)
            high_target = max(high_target, target)
            same += np.uint32(source == target)
        loops += int(np.int64(same))
        spans[k, 0] = low_source
        spans[k, 1] = high_source
        spans[k, 2] = low_target
        spans[k, 3] = high_target
    return loops


def spans_of(keys: NDArray[np.uint64], block: int) -> tuple[NDArray[np.uint32], int]:
    """Return the bounds of every block of keys, uint32 (blocks, 4), and how many edges lead from a vertex to itself."""
    spans = np.empty((-(-len(keys) // block), 4), np.uint32)
    return spans, int(fill_spans(keys, block, spans))
