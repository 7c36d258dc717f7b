"""About how many bytes the edges of a graph take as a table in a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.storage.access.graph_queries import QueriedGraph
from penstock.storage.tables.table_size import ColumnSize, SizeRange, column_size, digits_of_first, table_size


def exported_size(graph: QueriedGraph, format: str, *, both_directions: bool) -> SizeRange:
    """The size of the edges that `edge_files.export_edges` writes in a format."""
    stored = graph.out.edges
    doubled = not graph.directed and graph.layout == "rows"  # every edge but loops is stored twice
    edges = stored // 2 if doubled and not both_directions else stored
    ends = [_id_column(graph, edges)] * 2
    weight = graph.out.weight_dtype
    weights = [] if weight is None else [column_size(weight, edges, sparse=False)]
    if format == "npz" and weight is None:
        weights = [column_size(np.dtype(np.bool_), edges, sparse=False)]
    return table_size(format, edges, [*ends, *weights])


def _id_column(graph: QueriedGraph, edges: int) -> ColumnSize:
    """The size of the ids at one end of all edges."""
    if graph.id_dtype.kind != "T":
        digits = edges * digits_of_first(graph.vertices) // max(1, graph.vertices)
        return ColumnSize(edges, digits, edges * min(4, graph.id_dtype.itemsize))
    names: Any = graph.original
    size = int(np.strings.str_len(names).sum()) if isinstance(names, np.ndarray) else names.text.spec.items
    likely = edges * size // max(1, graph.vertices)
    return ColumnSize(edges, likely, likely)
