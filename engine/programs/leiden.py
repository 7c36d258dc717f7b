"""Communities of large modularity that are connected: the Leiden algorithm (Traag, Waltman, van Eck, Sci. Rep. 2019).

As Louvain, but communities are refined before the graph is contracted (`refinement.py`), and their connected parts
become the vertices of the smaller graph, which begins with the communities. In the end every community is one part.
The first of several iterations is Louvain's: it takes less time, and the others find as good communities from there.
"""

from __future__ import annotations

from penstock.engine.program.parameters import Count, NonNegative, Positive, PositiveCount
from penstock.engine.programs.local_moves import CommunityLevel
from penstock.engine.programs.louvain import Louvain
from penstock.engine.programs.refinement import RefinedLevel


class Leiden(Louvain):
    """`community`, connected, named by its smallest vertex. Parameters and measures: those of Louvain."""

    def __init__(
        self,
        resolution: Positive = 1.0,
        seed: Count = 0,
        tol: NonNegative = 1e-3,
        sweeps: PositiveCount = 100,
        weight: bool | str | None = True,
        iterations: PositiveCount = 3,
        directed: bool = False,
    ) -> None:
        super().__init__(resolution, seed, tol, sweeps, weight, iterations, directed)

    def level_kind(self, iteration: int) -> type[CommunityLevel]:
        """Moves and a refinement, in the first of several iterations moves alone."""
        return RefinedLevel if iteration > 0 or self.iterations == 1 else CommunityLevel
