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
        return _looked_up(graph, given)
    return np.array(found, graph.vertex_dtype)


def _looked_up(graph: Graph, given: list[int | str]) -> NDArray[Any]:
    """The vertices of ids that are not numbers of vertices. Raises InputError for a stranger."""
    ids = graph.original_ids()
    assert ids is not None, "numbers of vertices are not looked up"
    numbers = ids.dtype.kind != "T" and all(isinstance(one, int | np.integer) and 0 <= one < 1 << 64 for one in given)
    if numbers and bool((ids[1:] >= ids[:-1]).all()):
        wanted = np.array(given, np.uint64)
        places = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
        strangers = np.flatnonzero(ids[places] != wanted)
        if len(strangers):
            internal_id(graph, given[int(strangers[0])])
        return places.astype(graph.vertex_dtype)
    known = _places(ids, set(given))
    return np.array([known[one] if one in known else internal_id(graph, one) for one in given], graph.vertex_dtype)


def _places(ids: NDArray[Any], wanted: set[int | str]) -> dict[int | str, int]:
    """The places of some ids."""
    found: dict[int | str, int] = {}
    for first in range(0, len(ids), STEP):
        names: list[Any] = ids[first : first + STEP].tolist()
        found.update((name, first + at) for at, name in enumerate(names) if name in wanted)
    return found


def name_bytes(graph: Graph) -> int:
    """Bytes of the ids of the input, in memory while walks are written."""
    stored = graph.original
    if stored is None or isinstance(stored, np.ndarray):
        return 0
    size = sum(frames.spec.items * frames.kind.itemsize for frames in stored.arrays)
    return size if len(stored.arrays) == 1 else size + 2 * 8 * graph.vertices
