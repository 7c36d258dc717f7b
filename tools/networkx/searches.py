"""Distances, what can be reached, and paths: functions of networkx by breadth-first search and shortest paths.

Of several shortest paths the one is answered on which each node's predecessor is the first possible one in the order of
the nodes. A search with a target ends as soon as its distance is known.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from penstock.tools.networkx.held import Call, LeftToNetworkxError, Node, StoredGraph, networkx
from penstock.tools.networkx.info import NODE, PATH_SOURCE, SOURCE, TARGET, WEIGHED_SOURCE

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.paths_between import PathsBetween
    from penstock.engine.state.found_paths import ParentLinks


class SearchResult(NamedTuple):
    """From the nearest of some vertices, or to one: distances, which vertices have any, parents where asked for."""

    first: list[int]
    distances: NDArray[Any]
    reached: NDArray[np.bool_]
    parents: Any

    def nearest(self, cutoff: float | None = None) -> NDArray[Any]:
        """Vertices that were reached (within a cutoff, of which `first` are part anyway), nearest first."""
        reached = self.reached
        if cutoff is not None:
            reached = reached & (self.distances <= cutoff)
            reached[self.first] = True
        found = np.flatnonzero(reached)
        return found[np.argsort(self.distances[found], kind="stable")]


def _search(call: Call, first: list[int], *, backward: bool = False, **ways: Any) -> SearchResult:
    """Search from some vertices, or backward to one; ways: that parents are wanted, or a target."""
    from penstock.engine.program.program_description import variant
    from penstock.engine.programs.closeness import DistancesFrom, LevelsFrom

    graph, weight = call.graph, call.arguments.get("weight")
    check_lengths(graph, weight)
    weighted = weight is not None and graph.graph.weight_range is not None
    if backward:
        kind: Any = variant(DistancesFrom if weighted else LevelsFrom, along="in")
        result = call.run(kind(first[0]))
    elif len(first) == 1 and not weighted and not ways:
        result = call.run(LevelsFrom(first[0]))
    else:
        ways = ways or ({} if weighted else {"parents": False})
        result = call.run("sssp" if weighted else "bfs", source=graph.ids(np.array(first)), **ways)
    field = "distance" if weighted else "level"
    parents = result.numbers("parent")[0] if "parent" in result.stored else None
    return SearchResult(first, np.asarray(result.numbers(field)[0]), result.reached(field), parents)


def check_lengths(graph: StoredGraph, weight: str | None) -> None:
    """Refuse lengths below 0 as networkx does."""
    if weight is not None and graph.has_negative_weights():
        raise ValueError("Contradictory paths found:", "negative weights?")


def _starts(call: Call) -> list[int]:
    """The vertices that a search begins at: those of the sources, the source or the target."""
    given = call.arguments
    sources = given["sources"] if "sources" in given else [given["source" if "source" in given else "target"]]
    if not sources:
        raise ValueError("sources must not be empty")
    return [call.vertex(source) for source in sources]


def lengths(call: Call) -> Mapping[Node, Any]:
    """Distances of all nodes that are reached, nearest first. Raises ValueError for negative weights."""
    found = _search(call, _starts(call), backward=call.function.backward)
    return call.graph.values(found.distances, found.nearest(call["cutoff"]))


def length(call: Call) -> Any:
    """The distance from the source to the target. Raises NetworkXNoPath where there is none."""
    source, target = call["source"], call["target"]
    first = call.vertex(source)
    if source == target:
        return 0
    return _length(call, first, call.graph.find(target), f"Node {target} not reachable from {source}")


def _length(call: Call, first: int, last: int | None, none: str) -> Any:
    """The distance between two vertices; none: what is said where there is none."""
    found = _search(call, [first])
    if last is None or not found.reached[last]:
        raise networkx().NetworkXNoPath(none)
    return found.distances[last].item()


def shortest_path_length(call: Call) -> Any:
    """With a source, a target, or both."""
    source, target, weight = _ends_and_weight(call)
    if source is None or target is None:
        end = target if source is None else source
        first = call.vertex(end, SOURCE if weight is None else NODE)
        found = _search(call, [first], backward=source is None)
        return call.graph.values(found.distances, found.nearest())
    if weight is not None:
        return length(call)
    return _length(call, *_both_ends(call), f"No path between {source} and {target}.")


def _ends_and_weight(call: Call) -> tuple[Node | None, Node | None, str | None]:
    """Source, target and weight. Raises as networkx does for a method of shortest paths that it has not."""
    if call["method"] not in ("dijkstra", "bellman-ford"):
        raise ValueError(f"method not supported: {call['method']}")
    return call["source"], call["target"], call["weight"]


def _both_ends(call: Call) -> tuple[int, int]:
    """The vertices of the source and the target."""
    return call.vertex(call["source"], SOURCE), call.vertex(call["target"], TARGET)


def has_path(call: Call) -> bool:
    """Whether the source leads to the target."""
    first, last = _both_ends(call)
    return bool(_search(call, [first]).reached[last])


def kin(call: Call) -> Set[Node]:
    """What can be reached from the source, or what it can be reached from, itself left out."""
    vertex = call.vertex(call["source"])
    reached = _search(call, [vertex], backward=call.function.backward).reached
    reached[vertex] = False
    return call.graph.members(np.flatnonzero(reached))


def descendants_at_distance(call: Call) -> Set[Node]:
    """What is so many hops from the source."""
    found = _search(call, [call.vertex(call["source"])])
    return call.graph.members(np.flatnonzero(found.reached & (found.distances == call["distance"])))


def bfs_layers(call: Call) -> Iterator[list[Node]]:
    """The nodes at each distance from the nearest source."""
    graph, sources = call.graph, call["sources"]
    given = [sources] if isinstance(sources, Hashable) and sources in graph else list(dict.fromkeys(sources))
    first = [call.vertex(source) for source in given]
    if not given:
        return
    found = _search(call, first)
    order = found.nearest()
    levels = found.distances[order]
    yield given
    for depth in range(1, int(levels[-1]) + 1):
        start, end = np.searchsorted(levels, [depth, depth + 1])
        yield graph.of(order[start:end])


def eccentricity(call: Call) -> Any:
    """Of one node or of some, a search for each."""
    graph, nodes = call.graph, call["v"]
    found: dict[Node, float] = {}
    for vertex in graph.bunch(nodes).tolist():
        distances = _from_whole(call, vertex).distances
        found[graph.of(np.array([vertex]))[0]] = distances.max().item()
    return found[nodes] if isinstance(nodes, Hashable) and nodes in graph else found


def diameter(call: Call) -> int:
    """Of an undirected graph without weights, from few searches."""
    graph = call.graph
    if len(graph) == 0:
        raise ValueError("a graph without nodes has no diameter")
    _from_whole(call, 0)
    result = call.run(k=len(graph))
    return int(result.measures["diameter_at_least"][-1]) if len(graph) > 1 else 0


def _from_whole(call: Call, vertex: int) -> SearchResult:
    """A search that reaches all. Raises NetworkXError where it does not."""
    found = _search(call, [vertex])
    if not found.reached.all():
        kind = "the digraph is not strongly" if call.graph.is_directed() else "the graph is not"
        raise networkx().NetworkXError(f"Found infinite path length because {kind} connected")
    return found


def lengths_and_paths(call: Call) -> tuple[Any, Any]:
    """Lengths and paths from the nearest source, nearest first; of a target its own. Raises NetworkXNoPath."""
    first, target, cutoff = _starts(call), call.arguments.get("target"), call.arguments.get("cutoff")
    if target is None:
        return _to_all(call, first, cutoff)
    last = call.graph.find(target)
    if last in first:
        return 0, [target]
    return _to_one(call, first, last, f"No path to {target}.", cutoff)


def paths(call: Call) -> Any:
    """The paths alone."""
    return lengths_and_paths(call)[1]


def between(call: Call) -> tuple[float, list[Node]]:
    """The length of a shortest path from the source to the target, and the path. Raises NetworkXNoPath."""
    first, last = _both_ends(call)
    if first == last:
        return 0, [call["source"]]
    return _to_one(call, [first], last, f"No path between {call['source']} and {call['target']}.")


def path_between(call: Call) -> list[Node]:
    """The path alone."""
    return between(call)[1]


def shortest_path(call: Call) -> Any:
    """With a source, a target (of an undirected graph), or both."""
    source, target, weight = _ends_and_weight(call)
    if source is not None and target is not None:
        return path_between(call)
    end = target if source is None else source
    found = _to_all(call, [call.vertex(end, PATH_SOURCE if weight is None else NODE)])[1]
    return {node: path[::-1] for node, path in found.items()} if source is None else found


def all_shortest_paths(call: Call) -> Iterator[list[Node]]:
    """Those of the least length. Raises NetworkXNoPath where there is none, when they are read."""
    source, target, weight = _ends_and_weight(call)
    first = call.vertex(source, PATH_SOURCE if weight is None else WEIGHED_SOURCE)
    last = call.graph.find(target)
    check_lengths(call.graph, weight)
    none = f"Target {target} cannot be reached from given sources"
    return _all(call, None if last is None else _ways(call, first, last), none, shortest=True)


def shortest_simple_paths(call: Call) -> Iterator[list[Node]]:
    """All paths without a node twice, the shortest first. Raises NetworkXNoPath where there is none."""
    ends = []
    for role in ("source", "target"):
        vertex = call.graph.find(call[role])
        if vertex is None:
            raise networkx().NodeNotFound(f"{role} node {call[role]} not in graph")
        ends.append(vertex)
    check_lengths(call.graph, call["weight"])
    none = f"No path between {call['source']} and {call['target']}."
    yield from _all(call, _ways(call, *ends), none, shortest=False)


def _ways(call: Call, first: int, last: int) -> PathsBetween:
    """Paths between two vertices, after the search."""
    from penstock.engine.paths_between import PathsBetween

    graph = call.graph.graph
    weighted = call["weight"] is not None and graph.weight_range is not None
    return PathsBetween(graph, first, last, weighted=weighted, options=dict(call.options))


def _all(call: Call, ways: PathsBetween | None, none: str, *, shortest: bool) -> Iterator[list[Node]]:
    """The paths by their nodes; none: what is said where there is none."""
    if ways is None or not ways.some:
        raise networkx().NetworkXNoPath(none)
    for _, vertices in ways.shortest() if shortest else ways.loopless():
        yield call.graph.of(np.array(vertices))


def _to_one(
    call: Call, first: list[int], last: int | None, none: str, cutoff: float | None = None
) -> tuple[float, list[Node]]:
    """The length of a shortest path to one vertex, and the path; none: what is said where there is none."""
    graph = call.graph
    if last is not None:
        if call.arguments.get("weight") is not None and graph.has_negative_weights():
            raise LeftToNetworkxError("networkx may find the target before it meets a weight below 0")
        found = _search(call, first, target=graph.ids(np.array([last])))
        if found.reached[last] and (cutoff is None or found.distances[last] <= cutoff):
            return found.distances[last].item(), graph.of(np.array(_links(call, found).upwards(last)[::-1]))
    raise networkx().NetworkXNoPath(none)


def _to_all(call: Call, first: list[int], cutoff: float | None = None) -> tuple[Any, Any]:
    """Lengths and paths to all vertices that are reached, nearest first."""
    found = _search(call, first, parents=True)
    order = found.nearest(cutoff)
    return call.graph.values(found.distances, order), call.graph.paths(_links(call, found), order)


def _links(call: Call, found: SearchResult) -> ParentLinks:
    """The ways back from vertices."""
    from penstock.engine.state.found_paths import ParentLinks

    return ParentLinks(found.parents)
