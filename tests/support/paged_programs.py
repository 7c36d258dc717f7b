"""Programs that run where memory has no room for the values of all vertices: some for every way, and others.

Sources have edges in the graphs of `paged_graphs.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.engine import Program
from penstock.engine.programs.bfs import BFS, BFSLevels
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.programs.coloring import ColoringByHashes
from penstock.engine.programs.degrees import CountedDegrees
from penstock.engine.programs.diameter import Diameter
from penstock.engine.programs.heat import Heat
from penstock.engine.programs.hyperball import HyperBall
from penstock.engine.programs.independent_set import SetByHashes
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.table import PROGRAMS
from penstock.engine.programs.wcc import WCC
from penstock.engine.programs.widest import WidestPath
from support.catalogue_oracles import SOURCE
from support.program_cases import CASES

WAYS: dict[str, dict[str, Any]] = {
    "auto": {},
    "push": {"direction": "push"},
    "pull": {"direction": "pull"},
    "sync": {"mode": "sync"},
}
"""Options of runs of any number of ranks."""


def few_sweeps(name: str) -> Callable[[], Program]:
    """Make a program that converges over many sweeps, for four of them."""

    def make() -> Program:
        program = CASES[name][0]()
        program.max_iter = 4
        return program

    return make


SEVERAL = [*range(9), SOURCE]
"""Sources of searches that run together."""
MAKERS = {name: CASES[name][0] for name in ("coreness", "kcore", "reachability", "widest")} | {
    "hits": few_sweeps("hits"),
    "wcc": WCC,
    "bfs": lambda: BFS(SOURCE),
    "bfs levels": lambda: BFSLevels(SOURCE),
    "sssp": lambda: SSSP(SOURCE),
    "sssp path": lambda: SSSP(SOURCE, target=[7, 9]),
    "pagerank": lambda: PageRank(tol=0, max_iter=3, weight=None),
    "distances together": lambda: PROGRAMS["distances"](source=SEVERAL, weight=False),
}
TRIED = "bfs levels", "hits", "pagerank", "sssp"
"""Of MAKERS, those that are tried in every way by default; the others in some."""
SWEEPS = "adsorption", "circuit", "eigenvector", "katz", "neural", "pagerank", "php"
VECTORS: dict[str, Callable[[], Program]] = {
    "cf": lambda: CollaborativeFiltering(rank=1, max_iter=4),
    "hyperball": lambda: HyperBall(log2m=4, max_iter=4),
    "fastrp": lambda: PROGRAMS["fastrp"](dimension=3),
}
"""Programs whose values, and messages, are vectors."""
OTHERS = (
    {name: CASES[name][0] for name in ("betweenness", "closeness", "distances", "harmonic", "scc", "strength")}
    | {"coloring": ColoringByHashes, "diameter": lambda: Diameter(k=3), "mis": SetByHashes}
    | {name: few_sweeps(name) for name in SWEEPS}
    | VECTORS
    | {
        "bfs target": lambda: BFS(SOURCE, target=[7, 9]),
        "bfs cutoff": lambda: BFS(SOURCE, parents=False, cutoff=2),
        "sssp target": lambda: SSSP(SOURCE, parents=False, target=[7, 9]),
        "sssp parents": lambda: SSSP(SOURCE, parents=True),
        "sssp cutoff": lambda: SSSP(SOURCE, cutoff=40),
        "widest cutoff": lambda: WidestPath(SOURCE, cutoff=40.0),
        "widest path": lambda: WidestPath(SOURCE, target=[7, 9]),
        "pagerank given": lambda: PageRank(max_iter=4, personalization={SOURCE: 1, 3: 2}, nstart={5: 1}, weight=None),
        "pagerank weighted": lambda: PageRank(max_iter=4, personalization={SOURCE: 1, 3: 2}, dangling={5: 1, 8: 2}),
        "heat": lambda: Heat(initial={SOURCE: 5.0}, fixed={7: -1.0}, max_iter=5, tol=0),
        "harmonic together": lambda: PROGRAMS["harmonic"](source=SEVERAL, weight=False),
        "closeness together": lambda: PROGRAMS["closeness"](k=9, weight=False),
        "personalized_pagerank": lambda: PROGRAMS["personalized_pagerank"](source=SOURCE),
        "degrees": CountedDegrees,
    }
)
ALL = OTHERS | MAKERS
"""All of these."""
ALIKE = "closeness together", "harmonic together", "pagerank given", "widest cutoff", "widest path"
"""Parameters that another program is tried with, in the same functions."""
