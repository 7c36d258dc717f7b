"""Conversion in plain Python: what the edges of a graph must be, and what a graph file holds."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.read.reader import Reader

Edge = tuple[int, int, float | None]


class Given:
    """Edges in batches of given sizes, as a source."""

    name = "given"
    undirected = False

    def __init__(self, edges: Sequence[Edge], sizes: Sequence[int], vertices: int | None = None) -> None:
        self.edges = list(edges)
        self.sizes = list(sizes)
        self.known_vertices = vertices
        self.total_bytes = 8 * len(self.edges)
        self.bytes_done = 0

    def batches(self) -> Iterator[EdgeBatch]:
        at = 0
        for size in [*self.sizes, len(self.edges)]:
            part = self.edges[at : at + size]
            at += len(part)
            ends = [(one, two) for one, two, _ in part]
            dtype = np.uint64 if any(max(pair) >= 1 << 32 for pair in ends) else np.uint32
            pairs = np.array(ends, dtype).reshape(-1, 2)
            weighted = any(weight is not None for *_, weight in self.edges)
            weights = np.array([weight for *_, weight in part], float) if weighted else None
            self.bytes_done += 8 * len(part)
            yield EdgeBatch(pairs[:, 0].copy(), pairs[:, 1].copy(), weights)


def expected(edges: Sequence[Edge], options: ConvertOptions) -> list[Edge]:
    """The entries of the out-adjacency, in original ids, sorted."""
    entries: list[Edge] = []
    for one, two, weight in edges:
        if one == two and options.drop_self_loops:
            continue
        entries.append((one, two, weight))
        if (options.undirected or options.symmetrize) and one != two:
            entries.append((two, one, weight))
    rule = options.dedupe or ("first" if options.symmetrize else None)
    if rule is not None:
        entries = _joined(entries, rule)
    return sorted(entries, key=_order)


def vertices_of(edges: Sequence[Edge], options: ConvertOptions, named: int = 0) -> list[int]:
    """The ids that are vertices, ascending: those that occur, and 0 to ``named - 1``; or all from 0 to the largest."""
    found = {end for one, two, _ in edges for end in (one, two)}
    if options.renumber is False:
        found = set(range(max(found, default=-1) + 1))
    return sorted(found | (set() if options.renumber else set(range(named))))


COMBINE: dict[str, Callable[[float, float], float]] = {
    "first": lambda kept, _: kept,
    "sum": lambda kept, other: kept + other,
    "min": min,
    "max": max,
}


def _joined(entries: list[Edge], rule: str) -> list[Edge]:
    kept: dict[tuple[int, int], float | None] = {}
    for one, two, weight in entries:
        before = kept.get((one, two))
        kept[one, two] = weight if before is None or weight is None else COMBINE[rule](before, weight)
    return [(one, two, weight) for (one, two), weight in kept.items()]


def _order(edge: Edge) -> tuple[int, int, float]:
    return edge[0], edge[1], 0.0 if edge[2] is None else edge[2]


def stored(path: Path) -> dict[str, list[Edge]]:
    """The entries of each adjacency of a graph file, in original ids, (source, target, weight) sorted.

    Asserts on the way that rows are sorted by internal neighbor id, ties by weight.
    """
    graph = Graph.open(path)
    original = graph.original_ids()
    found = {}
    for direction, adjacency in (("out", graph.out), ("in", graph.into)):
        if adjacency is None or (direction == "in" and adjacency is graph.out):
            continue
        rows, neighbors, weights = arrays(graph, adjacency)
        assert is_sorted(rows, neighbors, weights)
        if original is not None:
            rows, neighbors = original[rows], original[neighbors]
        ends = (rows, neighbors) if direction == "out" else (neighbors, rows)
        values: list[Any] = [None] * len(rows) if weights is None else weights.tolist()
        found[direction] = sorted(zip(ends[0].tolist(), ends[1].tolist(), values, strict=True), key=_order)
    return found


def arrays(graph: Graph, adjacency: Any) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[Any] | None]:
    """Row, neighbor and weight of every entry, in stored order."""
    if adjacency.arrays is not None:
        neighbors, weights = adjacency.arrays
    else:
        neighbors = np.empty(adjacency.edges, adjacency.neighbor_dtype)
        weights = None if adjacency.weight_dtype is None else np.empty(adjacency.edges, adjacency.weight_dtype)
        with Reader(graph, decode_threads=2) as reader:
            reader.fetch_all(adjacency, neighbors, weights)
    degrees = adjacency.index().degrees(0, graph.vertices)
    return np.repeat(np.arange(graph.vertices), degrees), neighbors, weights


def is_sorted(rows: NDArray[Any], neighbors: NDArray[Any], weights: NDArray[Any] | None) -> bool:
    """Whether entries are in order of row, neighbor, weight."""
    columns = [rows, neighbors] if weights is None else [rows, neighbors, weights]
    entries = list(zip(*(column.tolist() for column in columns), strict=True))
    return entries == sorted(entries)
