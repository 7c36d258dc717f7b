"""The frontier: which vertices are active, always in ascending order.

Owns the value that the loop, the direction rule and the kernels pass around; the bits and the list
themselves lie in the State.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Frontier:
    """vertices and edges (out-edges) that are active.

    everything: every vertex is. listed: State.vertices and State.work hold them, ascending.
    rest: lowest priority still pending above the limit (inf where none).
    """

    vertices: int
    edges: int
    everything: bool = False
    listed: bool = False
    rest: float = float("inf")

    @property
    def empty(self) -> bool:
        """Whether no vertex is active."""
        return self.vertices == 0 and not self.everything
