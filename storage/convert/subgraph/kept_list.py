"""The edges between some vertices of a graph in the order of its input, in new ids, as the source of a conversion."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from penstock.storage.access.edge_pieces import ListPieces
from penstock.storage.convert.subgraph.kept_ids import all_kept_ids
from penstock.storage.convert.subgraph.kept_rows import Bounds
from penstock.storage.convert.subgraph.vertex_bitmap import VertexBitmap
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import vertex_dtype
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.formats.graph_file import GraphFileSource


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
