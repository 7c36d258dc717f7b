"""Which vertices a program that searches from one after another starts from: given, sampled or all."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ids import (
    in_original_order,
    internal_ids,
    original_order,
    surely_in_original_order,
)
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph


def check_one_choice(program: str, source: Any, k: int | None) -> None:
    """Raise InputError where sources are both given and to be sampled."""
    if source is not None and k is not None:
        raise InputError(f"{program} takes source or k, not both")


def chosen_sources(graph: Graph, source: Any, k: int | None, seed: int) -> NDArray[Any]:
    """Return internal ids of the vertices to search from.

    Parameters
    ----------
    graph : Graph
        The graph.
    source : int, str, sequence of them, or None
        Original ids.
    k : int or None
        Without `source`: so many, drawn without replacement; the same ones whatever the order of vertices in the file.
    seed : int
        Of the draw.

    Raises
    ------
    InputError
        The graph has no such vertex.
    """
    if source is not None:
        return internal_ids(graph, source)
    if k is None or k >= graph.vertices:
        return original_order(graph)
    drawn = np.random.default_rng(seed).choice(graph.vertices, k, replace=False)
    return drawn if in_original_order(graph) else original_order(graph)[drawn]


def source_count(graph: Graph, source: Any, k: int | None) -> int:
    """Return how many vertices `chosen_sources` returns, at most; no ids are read."""
    if source is not None:
        return len(source) if isinstance(source, Sized) and not isinstance(source, str) else 1
    return graph.vertices if k is None else min(k, graph.vertices)


FEW_DRAWN = 50
"""So few are drawn one by one: with at most this part of many vertices NumPy makes no array of them all."""


def source_bytes(graph: Graph, source: Any, k: int | None) -> int:
    """Return how many bytes a vertex `chosen_sources` allocates at most, with a mark for each vertex."""
    if source is not None:
        return 1
    if k is None or k >= graph.vertices:
        return 1 + graph.vertex_dtype.itemsize
    drawn = 8 if k > graph.vertices // FEW_DRAWN else 0
    return 1 + max(drawn, 0 if surely_in_original_order(graph) else graph.vertex_dtype.itemsize)


def source_name(graph: Graph, number: int, source: Any, k: int | None) -> str:
    """Return a name for the search from one of the sources, number from 0: ``source 3 of 64``."""
    return f"source {number + 1:,} of {source_count(graph, source, k):,}"
