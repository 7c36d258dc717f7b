"""Paths along the parents of an answer, in the ids of the input."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.program.vertex_ids import in_original_order, original_order, vertex_names

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.storage.format.graph import Graph


@dataclass(frozen=True)
class FoundPath:
    """A path from a source to a vertex.

    Attributes
    ----------
    vertices : list of int or str
        Original ids, the source first; of a bipartite graph with their sides ("source:7").
    length : int or float
        What the answer's first field has at the last of them: level, distance or width.
    """

    vertices: list[int | str]
    length: Any

    @property
    def hops(self) -> int:
        """Number of edges."""
        return len(self.vertices) - 1


class ParentLinks:
    """From a vertex to the one that an answer has as its parent.

    Parameters
    ----------
    graph : Graph
        The graph of the answer.
    parents : ndarray, shape (vertices,)
        The field `parent`, as in the answer: original ids; of a bipartite graph, internal ones.
    """

    def __init__(self, graph: Graph, parents: NDArray[Any]) -> None:
        self._parents = parents
        named = graph.original is not None and graph.left is None
        self._names = vertex_names(graph) if named else None
        self._order = None if not named or in_original_order(graph) else original_order(graph)

    def upwards(self, vertex: int) -> list[int]:
        """Return internal ids from a reached vertex to its source."""
        found = [vertex]
        while (parent := self._place(self._parents[found[-1]])) != found[-1]:
            found.append(parent)
        return found

    def _place(self, name: Any) -> int:
        """Return the internal id of a vertex by its name."""
        if self._names is None:
            return int(name)
        if self._order is None:
            return bisect_left(self._names, name)
        names = self._names
        return int(self._order[bisect_left(self._order, name, key=names.__getitem__)])
