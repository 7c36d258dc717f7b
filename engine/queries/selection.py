"""Which vertices and edges of a graph stay: conditions, checked when they are given, and the vertices that meet them.

Programs answer conditions on neighborhoods, components, cores and degrees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import Program
from penstock.engine.program.program_description import variant
from penstock.engine.program.vertex_ids import internal_ids
from penstock.engine.program.vertex_ranges import ROWS
from penstock.engine.programs.bfs import UNREACHED, BFSLevels
from penstock.engine.programs.degrees import Degrees
from penstock.engine.programs.kcore import KCore
from penstock.engine.programs.scc import SCC
from penstock.engine.programs.trussness import Trussness
from penstock.engine.programs.wcc import WCC
from penstock.storage.access.vertex_lookup import internal_id
from penstock.storage.base.errors import InputError
from penstock.storage.convert.subgraph.chosen_vertices import VertexBitmap, listed_in_file, listed_vertices
from penstock.storage.convert.subgraph.edge_filter import EdgeFilter
from penstock.storage.convert.subgraph.extract import check_weighted
from penstock.storage.convert.subgraph.kept_edges import Bounds
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions

ALONG = ("out", "in", "both")
Interval = str | tuple[float | None, float | None] | Bounds


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Which vertices and edges stay: those for which all that is given holds, each judged on the whole graph.

    around, hops, along: what at most `hops` edges lead to from these vertices, along "out"-edges, "in"-edges or
    "both". component_of, largest_component: the weakly connected component of a vertex, or the largest; strong: the
    strongly connected one. core: the k-core. truss: the k-truss, vertices and edges. vertices: ids, or a file of
    them; skip_missing: of which those count that the graph has. degrees: of vertices, in and out together. weights:
    of edges. where: a condition on edges.

    Raises InputError where nothing is given, or what is given excludes each other.
    """

    around: int | str | Sequence[int | str] | None = None
    hops: int = 1
    along: str = "out"
    component_of: int | str | None = None
    largest_component: bool = False
    strong: bool = False
    core: int | None = None
    truss: int | None = None
    vertices: Path | str | PathLike[str] | Iterable[int | str] | None = None
    skip_missing: bool = False
    degrees: Bounds | None = None
    weights: Bounds | None = None
    where: str | None = None

    def __post_init__(self) -> None:
        if not self.given:
            raise InputError(
                "nothing says what to extract; give --around, --component-of, --largest-component, --core, --truss, "
                "--vertices, --degrees, --weights or --where"
            )
        if self.along not in ALONG:
            raise InputError(f"--along {self.along} is none of {', '.join(ALONG)}")
        if self.hops < 0 or (self.core is not None and self.core < 0):
            raise InputError(f"--hops {self.hops} and --core {self.core}: numbers below 0 have no meaning")
        if self.truss is not None and self.truss < 2:
            raise InputError(
                f"--truss {self.truss} has no meaning: edges of a 2-truss may be in no triangle; give 2 or more"
            )
        if self.around is None and (self.hops, self.along) != (1, "out"):
            raise InputError("--hops and --along say how far from --around; name its vertices, or leave them out")
        if self.component_of is not None and self.largest_component:
            raise InputError("--component-of and --largest-component exclude each other; choose one")
        if self.strong and self.component_of is None and not self.largest_component:
            raise InputError("--strong says which components; give --component-of or --largest-component, too")
        if self.skip_missing and self.vertices is None:
            raise InputError("--skip-missing is about --vertices; give a list of ids, or leave it out")

    @property
    def given(self) -> dict[str, Any]:
        """The conditions that were given, as a graph file records them."""
        found: dict[str, Any] = {}
        if self.around is not None:
            found |= {"around": _told(self.around), "hops": self.hops, "along": self.along}
        if self.component_of is not None:
            found["component_of"] = self.component_of
        found |= {name: True for name in ("largest_component", "strong") if getattr(self, name)}
        found |= {name: getattr(self, name) for name in ("core", "truss") if getattr(self, name) is not None}
        if self.vertices is not None:
            found["vertices"] = str(self.vertices) if isinstance(self.vertices, str | PathLike) else "a list"
        for name in ("degrees", "weights"):
            bounds = getattr(self, name)
            if bounds is not None:
                found[name] = f"{bounds.low:g}..{bounds.high:g}"
        return found | ({} if self.where is None else {"where": self.where})

    def on_edges(self, graph: Graph) -> EdgeFilter | None:
        """The conditions on edges; None for none. Raises InputError where the graph has no such columns."""
        parts = [] if self.where is None else [EdgeFilter.of(self.where, graph)]
        if self.weights is not None:
            check_weighted(graph)
            parts.append(EdgeFilter.between("weight", *self.weights, graph))
        return reduce(EdgeFilter.joined, parts) if parts else None


def bounds_of(given: Interval | None, name: str) -> Bounds | None:
    """A range of numbers as it was given. Raises InputError."""
    if given is None or isinstance(given, Bounds):
        return given
    try:
        low, high = _ends(given) if isinstance(given, str) else given
        found = Bounds(-np.inf if low is None else float(low), np.inf if high is None else float(high))
    except (TypeError, ValueError):
        raise InputError(f"{name} {given} is no range; write it as 0.5..2, 10.. or ..5") from None
    if not found.low <= found.high:
        raise InputError(f"{name} {given} holds no number; write the smaller one first")
    return found


def _ends(text: str) -> tuple[float | None, float | None]:
    low, dots, high = text.partition("..")
    if not dots or not (low.strip() or high.strip()):
        raise ValueError
    return (float(low) if low.strip() else None, float(high) if high.strip() else None)


def _told(source: Any) -> str:
    """The first of some ids, and how many there are."""
    several = [source] if isinstance(source, int | np.integer | str) else list(source)
    return ", ".join(map(str, several[:3])) + (f" and {len(several) - 3} more" if len(several) > 3 else "")


Run = Callable[[Program], dict[str, Any]]
"""Runs a program on the graph, and returns its fields."""


class ByInternalIds:
    """What connected components have otherwise that are named by an internal id of their own."""

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Keep the internal ids."""
        return {"component": state["component"]}


def all_conditions_hold(graph: Graph, conditions: Conditions, run: Run) -> VertexBitmap | None:
    """The vertices for which all conditions hold but that on their ids; None for all. Raises as a run, or for no id."""
    found = (make(graph, conditions, run) for make in (_around, _component, _core, _truss, _degrees))
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
    search = variant(BFSLevels, along=conditions.along if graph.directed else "out")(sources)  # type: ignore[arg-type]
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
    kind: type[Program] = SCC if conditions.strong and graph.directed else WCC
    root = run(variant(kind, ByInternalIds)())["component"]
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


def _truss(graph: Graph, conditions: Conditions, run: Run) -> VertexBitmap | None:
    """The k-truss, with its edges."""
    if conditions.truss is None:
        return None
    program = Trussness(conditions.truss)
    program.keeps = True
    truss = run(program)["truss"]
    found = VertexBitmap.of(graph.vertices, lambda first, last: truss[first:last] != 0)
    found.edges = program.left
    return found


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
