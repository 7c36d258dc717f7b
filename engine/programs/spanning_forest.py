"""Minimum spanning forests: edges of the least total weight that connect what the graph connects.

Borůvka's rounds (1926; Nešetřil, Milková, Nešetřilová, Discrete Math. 2001): every component chooses the lightest edge
that leaves it, and components are joined along these. Edges of one weight are told apart by the ids of their ends, so
that the forest is one and the same whatever order they come in. Direction is ignored.

A round is two sweeps: the least weight that leaves each component, then, among edges of that weight, the least pair of
ends. Only vertices with an edge to another component take part, so that sweeps become shorter. Trees are joined in one
thread between them (`program/forests.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program import forests
from penstock.engine.program.program import LARGEST, VERTEX, Field, Program, Start
from penstock.engine.program.vertex_ids import fill_ranks, in_original_order, original_values
from penstock.engine.program.vertex_ranges import each_range, mask_of
from penstock.engine.programs.weights import counts_by_weight
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph

NOWHERE = np.inf
"""What is lighter than no edge."""
NO_EDGE = 2**64 - 1
"""No pair of ends."""
MOST_VERTICES = 1 << 32
"""Both ends of an edge are one number of 64 bits."""


class SpanningForest(Program):
    """`parent` and `weight` of the edge to it: each row that has them is an edge of a minimum spanning forest.

    The root of a tree is its smallest vertex, and has neither. weight: whether edges count by their weights (False or
    None: each counts 1, so that any spanning forest is one of least weight). `total_weight`: of all its edges.
    """

    parent = Field(VERTEX, fill=LARGEST, unreached=LARGEST)
    weight = Field(np.float64, fill=-np.inf, unreached=-np.inf)
    component = Field(VERTEX, output=False)
    rank = Field(VERTEX, output=False)
    size = Field(VERTEX, fill=1, output=False)
    best = Field(np.float64, output=False)
    chosen = Field(np.uint64, output=False)
    working_bytes = 13
    measures = ("total_weight",)

    def __init__(self, weight: bool | str | None = True) -> None:
        self.needs_weights = counts_by_weight(weight)
        self.total_weight: list[float] = []

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """Both sweeps of a round."""
        return (LightestEdge(self.needs_weights), LeastEnds(self.needs_weights))

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Rounds, until no component has an edge that leaves it."""
        if graph.vertices > MOST_VERTICES:
            raise InputError(f"msf takes at most 2^32 vertices, and the graph has {graph.vertices}: extract a part")
        best, component = state["best"], state["component"]
        if first == 0:
            component[:] = np.arange(graph.vertices, dtype=component.dtype)
            fill_ranks(graph, state["rank"])
        left = graph.vertices
        for number in count(first):
            if number % 2 == 0:
                if left < 2:
                    break
                yield LightestEdge(self.needs_weights)
            else:
                forests.least_of_components(component, best, np.full(graph.vertices, NOWHERE))
                yield LeastEnds(self.needs_weights)
                left = _joined(graph, state)

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Let the smallest vertex of each tree be its root; name parents by their original ids."""
        parent, weight = state["parent"], state["weight"]
        roots = np.full(graph.vertices, -1)
        forests.first_members(_vertex_of(graph, state["rank"]), state["component"], roots)
        forests.root_at(roots, _none(parent), parent, weight)
        self.total_weight = [float(np.sum(weight, where=weight != -np.inf))]
        return {"parent": original_values(graph, parent), "weight": weight}


class LeastOfEdges(Program):
    """One sweep over all edges, either way, after which a vertex has the least of what came along its own."""

    combine = "min"
    along = "both"
    max_iter = 1

    def __init__(self, weight: bool) -> None:
        self.needs_weights = weight

    def vertex(incoming):  # type: ignore[no-untyped-def]
        """The least."""
        return incoming


def _leaving(best: NDArray[Any]) -> NDArray[np.bool_]:
    """Which vertices have an edge to another component."""
    return mask_of(lambda first, last: np.asarray(best[first:last] != NOWHERE), len(best))


class LightestEdge(LeastOfEdges):
    """`best`: the least weight of a vertex's edges to other components."""

    best = Field(np.float64)
    component = Field(VERTEX, constant=True)

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Vertices take part that had such an edge in the round before."""
        best = state["best"]
        active = _leaving(best)
        best[:] = NOWHERE
        return Start(active=active)

    def edge(component, target_component, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: its weight, where it leaves the component."""
        return weight if component != target_component else NOWHERE


class LeastEnds(LeastOfEdges):
    """`chosen`: of a vertex's edges of the weight `best` to other components, the least pair of ends."""

    chosen = Field(np.uint64)
    best = Field(np.float64, constant=True)
    component = Field(VERTEX, constant=True)
    rank = Field(VERTEX, constant=True)

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Vertices take part whose component has an edge to another."""
        state["chosen"][:] = NO_EDGE
        return Start(active=_leaving(state["best"]))

    def edge(component, target_component, weight, target_best, rank, target_rank):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: its ends, where it is one of the lightest that leave the component."""
        if component == target_component or weight != target_best:
            return np.uint64(NO_EDGE)
        low, high = np.uint64(min(rank, target_rank)), np.uint64(max(rank, target_rank))
        return (low << np.uint64(32)) | high


def _joined(graph: Graph, state: dict[str, NDArray[Any]]) -> int:
    """Join components along the edges that they chose; return how many may have an edge to another."""
    best, component, size, parent, weight = (state[name] for name in ("best", "component", "size", "parent", "weight"))
    vertex_of = _vertex_of(graph, state["rank"])
    none = _none(parent)
    return int(forests.join_trees(state["chosen"], vertex_of, best, component, size, none, parent, weight))


def _vertex_of(graph: Graph, rank: NDArray[Any]) -> NDArray[Any]:
    """The vertex of every rank; (0,) where that is the rank."""
    if in_original_order(graph):
        return np.empty(0, rank.dtype)
    found = np.empty_like(rank)

    def fill(first: int, last: int) -> None:
        found[rank[first:last]] = np.arange(first, last, dtype=rank.dtype)

    each_range(fill, len(rank))
    return found


def _none(parent: NDArray[Any]) -> np.uint64:
    """What is no parent."""
    return np.uint64(np.iinfo(parent.dtype).max)
