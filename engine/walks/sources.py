"""Which vertices walks begin at: the ids of the input are looked up together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ids import originals_of
from penstock.storage.access.vertex_lookup import internal_id
from penstock.storage.format.graph import Graph

FEW = 8
"""Up to so many are looked up one by one, which reads less of the ids."""
STEP = 1 << 16


def source_vertices(graph: Graph, sources: int | str | Iterable[int | str] | None) -> NDArray[Any] | None:
    """Internal ids of the sources, in their order, repeated where they are; None for all vertices.

    Raises InputError where the graph has no such vertex.
    """
    if sources is None:
        return None
    if isinstance(sources, np.ndarray) and sources.dtype.kind in "iu" and sources.ndim == 1 and graph.original is None:
        strangers = np.flatnonzero((sources < 0) | (sources >= graph.vertices))
        if len(strangers):
            internal_id(graph, int(sources[strangers[0]]))
        if len(sources):
            return sources.astype(graph.vertex_dtype)
    given = originals_of(sources)
    if graph.left is not None or len(given) <= FEW:
        found = [internal_id(graph, one) for one in given]
    elif graph.original is None:
        found = [one if type(one) is int and 0 <= one < graph.vertices else internal_id(graph, one) for one in given]
    else:
        places = _places(graph, set(given))
        found = [places[one] if one in places else internal_id(graph, one) for one in given]
    return np.array(found, graph.vertex_dtype)


def _places(graph: Graph, wanted: set[int | str]) -> dict[int | str, int]:
    """The vertices of some ids."""
    ids = graph.original_ids()
    assert ids is not None, "numbers of vertices are not looked up"
    found: dict[int | str, int] = {}
    for first in range(0, len(ids), STEP):
        names: list[Any] = ids[first : first + STEP].tolist()
        found.update((name, first + at) for at, name in enumerate(names) if name in wanted)
    return found
