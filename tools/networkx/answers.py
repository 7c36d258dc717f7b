"""What a function of networkx answers about a stored graph: a mapping or a set that reads names as it is walked.

A dictionary of Python objects takes about 150 bytes a vertex, an array of numbers 8.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, ItemsView, Iterator, Mapping, Set, ValuesView
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.storage.access.vertex_lookup import internal_id
from penstock.storage.base.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.state.found_paths import ParentLinks
    from penstock.storage.format.graph import Graph

BLOCK = 1 << 14
"""Vertices that become Python objects together."""
SHOWN = 5
"""Vertices that a `repr` shows."""


class VertexNames:
    """The ids of a stored graph's vertices, as a result's dictionaries have them (bipartite: `"source:7"`)."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def of(self, vertices: NDArray[Any]) -> list[int | str]:
        """Names of some vertices; of a file only their chunks are read."""
        names: list[int | str] = self._graph.original_ids_of(vertices).tolist()
        if (left := self._graph.left) is None:
            return names
        sides = np.where(vertices < left, "source", "target").tolist()
        return [f"{side}:{name}" for side, name in zip(sides, names, strict=True)]

    def find(self, node: object) -> int | None:
        """The vertex of a name, if there is one.

        The first look-up of a graph with ids of its own reads them: 4 to 8 bytes a vertex, of strings their text and
        16, and 8 more where they do not ascend.
        """
        if not isinstance(node, int | np.integer | str):
            return None
        if self._graph.original is None or self._graph.left is not None:
            try:
                return internal_id(self._graph, node)  # type: ignore[arg-type]
            except InputError:
                return None
        ids, order = self._sorted
        if isinstance(node, str) != (ids.dtype.kind == "T"):
            return None
        wanted: Any = node
        places = range(len(ids))
        at = bisect_left(places, wanted, key=lambda place: ids[place if order is None else order[place]])
        if at == len(ids):
            return None
        vertex = at if order is None else int(order[at])
        return vertex if ids[vertex] == node else None

    @cached_property
    def _sorted(self) -> tuple[NDArray[Any], NDArray[np.intp] | None]:
        """All ids, and the vertices by ascending id where that is another order."""
        ids = self._graph.original_ids()
        assert ids is not None, "numbers of vertices are not looked up"
        rising = self._graph.reordered is False or bool(np.all(ids[1:] >= ids[:-1]))
        return ids, None if rising else np.argsort(ids, kind="stable")


class VertexValues(Mapping[Hashable, Any]):
    """Values of vertices by name. order: vertices that have one, in the order in which they come; None: all."""

    def __init__(self, names: VertexNames, values: NDArray[Any], order: NDArray[Any] | None = None) -> None:
        self._names, self._values, self._order = names, values, order

    def __len__(self) -> int:
        return len(self._values if self._order is None else self._order)

    def __iter__(self) -> Iterator[Hashable]:
        for vertices in self.blocks():
            yield from self._names.of(vertices)

    def __getitem__(self, node: Hashable) -> Any:
        vertex = self._names.find(node)
        if vertex is None or not (self._order is None or self._present[vertex]):
            raise KeyError(node)
        return self._values[vertex].item()

    def items(self) -> ItemsView[Hashable, Any]:
        """Names and values, block by block."""
        return _Items(self)

    def values(self) -> ValuesView[Any]:
        """Values, block by block."""
        return _Values(self)

    def pairs(self) -> Iterator[tuple[Hashable, Any]]:
        """Names and values."""
        for vertices in self.blocks():
            yield from zip(self._names.of(vertices), self._values[vertices].tolist(), strict=True)

    def numbers(self) -> Iterator[Any]:
        """Values alone."""
        for vertices in self.blocks():
            yield from self._values[vertices].tolist()

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Vertices in their order."""
        for first in range(0, len(self), BLOCK):
            last = min(first + BLOCK, len(self))
            yield np.arange(first, last) if self._order is None else self._order[first:last]

    def __repr__(self) -> str:
        """How many, and the first of them."""
        some = ", ".join(f"{name!r}: {value!r}" for name, value in islice(self.pairs(), SHOWN))
        return f"<values of {len(self):,} vertices: {{{some}{', ...' * (len(self) > SHOWN)}}}>"

    @cached_property
    def _present(self) -> NDArray[np.bool_]:
        present = np.zeros(len(self._values), np.bool_)
        present[self._order] = True
        return present


class _Items(ItemsView[Hashable, Any]):
    _mapping: VertexValues

    def __iter__(self) -> Iterator[tuple[Hashable, Any]]:
        return self._mapping.pairs()


class _Values(ValuesView[Any]):
    _mapping: VertexValues

    def __iter__(self) -> Iterator[Any]:
        return self._mapping.numbers()


class VertexPaths(Mapping[Hashable, list[Hashable]]):
    """Paths to vertices by name, from the source to each, put together when one is asked for. order: of the mapping."""

    def __init__(self, names: VertexNames, links: ParentLinks, order: NDArray[Any]) -> None:
        self._names, self._links, self._order = names, links, order

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Hashable]:
        for first in range(0, len(self), BLOCK):
            yield from self._names.of(self._order[first : first + BLOCK])

    def __getitem__(self, node: Hashable) -> list[Hashable]:
        vertex = self._names.find(node)
        if vertex is None or vertex >= len(self._present) or not self._present[vertex]:
            raise KeyError(node)
        return list(self._names.of(np.array(self._links.upwards(vertex)[::-1])))

    def __repr__(self) -> str:
        """How many, and the first of their ends."""
        return f"<paths to {len(self):,} vertices: {', '.join(map(repr, islice(self, SHOWN)))}>"

    @cached_property
    def _present(self) -> NDArray[np.bool_]:
        present = np.zeros(int(self._order.max(initial=-1)) + 1, np.bool_)
        present[self._order] = True
        return present


class NamedVertices(Set[Hashable]):
    """Vertices by name. vertices: ascending."""

    def __init__(self, names: VertexNames, vertices: NDArray[Any]) -> None:
        self._names, self._vertices = names, vertices

    @classmethod
    def _from_iterable(cls, members: Any) -> Any:
        """What set operations make."""
        return set(members)

    def __len__(self) -> int:
        return len(self._vertices)

    def __iter__(self) -> Iterator[Hashable]:
        for first in range(0, len(self), BLOCK):
            yield from self._names.of(self._vertices[first : first + BLOCK])

    def __contains__(self, node: object) -> bool:
        vertex = self._names.find(node)
        if vertex is None:
            return False
        at = int(np.searchsorted(self._vertices, vertex))
        return at < len(self) and int(self._vertices[at]) == vertex

    def __repr__(self) -> str:
        """How many, and the first of them."""
        some = ", ".join(map(repr, islice(self, SHOWN)))
        return f"<{len(self):,} vertices: {{{some}{', ...' * (len(self) > SHOWN)}}}>"
