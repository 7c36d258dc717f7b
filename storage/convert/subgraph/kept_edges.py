"""The edges between some vertices of a graph, in new ids: chunk by chunk, in order, of rows or of a list.

New ids are in the order of the old ones, so that rows stay sorted. Chunks that no chosen vertex has a row in are not
read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.storage.access.edge_pieces import ListPieces
from penstock.storage.base.jit import jit
from penstock.storage.base.parallel_map import ordered_map
from penstock.storage.base.threads import ThreadPool
from penstock.storage.convert.sort.sort_groups import SortedRows
from penstock.storage.convert.subgraph.kept_vertices import all_kept_ids
from penstock.storage.convert.subgraph.vertex_bitmap import VertexBitmap, is_member, rank_of
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.schema import vertex_dtype
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.formats.graph_file import GraphFileSource


class Bounds(NamedTuple):
    """Least and greatest value of what is kept, both included."""

    low: float
    high: float

    def hold(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which values are within them."""
        return np.asarray((values >= self.low) & (values <= self.high))


class KeptPiece(NamedTuple):
    """What is kept of a chunk: rows (None: nothing is), how many self-loops, and how many entries the chunk has."""

    rows: SortedRows | None
    loops: int
    entries: int


@dataclass(frozen=True, slots=True)
class KeptRows:
    """What is kept of an adjacency: the edges between chosen vertices, of which the weights are within bounds."""

    adjacency: Adjacency
    chosen: VertexBitmap
    weights: Bounds | None
    threads: int

    @property
    def piece_bytes(self) -> int:
        """About what one chunk takes while it is read and filtered."""
        rows = self.adjacency
        edge = rows.neighbor_dtype.itemsize + (0 if rows.weight_dtype is None else rows.weight_dtype.itemsize)
        return rows.chunk_edges * (3 * edge + 2 * vertex_dtype(len(self.chosen)).itemsize + 9)

    def pieces(self) -> Iterator[KeptPiece]:
        """Yield what is kept of every chunk, in order. Raises RunError where one cannot be read."""
        self.adjacency.index(self.threads)
        with ThreadPool(self.threads, "extract") as pool:
            yield from ordered_map(pool, self._read, range(self.adjacency.chunks), self.threads + 1)

    def _read(self, chunk: int) -> KeptPiece:
        adjacency, chosen = self.adjacency, self.chosen
        index = adjacency.index()
        first = chunk * adjacency.chunk_edges
        last = min(first + adjacency.chunk_edges, adjacency.edges)
        v0, v1 = index.row_of(first), index.row_of(last - 1) + 1
        new = chosen.below(v0)
        degrees = np.zeros(chosen.below(v1) - new, np.uint32)
        if len(degrees) == 0:
            return KeptPiece(None, 0, last - first)
        starts = np.clip(index.starts(v0, v1 + 1), first, last) - first
        targets, weights = adjacency.edges_in(first, last)
        allowed = np.empty(0, np.bool_)
        if self.weights is not None and weights is not None:
            allowed = self.weights.hold(weights)
        kept = np.empty(len(targets), vertex_dtype(len(chosen)))
        places = np.empty(len(targets), np.int32)
        count, loops = keep_edges(starts, v0, targets, allowed, chosen.words, chosen.before, degrees, kept, places)
        values = None if weights is None else weights[places[:count]]
        return KeptPiece(SortedRows(new, degrees, kept[:count].copy(), values), loops, last - first)


@jit
def keep_edges(
    starts: NDArray[np.int64],
    first: int,
    targets: NDArray[Any],
    allowed: NDArray[np.bool_],
    words: NDArray[np.uint64],
    before: NDArray[np.int64],
    degrees: NDArray[np.uint32],
    kept: NDArray[Any],
    places: NDArray[np.int32],
) -> tuple[int, int]:
    """Write the new ids of the targets that stay, where they were, and the lengths of the rows that stay.

    Row ``first + i`` is ``targets[starts[i]:starts[i + 1]]``; ``allowed`` says which edges may stay, (0,): all. Returns
    how many edges and how many self-loops stay.
    """
    count = 0
    loops = 0
    row = -1
    for i in range(len(starts) - 1):
        vertex = np.int64(first + i)
        if not is_member(words, vertex):
            continue
        row += 1
        begin = count
        for e in range(starts[i], starts[i + 1]):
            target = np.int64(targets[e])
            if (len(allowed) == 0 or allowed[e]) and is_member(words, target):
                kept[count] = rank_of(words, before, target)
                places[count] = e
                count += 1
                if target == vertex:
                    loops += 1
        degrees[row] = count - begin
    return count, loops


def kept_batches(graph: Graph, chosen: VertexBitmap, weights: Bounds | None) -> Iterator[EdgeBatch]:
    """Yield the edges of a list that stay, a chunk at a time, in new ids. Raises RunError where it cannot be read."""
    pieces, kind = ListPieces(graph.out, both=False), vertex_dtype(len(chosen))
    for number in range(pieces.count):
        sources, targets, values = pieces.read(number)
        stays = chosen.holds(sources) & chosen.holds(targets)
        if weights is not None and values is not None:
            stays &= weights.hold(values)
        ends = [chosen.ranks(part[stays]).astype(kind) for part in (sources, targets)]
        yield EdgeBatch(ends[0], ends[1], None if values is None else values[stays])


class KeptList(GraphFileSource):
    """A part of a list, as a source that `convert` takes."""

    def __init__(
        self, graph: Graph, chosen: VertexBitmap, weights: Bounds | None, watch: Callable[[int], None]
    ) -> None:
        assert graph.path is not None, "a graph in memory is no file"
        super().__init__(Path(graph.path), IngestOptions())
        self._kept, self._chosen, self._bounds, self._watch = graph, chosen, weights, watch
        self.known_vertices = len(chosen)
        self.left = None if graph.left is None else chosen.below(graph.left)

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the edges that stay."""
        done, step = 0, self._kept.out.chunk_edges
        for batch in kept_batches(self._kept, self._chosen, self._bounds):
            done = min(done + step, self._kept.edges)
            self.bytes_done = int(self.total_bytes * done / max(1, self._kept.edges))
            self._watch(done)
            if len(batch):
                yield batch

    def original_ids(self) -> NDArray[Any] | StringArray | None:
        """The ids that the vertices have which stay."""
        return all_kept_ids(self._kept, self._chosen)

    def properties(self) -> None:
        """None: properties of vertices stay with rows only."""
