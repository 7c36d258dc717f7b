"""Between the ids a user knows (original) and the ids the engine counts with (internal).

Owns the translation both ways; internal ids are 0 .. vertices - 1. Refuses ids the graph does not have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.errors import InputError
from penstock.storage.graph import Graph


def internal_id(graph: Graph, original: int) -> int:
    """Internal id of one vertex. Raises InputError naming it where the graph has no such vertex."""
    ids = graph.original_ids()
    if ids is None:
        if 0 <= original < graph.vertices:
            return int(original)
        raise InputError(
            f"vertex {original} is not in the graph: its ids are 0 to {graph.vertices - 1}"
            if graph.vertices
            else f"vertex {original} is not in the graph: it has no vertices"
        )
    found = np.flatnonzero(ids == original)
    if len(found) == 0:
        raise InputError(
            f"vertex {original} is not in the graph: its {graph.vertices} ids lie between {ids.min()} and {ids.max()}"
            if len(ids)
            else f"vertex {original} is not in the graph: it has no vertices"
        )
    return int(found[0])


def original_values(graph: Graph, values: NDArray[Any]) -> NDArray[Any]:
    """Internal ids (the largest value of their dtype standing for none) as original ids of the same rule."""
    ids = graph.original_ids()
    if ids is None or len(ids) == 0:
        return values
    none = np.iinfo(values.dtype).max
    absent = values == none
    translated = ids[np.where(absent, 0, values)]
    translated[absent] = np.iinfo(ids.dtype).max
    return translated


def vertex_column(graph: Graph) -> NDArray[Any]:
    """Original id of every internal id."""
    ids = graph.original_ids()
    return np.arange(graph.vertices, dtype=graph.vertex_dtype) if ids is None else ids
