"""The programs that come with Penstock, by name."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from penstock.engine.program.program import Program
from penstock.storage.base.errors import InputError


class _Programs(Mapping[str, type[Program]]):
    """Classes by name, each imported when it is asked for: a run needs one of them. homes: `file:Class`, by name."""

    def __init__(self, homes: dict[str, str]) -> None:
        self._homes = homes

    def __getitem__(self, name: str) -> type[Program]:
        """The class of a program."""
        file, _, kind = self._homes[name].partition(":")
        found: type[Program] = getattr(importlib.import_module(f"penstock.engine.programs.{file}"), kind)
        return found

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._homes)

    def __len__(self) -> int:
        """Return how many programs there are."""
        return len(self._homes)

    def __contains__(self, name: object) -> bool:
        """Whether there is a program of this name."""
        return name in self._homes


PROGRAMS: Mapping[str, type[Program]] = _Programs(
    {
        "bfs": "bfs:BFS",
        "sssp": "sssp:SSSP",
        "distances": "from_each:FromEach",
        "reachability": "reachability:Reachability",
        "widest": "widest:WidestPath",
        "betweenness": "betweenness:Betweenness",
        "closeness": "closeness:Closeness",
        "harmonic": "closeness:Harmonic",
        "hyperball": "hyperball:HyperBall",
        "pagerank": "pagerank:PageRank",
        "personalized_pagerank": "personalized:PPR",
        "katz": "katz:Katz",
        "eigenvector": "eigenvector:Eigenvector",
        "hits": "hits:HITS",
        "php": "php:PHP",
        "adsorption": "adsorption:Adsorption",
        "wcc": "wcc:WCC",
        "scc": "scc:SCC",
        "cdlp": "cdlp:CDLP",
        "louvain": "louvain:Louvain",
        "leiden": "leiden:Leiden",
        "degrees": "degrees:Degrees",
        "coreness": "kcore:Coreness",
        "kcore": "kcore:KCore",
        "triangles": "triangles:Triangles",
        "lcc": "triangles:LCC",
        "msf": "spanning_forest:SpanningForest",
        "bridges": "bridges:Bridges",
        "articulation": "articulation:Articulation",
        "diameter": "diameter:Diameter",
        "mis": "independent_set:MaximalIndependentSet",
        "coloring": "coloring:Coloring",
        "cf": "collaborative:CollaborativeFiltering",
        "heat": "heat:Heat",
        "circuit": "circuit:Circuit",
        "neural": "neural:Neural",
    }
)


def named(name: str) -> type[Program]:
    """The program of this name. Raises InputError with the names there are."""
    try:
        return PROGRAMS[name]
    except KeyError:
        near = get_close_matches(name, PROGRAMS, 1)
        raise InputError(
            f"there is no program {name!r}{f' (did you mean {near[0]}?)' if near else ''}; choose one of "
            f"{', '.join(sorted(PROGRAMS))}, or give your own as path/to/file.py:ClassName"
        ) from None
