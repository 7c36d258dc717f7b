"""Small graphs that break things, and how to hand them to Penstock.

Owns the shapes: nothing at all, one vertex, loops, parallel edges, isolated vertices, a star in either
direction, a long path, many components, skewed random graphs. Every shape comes as a oracles.EdgeList.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import cores
from penstock.storage.base.threads import ThreadPool
from penstock.storage.convert.windows import write_windows
from penstock.storage.format.graph import Graph
from penstock.storage.format.writer import GraphWriter
from penstock.storage.ingest.core.edges import EdgeBatch
from support.oracles import EdgeList


def _pairs(*pairs: tuple[int, int]) -> NDArray[np.int64]:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T


def skewed(vertices: int, count: int, seed: int) -> NDArray[np.int64]:
    """Ends of `count` edges, shape (2, count), where small vertices occur most; loops and repeats too."""
    random = np.random.default_rng(seed)
    return (vertices * random.random((2, count)) ** 3).astype(np.int64)


def _cliques(number: int, size: int) -> NDArray[np.int64]:
    """Complete graphs on every `number`-th vertex, so that components interleave."""
    one, other = np.triu_indices(size, 1)
    return np.concatenate([np.stack([one, other]) * number + k for k in range(number)], axis=1)


SHAPES: dict[str, tuple[int, NDArray[np.int64]]] = {
    "empty": (0, _pairs()),
    "one": (1, _pairs()),
    "one-loop": (1, _pairs((0, 0))),
    "isolated": (70, _pairs()),
    "loops": (5, _pairs(*[(v, v) for v in range(5)], (1, 3), (3, 3))),
    "parallel": (4, _pairs((0, 1), (0, 1), (0, 1), (1, 2), (2, 1), (2, 3), (2, 3))),
    "two": (3, _pairs((1, 0), (0, 2))),
    "star-out": (300, np.stack([np.zeros(299, np.int64), np.arange(1, 300)])),
    "star-in": (300, np.stack([np.arange(299), np.full(299, 299)])),
    "path": (400, np.stack([np.arange(399), np.arange(1, 400)])),
    "path-back": (130, np.stack([np.arange(1, 130), np.arange(129)])),
    "ring": (65, np.stack([np.arange(65), (np.arange(65) + 1) % 65])),
    "cliques": (60, _cliques(5, 12)),
    "skewed": (200, skewed(200, 1500, 1)),
    "sparse": (500, skewed(500, 300, 2)),
    "wide": (9000, np.random.default_rng(6).integers(0, 9000, (2, 16000))),
}
"""Name → (vertices, ends of the edges, shape (2, m))."""


def shape(name: str, *, directed: bool = True, weights: str | None = None) -> EdgeList:
    """One of SHAPES. weights: a dtype name; zero occurs among integers, floats are in (0, 1]."""
    vertices, ends = SHAPES[name]
    return weighed(EdgeList(vertices, ends[0], ends[1], None, directed), weights)


def weighed(edges: EdgeList, dtype: str | None, seed: int = 7) -> EdgeList:
    """The same edges with random weights of `dtype`."""
    if dtype is None:
        return edges
    random = np.random.default_rng(seed)
    count = len(edges.sources)
    kind = np.dtype(dtype)
    weights: NDArray[Any] = random.integers(0, 60, count) if kind.kind == "u" else 1 - random.random(count)
    return EdgeList(edges.vertices, edges.sources, edges.targets, weights.astype(kind), edges.directed)


def in_memory(edges: EdgeList, *, both: bool = True) -> Graph:
    """A graph that has no file; both: with its in-adjacency."""
    out = _csr(edges)
    into = _csr(edges.reversed()) if both and edges.directed else None
    return Graph.from_arrays(*out, into=into, directed=edges.directed)


def on_disk(edges: EdgeList, path: Path, *, both: bool = True, chunk_edges: int = 64, **options: Any) -> Graph:
    """A graph file written and opened, of chunks so small that even a small graph has many.

    options: further arguments of GraphWriter.
    """
    with mock.patch("penstock.storage.format.adjacency_writer.CHUNK_EDGES", chunk_edges):
        write(edges, path, both=both, **options)
    return Graph.open(path)


def write(
    edges: EdgeList, path: Path, *, both: bool = True, original: NDArray[Any] | None = None, **options: Any
) -> None:
    """Write a graph file, with windows where `options` have their size. original: ids, if others than 0, 1, 2 ..."""
    settings: dict[str, Any] = {
        "vertices": edges.vertices,
        "directed": edges.directed,
        "vertex_dtype": np.dtype(np.uint32),
        "weight_dtype": None if edges.weights is None else edges.weights.dtype,
        "provenance": {"source": "tests"},
        "threads": cores(),
        **options,
    }
    adjacencies = {"out": _csr(edges)}
    if both and edges.directed:
        adjacencies["in"] = _csr(edges.reversed())
    with GraphWriter(path, **settings) as writer:
        writer.input_edges = len(edges.sources)
        if original is not None:
            writer.original_ids(original)
        for direction, (offsets, neighbors, weights) in adjacencies.items():
            adjacency = writer.adjacency(direction)
            adjacency.append(neighbors, weights)
            adjacency.degrees(np.diff(offsets))
            adjacency.finish()
        if size := settings.get("window_vertices"):
            with ThreadPool(2, "windows") as pool:
                write_windows(writer, size, pool, 2, lambda done: None)


def _csr(edges: EdgeList) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[Any] | None]:
    """Rows as Penstock stores them."""
    offsets, neighbors, weights = edges.rows
    return offsets, neighbors.astype(np.uint32), weights


class ArraySource:
    """Edges from arrays, as raw input of a conversion: the Source protocol of storage.ingest."""

    def __init__(self, name: str, edges: EdgeList) -> None:
        self.name = name
        self.edges = edges
        self.total_bytes: int | None = None
        self.bytes_done = 0
        self.known_vertices: int | None = None
        self.undirected = not edges.directed

    def batches(self, size: int = 1 << 18) -> Iterator[EdgeBatch]:
        """Batches of up to `size` edges, ids as uint64."""
        edges = self.edges
        for first in range(0, len(edges.sources), size):
            part = slice(first, first + size)
            yield EdgeBatch(
                np.asarray(edges.sources[part], dtype=np.uint64),
                np.asarray(edges.targets[part], dtype=np.uint64),
                None if edges.weights is None else np.asarray(edges.weights[part]),
            )
