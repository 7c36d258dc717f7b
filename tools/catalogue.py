"""Owns what every program is asked in a comparison on one graph, and when two answers are the same.

Refuses to know the peers: `peer_programs` does. The graph is made simple first (of parallel edges the first, no
self-loops), because systems differ in what they make of the others; it gets weights where it has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.api import make
from penstock.engine.program.program import Program
from penstock.engine.programs.table import named
from penstock.engine.session import Session
from penstock.storage.convert.from_arrays import from_edges
from penstock.tools.compare import LOOSE, first_members
from penstock.tools.loaded import in_memory
from penstock.tools.peers import DAMPING, TOLERANCE, Task, Values

if TYPE_CHECKING:
    from penstock.engine.state.result import Result
    from penstock.storage.format.graph import Graph

STARTS = 4
"""Sources of betweenness."""
CORE = 3
ROUNDS = 10
UNWEIGHTED = {"weight": False}
"""Every system ranks by edges that count 1 each."""


@dataclass(frozen=True)
class Edges:
    """A simple graph as arrays int64, int64, float64; an undirected one has every edge once, the smaller end first.

    starts: the vertices of the most out-neighbors, the first of them the source of searches.
    """

    sources: Values
    targets: Values
    weights: Values
    vertices: int
    directed: bool
    starts: list[int]

    @staticmethod
    def of(graph: Graph) -> Edges:
        """The edges of a graph, by its internal ids. Weights where there are none: 1 + (31 u + 17 v) mod 64."""
        offsets, neighbors, weights = _rows(graph)
        sources = np.repeat(np.arange(graph.vertices), np.diff(offsets))
        targets = neighbors.astype(np.int64)
        keep = sources != targets if graph.directed else sources < targets
        keys = sources[keep] * graph.vertices + targets[keep]
        keys, first = np.unique(keys, return_index=True)
        u, v = keys // max(1, graph.vertices), keys % max(1, graph.vertices)
        found = (1.0 + (31 * u + 17 * v) % 64) if weights is None else weights[keep][first].astype(np.float64)
        counts = np.bincount(u, minlength=graph.vertices)
        counts += 0 if graph.directed else np.bincount(v, minlength=graph.vertices)
        starts = np.argsort(-counts, kind="stable")[:STARTS].tolist()
        return Edges(u, v, found, graph.vertices, graph.directed, starts)


def _rows(graph: Graph) -> tuple[Values, Values, Values | None]:
    loaded = in_memory(graph).out
    assert loaded.arrays is not None, "a graph to compare on fits memory"
    neighbors, weights = loaded.arrays
    return loaded.index().starts(0, loaded.vertices + 1).astype(np.int64), neighbors, weights


Agree = Callable[[Edges, Values, Values], bool]


def exact(edges: Edges, mine: Values, other: Values) -> bool:
    """Equal values."""
    return bool(np.array_equal(mine, other))


def groups(edges: Edges, mine: Values, other: Values) -> bool:
    """The same sets of vertices, whatever they are called."""
    return bool(np.array_equal(first_members(mine), first_members(other)))


def shares(edges: Edges, mine: Values, other: Values) -> bool:
    """The same shares of the sum, as near as iterations to a change of TOLERANCE come."""
    return float(np.abs(mine / mine.sum() - other / other.sum()).sum()) <= LOOSE


def near(edges: Edges, mine: Values, other: Values) -> bool:
    """Equal but for rounding."""
    return bool(np.allclose(mine, other, rtol=1e-6, atol=1e-9))


def colored(edges: Edges, mine: Values, other: Values) -> bool:
    """Both color neighbors differently; how many colors they take is theirs."""
    return all(not np.any(values[edges.sources] == values[edges.targets]) for values in (mine, other))


def independent(edges: Edges, mine: Values, other: Values) -> bool:
    """Both are independent, and nobody could join."""
    return all(_is_maximal(edges, values != 0) for values in (mine, other))


def _is_maximal(edges: Edges, member: Values) -> bool:
    beside = np.zeros(edges.vertices, dtype=bool)
    beside[edges.targets[member[edges.sources]]] = True
    beside[edges.sources[member[edges.targets]]] = True
    return bool(np.all(beside != member))


@dataclass(frozen=True)
class Question:
    """A program's parameters, the field that is its answer, and when another answer agrees."""

    parameters: Callable[[Edges], dict[str, Any]]
    field: str
    agree: Agree

    def program(self, name: str, edges: Edges) -> Program:
        """The program `name` with its parameters."""
        return make(named(name), self.parameters(edges))


def katz_alpha(edges: Edges) -> float:
    """Half of what certainly converges: the matrix' norm is at most the root of its largest row and column sums."""
    rows, columns = (np.bincount(ends, minlength=1) for ends in (edges.sources, edges.targets))
    if not edges.directed:
        rows = columns = np.bincount(np.concatenate([edges.sources, edges.targets]), minlength=1)
    return float(0.5 / np.sqrt(max(1.0, float(rows.max()) * float(columns.max()))))


def _source(edges: Edges) -> dict[str, Any]:
    return {"source": edges.starts[0]}


def _alone(edges: Edges) -> dict[str, Any]:
    return {}


QUESTIONS: dict[str, Question] = {
    "bfs": Question(_source, "level", exact),
    "reachability": Question(_source, "reached", exact),
    "sssp": Question(_source, "distance", exact),
    "widest": Question(_source, "width", exact),
    "betweenness": Question(lambda e: {"source": e.starts, "raw": True}, "betweenness", near),
    "pagerank": Question(
        lambda e: {"damping": DAMPING, "tol": TOLERANCE, "max_iter": 1000} | UNWEIGHTED, "rank", shares
    ),
    "personalized_pagerank": Question(
        lambda e: {"source": e.starts[0], "damping": DAMPING, "tol": TOLERANCE, "max_iter": 1000} | UNWEIGHTED,
        "rank",
        shares,
    ),
    "katz": Question(lambda e: {"alpha": katz_alpha(e), "tol": TOLERANCE} | UNWEIGHTED, "katz", shares),
    "hits": Question(lambda e: UNWEIGHTED, "hub", shares),
    "php": Question(_source, "php", shares),
    "adsorption": Question(_source, "score", shares),
    "wcc": Question(_alone, "component", groups),
    "scc": Question(_alone, "component", groups),
    "cdlp": Question(lambda e: {"max_iter": ROUNDS}, "label", groups),
    "degrees": Question(_alone, "degree", exact),
    "coreness": Question(_alone, "core", exact),
    "kcore": Question(lambda e: {"k": CORE}, "member", exact),
    "triangles": Question(_alone, "triangles", exact),
    "lcc": Question(_alone, "lcc", near),
    "mis": Question(_alone, "member", independent),
    "coloring": Question(_alone, "color", colored),
}
"""Every program but `cf`, which needs ratings."""


class Penstock:
    """Penstock as one of the systems compared, its edges in memory, weights narrow; options: of its session."""

    name = "penstock"

    def __init__(self, edges: Edges, **options: Any) -> None:
        largest = int(min(edges.weights.max(initial=0), 2**32 - 1))
        narrow = edges.weights.astype(np.min_scalar_type(largest))
        graph = from_edges(
            edges.sources,
            edges.targets,
            narrow if np.array_equal(narrow, edges.weights) else edges.weights,
            vertices=edges.vertices,
            undirected=not edges.directed,
        )
        self._edges, self._session = edges, Session(graph, **options)

    def programs(self) -> dict[str, Task]:
        """All of them."""

        def task(name: str, question: Question) -> Task:
            def run() -> Result:
                return self._session.run(question.program(name, self._edges))

            return Task(run, lambda result: _values(result, question.field))

        return {name: task(name, question) for name, question in QUESTIONS.items()}

    def close(self) -> None:
        """End the session."""
        self._session.close()


def _values(result: Result, field: str) -> Values:
    """A field's values as float64, infinity where there is none."""
    return np.where(result.reached(field), result.fields[field].astype(np.float64), np.inf)
