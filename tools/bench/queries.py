"""What every system is asked in a comparison, and when two answers to it agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.api import make
from penstock.engine.programs.table import named
from penstock.tools.bench.system import SimpleEdges, Values

if TYPE_CHECKING:
    from penstock.engine.program.program import Program

DAMPING = 0.85
TOLERANCE = 1e-6
SWEEPS = 10
LOOSE = 4 * TOLERANCE / 0.15
"""How far two rankings may be apart in L1 if each stopped at a change of TOLERANCE."""
CORE = 3
ROUNDS = 10
UNWEIGHTED = {"weight": False}
"""Every system ranks by edges that count 1 each."""


Agree = Callable[[SimpleEdges, Values, Values], bool]


def exact(edges: SimpleEdges, mine: Values, other: Values) -> bool:
    """Equal values."""
    return bool(np.array_equal(mine, other))


def groups(edges: SimpleEdges, mine: Values, other: Values) -> bool:
    """The same sets of vertices, whatever their labels."""
    return bool(np.array_equal(_first_members(mine), _first_members(other)))


def _first_members(labels: Values) -> Values:
    """Label every group by the first vertex in it, int64 of the shape of ``labels``."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first[inverse])


def shares(edges: SimpleEdges, mine: Values, other: Values) -> bool:
    """The same shares of the sum, as near as iterations to a change of TOLERANCE come."""
    return _apart(mine, other) <= LOOSE


def estimated(edges: SimpleEdges, mine: Values, other: Values) -> bool:
    """Sums as near as six standard errors of 4096 registers, a tenth."""
    return bool(abs(mine.sum() - other.sum()) <= 0.1 * other.sum())


def swept(edges: SimpleEdges, mine: Values, other: Values) -> bool:
    """The same shares of the sum after the same number of sweeps."""
    return _apart(mine, other) <= TOLERANCE


def _apart(mine: Values, other: Values) -> float:
    return float(np.abs(mine / mine.sum() - other / other.sum()).sum())


def near(edges: SimpleEdges, mine: Values, other: Values) -> bool:
    """Equal but for rounding."""
    return bool(np.allclose(mine, other, rtol=1e-6, atol=1e-9))


def as_modular(edges: SimpleEdges, mine: Values, other: Values) -> bool:
    """Communities of about the same modularity: there are many that are nearly as good as the best."""
    one, two = modularity(edges, mine), modularity(edges, other)
    return abs(one - two) <= 0.02 + 0.02 * max(abs(one), abs(two))


def modularity(edges: SimpleEdges, group: Values) -> float:
    """Newman and Girvan's, of the edges as they are given, each counted 1 and without a direction."""
    _, number = np.unique(group, return_inverse=True)
    one, two = number[edges.sources], number[edges.targets]
    share = np.bincount(np.concatenate([one, two])) / max(1, 2 * len(one))
    return float(np.mean(one == two) - share @ share) if len(one) else 0.0


def forest(edges: SimpleEdges, mine: Values, other: Values) -> bool:
    """As many edges of the same total weight; which they are may differ where weights are equal."""
    ours, theirs = (values[np.isfinite(values)] for values in (mine, other))
    return len(ours) == len(theirs) and bool(np.isclose(ours.sum(), theirs.sum(), rtol=1e-9))


def widest(edges: SimpleEdges, mine: Values, other: Values) -> bool:
    """The same largest value."""
    return bool(mine.max(initial=0) == other.max(initial=0))


def colored(edges: SimpleEdges, mine: Values, other: Values) -> bool:
    """Both give neighbors different colors; the number of colors may differ."""
    return all(not np.any(values[edges.sources] == values[edges.targets]) for values in (mine, other))


def independent(edges: SimpleEdges, mine: Values, other: Values) -> bool:
    """Both are independent sets, and maximal."""
    return all(_is_maximal(edges, values != 0) for values in (mine, other))


def _is_maximal(edges: SimpleEdges, member: Values) -> bool:
    beside = np.zeros(edges.vertices, dtype=bool)
    beside[edges.targets[member[edges.sources]]] = True
    beside[edges.sources[member[edges.targets]]] = True
    return bool(np.all(beside != member))


@dataclass(frozen=True)
class Query:
    """A program's parameters, the field that is its answer, and when another answer agrees."""

    parameters: Callable[[SimpleEdges], dict[str, Any]]
    field: str
    agree: Agree

    def program(self, name: str, edges: SimpleEdges) -> Program:
        """The program `name` with its parameters."""
        return make(named(name), self.parameters(edges))


def katz_alpha(edges: SimpleEdges) -> float:
    """Half of what certainly converges: the matrix' norm is at most the root of its largest row and column sums."""
    rows, columns = (np.bincount(ends, minlength=1) for ends in (edges.sources, edges.targets))
    if not edges.directed:
        rows = columns = np.bincount(np.concatenate([edges.sources, edges.targets]), minlength=1)
    return float(0.5 / np.sqrt(max(1.0, float(rows.max()) * float(columns.max()))))


def _source(edges: SimpleEdges) -> dict[str, Any]:
    return {"source": edges.starts[0]}


def _ends(edges: SimpleEdges) -> dict[int, float]:
    """A potential of 1 at the first start, of 0 at all others, if there are any."""
    return {start: 1.0 if start == edges.starts[0] else 0.0 for start in edges.starts}


def _none(edges: SimpleEdges) -> dict[str, Any]:
    return {}


_RANKING = {"damping": DAMPING, "tol": TOLERANCE, "max_iter": 1000} | UNWEIGHTED
QUERIES: dict[str, Query] = {
    "bfs": Query(_source, "level", exact),
    "reachability": Query(_source, "reached", exact),
    "sssp": Query(_source, "distance", exact),
    "widest": Query(_source, "width", exact),
    "betweenness": Query(lambda e: {"source": e.starts, "raw": True}, "betweenness", near),
    "closeness": Query(lambda e: {"source": e.starts} | UNWEIGHTED, "closeness", near),
    "harmonic": Query(lambda e: {"source": e.starts} | UNWEIGHTED, "harmonic", near),
    "hyperball": Query(lambda e: {"log2m": 12}, "harmonic", estimated),
    "pagerank": Query(lambda e: _RANKING, "rank", shares),
    "personalized_pagerank": Query(lambda e: _RANKING | _source(e), "rank", shares),
    "katz": Query(lambda e: {"alpha": katz_alpha(e), "tol": TOLERANCE} | UNWEIGHTED, "katz", shares),
    "eigenvector": Query(lambda e: {"tol": TOLERANCE} | UNWEIGHTED, "eigenvector", shares),
    "hits": Query(lambda e: UNWEIGHTED, "hub", shares),
    "php": Query(_source, "php", shares),
    "adsorption": Query(_source, "score", shares),
    "wcc": Query(_none, "component", groups),
    "scc": Query(_none, "component", groups),
    "cdlp": Query(lambda e: {"max_iter": ROUNDS}, "label", groups),
    "louvain": Query(lambda e: UNWEIGHTED, "community", as_modular),
    "leiden": Query(lambda e: UNWEIGHTED, "community", as_modular),
    "degrees": Query(_none, "degree", exact),
    "strength": Query(_none, "strength", near),
    "coreness": Query(_none, "core", exact),
    "kcore": Query(lambda e: {"k": CORE}, "member", exact),
    "triangles": Query(_none, "triangles", exact),
    "trussness": Query(_none, "truss", exact),
    "lcc": Query(_none, "lcc", near),
    "msf": Query(_none, "weight", forest),
    "bridges": Query(_none, "component", groups),
    "articulation": Query(_none, "blocks", exact),
    "diameter": Query(_none, "at_most", widest),
    "mis": Query(_none, "member", independent),
    "coloring": Query(_none, "color", colored),
    "heat": Query(
        lambda e: {"initial": dict.fromkeys(e.starts, 1.0), "tol": 0, "max_iter": SWEEPS}, "temperature", near
    ),
    "circuit": Query(lambda e: {"fixed": _ends(e), "floating": True}, "potential", near),
    "neural": Query(lambda e: {"inputs": dict.fromkeys(e.starts, 1.0), "gain": 1e-3}, "activation", near),
}
"""Every program but `cf`, which needs ratings."""

PAGERANK_SWEEPS = "pagerank sweeps"
FROM_TEXT = {
    "BFS": "bfs",
    "SSSP": "sssp",
    f"PageRank {SWEEPS} sweeps": PAGERANK_SWEEPS,
    f"PageRank to {TOLERANCE:g}": "pagerank",
    "WCC": "wcc",
}
"""What is asked where systems read text, by its name in the table; sweeps are asked there only."""
SWEPT = {PAGERANK_SWEEPS: Query(lambda e: _RANKING | {"tol": 0, "max_iter": SWEEPS}, "rank", swept)}
