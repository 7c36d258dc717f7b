"""Communities of large modularity that are connected: the Leiden algorithm (Traag, Waltman, van Eck, Sci. Rep. 2019).

As Louvain, but communities are refined before the graph is contracted (`refinement.py`), and their connected parts
become the vertices of the smaller graph, which begins with the communities. In the end every community is one part.
"""

from __future__ import annotations

from penstock.engine.programs.local_moves import Beginning, CommunityLevel
from penstock.engine.programs.louvain import Louvain
from penstock.engine.programs.modular_gain import Search
from penstock.engine.programs.refinement import RefinedLevel


class Leiden(Louvain):
    """`community`, connected, named by its smallest vertex. Parameters and measures: those of Louvain."""

    def level(self, search: Search, start: Beginning | None) -> CommunityLevel:
        """Moves and a refinement."""
        return RefinedLevel(search, start)
