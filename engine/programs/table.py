"""The programs that come with Penstock, by name."""

from __future__ import annotations

from difflib import get_close_matches

from penstock.engine.program.program import Program
from penstock.engine.programs.adsorption import Adsorption
from penstock.engine.programs.betweenness import Betweenness
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.programs.coloring import Coloring
from penstock.engine.programs.degrees import Degrees
from penstock.engine.programs.hits import HITS
from penstock.engine.programs.independent_set import MaximalIndependentSet
from penstock.engine.programs.katz import Katz
from penstock.engine.programs.kcore import Coreness, KCore
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.personalized import PPR
from penstock.engine.programs.php import PHP
from penstock.engine.programs.reachability import Reachability
from penstock.engine.programs.scc import SCC
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.triangles import LCC, Triangles
from penstock.engine.programs.wcc import WCC
from penstock.engine.programs.widest import WidestPath
from penstock.storage.base.errors import InputError

PROGRAMS: dict[str, type[Program]] = {
    "bfs": BFS,
    "sssp": SSSP,
    "reachability": Reachability,
    "widest": WidestPath,
    "betweenness": Betweenness,
    "pagerank": PageRank,
    "personalized_pagerank": PPR,
    "katz": Katz,
    "hits": HITS,
    "php": PHP,
    "adsorption": Adsorption,
    "wcc": WCC,
    "scc": SCC,
    "cdlp": CDLP,
    "degrees": Degrees,
    "coreness": Coreness,
    "kcore": KCore,
    "triangles": Triangles,
    "lcc": LCC,
    "mis": MaximalIndependentSet,
    "coloring": Coloring,
    "cf": CollaborativeFiltering,
}


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
