"""Writes the edges of a graph file in the formats that other programs read."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.format.graph import Graph
from penstock.storage.read.reader import Reader

BATCH_CHUNKS = 16
PAGE = 4096
GROUP = 16
"""Vertices that share an offset in Blaze's index."""
LINE = 64


def write_gap(graph: Graph, path: Path, *, weights: bool) -> None:
    """GAP's `.sg`, or `.wsg` with weights: a bool, two int64, int64 offsets, int32 neighbors, each with its weight."""
    with path.open("wb") as file:
        file.write(struct.pack("<?qq", False, graph.out.edges, graph.vertices))
        offsets_of(graph).tofile(file)
        for neighbors, values in batches(graph, weights):
            (neighbors if values is None else np.column_stack([neighbors, values.astype(np.uint32)])).tofile(file)


def write_csr(graph: Graph, folder: Path) -> None:
    """The rows as ACGraph's formatter takes them: `offset` (uint64), `data` (uint32), and `meta`: widths and counts."""
    folder.mkdir()
    offsets_of(graph).astype(np.uint64).tofile(folder / "offset")
    with (folder / "data").open("wb") as file:
        for neighbors, _ in batches(graph, False):
            neighbors.tofile(file)
    (folder / "meta").write_bytes(struct.pack("<BBBIQ", 4, 8, 0, graph.vertices, graph.out.edges))


def write_blaze(graph: Graph, index: Path, neighbors: Path) -> None:
    """Blaze's index (counts, offset of every 16th vertex, degrees, aligned to lines) and neighbors in whole pages."""
    offsets = offsets_of(graph)
    head = struct.pack("<4Q", 0, 0, graph.vertices, graph.out.edges) + offsets[:-1:GROUP].astype(np.uint64).tobytes()
    degrees = np.pad(np.diff(offsets).astype(np.uint32), (0, -graph.vertices % GROUP))
    index.write_bytes(head + bytes(-len(head) % LINE) + degrees.tobytes())
    with neighbors.open("wb") as file:
        for part, _ in batches(graph, False):
            part.tofile(file)
        file.write(bytes(-file.tell() % PAGE))


def write_pairs(graph: Graph, path: Path) -> None:
    """Pairs of uint32, source and target, for GridGraph's preprocess."""
    offsets, first = offsets_of(graph), 0
    with path.open("wb") as file:
        for neighbors, _ in batches(graph, False):
            edges = np.arange(first, first + len(neighbors))
            rows = np.searchsorted(offsets, edges, side="right") - 1
            np.column_stack([rows.astype(np.uint32), neighbors]).tofile(file)
            first += len(neighbors)


def batches(graph: Graph, weights: bool) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None]]:
    """Yield the neighbors of all rows in order, and their weights where these are wanted; arrays are used again."""
    out = graph.out
    room = BATCH_CHUNKS * out.chunk_edges
    neighbors = np.empty(room, dtype=np.uint32)
    values = np.empty(room, dtype=out.weight_dtype) if weights else None
    with Reader(graph, decode_threads=2) as reader:
        for first in range(0, out.chunks, BATCH_CHUNKS):
            chunks = np.arange(first, min(first + BATCH_CHUNKS, out.chunks))
            edge = first * out.chunk_edges
            count = min(room, out.edges - edge)
            parts = neighbors[:count], None if values is None else values[:count]
            reader.fetch(out, chunks, edge, *parts).result()
            yield parts


def offsets_of(graph: Graph) -> NDArray[np.int64]:
    """Where each row starts, and where the last one ends."""
    degrees = graph.out.index().degrees(0, graph.vertices)
    return np.concatenate([[0], np.cumsum(degrees, dtype=np.int64)])
