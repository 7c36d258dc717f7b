"""What users ask of a graph by the ids of its input: edges as a table, neighbors and degrees of a vertex."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.access.vertex_lookup import QueriedGraph, internal_id
from penstock.storage.base.errors import InputError, brief, for_python
from penstock.storage.base.threads import map_rows
from penstock.storage.tables.edge_pieces import EdgePieces, ListPieces, RowStarts, StoredRows
from penstock.storage.tables.html_table import SHOWN, html_table

DIRECTIONS = ("out", "in")


class GraphQueries:
    """Queries of a graph in the ids of its input."""

    __slots__ = ()
    __networkx_backend__ = "penstock"
    """With which networkx calls tools/networkx for `nx.pagerank(graph)`."""

    def is_directed(self: QueriedGraph) -> bool:
        """Return whether edges have a direction, as networkx asks."""
        return self.directed

    def __len__(self: QueriedGraph) -> int:
        """Return the number of vertices, as networkx does."""
        return self.vertices

    def number_of_nodes(self: QueriedGraph) -> int:
        """Return the number of vertices."""
        return self.vertices

    @for_python
    def number_of_edges(self: QueriedGraph) -> int:
        """Return how many edges `edge_batches` gives: of an undirected graph each once, and parallel ones each.

        Of an undirected graph with sorted rows they are read to be counted: `edges`, which needs no reading, has every
        edge twice, but for self-loops. Raises RunError where they cannot be read.
        """
        pieces = pieces_of(self, both_directions=False)
        if not pieces.selects:
            return pieces.entries
        return sum(map_rows(lambda at, _: len(pieces.read(at)[0]), pieces.count, size=1))

    def is_multigraph(self) -> bool:
        """Return False, as networkx asks: parallel edges have no keys, and count as each program says."""
        return False

    @for_python
    def edge_batches(self: QueriedGraph, *, both_directions: bool = False, threads: int | None = None) -> Any:
        """Return the edges as a stream of Arrow record batches.

        A chunk of a graph file becomes a batch, and a few are under way at once. Besides these, memory holds the row
        index (4.1 bytes a vertex), and the ids of the input where they are not 0 to vertices - 1.

        Parameters
        ----------
        both_directions : bool
            Of an undirected graph give every edge twice, once from each of its ends (a self-loop once).
        threads : int, optional
            Most threads that decode; default: every core.

        Returns
        -------
        pyarrow.RecordBatchReader
            Columns `source`, `target` (ids of the input) and, if there are weights, `weight`. pandas, polars and duckdb
            read it: `polars.DataFrame(graph.edge_batches())`.

        Raises
        ------
        InputError
            `both_directions` of a directed graph.
        RunError
            While it is read: the edges cannot be read, or are damaged.
        """
        from penstock.storage.tables.arrow_edges import edge_reader  # Arrow takes long to import

        return edge_reader(pieces_of(self, both_directions=both_directions), names_of(self), threads)

    def __arrow_c_stream__(self: QueriedGraph, requested_schema: object | None = None) -> object:
        """Give the edges as a stream of record batches (Arrow PyCapsule interface), as `edge_batches` has them."""
        from penstock.storage.tables.arrow_edges import edge_reader

        reader = edge_reader(pieces_of(self, both_directions=False), names_of(self), None)
        stream: object = reader.__arrow_c_stream__(requested_schema)
        return stream

    def _repr_html_(self: QueriedGraph) -> str:
        """Return the first edges as notebooks show them."""
        return html_table(repr(self)[1:-1], first_edges(self, SHOWN), None)

    @for_python
    def neighbors(self: QueriedGraph, vertex: int | str, direction: str = "out") -> NDArray[Any]:
        """Return the vertices to which edges of a vertex lead.

        Parameters
        ----------
        vertex : int or str
            Its id in the input; in a bipartite graph `"source:7"` where the id is on both sides.
        direction : {"out", "in"}
            "in": the vertices from which edges lead to it. For an undirected graph both are the same.

        Returns
        -------
        ndarray of integers or strings
            Ids of the input, one for each edge, in the order in which they are stored; only their chunks are read.

        Raises
        ------
        InputError
            The graph has no such vertex, or does not store in-edges.
        RunError
            The edges cannot be read, or are damaged.
        """
        rows, (first, last) = _row(self, vertex, direction)
        return self.original_ids_of(rows.edges_in(first, last, weights=False)[0])

    @for_python
    def degree(self: QueriedGraph, vertex: int | str, direction: str = "out") -> int:
        """Return how many edges a vertex has.

        Parameters
        ----------
        vertex : int or str
            Its id in the input.
        direction : {"out", "in"}
            Whether edges that begin or edges that end there count; for an undirected graph both are the same, and a
            self-loop counts once.

        Returns
        -------
        int
            As many as `neighbors` has; parallel edges count each.

        Raises
        ------
        InputError
            The graph has no such vertex, or does not store in-edges.
        """
        _, (first, last) = _row(self, vertex, direction)
        return last - first


def pieces_of(graph: QueriedGraph, *, both_directions: bool) -> EdgePieces | ListPieces:
    """The edges of a graph, of an undirected one each once unless both directions are asked for. Raises InputError."""
    if both_directions and graph.directed:
        raise InputError("the graph is directed, so that each edge has one direction; leave out --both-directions")
    if graph.layout == "list":
        return ListPieces(graph.out, both=both_directions)
    return EdgePieces(graph.out, once=not graph.directed and not both_directions)


def first_edges(graph: QueriedGraph, count: int) -> dict[str, list[Any]]:
    """The first edges by column, in the ids of the input; only chunks that hold them are read. Raises RunError."""
    pieces = pieces_of(graph, both_directions=False)
    columns: dict[str, list[Any]] = {"source": [], "target": []} | (
        {} if pieces.weight_dtype is None else {"weight": []}
    )
    for piece in range(pieces.count):
        sources, targets, weights = pieces.read(piece)
        columns["source"] += graph.original_ids_of(sources[:count]).tolist()
        columns["target"] += graph.original_ids_of(targets[:count]).tolist()
        if weights is not None:
            columns["weight"] += weights[:count].tolist()
        if len(columns["source"]) >= count:
            break
    return {name: values[:count] for name, values in columns.items()}


def names_of(graph: QueriedGraph) -> Any:
    """The ids of the input by internal ids, None where they are the same; strings of a file as they are there."""
    stored = graph.original
    return stored.names() if hasattr(stored, "names") else graph.original_ids()


def text_bytes(graph: QueriedGraph) -> int:
    """Bytes of all ids of the input, which are strings; of arrays in memory their characters."""
    names: Any = graph.original
    return int(np.strings.str_len(names).sum()) if isinstance(names, np.ndarray) else int(names.text.spec.items)


def _row(graph: QueriedGraph, vertex: int | str, direction: str) -> tuple[StoredRows, tuple[int, int]]:
    """The adjacency of a direction, and which of its edges are a vertex's."""
    if direction not in DIRECTIONS:
        raise InputError(f"direction is {direction!r}; give one of {', '.join(DIRECTIONS)}")
    if isinstance(vertex, bool | np.bool_) or not isinstance(vertex, int | np.integer | str):
        raise InputError(f"{brief(repr(vertex))} is no vertex id: give a whole number, or a text where ids are strings")
    if graph.layout == "list":
        raise InputError(
            "the edges of the graph are in the order of the input, and no vertex has a row of them; `penstock convert` "
            "of the graph file sorts them"
        )
    rows = graph.out if direction == "out" else graph.into
    if rows is None:
        raise InputError("the graph does not store in-edges; convert it with --direction both")
    at = internal_id(graph, vertex)
    starts: RowStarts = rows.index()
    first, last = starts.starts(at, at + 2).tolist()
    return rows, (first, last)
