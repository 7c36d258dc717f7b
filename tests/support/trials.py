"""The programs on trial: how a test makes one for a graph, and which checker holds its answer.

Searches start at a vertex of the largest out-degree. `pagerank` is damped more than usual, to converge in fewer sweeps;
`sweeps` is PageRank for exactly three.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine import Program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from support.oracles import EdgeList, check_bfs, check_pagerank, check_sssp, check_wcc

PROGRAMS = ("bfs", "sssp", "pagerank", "sweeps", "wcc")
DAMPING = 0.6
Fields = dict[str, NDArray[Any]]


class Patient(BFS):
    """A search that asks after every iteration whether it is done: no stretch can."""

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        return iteration > 3


class Wandering(SSSP):
    """Paths whose priorities change from one iteration to the next: no stretch can keep them."""

    def priority(distance, iteration):  # type: ignore[no-untyped-def]
        return distance + iteration


def start_of(edges: EdgeList) -> int:
    """A vertex of the largest out-degree, the middle one of those that tie; 0 in an empty graph."""
    degrees = np.diff(edges.rows[0])
    best = np.flatnonzero(degrees == degrees.max(initial=0))
    return int(best[len(best) // 2]) if len(best) else 0


def program_of(name: str, edges: EdgeList) -> Program:
    """A program of PROGRAMS for `edges`."""
    source = start_of(edges)
    makers = {
        "bfs": lambda: BFS(source=source),
        "sssp": lambda: SSSP(source=source),
        "pagerank": lambda: PageRank(damping=DAMPING, tol=1e-9, max_iter=1000, weight=False),
        "sweeps": lambda: PageRank(tol=0, max_iter=3, weight=False),
        "wcc": WCC,
    }
    return makers[name]()


def check(name: str, edges: EdgeList, fields: Fields) -> None:
    """Hold the answer of `name` against its independent checker; AssertionError if it is wrong."""
    source = start_of(edges)
    if name == "bfs":
        check_bfs(edges, source, fields["level"], fields["parent"])
    elif name == "sssp":
        floats = edges.weights is not None and edges.weights.dtype.kind == "f"
        check_sssp(edges, source, fields["distance"], tolerance=1e-9 if floats else 0.0)
    elif name == "wcc":
        check_wcc(edges, fields["component"])
    elif name == "sweeps":
        check_pagerank(edges, fields["rank"], l1=1e-12, sweeps=3)
    else:
        check_pagerank(edges, fields["rank"], l1=1e-8, damping=DAMPING)
