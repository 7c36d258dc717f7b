"""What a function of networkx answers about a stored graph: a mapping or a set that reads names as it is walked.

A dictionary of Python objects takes about 150 bytes a vertex, an array of numbers 8.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, ItemsView, Iterable, Iterator, Mapping, Set, ValuesView
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.vertex_ids import VertexFinder

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
        self.graph, self._finder = graph, VertexFinder(graph)

    def of(self, vertices: NDArray[Any]) -> list[Any]:
        """Names of some vertices; of a file only their chunks are read."""
        names: list[Any] = self.graph.original_ids_of(vertices).tolist()
        if (left := self.graph.left) is None:
            return names
        sides = np.where(vertices < left, "source", "target").tolist()
        return [f"{side}:{name}" for side, name in zip(sides, names, strict=True)]

    def find(self, node: object) -> int | None:
        """The vertex of a name, if there is one.

        The first look-up of a graph with ids of its own reads them: 4 to 8 bytes a vertex, of strings their text and
        16, and 8 more where they do not ascend. One id is looked for here, since
        `VertexFinder`, which finds many at once, takes 1.1 to 1.8 times as long for one (6.2 and 11.9 us).
        """
        if not isinstance(node, int | np.integer | str):
            return None
        if self.graph.original is None or self.graph.left is not None:
            found = int(self._finder.found([node])[0])  # type: ignore[list-item]
            return None if found < 0 else found
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
        ids = self.graph.original_ids()
        assert ids is not None, "numbers of vertices are not looked up"
        rising = self.graph.reordered is False or bool(np.all(ids[1:] >= ids[:-1]))
        return ids, None if rising else np.argsort(ids, kind="stable")


class _Walked:
    """Vertices by name, as far as they are walked. order: of the vertices that are here; None: all `count` of them."""

    def __init__(self, names: VertexNames, order: NDArray[Any] | None, count: int = 0) -> None:
        self._names, self._order, self._count = names, order, count if order is None else len(order)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Hashable]:
        for vertices in self.blocks():
            yield from self._names.of(vertices)

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Vertices in their order."""
        for first in range(0, len(self), BLOCK):
            last = min(first + BLOCK, len(self))
            yield np.arange(first, last) if self._order is None else self._order[first:last]

    def vertex(self, node: Hashable) -> int:
        """The vertex of a name. Raises KeyError for one that is not here."""
        vertex = self._names.find(node)
        if vertex is None or not (self._order is None or (vertex < len(self._present) and self._present[vertex])):
            raise KeyError(node)
        return vertex

    @cached_property
    def _present(self) -> NDArray[np.bool_]:
        assert self._order is not None, "all vertices are present"
        present = np.zeros(int(self._order.max(initial=-1)) + 1, np.bool_)
        present[self._order] = True
        return present

    def _braced(self, some: Iterable[str]) -> str:
        """The first of them."""
        return f"{{{', '.join(islice(some, SHOWN))}{', ...' * (len(self) > SHOWN)}}}"


class VertexValues(_Walked, Mapping[Hashable, Any]):
    """Values of vertices by name. order: vertices that have one, in the order in which they come; None: all."""

    def __init__(self, names: VertexNames, values: NDArray[Any], order: NDArray[Any] | None = None) -> None:
        super().__init__(names, order, len(values))
        self.array = values

    def __getitem__(self, node: Hashable) -> Any:
        return self.array[self.vertex(node)].item()

    def items(self) -> ItemsView[Hashable, Any]:
        """Names and values, block by block."""
        return _Items(self)

    def values(self) -> ValuesView[Any]:
        """Values, block by block."""
        return _Values(self)

    def __repr__(self) -> str:
        """How many, and the first of them."""
        shown = self._braced(f"{name!r}: {value!r}" for name, value in self.items())
        return f"<values of {len(self):,} vertices: {shown}>"


class _Items(ItemsView[Hashable, Any]):
    _mapping: VertexValues

    def __iter__(self) -> Iterator[tuple[Hashable, Any]]:
        return zip(self._mapping, self._mapping.values(), strict=True)


class _Values(ValuesView[Any]):
    _mapping: VertexValues

    def __iter__(self) -> Iterator[Any]:
        for vertices in self._mapping.blocks():
            yield from self._mapping.array[vertices].tolist()


class VertexPaths(_Walked, Mapping[Hashable, list[Hashable]]):
    """Paths to vertices by name, from the source to each, put together when one is asked for. order: of the mapping."""

    def __init__(self, names: VertexNames, links: ParentLinks, order: NDArray[Any]) -> None:
        super().__init__(names, order)
        self._links = links

    def __getitem__(self, node: Hashable) -> list[Hashable]:
        return list(self._names.of(np.array(self._links.upwards(self.vertex(node))[::-1])))

    def __repr__(self) -> str:
        """How many, and the first of their ends."""
        return f"<paths to {len(self):,} vertices: {', '.join(map(repr, islice(self, SHOWN)))}>"


class NamedVertices(_Walked, Set[Hashable]):
    """Vertices by name. vertices: ascending."""

    def __init__(self, names: VertexNames, vertices: NDArray[Any]) -> None:
        super().__init__(names, vertices)
        self._vertices = vertices

    @classmethod
    def _from_iterable(cls, members: Any) -> Any:
        """What set operations make."""
        return set(members)

    def __contains__(self, node: object) -> bool:
        vertex = self._names.find(node)
        if vertex is None:
            return False
        at = int(np.searchsorted(self._vertices, vertex))
        return at < len(self) and int(self._vertices[at]) == vertex

    def __repr__(self) -> str:
        """How many, and the first of them."""
        return f"<{len(self):,} vertices: {self._braced(map(repr, self))}>"
