"""Conversion between the user's ids (original) and the engine's ids (internal).

Owns the translation of many ids both ways; internal ids are 0 .. vertices - 1. One is looked up by storage's
`vertex_lookup.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ranges import ROWS, each_range
from penstock.storage.access.vertex_lookup import internal_id
from penstock.storage.base.errors import InputError
from penstock.storage.base.printable import brief
from penstock.storage.format.graph import Graph


def internal_ids(graph: Graph, originals: int | str | Iterable[int | str]) -> NDArray[np.int64]:
    """Internal ids of one vertex or several, ascending, once each. Raises InputError for none, or for a stranger."""
    return np.unique([internal_id(graph, one) for one in originals_of(originals)])


def originals_of(source: Any, name: str = "source") -> list[int | str]:
    """A source, or what `name` is, as a list: a vertex id or several. Raises InputError for none, or for no id."""
    if isinstance(source, int | np.integer | str):
        return [source]  # type: ignore[list-item]
    single = not isinstance(source, Iterable) or isinstance(source, bytes) or getattr(source, "ndim", 1) == 0
    several = [source] if single else list(source)
    if not all(isinstance(one, int | np.integer | str) for one in several):
        raise InputError(
            f"{name} {brief(repr(source))} is not a vertex id or a list of them; an id is a whole number, or a text "
            "where ids are strings"
        )
    if not several:
        raise InputError(f"no vertex is given as {name}; give at least one id")
    return several


def original_order(graph: Graph) -> NDArray[np.intp]:
    """Internal ids by ascending original id; in a bipartite graph sources come first."""
    ids = None if in_original_order(graph) else graph.original_ids()
    if ids is None:
        return np.arange(graph.vertices)
    if not _are_places(ids):
        return np.argsort(ids, kind="stable")
    order = np.empty(graph.vertices, np.intp)
    order[ids] = np.arange(graph.vertices)
    return order


def in_original_order(graph: Graph) -> bool:
    """Whether the smallest of some internal ids is that of the smallest original id.

    It is unless the conversion ordered the vertices (`--order`), or a graph in memory was given its ids in another
    order.
    """
    if surely_in_original_order(graph):
        return True
    if graph.reordered:  # reading the ids takes longer than what a program gains should they rise all the same
        return False
    ids = vertex_names(graph)
    return bool(np.all(ids[1:] >= ids[:-1]))


def surely_in_original_order(graph: Graph) -> bool:
    """Whether `in_original_order` without a look at the ids."""
    return graph.original is None or graph.left is not None or graph.reordered is False


def _are_places(ids: NDArray[Any]) -> bool:
    """Whether ids are 0 to n-1 in any order, as after `--order` alone: each is its own place in the order of all."""
    if ids.dtype.kind == "T" or len(ids) == 0 or int(ids.max()) != len(ids) - 1:
        return False
    seen = np.zeros(len(ids), np.bool_)
    seen[ids] = True
    return bool(seen.all())


def fill_ranks(graph: Graph, out: NDArray[Any]) -> None:
    """Set `out`, integers (vertices,), to the place of every internal id in `original_order`."""
    ordered = in_original_order(graph)
    ids = None if ordered else vertex_names(graph)
    if ids is not None and _are_places(ids):
        out[:] = ids
        return
    order = None if ordered else original_order(graph)

    def fill(first: int, last: int) -> None:
        out[slice(first, last) if order is None else order[first:last]] = np.arange(first, last, dtype=out.dtype)

    each_range(fill, graph.vertices)


def original_ranks(graph: Graph) -> NDArray[Any]:
    """Of every internal id its place in `original_order`, in the graph's id type."""
    rank = np.empty(graph.vertices, graph.vertex_dtype)
    fill_ranks(graph, rank)
    return rank


def names_by_rank(graph: Graph, ranks: NDArray[Any]) -> NDArray[Any]:
    """For places in `original_order` what stands for the vertices there; the largest value stands for none."""
    if in_original_order(graph):
        return original_values(graph, ranks)
    names = vertex_names(graph)
    return ranks if names.dtype == ranks.dtype and _are_places(names) else _taken(np.sort(names), ranks)


def smallest_members(graph: Graph, group: NDArray[Any]) -> NDArray[Any]:
    """For every vertex the name of the first of its group; group (vertices,) holds the smallest internal id in it."""
    if in_original_order(graph):
        return original_values(graph, group)
    order, first = original_order(graph), np.empty(graph.vertices, graph.vertex_dtype)
    for end in range(graph.vertices, 0, -ROWS):  # of several members that are written the last one is left
        members = order[max(0, end - ROWS) : end][::-1]
        first[group[members]] = members
    del order
    each_range(partial(_replace, group, first), graph.vertices)
    del first
    return _taken(vertex_names(graph), group)


def _replace(places: NDArray[Any], values: NDArray[Any], first: int, last: int) -> None:
    """Put the values at some places where these are."""
    places[first:last] = values[places[first:last]]


def original_values(graph: Graph, values: NDArray[Any]) -> NDArray[Any]:
    """Internal ids (the largest value of their dtype standing for none) as `vertex_names` of the same rule.

    Among names that are strings the empty one stands for none.
    """
    if graph.original is None or graph.left is not None or graph.vertices == 0:
        return values
    return _taken(vertex_names(graph), values)


def _taken(names: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """The names at some places, the largest value standing for none."""
    none = "" if names.dtype.kind == "T" else np.iinfo(names.dtype).max
    found = np.empty(len(places), names.dtype)

    def take(first: int, last: int) -> None:
        absent = places[first:last] == np.iinfo(places.dtype).max
        found[first:last] = names[np.where(absent, 0, places[first:last])]
        found[first:last][absent] = none

    each_range(take, len(places))
    return found


def vertex_names(graph: Graph) -> NDArray[Any]:
    """What stands for every vertex where it is a value, as a component or a parent is: its original id.

    In a bipartite graph ids may occur on both sides, so there it is the number of its row in the result, from 0.
    """
    ids = None if graph.left is not None else graph.original_ids()
    return np.arange(graph.vertices, dtype=graph.vertex_dtype) if ids is None else ids


def tie_breakers(graph: Graph) -> NDArray[Any]:
    """Numbers in the order of the original ids: these themselves, of strings and of two sides their ranks."""
    ids = None if graph.left is not None else graph.original_ids()
    return original_ranks(graph) if ids is None or ids.dtype.kind == "T" else ids


def vertex_column(graph: Graph) -> NDArray[Any]:
    """Original id of every internal id."""
    ids = graph.original_ids()
    return np.arange(graph.vertices, dtype=graph.vertex_dtype) if ids is None else ids
