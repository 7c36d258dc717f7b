"""How a test makes each program, and which oracle checks its answer.

`program_of` and `check` are for the programs of PROGRAMS on any graph: searches start at a vertex of the largest
out-degree, `pagerank` ignores weights and has a small damping factor, to converge in fewer iterations, and `sweeps` is
PageRank for exactly three iterations. `CASES` has the other programs, for the graph `tangle`: self-loops, parallel
edges, a long path, isolated vertices; there PageRank uses weights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from penstock.engine import Field, Program
from penstock.engine.programs.adsorption import Adsorption
from penstock.engine.programs.betweenness import Betweenness
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.bridges import Bridges
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.circuit import Circuit
from penstock.engine.programs.closeness import Closeness, Harmonic
from penstock.engine.programs.coloring import Coloring
from penstock.engine.programs.degrees import Degrees
from penstock.engine.programs.diameter import Diameter
from penstock.engine.programs.eigenvector import Eigenvector
from penstock.engine.programs.from_each import FromEach
from penstock.engine.programs.heat import Heat
from penstock.engine.programs.hits import HITS
from penstock.engine.programs.hyperball import HyperBall
from penstock.engine.programs.independent_set import MaximalIndependentSet
from penstock.engine.programs.katz import Katz
from penstock.engine.programs.kcore import Coreness, KCore
from penstock.engine.programs.neural import Neural
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.php import PHP
from penstock.engine.programs.reachability import Reachability
from penstock.engine.programs.scc import SCC
from penstock.engine.programs.spanning_forest import SpanningForest
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.triangles import LCC, Triangles
from penstock.engine.programs.wcc import WCC
from penstock.engine.programs.widest import WidestPath
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


SOURCE, OTHER = 3, 18
HELD = {SOURCE: 2.0, OTHER: -1.0}
"""Temperatures, potentials and inputs of the simulations."""


@cache
def tangle(*, directed: bool, weights: str = "uint8", core: int = 48, tail: int = 20, count: int = 260) -> EdgeList:
    """`core` skewed vertices with `count` edges, a tail behind them, and 4 vertices apart."""
    ends = skewed(core, count, 5)
    path = np.stack([np.arange(core - 1, core + tail - 1), np.arange(core, core + tail)])
    ends = np.concatenate([ends, path, path[::-1, :4]], axis=1)
    return weighed(EdgeList(core + tail + 4, ends[0], ends[1], None, directed), weights)


def near(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-9)


def same(got: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(right_signed(got), wanted)


def right_signed(values: Any) -> Any:
    """The mark for "not reached" as -1."""
    values = np.asarray(values)
    return np.where(values == np.iinfo(values.dtype).max, -1, values.astype(np.int64))


def check_widest(edges: EdgeList, fields: Fields) -> None:
    width = fields["width"]
    none, all_of_it = (-np.inf, np.inf) if width.dtype.kind == "f" else (-1, 2**63 - 1)
    wanted = [none if one is None else all_of_it if one == np.inf else one for one in right.widths(edges, SOURCE)]
    assert width.tolist() == wanted


def check_distances(edges: EdgeList, fields: Fields) -> None:
    assert list(fields) == [f"distance_{OTHER}", f"distance_{SOURCE}"]
    for source in (OTHER, SOURCE):
        check_sssp(edges, source, fields[f"distance_{source}"])


def check_hits(edges: EdgeList, fields: Fields) -> None:
    hub, authority = right.hits(edges, weighted=True)
    near(fields["hub"], hub)
    near(fields["authority"], authority)


def check_closeness(edges: EdgeList, fields: Fields) -> None:
    """Estimates from 3 vertices; exact in graphs that have no more."""
    drawn = np.random.default_rng(0).choice(edges.vertices, min(3, edges.vertices), replace=False)
    near(fields["closeness"], right.closeness(edges, drawn.tolist(), weighted=True))


def check_harmonic(edges: EdgeList, fields: Fields) -> None:
    wanted = np.full(edges.vertices, -np.inf)
    wanted[[SOURCE, OTHER]] = right.harmonic(edges, weighted=True)[[SOURCE, OTHER]]
    assert np.allclose(fields["harmonic"], wanted, rtol=1e-9, atol=0)


def check_hyperball(edges: EdgeList, fields: Fields) -> None:
    registers, sizes = right.hyperball(edges, 4, 7)
    grown = np.diff(sizes, axis=0)
    steps = np.arange(1, len(sizes))[:, None]
    near(fields["harmonic"], (grown / steps).sum(axis=0))
    near(fields["reachable"], np.minimum(sizes[-1], edges.vertices))
    total, others = (grown * steps).sum(axis=0), np.minimum(sizes[-1], edges.vertices) - 1
    wanted = np.divide(others**2, total, out=np.zeros(edges.vertices), where=total > 0)
    near(fields["closeness"], wanted / max(1, edges.vertices - 1))
    moved = np.diff(registers, axis=0).any(axis=2) * steps
    same(fields["farthest"], moved.max(axis=0, initial=0))


def check_degrees(edges: EdgeList, fields: Fields) -> None:
    out, into = right.degrees(edges)
    same(fields["out_degree"], out)
    same(fields["in_degree"], into)
    same(fields["degree"], out + into if edges.directed else out)


def check_forest(edges: EdgeList, fields: Fields) -> None:
    parent, weight = right.spanning_forest(edges)
    same(fields["parent"], parent)
    assert np.array_equal(fields["weight"], weight)


def check_bridges(edges: EdgeList, fields: Fields) -> None:
    toward, component = right.bridges(edges)
    same(fields["bridge_to"], toward)
    same(fields["component"], component)


def check_diameter(edges: EdgeList, fields: Fields) -> None:
    """Bounds of every vertex, and the diameter itself."""
    wanted, low, high = right.eccentricities(edges), fields["at_least"], fields["at_most"]
    assert np.all(low <= wanted)
    assert np.all(wanted <= high)
    assert low.max(initial=0) == wanted.max(initial=0) == high.max(initial=0)


Case = tuple[Callable[[], Program], Callable[[EdgeList, Fields], None]]
CASES: dict[str, Case] = {
    "bfs": (lambda: BFS([SOURCE, OTHER]), lambda e, f: same(f["level"], right.levels(e, [SOURCE, OTHER]))),
    "reachability": (
        lambda: Reachability([SOURCE, OTHER]),
        lambda e, f: same(f["reached"], right.levels(e, [SOURCE, OTHER]) >= 0),
    ),
    "widest": (lambda: WidestPath(SOURCE), check_widest),
    "distances": (lambda: FromEach([OTHER, SOURCE]), check_distances),
    "pagerank": (
        lambda: PageRank(damping=0.6, tol=1e-12, max_iter=1000),
        lambda e, f: check_pagerank(e, f["rank"], damping=0.6, weighted=True),
    ),
    "katz": (
        lambda: Katz(alpha=1e-4, tol=1e-13),
        lambda e, f: near(f["katz"], right.katz(e, alpha=1e-4, weighted=True)),
    ),
    "eigenvector": (
        lambda: Eigenvector(tol=1e-13),
        lambda e, f: near(f["eigenvector"], right.eigenvector(e, weighted=True)),
    ),
    "php": (
        lambda: PHP(SOURCE, damping=0.5, tol=1e-12),
        lambda e, f: near(f["php"], right.penalized_hitting(e, SOURCE, 0.5)),
    ),
    "adsorption": (
        lambda: Adsorption({SOURCE: 2.0, OTHER: 1.0}, alpha=0.4, tol=1e-12),
        lambda e, f: near(f["score"], right.adsorption(e, {SOURCE: 2.0, OTHER: 1.0}, 0.4)),
    ),
    "hits": (lambda: HITS(tol=1e-13), check_hits),
    "degrees": (Degrees, check_degrees),
    "coreness": (Coreness, lambda e, f: same(f["core"], right.coreness(e))),
    "kcore": (lambda: KCore(4), lambda e, f: same(f["member"], right.coreness(e) >= 4)),
    "mis": (MaximalIndependentSet, lambda e, f: right.check_independent_set(e, f["member"])),
    "coloring": (Coloring, lambda e, f: right.check_coloring(e, f["color"])),
    "msf": (SpanningForest, check_forest),
    "bridges": (Bridges, check_bridges),
    "diameter": (Diameter, check_diameter),
    "scc": (SCC, lambda e, f: same(f["component"], right.strong_components(e))),
    "betweenness": (
        lambda: Betweenness([SOURCE, OTHER], raw=True),
        lambda e, f: near(f["betweenness"], right.dependencies(e, SOURCE) + right.dependencies(e, OTHER)),
    ),
    "closeness": (lambda: Closeness(k=3), check_closeness),
    "harmonic": (lambda: Harmonic([SOURCE, OTHER]), check_harmonic),
    "hyperball": (lambda: HyperBall(log2m=4, seed=7), check_hyperball),
    "cdlp": (CDLP, lambda e, f: same(f["label"], right.label_propagation(e))),
    "triangles": (Triangles, lambda e, f: same(f["triangles"], right.triangles(e))),
    "lcc": (LCC, lambda e, f: near(f["lcc"], right.clustering(e))),
    "heat": (
        lambda: Heat({SOURCE: 5.0}, {OTHER: -1.0}, time_step=7e-6, max_iter=12, tol=0),
        lambda e, f: near(f["temperature"], simulated.temperatures(e, {SOURCE: 5.0}, {OTHER: -1.0}, 7e-6, 12)),
    ),
    "circuit": (
        lambda: Circuit(HELD, tol=1e-11, floating=True),
        lambda e, f: near(f["potential"], simulated.potentials(e, HELD)),
    ),
    "neural": (
        lambda: Neural(HELD, gain=1e-3, bias=0.1, tol=1e-12),
        lambda e, f: near(f["activation"], simulated.activations(e, HELD, gain=1e-3, bias=0.1)),
    ),
}
ROWS = ("cdlp", "triangles", "lcc", "hyperball")
"""Programs on whole rows: they always pull."""
