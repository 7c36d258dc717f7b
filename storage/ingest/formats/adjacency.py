"""Lines of neighbors: of a named vertex (`7: 1 2 3`), of vertex 0, 1, … (`rows`), with their number first (`webgraph`).

``adjacency``: a line names a vertex and then its neighbors, divided by blanks or commas, perhaps with a
colon after the vertex (``7: 1 2 3``, ``7<TAB>1,2,3``); a line may have no neighbors. ``rows``: line i (from 0)
is the neighbors of vertex i; an empty line is a vertex without any. ``webgraph``: the same after a line with
the number of vertices, as WebGraph's ASCIIGraph has it (Boldi and Vigna, WWW 2004). With ``--weights``
a weight follows each neighbor. Refuses counts that do not hold.
"""

from collections.abc import Generator, Iterator, Sequence
from functools import partial

import numpy as np
from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Place
from penstock.storage.ingest.bytes.blocks import Bytes, lines_of
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.text.diagnose import LARGEST_ID, is_data, shown, whole_number
from penstock.storage.ingest.text.edge_list import TextFile
from penstock.storage.ingest.text.row_lists import RowListBlock, RowShape, RowsSource, what_is_wrong


class AdjacencySource(RowsSource):
    """Adjacency lists, one file after another. See `core/source.Source`.

    ``known_vertices`` of ``rows`` is known when all are read.
    """

    def __init__(self, paths: Sequence[Place], format: str, options: IngestOptions) -> None:
        if options.columns is not None:
            raise InputError(
                f"--format {format} has no columns to choose; --weights takes a weight after each neighbor"
            )
        if format != "adjacency" and len(paths) > 1:
            raise InputError(f"--format {format}: a file is a whole graph, numbered from 0; convert one at a time")
        super().__init__(paths, options)
        self._format = format
        self._shape = RowShape(owned=format == "adjacency", weighted=bool(options.weights))
        self._rows = 0

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the edges in order; ``lone`` are vertices whose lines have no neighbors.

        Raises:
            InputError: a line cannot be read, or a stated count does not hold.
        """
        for parsed in self._parsed():
            if len(parsed.batch) or parsed.batch.lone is not None:
                yield parsed.batch
        if self._format == "rows":
            self.known_vertices = self._rows
        elif self._format == "webgraph" and self._rows < (self.known_vertices or 0):
            raise InputError(
                f"{self.name}: its first line states {self.known_vertices} vertices, and it has {self._rows} rows: "
                "the file is truncated; fetch it again (--format rows reads rows without a count)"
            )

    def _blocks(self) -> Iterator[RowListBlock]:
        for block in super()._blocks():
            if not block.shape.owned:
                self._rows = block.row + block.rows + block.unfinished
            yield block

    def _head(self, block: Bytes, file: TextFile) -> tuple[int, int, RowShape] | None:
        file.explain = partial(what_is_wrong, self._shape, None)
        if self._format != "webgraph":
            return 0, 0, self._shape
        for number, line, at in lines_of(block):
            if is_data(line):
                where = f"{self.name}, line {file.lines + number}"
                if not line.strip().isdigit() or not line.isascii():
                    raise InputError(
                        f"{where}: the first line of --format webgraph is the number of vertices; --format rows reads "
                        f"rows without it\n    {shown(line)}"
                    )
                self.known_vertices = whole_number(line)
                if self.known_vertices > LARGEST_ID:
                    raise InputError(f"{where}: no graph has so many vertices; correct it\n    {shown(line)}")
                file.explain = partial(what_is_wrong, self._shape, range(self.known_vertices))
                return at, number, self._shape
        return None

    def _accept(self, block: RowListBlock, batch: EdgeBatch) -> EdgeBatch | int:
        """Check that a counted graph has no vertex beyond its count."""
        if self._format == "webgraph" and len(batch):
            beyond = np.maximum(batch.sources, batch.targets) >= (self.known_vertices or 0)
            if beyond.any():
                return int(np.argmax(beyond))
        return batch
