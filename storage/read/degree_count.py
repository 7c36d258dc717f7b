"""The degrees of a graph's vertices: those that its file holds, else counted in one pass over the edges of a list."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import RunError
from penstock.storage.base.jit import jit
from penstock.storage.base.stage_clock import stage
from penstock.storage.base.threads import ThreadPool
from penstock.storage.format.frames import Frames
from penstock.storage.format.graph import Graph
from penstock.storage.format.index import Index, from_degrees
from penstock.storage.read.scan import Scan

_SHIFT = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@jit
def _count_ends(keys: Any, sources: bool, targets: bool, counts: Any) -> None:
    """Count the vertices at these ends of edges; at both ends, an edge from a vertex to itself counts once."""
    for i in range(len(keys)):
        source, target = keys[i] >> _SHIFT, keys[i] & _LOW
        if sources:
            counts[source] += 1
        if targets and not (sources and source == target):
            counts[target] += 1


def degree_index(graph: Graph, direction: str, threads: int) -> Index:
    """Return an index of which row v is as long as the degree of vertex v.

    Parameters
    ----------
    graph : Graph
        Of rows, one with this adjacency; of a list, any.
    direction : {"out", "in"}
        Whose degrees; of an undirected graph both are the same.
    threads : int
        How many decode at once.

    Raises
    ------
    RunError
        The edges, or the degrees, cannot be read.
    """
    found = graph.degree_index(direction, threads)
    if found is not None:
        return found
    assert graph.layout == "list", "the adjacency is stored"
    counts = np.zeros(graph.vertices, np.int64)
    ends = direction == "out" or not graph.directed, direction == "in" or not graph.directed
    with stage("index"):
        _count(graph, ends, counts, threads)
    return from_degrees(graph.vertices, lambda: [counts])


class DegreeReader(threading.local):
    """Degrees that are read from a file when they are asked for; each thread keeps the chunk that it read last."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._chunk, self._items = -1, np.empty(0, frames.spec.kind)

    def add_lengths(self, v0: int, out: NDArray[np.int64]) -> None:
        """Add the degrees of as many vertices from v0 on to ``out``, as `Index.add_lengths`.

        Raises RunError where they cannot be read, or are damaged.
        """
        last, size = v0 + len(out), self._frames.spec.chunk_items
        for chunk in range(v0 // size, -(-last // size)):
            if chunk != self._chunk:
                (self._items,), self._chunk = self._frames.load([chunk]), chunk
            begin = max(v0, chunk * size)
            part = self._items[begin - chunk * size : last - chunk * size]
            out[begin - v0 :][: len(part)] += part.astype(np.int64)

    def lengths_of(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Degrees of these vertices, in any order, int64. Raises RunError as `add_lengths`."""
        return self._frames.taken(rows).astype(np.int64)


def degrees_of(graph: Graph, direction: str, threads: int) -> Index | DegreeReader:
    """Return what has the degrees of all vertices, as `degree_index`, without reading all of a file.

    Raises RunError as `degree_index`.
    """
    frames = graph.degree_frames(direction)
    return degree_index(graph, direction, threads) if frames is None else DegreeReader(frames)


def _count(graph: Graph, ends: tuple[bool, bool], counts: NDArray[np.int64], threads: int) -> None:
    if graph.out.arrays is not None:
        _count_ends(graph.out.arrays[0], *ends, counts)
        return
    assert graph.out.neighbors is not None, "edges are in memory or in a file"
    turn = threading.Lock()

    def count(_: int, items: tuple[NDArray[Any], ...]) -> None:
        with turn:  # threads decode meanwhile
            _count_ends(items[0], *ends, counts)

    with ThreadPool(threads, "decode") as pool, Scan([graph.out.neighbors], pool, threads) as scan:
        for chunk in scan.chunks(count):
            for problem in chunk.problems:
                raise RunError(f"{problem.place}: {problem.what}")
