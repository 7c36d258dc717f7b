"""Conversion between the user's ids (original) and the engine's ids (internal).

Owns the translation of many ids both ways; internal ids are 0 .. vertices - 1. One is looked up by storage's
`vertex_lookup.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ranges import (
    MANY_ROWS,
    PASSES,
    ROWS,
    each_range,
    number_places,
    order_by,
    over_ranges,
)
from penstock.storage.access.graph_queries import names_of
from penstock.storage.access.vertex_lookup import few_internal_ids, internal_id, is_number, side_of, vertices_of_ids
from penstock.storage.base.errors import InputError, brief
from penstock.storage.encoding.string_array import NO_ORDER, StringArray, string_array
from penstock.storage.format.graph import Graph

Names = Callable[[NDArray[Any]], NDArray[Any]]
"""Original ids of some internal ids."""


@dataclass(frozen=True)
class VertexReferences:
    """Values of a field that are vertices, which answers name by their original ids.

    numbers: internal ids, (vertices,); the largest value of their dtype stands for none.
    """

    graph: Graph
    numbers: NDArray[Any]
    ndim = 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of their names."""
        return self.graph.id_dtype

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """The names in some rows."""
        return names_at(self.numbers[rows], self.graph.original_ids_of)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The names in all rows."""
        names, found = original_names(self.graph), np.empty(len(self), self.dtype)

        def fill(first: int, last: int) -> None:
            found[first:last] = names_at(self.numbers[first:last], names)

        each_range(fill, len(self))
        return found


def names_at(places: NDArray[Any], names: Names) -> NDArray[Any]:
    """The names at some places; where there is none the largest value of their dtype, of strings the empty one."""
    absent = places == np.iinfo(places.dtype).max
    found = names(np.where(absent, 0, places))
    found[absent] = "" if found.dtype.kind == "T" else np.iinfo(found.dtype).max
    return found


def original_names(graph: Graph) -> Names:
    """Original ids by internal ids, which are read now; strings of a file stay as bytes until they are asked for."""
    return partial(_named, graph, names_of(graph))


def _named(graph: Graph, ids: Any, places: NDArray[Any]) -> NDArray[Any]:
    """The original ids at some places; ids: as `names_of` has them."""
    if ids is None:
        return places.astype(graph.vertex_dtype)
    return ids.taken(places).strings() if isinstance(ids, StringArray) else ids[places]


FEW = 64
"""Ids up to which a finder holds no ids of the graph, and reads less of them."""


class VertexFinder:
    """Finds the vertices of ids. Of more than a few it holds the ids of the graph: numbers, or the bytes of names."""

    def __init__(self, graph: Graph) -> None:
        self.graph, left, self._asked = graph, graph.left, 0
        self._sides = [(0, graph.vertices)] if left is None else [(0, left), (left, graph.vertices)]

    @cached_property
    def _held(self) -> Any:
        """The ids of the graph."""
        return names_of(self.graph)

    @cached_property
    def _sorted(self) -> tuple[Any, list[NDArray[np.int64]]]:
        """The ids of the graph, names as bytes, and on each side their order."""
        ids = self._held
        found = string_array(ids) if isinstance(ids, np.ndarray) and ids.dtype.kind == "T" else ids
        rise = ids is None or self.graph.reordered is False
        if isinstance(ids, StringArray) and not rise:
            ids = ids.strings()
        return found, [NO_ORDER if rise else _order(ids[first:last]) for first, last in self._sides]

    def names(self, vertices: NDArray[Any]) -> NDArray[Any]:
        """Original ids of some vertices, in their order."""
        return _named(self.graph, self._held, vertices)

    def vertices(self, originals: Sequence[int | str]) -> NDArray[np.int64]:
        """Internal ids, in the order of these original ones. Raises InputError for one that the graph lacks."""
        self._asked += len(originals)
        if self._asked <= FEW:
            return np.array(few_internal_ids(self.graph, originals), np.int64)
        found = np.empty(len(originals), np.int64)
        for first in range(0, len(originals), ROWS):
            found[first : first + ROWS] = self.found(originals[first : first + ROWS])
        for stranger in np.flatnonzero(found < 0)[:1].tolist():
            found[stranger] = internal_id(self.graph, originals[stranger])
        return found

    def found(self, originals: Sequence[int | str]) -> NDArray[np.int64]:
        """The same, -1 for one that the graph lacks, or has on both sides where no side is named."""
        graph, found = self.graph, np.full(len(originals), -1, np.int64)
        ids, orders = self._sorted
        named = [side_of(graph, one) for one in originals]
        plain = [one for _, one in named]
        if ids is None:
            return np.array([int(one) if _is_id(one, graph.vertices) else -1 for one in plain], np.int64)
        for (first, last), order in zip(self._sides, orders, strict=True):
            here = _among(ids, plain, (first, last), order)
            if graph.left is not None:
                here[[side == ("target" if first == 0 else "source") for side, _ in named]] = -1
            found = np.where((found >= 0) & (here >= 0), -1, np.maximum(found, here))
        return found


def _among(ids: Any, plain: list[int | str], span: tuple[int, int], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The vertices of ids on a side."""
    if isinstance(ids, StringArray):
        return ids.places(plain, span, order)
    found, (first, last) = np.full(len(plain), -1, np.int64), span
    are = np.array([_is_id(one, 1 << 64) for one in plain], np.bool_) & (first < last)
    numbers = np.array([int(one) for one, number in zip(plain, are, strict=True) if number], np.uint64)
    if len(numbers):
        sorter = order if len(order) else None
        at = np.searchsorted(ids[first:last], numbers.astype(ids.dtype), sorter=sorter)
        at = np.minimum(at, last - first - 1)
        at = first + (order[at] if len(order) else at)
        found[are] = np.where(ids[at].astype(np.uint64) == numbers, at, -1)
    return found


def _order(ids: NDArray[Any]) -> NDArray[np.int64]:
    """Places by ascending id; none where ids ascend as they are."""
    ascend = ids.dtype.kind != "T" and bool((ids[1:] >= ids[:-1]).all())
    return NO_ORDER if ascend else np.argsort(ids, kind="stable")


def _is_id(one: int | str, end: int) -> bool:
    """Whether an id is a number below `end`."""
    return is_number(one) and 0 <= int(one) < end


def vertices_of(graph: Graph, originals: Sequence[int | str]) -> NDArray[np.int64]:
    """Internal ids, in the order of these original ones. Raises InputError for one that the graph lacks."""
    if len(originals) <= FEW or not _are_numbered(graph):
        return VertexFinder(graph).vertices(originals)
    found = _found_by_reading(graph, originals)
    for stranger in np.flatnonzero(found < 0)[:1].tolist():
        internal_id(graph, originals[stranger])
    return found


def _are_numbered(graph: Graph) -> bool:
    """Whether vertices have ids of the input that are numbers, each of them one vertex."""
    return graph.original is not None and graph.left is None and graph.id_dtype.kind != "T"


def _found_by_reading(graph: Graph, originals: Sequence[int | str]) -> NDArray[np.int64]:
    """The vertices of numbers, -1 for one that the graph lacks: found as its ids are read, of which none are held."""
    are = np.array([_is_id(one, 1 << 64) for one in originals], np.bool_)
    numbers = np.array([int(one) for one, number in zip(originals, are, strict=True) if number], np.uint64)
    wanted, places = np.unique(numbers, return_inverse=True)
    found = np.full(len(originals), -1, np.int64)
    found[are] = vertices_of_ids(graph, wanted)[places]
    return found


def internal_ids(graph: Graph, originals: int | str | Iterable[int | str]) -> NDArray[np.int64]:
    """Internal ids of one vertex or several, ascending, once each. Raises InputError for none, or for a stranger."""
    return np.unique(vertices_of(graph, originals_of(originals)))


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


def original_order(graph: Graph) -> NDArray[Any]:
    """Internal ids by ascending original id, in the graph's id type; in a bipartite graph sources come first."""
    if graph.vertices == 0 or in_original_order(graph):
        return np.arange(graph.vertices, dtype=graph.vertex_dtype)
    order = np.empty(graph.vertices, graph.vertex_dtype)
    if graph.id_dtype.kind == "T":
        order[:] = np.argsort(vertex_names(graph), kind="stable")
    elif not _inverted(graph, order):
        order_by(graph.original_ids_in, order)
    return order


def _inverted(graph: Graph, out: NDArray[Any]) -> bool:
    """Put every vertex at the place of its id, which is its number; whether ids are 0 to n-1, as after `--order`."""
    none = np.iinfo(out.dtype).max

    def place(first: int, last: int) -> bool:
        ids = graph.original_ids_in(first, last)
        if int(ids.max()) >= len(out):
            return False
        out[ids] = np.arange(first, last, dtype=out.dtype)
        return True

    out[:] = none
    if not all(over_ranges(place, len(out), size=MANY_ROWS)):
        return False
    return not any(over_ranges(lambda first, last: bool((out[first:last] == none).any()), len(out), size=MANY_ROWS))


def in_original_order(graph: Graph) -> bool:
    """Whether the smallest of some internal ids is that of the smallest original id.

    It is unless the conversion ordered the vertices (`--order`), or a graph in memory was given its ids in another
    order.
    """
    if surely_in_original_order(graph):
        return True
    if graph.reordered:  # reading the ids takes longer than what a program gains should they rise all the same
        return False
    if graph.id_dtype.kind == "T":
        ids = vertex_names(graph)
        return bool(np.all(ids[1:] >= ids[:-1]))

    def rise(first: int, last: int) -> bool:
        ids = graph.original_ids_in(max(0, first - 1), last)
        return bool(np.all(ids[1:] >= ids[:-1]))

    return all(over_ranges(rise, graph.vertices, size=MANY_ROWS))


def surely_in_original_order(graph: Graph) -> bool:
    """Whether `in_original_order` without a look at the ids."""
    return graph.original is None or graph.left is not None or graph.reordered is False


def fill_ranks(graph: Graph, out: NDArray[Any]) -> None:
    """Set `out`, integers (vertices,), to the place of every internal id in `original_order`."""
    if in_original_order(graph):
        each_range(lambda a, b: out.__setitem__(slice(a, b), np.arange(a, b, dtype=out.dtype)), graph.vertices)
    else:
        order = original_order(graph)
        number_places(out, lambda a, b: order[a:b])


def original_ranks(graph: Graph) -> NDArray[Any]:
    """Of every internal id its place in `original_order`, in the graph's id type."""
    rank = np.empty(graph.vertices, graph.vertex_dtype)
    fill_ranks(graph, rank)
    return rank


def names_by_rank(graph: Graph, ranks: NDArray[Any]) -> NDArray[Any] | VertexReferences:
    """For places in `original_order`, which are changed, the vertices there, as `original_values` has them."""
    if not in_original_order(graph):
        order = original_order(graph)

        def place(first: int, last: int) -> None:
            ranks[first:last] = names_at(ranks[first:last], lambda some: order[some].astype(ranks.dtype))

        each_range(place, len(ranks))
    return original_values(graph, ranks)


def smallest_members(graph: Graph, group: NDArray[Any]) -> NDArray[Any] | VertexReferences:
    """For every vertex the first of its group; group (vertices,), changed, holds the smallest internal id in it."""
    if not in_original_order(graph):
        order, first = original_order(graph), np.empty(graph.vertices, graph.vertex_dtype)
        size = ROWS if isinstance(group, np.ndarray) else max(ROWS, graph.vertices // PASSES)
        for end in range(graph.vertices, 0, -size):  # of several members that are written the last one is left
            members = order[max(0, end - size) : end][::-1]
            first[group[members]] = members
        del order
        each_range(partial(_replace, group, first), graph.vertices)
    return original_values(graph, group)


def _replace(places: NDArray[Any], values: NDArray[Any], first: int, last: int) -> None:
    """Put the values at some places where these are."""
    places[first:last] = values[places[first:last]]


def original_values(graph: Graph, values: NDArray[Any]) -> NDArray[Any] | VertexReferences:
    """Internal ids, the largest value of their dtype standing for none, as values that are named as `vertex_names`."""
    if graph.original is None or graph.left is not None or graph.vertices == 0:
        return values
    return VertexReferences(graph, values)


def vertex_names(graph: Graph) -> NDArray[Any]:
    """What stands for every vertex where it is a value, as a component or a parent is: its original id.

    In a bipartite graph ids may occur on both sides, so there it is the number of its row in the result, from 0.
    """
    ids = None if graph.left is not None else graph.original_ids()
    return np.arange(graph.vertices, dtype=graph.vertex_dtype) if ids is None else ids


@dataclass(frozen=True)
class StoredNumbers:
    """The ids of a graph file, numbers, of which those that are asked for are read."""

    graph: Graph

    def __getitem__(self, rows: slice | NDArray[Any]) -> NDArray[Any]:
        """The ids in consecutive rows, or in some."""
        if isinstance(rows, slice):
            return self.graph.original_ids_in(rows.start, rows.stop)
        return self.graph.original_ids_of(rows)


def labels_of(graph: Graph, vertices: NDArray[Any]) -> list[Any]:
    """Return original ids of vertices, with their sides if the graph is bipartite: an id may be on both sides."""
    names: list[Any] = graph.original_ids_of(vertices).tolist()
    if (left := graph.left) is None:
        return names
    sides = np.where(vertices < left, "source", "target").tolist()
    return [f"{side}:{name}" for side, name in zip(sides, names, strict=True)]


def tie_breakers(graph: Graph) -> NDArray[Any] | StoredNumbers:
    """Numbers in the order of the original ids: these themselves, of strings and of two sides their ranks."""
    if not _are_numbered(graph):
        return original_ranks(graph)
    return graph.original if isinstance(graph.original, np.ndarray) else StoredNumbers(graph)


def vertex_column(graph: Graph) -> NDArray[Any]:
    """Original id of every internal id."""
    ids = graph.original_ids()
    return np.arange(graph.vertices, dtype=graph.vertex_dtype) if ids is None else ids
