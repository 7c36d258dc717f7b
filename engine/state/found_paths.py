"""Paths along the parents of an answer, in the ids of the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


@dataclass(frozen=True)
class ParentLinks:
    """From a vertex to the one that an answer has as its parent: parents (vertices,) by internal id, as these."""

    parents: NDArray[Any]

    def upwards(self, vertex: int) -> list[int]:
        """Return internal ids from a reached vertex to its source."""
        found = [vertex]
        while (parent := int(self.parents[found[-1]])) != found[-1]:
            found.append(parent)
        return found
