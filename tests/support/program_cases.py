"""How a test makes each program, and which oracle checks its answer.

`program_of` and `check` are for the programs of PROGRAMS on any graph: searches start at a vertex of the largest
out-degree, `pagerank` ignores weights and has a small damping factor, to converge in fewer iterations, and `sweeps` is
PageRank for exactly three iterations. `CASES` has the other programs, for the graph `tangle`: self-loops, parallel
edges, a long path, isolated vertices; there PageRank uses weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from penstock.engine import Field, Program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.table import PROGRAMS as CATALOGUE
from penstock.engine.programs.wcc import WCC
from support import catalogue_oracles as right
from support import simulation_oracles as simulated
from support.graphs import skewed, weighed
from support.oracles import EdgeList, check_bfs, check_pagerank, check_sssp, check_wcc

Fields = dict[str, Any]

PROGRAMS = ("bfs", "sssp", "pagerank", "sweeps", "wcc")
DAMPING = 0.6


class Counts(Program):
    """Sums of integers, of which some are 0 and some weights; not along edges to every third vertex."""

    total = Field(np.int64)
    combine = "sum"

    def edge(source, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge."""
        return (source % 3) * weight

    def cond(vertex_id):  # type: ignore[no-untyped-def]
        """Where it may go."""
        return vertex_id % 3 != 1


class Patient(BFS):
    """A search with a `done` of its own: its iterations cannot be fused."""

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        return iteration > 3


class Wandering(SSSP):
    """Paths whose priorities depend on the iteration: its iterations cannot be fused."""

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
    """Check the answer of `name` with its oracle; AssertionError if it is wrong."""
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


@cache
def tangle(*, directed: bool, weights: str = "uint8", core: int = 48, tail: int = 20, count: int = 260) -> EdgeList:
    """`core` skewed vertices with `count` edges, a tail behind them, and 4 vertices apart."""
    ends = skewed(core, count, 5)
    path = np.stack([np.arange(core - 1, core + tail - 1), np.arange(core, core + tail)])
    ends = np.concatenate([ends, path, path[::-1, :4]], axis=1)
    return weighed(EdgeList(core + tail + 4, ends[0], ends[1], None, directed), weights)


def _maker(name: str, parameters: Mapping[str, Any]) -> Callable[[], Program]:
    return lambda: CATALOGUE[name](**parameters)


Case = tuple[Callable[[], Program], Callable[[EdgeList, Fields], None]]
CASES: dict[str, Case] = {
    name: (_maker(name, parameters), check) for name, (parameters, check) in {**right.CASES, **simulated.CASES}.items()
}
ROWS = ("cdlp", "triangles", "trussness", "lcc", "hyperball", "fastrp")
"""Programs on whole rows: they always pull."""
