"""Which vertices meet conditions: programs answer those on neighborhoods, components, cores and degrees."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import Program
from penstock.engine.program.vertex_ids import internal_ids
from penstock.engine.program.vertex_ranges import ROWS
from penstock.engine.programs.bfs import UNREACHED, BFSLevels
from penstock.engine.programs.degrees import Degrees
from penstock.engine.programs.kcore import KCore
from penstock.engine.programs.scc import SCC
from penstock.engine.programs.wcc import WCC
from penstock.engine.selection.conditions import Conditions
from penstock.storage.access.vertex_lookup import internal_id
from penstock.storage.convert.subgraph.listed_vertices import listed_in_file, listed_vertices
from penstock.storage.convert.subgraph.vertex_bitmap import VertexBitmap
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions

Run = Callable[[Program], dict[str, NDArray[Any]]]
"""Runs a program on the graph, and returns its fields."""


class InNeighborhood(BFSLevels):
    """Levels against the edges."""

    along = "in"


class Neighborhood(BFSLevels):
    """Levels along the edges and against them."""

    along = "both"


class WeakRoots(WCC):
    """Weakly connected components by their first internal id."""

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Keep the internal ids."""
        return {"component": state["component"]}


class StrongRoots(SCC):
    """Strongly connected components, each by an internal id of its own."""

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Keep the internal ids."""
        return {"component": state["component"]}


_BY_WAY: dict[str, type[BFSLevels]] = {"out": BFSLevels, "in": InNeighborhood, "both": Neighborhood}


def all_conditions_hold(graph: Graph, conditions: Conditions, run: Run) -> VertexBitmap | None:
    """The vertices for which all conditions hold but that on their ids; None for all. Raises as a run, or for no id."""
    found = (make(graph, conditions, run) for make in (_around, _component, _core, _degrees))
    sets = [one for one in found if one is not None]
    return reduce(and_, sets) if sets else None


def listed(graph: Graph, conditions: Conditions, reading: IngestOptions) -> VertexBitmap | None:
    """The vertices of a list; None where there is none. Raises InputError for an id that the graph does not have."""
    wanted = conditions.vertices
    if wanted is None:
        return None
    if isinstance(wanted, str | PathLike):
        return listed_in_file(graph, Path(wanted), reading, skip_missing=conditions.skip_missing)
    return listed_vertices(graph, wanted, "--vertices", skip_missing=conditions.skip_missing)


def _around(graph: Graph, conditions: Conditions, run: Run) -> VertexBitmap | None:
    """What is at most some hops away."""
    if conditions.around is None:
        return None
    sources = conditions.around
    if conditions.hops == 0:
        return _members(graph, internal_ids(graph, sources))
    search = _BY_WAY["out" if not graph.directed else conditions.along](sources)  # type: ignore[arg-type]
    search.max_iter = conditions.hops
    level = run(search)["level"]
    return VertexBitmap.of(graph.vertices, lambda first, last: level[first:last] != UNREACHED)


def _component(graph: Graph, conditions: Conditions, run: Run) -> VertexBitmap | None:
    """The component of a vertex, or the largest."""
    if conditions.component_of is None and not conditions.largest_component:
        return None
    vertex = None if conditions.component_of is None else internal_id(graph, conditions.component_of)
    if graph.vertices == 0:
        return VertexBitmap.whole(0)
    program: Program = StrongRoots() if conditions.strong and graph.directed else WeakRoots()
    root = run(program)["component"]
    wanted = _most_frequent(root) if vertex is None else root[vertex]
    return VertexBitmap.of(graph.vertices, lambda first, last: root[first:last] == wanted)


def _most_frequent(root: NDArray[Any]) -> int:
    """The value that occurs most often among integers below their number; of several the smallest."""
    sizes = np.zeros(len(root), root.dtype)
    for first in range(0, len(root), ROWS):
        values, counts = np.unique(root[first : first + ROWS], return_counts=True)
        sizes[values] += counts.astype(sizes.dtype)
    return int(np.argmax(sizes))


def _core(graph: Graph, conditions: Conditions, run: Run) -> VertexBitmap | None:
    """The k-core."""
    if conditions.core is None:
        return None
    member = run(KCore(conditions.core))["member"]
    return VertexBitmap.of(graph.vertices, lambda first, last: member[first:last] != 0)


def _degrees(graph: Graph, conditions: Conditions, run: Run) -> VertexBitmap | None:
    """The vertices of some degrees."""
    bounds = conditions.degrees
    if bounds is None:
        return None
    degree = run(Degrees())["degree"]
    return VertexBitmap.of(graph.vertices, lambda first, last: bounds.hold(degree[first:last]))


def _members(graph: Graph, vertices: NDArray[np.int64]) -> VertexBitmap:
    """A few vertices."""

    def holds(first: int, last: int) -> NDArray[np.bool_]:
        found = np.zeros(last - first, np.bool_)
        found[vertices[(vertices >= first) & (vertices < last)] - first] = True
        return found

    return VertexBitmap.of(graph.vertices, holds)
