"""Properties of the vertices of a graph as columns of an answer, and of some vertices as values."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.vertex_ids import in_original_order, original_ranks
from penstock.storage.base.errors import InputError
from penstock.storage.base.printable import brief
from penstock.storage.tables.properties import open_properties

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.storage.format.graph import Graph
    from penstock.storage.tables.columns import Columns
    from penstock.storage.tables.property_file import PropertyFile


def property_columns(graph: Graph, names: Sequence[str], taken: Collection[str]) -> Columns:
    """Return properties by name, rows by ascending original id. taken: names of the columns beside them.

    Raises InputError where the graph has no such property, its file is missing, or a name is taken.
    """
    if not names:
        return {}
    properties = _properties(graph)
    for name in names:
        if name in taken:
            raise InputError(f"the answer has a column {name!r} itself; rename the property, and convert again")
    return {name: properties.column(name) for name in names}


def property_values(graph: Graph, names: Sequence[str], vertices: NDArray[Any]) -> dict[str, list[Any]]:
    """Return properties of some vertices, which are internal ids, by name; None where there is no value."""
    if not names:
        return {}
    rows = vertices if in_original_order(graph) else original_ranks(graph)[vertices]
    properties = _properties(graph)
    return {name: properties.values(name, rows.astype(np.int64)) for name in names}


def property_numbers(graph: Graph, name: str) -> NDArray[np.float64]:
    """Return a property of all vertices by internal id, float64 (vertices,), NaN where there is no value.

    Raises InputError where the graph has no such property, its file is missing, or its values are no numbers.
    """
    values, present = _properties(graph).column(name).arrays()
    if values.dtype.kind == "T":
        first = next(iter(values if present is None else values[present]), None)
        if first is not None:
            raise InputError(
                f"the property {name!r} has the value {brief(first)!r}, which is no number; name another one"
            )
        return np.full(graph.vertices, np.nan)
    found = values.astype(np.float64)
    if present is not None:
        found[~present] = np.nan
    return found if in_original_order(graph) else found[original_ranks(graph)]


def _properties(graph: Graph) -> PropertyFile:
    return open_properties(graph.path, graph.provenance, graph.vertices)
