"""The graphs that are measured: R-MAT sorted on the GPU, a grid, R-MAT on disk; and where their searches begin."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from penstock.engine import Graph
from penstock.storage.ingest.synthetic import rmat

from benchmarks.runner import penstock

EDGE_FACTOR = 16
BATCH_EDGES = 1 << 22
PAGE = 4096

_WEIGH = """
unsigned long long u = key >> 32, v = key & 0xffffffffull, a = u < v ? u : v, b = u < v ? v : u;
unsigned long long x = (a << 32 | b) * 0x9E3779B97F4A7C15ull;
x ^= x >> 29; x *= 0xBF58476D1CE4E5B9ull; x ^= x >> 32;
weight = 1 + x % 63;
"""


def rmat_by_gpu(scale: int, *, hubs: bool = False) -> Graph:
    """R-MAT of edge factor 16 in memory, every edge in both rows, rows sorted, weights 1..63.

    hubs: vertices are renumbered by falling degree.
    """
    import cupy

    source = rmat(scale, EDGE_FACTOR, seed=1)
    vertices, edges = 1 << scale, source.edges
    keys = cupy.empty(2 * edges, dtype=np.uint64)
    with ThreadPoolExecutor(16) as pool:

        def make(first: int) -> tuple[int, Any, Any]:
            batch = source.batch(first, BATCH_EDGES)
            return first, batch.sources.astype(np.uint64), batch.targets.astype(np.uint64)

        for first, sources, targets in pool.map(make, range(0, edges, BATCH_EDGES)):
            u, v = cupy.asarray(sources), cupy.asarray(targets)
            keys[first : first + len(u)] = u << np.uint64(32) | v
            keys[edges + first : edges + first + len(u)] = v << np.uint64(32) | u
    if hubs:
        degrees = cupy.bincount((keys >> np.uint64(32)).astype(np.int64), minlength=vertices)
        rank = cupy.empty(vertices, dtype=np.uint64)
        rank[cupy.argsort(-degrees)] = cupy.arange(vertices, dtype=np.uint64)
        low = rank[(keys & np.uint64(0xFFFFFFFF)).astype(np.int64)]
        keys = rank[(keys >> np.uint64(32)).astype(np.int64)] << np.uint64(32) | low
        del rank, degrees, low
    keys.sort()
    weights = _page_aligned(2 * edges, np.uint8)
    cupy.ElementwiseKernel("uint64 key", "uint8 weight", _WEIGH, "weigh")(keys).get(out=weights)
    neighbors = _page_aligned(2 * edges, np.uint32)
    (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32).get(out=neighbors)
    keys >>= np.uint64(32)
    offsets = cupy.searchsorted(keys, cupy.arange(vertices + 1, dtype=np.uint64)).get()
    del keys
    cupy.get_default_memory_pool().free_all_blocks()
    return Graph.from_arrays(offsets, neighbors, weights, directed=False)


def grid(side: int) -> Graph:
    """A grid of `side` squared vertices in memory, weights 1..63: many iterations with little work in each."""
    at = np.arange(side * side, dtype=np.int64).reshape(side, side)
    ends = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    u = np.concatenate([a.ravel() for a, b in ends] + [b.ravel() for a, b in ends])
    v = np.concatenate([b.ravel() for a, b in ends] + [a.ravel() for a, b in ends])
    order = np.lexsort((v, u))
    low, high = np.minimum(u, v)[order], np.maximum(u, v)[order]
    weights = (1 + (low * 7919 + high * 104729) % 63).astype(np.uint8)
    offsets = np.searchsorted(u[order], np.arange(side * side + 1))
    return Graph.from_arrays(offsets, v[order].astype(np.uint32), weights, directed=False)


def rmat_on_disk(scale: int, path: Path) -> Graph:
    """R-MAT of edge factor 16 as a graph file, every edge in both rows, weights 1..63."""
    penstock("generate", "rmat", "--scale", scale, "--weights", "1..63", "--undirected", "--output", path)
    return Graph.open(path)


def sources_of(graph: Graph, count: int = 2) -> list[int]:
    """Ids of vertices with edges, always the same ones, whether vertices without edges are in the graph or not."""
    degrees = graph.out.index().degrees(0, graph.vertices)
    chosen, ids = np.random.default_rng(1).choice(np.flatnonzero(degrees > 0), count), graph.original_ids()
    return [int(vertex) for vertex in (chosen if ids is None else ids[chosen])]


def _page_aligned(count: int, dtype: Any) -> Any:
    raw = np.empty(count * np.dtype(dtype).itemsize + PAGE, dtype=np.uint8)
    skip = -raw.ctypes.data % PAGE
    return raw[skip : len(raw) - PAGE + skip].view(dtype)
