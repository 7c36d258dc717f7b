"""About how many levels a breadth-first search has, and hubs: what tells a road network from a social one before a run.

A search is walked until so many edges have been read, which are all of a small graph. Then its growth tells the rest:
where level l reaches c * l^k vertices, the last of n is reached at (n / c)^(1 / k); a little later, since the far ends
of a graph are not round. On a planar graph k is about 2, on a social network many more.
"""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.vertex_ids import internal_ids

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.storage.format.graph import Adjacency, Graph

READ_EDGES = 1 << 22
"""That are read and kept: 16 or 32 MiB, 10 to 50 ms."""
READ_LEVELS = 1024
"""That are walked: 40 us each, on a grid of 1,000 x 1,000 0.4 ms."""
MOST_VERTICES = 1 << 28
"""Of which each has a byte."""
FEW_VERTICES = 1 << 18
FAR_ENDS = 1.4
"""How much farther than a disk of as many vertices a square reaches, from its center and from a corner."""


def depth_for(graph: Graph, program: Program) -> float:
    """About how many levels a search from the program's sources has, or from a vertex. Raises RunError."""
    ours = type(program).__module__.startswith("penstock.engine.programs.")  # elsewhere it may be anything
    source = getattr(program, "source", None) if ours else None
    return search_depth(graph, np.empty(0, np.int64) if source is None else internal_ids(graph, source))


def skew_of(graph: Graph) -> float:
    """How many times as many edges as the mean vertex the end of an edge has, 0 where that cannot be told."""
    rows = graph.out
    if graph.layout != "rows" or rows.blocks or not graph.edges:
        return 0.0
    few = min(graph.vertices, FEW_VERTICES)  # of a file, whose whole index a run by windows has no room for
    degrees = (rows.index().degrees(0, few) if rows.degrees is None else rows.degrees.part(0, few)).astype(np.float64)
    return float(degrees @ degrees / max(degrees.sum(), 1.0) / (graph.edges / graph.vertices))


def search_depth(graph: Graph, first: NDArray[Any]) -> float:
    """About how many levels a search from these vertices has, 0 where that cannot be told. Raises RunError.

    first: internal ids; of none, the search begins at one with as many edges as the mean.
    """
    rows, count = graph.out, graph.vertices
    if graph.layout != "rows" or rows.blocks or not graph.edges or count > MOST_VERTICES:
        return 0.0
    index, few = rows.index(), count <= FEW_VERTICES
    table = index.starts(0, count + 1) if few else None
    starts_of = index.starts_of if table is None else table.__getitem__
    if not len(first):
        degrees = index.degrees(0, min(count, FEW_VERTICES))
        first = np.array([(degrees >= graph.edges / count).argmax()])
    seen = np.zeros(count, bool)
    kept: dict[int, NDArray[Any]] = {}
    seen[first] = True
    reached, found = [len(first)], first.astype(np.int64)
    while len(found):
        near = _neighbors(rows, starts_of(found), starts_of(found + 1), kept)
        if near is None or len(reached) > READ_LEVELS:
            return _all_levels(reached, count - (graph.without_edges or 0))
        near = near[~seen[near]]
        seen[near] = True
        found = np.unique(near).astype(np.int64)
        reached.append(reached[-1] + len(found))
    return float(len(reached) - 1)


def _neighbors(
    rows: Adjacency, begins: NDArray[np.int64], ends: NDArray[np.int64], kept: dict[int, NDArray[Any]]
) -> NDArray[Any] | None:
    """The neighbors in some rows, without the middle of those of more than two chunks; None beyond READ_EDGES."""
    step, parts = rows.chunk_edges, [np.empty(0, rows.neighbor_dtype)]
    wanted = np.unique(np.concatenate([begins // step, np.maximum(begins, ends - 1) // step]))
    for chunk in map(int, wanted[wanted < rows.chunks]):
        low, high = chunk * step, min(rows.edges, (chunk + 1) * step)
        if chunk not in kept:
            if (len(kept) + 1) * step > max(READ_EDGES, step):
                return None
            kept[chunk] = rows.edges_in(low, high, weights=False)[0]
        lengths = np.maximum(0, np.minimum(ends, high) - np.maximum(begins, low))
        offsets = np.maximum(begins, low) - low - np.cumsum(lengths) + lengths
        parts.append(kept[chunk][np.repeat(offsets, lengths) + np.arange(lengths.sum())])
    return np.concatenate(parts)


def _all_levels(reached: list[int], count: int) -> float:
    """How many levels there are in all, after these have reached so many vertices of those with edges."""
    levels = len(reached) - 1
    if levels < 1:
        return 0.0
    power = max(1.0, log2(reached[-1] / reached[levels // 2]) / log2(levels / (levels // 2)) if levels > 1 else 8.0)
    return float(levels * max(1.0, FAR_ENDS * (count / reached[-1]) ** (1 / power)))
