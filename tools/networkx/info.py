"""The functions of networkx that Penstock answers, a record each; networkx reads them whenever it is imported itself.

So this file imports nothing of Penstock, and a record names its answer by file and function. The parameters of a
function are networkx's, and are not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Arguments = Mapping[str, Any]
"""The arguments of a call by name, those that are not given with networkx's defaults."""
Reason = tuple[Callable[[Arguments], Any], str]
"""Which calls are left to networkx, and why."""
Absent = tuple[str, str]
"""The exception of networkx for a node that does not exist, and its text."""


def given(name: str, text: str) -> Reason:
    """A reason against any value of an argument but None."""
    return lambda call: call[name] is not None, text


NO_FUNCTION = "weight is a function; give the name of an edge attribute"
FUNCTION: Reason = (lambda call: callable(call.get("weight")) or callable(call.get("distance")), NO_FUNCTION)
DIRECTED: Reason = (lambda call: call["G"].is_directed(), "directed graphs have another formula in networkx")
PARALLEL: Reason = (lambda call: call["G"].is_multigraph(), "networkx does not define this for multigraphs")
WEIGHT = given("weight", "edges count 1 each here; weight is not supported")
NODES = given("nodes", "all nodes count here; nodes is not supported")
SOURCES = given("sources", "all nodes are sources here")
NSTART = given("nstart", "all nodes begin alike here; nstart is not supported")
END_POINTS: Reason = (lambda call: call["endpoints"], "end points are not counted here")
LEVELS: Reason = (lambda call: (call["max_level"] or 0) > 0, "every level is computed here; max_level is not supported")
NO_PAIRS = "all pairs without an edge would be the square of the nodes; give pairs"
PAIRS: Reason = (lambda call: call["ebunch"] is None, NO_PAIRS)
NO_NODES = "all nodes would be as many searches as there are nodes; give some, or take the diameter"
ECCENTRICITY: tuple[Reason, ...] = ((lambda call: call["v"] is None, NO_NODES), given("sp", NO_NODES))
BOUNDS = "edges count 1 each here; weight is not supported, and e is not read"
DIAMETER = (given("e", BOUNDS), given("weight", BOUNDS), DIRECTED)
LENGTHS: tuple[Reason, ...] = (
    (
        lambda call: call["source"] is None and call["target"] is None,
        "all pairs would be as many runs as there are nodes; give a source",
    ),
    (
        lambda call: call["method"] == "bellman-ford" and call["weight"] is not None,
        "weights are not negative here; bellman-ford is not supported",
    ),
)
ALL_PATHS = LENGTHS[1:]
PATHS: tuple[Reason, ...] = (
    (
        lambda call: call["source"] is None and call["target"] is not None and call["G"].is_directed(),
        "paths to a target from all nodes would be those of the reversed graph; give a source",
    ),
    *LENGTHS,
)
HITS: tuple[Reason, ...] = (
    given("nstart", "hits begins with equal values here; nstart is not supported"),
    (lambda call: not call["normalized"], "without normalized the scale is that of networkx's solver"),
)
KATZ: tuple[Reason, ...] = (
    given("nstart", "one beta for all nodes, and no nstart"),
    (lambda call: not isinstance(call["beta"], int | float), "one beta for all nodes, and no nstart"),
    (lambda call: call["alpha"] < 0, "alpha must not be negative here"),
)
NEIGHBORS: tuple[Reason, ...] = (
    (
        lambda call: call["G"].is_directed() and (call["source"] != "out" or call["target"] not in ("in", "out")),
        "degrees are averaged along the edges here: source must be out, and target in or out",
    ),
    (
        lambda call: not call["G"].is_directed() and (call["source"], call["target"]) != ("out", "out"),
        "source and target are for directed graphs",
    ),
    WEIGHT,
    PARALLEL,
)

NODE: Absent = ("NodeNotFound", "Node {} not found in graph")
SOURCE: Absent = ("NodeNotFound", "Source {} is not in G")
PATH_SOURCE: Absent = ("NodeNotFound", "Source {} not in G")
WEIGHED_SOURCE: Absent = ("NodeNotFound", "Node {} is not found in the graph")
TARGET: Absent = ("NodeNotFound", "Target {} is not in G")
ROOT: Absent = ("NodeNotFound", "Root node {} is not in graph")
PAIR: Absent = ("NodeNotFound", "Node {} not in G.")
UNKNOWN: Absent = ("NetworkXError", "The node {} is not in the graph.")
KIN: Absent = ("NetworkXError", "The node {} is not in the {kind}.")


class Function(NamedTuple):
    """A function of networkx.

    name: by which networkx dispatches it. answer: `file:function` of this folder, which makes the answer of a call; the
    file alone: the function of the same name. program, field: what it runs and reads, by their names in the catalogue;
    empty where it has its own. passed: arguments that are parameters of the program (`distance` is its `weight`).
    reasons: against answering a call. absent: what networkx raises for a node that does not exist. backward: against
    the edges.
    """

    name: str
    answer: str
    program: str = ""
    field: str = ""
    passed: str = ""
    reasons: tuple[Reason, ...] = ()
    absent: Absent = NODE
    backward: bool = False

    def reason_against(self, call: Arguments) -> str | None:
        """Why a call is left to networkx; None: it is not."""
        return next((reason for applies, reason in (FUNCTION, *self.reasons) if applies(call)), None)


TABLE = (
    # distances, and what can be reached
    Function("single_source_shortest_path_length", "searches:lengths", absent=SOURCE),
    Function("single_target_shortest_path_length", "searches:lengths", absent=TARGET, backward=True),
    Function("single_source_dijkstra_path_length", "searches:lengths"),
    Function("multi_source_dijkstra_path_length", "searches:lengths"),
    Function("dijkstra_path_length", "searches:length"),
    Function("shortest_path_length", "searches", reasons=LENGTHS),
    Function("has_path", "searches"),
    Function("descendants", "searches:kin", absent=KIN),
    Function("ancestors", "searches:kin", absent=KIN, backward=True),
    Function("descendants_at_distance", "searches", absent=UNKNOWN),
    Function("bfs_layers", "searches", absent=UNKNOWN),
    Function("eccentricity", "searches", reasons=ECCENTRICITY),
    Function("diameter", "searches", "diameter", reasons=DIAMETER),
    # paths
    Function("shortest_path", "searches", reasons=PATHS),
    Function("single_source_shortest_path", "searches:paths", absent=PATH_SOURCE),
    Function("single_source_dijkstra_path", "searches:paths"),
    Function("multi_source_dijkstra_path", "searches:paths"),
    Function("dijkstra_path", "searches:paths"),
    Function("single_source_dijkstra", "searches:lengths_and_paths"),
    Function("multi_source_dijkstra", "searches:lengths_and_paths"),
    Function("bidirectional_shortest_path", "searches:path_between"),
    Function("bidirectional_dijkstra", "searches:between"),
    Function("all_shortest_paths", "searches", reasons=ALL_PATHS),
    Function("shortest_simple_paths", "searches", reasons=(PARALLEL,)),
    # components and communities
    Function("connected_components", "groups:parts", "wcc", "component"),
    Function("weakly_connected_components", "groups:parts", "wcc", "component"),
    Function("strongly_connected_components", "groups:parts", "scc", "component"),
    Function("number_connected_components", "groups:count", "wcc", "component"),
    Function("number_weakly_connected_components", "groups:count", "wcc", "component"),
    Function("number_strongly_connected_components", "groups:count", "scc", "component"),
    Function("is_connected", "groups:is_one", "wcc", "component"),
    Function("is_weakly_connected", "groups:is_one", "wcc", "component"),
    Function("is_strongly_connected", "groups:is_one", "scc", "component"),
    Function("node_connected_component", "groups:part_of_node", "wcc", "component"),
    Function("bridge_components", "groups:parts", "bridges", "component"),
    Function("bridges", "groups", absent=ROOT),
    Function("has_bridges", "groups", absent=ROOT),
    Function("articulation_points", "groups", "articulation", "articulation"),
    Function("biconnected_components", "groups"),
    Function("is_biconnected", "groups"),
    Function("leiden_communities", "groups", "leiden", "community", "resolution weight", (LEVELS,)),
    # centrality
    Function("pagerank", "scores"),
    Function("hits", "scores", "hits", passed="tol", reasons=HITS),
    Function("katz_centrality", "scores", "katz", "katz", "alpha max_iter tol normalized weight", KATZ),
    Function("eigenvector_centrality", "scores", "eigenvector", "eigenvector", "max_iter weight", (NSTART, PARALLEL)),
    Function("betweenness_centrality", "scores", "betweenness", "betweenness", "normalized", (WEIGHT, END_POINTS)),
    Function("closeness_centrality", "scores", "closeness", "closeness", "wf_improved distance"),
    Function("harmonic_centrality", "scores", "harmonic", "harmonic", "distance", (SOURCES,)),
    Function("degree_centrality", "scores:share_of_others", "degrees", "degree"),
    Function("in_degree_centrality", "scores:share_of_others", "degrees", "in_degree"),
    Function("out_degree_centrality", "scores:share_of_others", "degrees", "out_degree"),
    # structure
    Function("core_number", "scores", "coreness", "core"),
    Function("triangles", "scores:of_nodes", "triangles", "triangles", reasons=(PARALLEL,)),
    Function("clustering", "scores", "lcc", "lcc", reasons=(WEIGHT, DIRECTED, PARALLEL)),
    Function("average_clustering", "scores", "lcc", "lcc", reasons=(WEIGHT, DIRECTED, PARALLEL)),
    Function("transitivity", "scores", reasons=(DIRECTED, PARALLEL)),
    Function("minimum_spanning_edges", "groups", reasons=(PARALLEL,)),
    Function("isolates", "groups", "degrees", "degree"),
    Function("number_of_isolates", "groups", "degrees", "degree"),
    # how alike neighbors are
    Function("jaccard_coefficient", "scores", reasons=(PAIRS,), absent=PAIR),
    Function("degree_assortativity_coefficient", "scores", "degrees", reasons=(NODES, WEIGHT)),
    Function("average_neighbor_degree", "scores", "degrees", reasons=NEIGHBORS),
)

FUNCTIONS = tuple(function.name for function in TABLE)


def get_info() -> dict[str, Any]:
    """What networkx shows of the backend in its documentation."""
    note = {
        "additional_docs": "Graphs of networkx, or graph files of any size (`penstock.Graph.open`). Options of "
        "penstock.run may be given by name.",
        "additional_parameters": {},
    }
    return {
        "backend_name": "penstock",
        "project": "penstock",
        "package": "penstock",
        "short_summary": "Algorithms on graphs larger than memory, on CPU and GPU.",
        "functions": dict.fromkeys(FUNCTIONS, note),
    }
