"""A part of a graph while it is being taken: what its chunks give, how many threads read, what memory that needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import cores, format_bytes
from penstock.storage.base.errors import BudgetError, InputError
from penstock.storage.convert.row_writer import set_ends, set_rows
from penstock.storage.convert.sort.sort_groups import SortedRows
from penstock.storage.convert.subgraph.kept_edges import Bounds, KeptRows, kept_batches
from penstock.storage.convert.subgraph.vertex_bitmap import VertexBitmap
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.format.frames import StringIdFrames
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.schema import CHUNK_EDGES, EXTRACTED, STRIPE_RUN, WITHOUT_EDGES
from penstock.storage.tables.properties import PROPERTIES, open_properties

Watch = Callable[[str, int, int], None]
"""Called with a stage ("select", "out", "in"), and how many of its entries have been read of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractOptions:
    """How a part of a graph is taken.

    weights: of the edges that stay. drop_isolated: leave out chosen vertices to which no edge is left. conditions: what
    chose the vertices, for the file. host_memory, threads, force: as `ConvertOptions` has them.
    """

    weights: Bounds | None = None
    drop_isolated: bool = False
    conditions: dict[str, Any] = field(default_factory=dict)
    host_memory: int = 1 << 30
    threads: int | None = None
    force: bool = False
    watch: Watch = lambda stage, done, total: None


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A part of a graph that is being taken."""

    graph: Graph
    chosen: VertexBitmap
    options: ExtractOptions
    threads: int

    @classmethod
    def of(cls, graph: Graph, chosen: VertexBitmap, options: ExtractOptions) -> Subgraph:
        """Check what was asked for; leave out vertices without an edge, where that is wanted. Raises InputError."""
        if options.weights is not None:
            check_weighted(graph)
        part = cls(graph, chosen, options, 1)._affordable()
        return replace(part, chosen=part._with_edges()) if options.drop_isolated else part

    @property
    def left(self) -> int | None:
        """Of a bipartite graph, how many sources stay."""
        return None if self.graph.left is None else self.chosen.below(self.graph.left)

    def provenance(self) -> dict[str, Any]:
        """Where the graph comes from: as the first one, and what was taken of it."""
        kept = {name: value for name, value in self.graph.provenance.items() if name not in (WITHOUT_EDGES, PROPERTIES)}
        taken = {"from": "memory" if self.graph.path is None else str(self.graph.path), **self.options.conditions}
        return kept | {EXTRACTED: taken}

    def rows(self, adjacency: Adjacency, stage: str | None = None) -> Iterator[tuple[SortedRows | None, int]]:
        """Yield the rows that stay of each chunk, and their self-loops."""
        done = 0
        for rows, loops, entries in KeptRows(adjacency, self.chosen, self.options.weights, self.threads).pieces():
            done += entries
            yield rows, loops
            self.options.watch(stage or adjacency.direction, done, adjacency.edges)

    def batches(self, stage: str) -> Iterator[EdgeBatch]:
        """Yield the edges that stay of each chunk of a list."""
        done, edges = 0, self.graph.edges
        for batch in kept_batches(self.graph, self.chosen, self.options.weights):
            done = min(done + self.graph.out.chunk_edges, edges)
            yield batch
            self.options.watch(stage, done, edges)

    def _affordable(self) -> Subgraph:
        """The same with as many threads as the budget allows. Raises BudgetError where it allows none."""
        most = self.options.threads or cores()
        copied = self._copied()
        allowed = (count for count in range(most, 0, -1) if self._needed(count, copied) <= self.options.host_memory)
        threads = next(allowed, 0)
        if threads == 0:
            needed = self._needed(1, copied)
            raise BudgetError(
                "--host-memory",
                f"taking a part of this graph needs {format_bytes(needed)}: row indexes and sets of its "
                f"{self.graph.vertices:,} vertices, ids that are strings, properties, chunks that are read and written",
                -(-needed // (1 << 20)),
            )
        return replace(self, threads=threads)

    def _copied(self) -> int:
        """Bytes that copying properties holds, before edges are read; rows of another order are sorted by id."""
        graph = self.graph
        if not graph.properties:
            return 0
        table = open_properties(graph.path, graph.provenance, graph.vertices)
        return table.copy_bytes + (17 if graph.reordered else 1) * graph.vertices

    def _needed(self, threads: int, copied: int) -> int:
        """Bytes that reading, filtering and writing with so many threads hold, or copying properties."""
        ids, out = self.graph.original, self.graph.out
        names = 3 * ids.text.spec.items + 24 * ids.ends.spec.items if isinstance(ids, StringIdFrames) else 0
        vertices = (1 + 5 * len(self.graph.adjacencies)) * self.graph.vertices
        pieces = (threads + 2) * KeptRows(out, self.chosen, self.options.weights, 1).piece_bytes
        encoded = (3 * threads + 2 + STRIPE_RUN) * CHUNK_EDGES * out.edge_bytes(with_weights=True)  # GraphWriter's sum
        return names + vertices + max(pieces + encoded, copied)

    def _with_edges(self) -> VertexBitmap:
        """The chosen vertices to which an edge is left."""
        bits = np.zeros((len(self.chosen) + 7) // 8, np.uint8)
        if self.graph.layout == "list":
            for batch in self.batches("select"):
                set_ends(bits, batch.sources)
                set_ends(bits, batch.targets)
        else:
            for rows, _ in self.rows(self.graph.out, "select"):
                if rows is not None:
                    set_rows(bits, rows.first, rows.degrees)
                    if self.graph.directed:
                        set_ends(bits, rows.neighbors)

        def holds(first: int, last: int) -> NDArray[np.bool_]:
            found = self.chosen.mask(first, last)
            low, high = self.chosen.below(first), self.chosen.below(last)
            stay = np.unpackbits(bits[low // 8 : -(-high // 8)], bitorder="little")[low % 8 :][: high - low]
            found[found] = stay
            return found

        return VertexBitmap.of(self.graph.vertices, holds)


def check_weighted(graph: Graph) -> None:
    """Raise InputError where a graph has no weights to choose edges by."""
    if graph.weight_dtype is None:
        raise InputError("the graph has no weights to go by; leave out --weights, or convert with --weights")
