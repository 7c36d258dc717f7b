"""The dispatch backend of networkx: `nx.pagerank(G, backend="penstock")`, and `nx.pagerank(Graph.open("web.h5"))`.

networkx finds it by the entry points `networkx.backends` and `networkx.backend_info`. It calls it with stored graphs as
they are, and with graphs converted by `convert_from_nx`, which it keeps (so a graph may have weights that a call does
not ask for). Answers have networkx's keys, rules and exceptions. networkx and the engine are imported only when called.
Options of a run may be given beside the arguments of networkx (`threads=4`).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.storage.base.budget import available_memory, format_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph
from penstock.tools.networkx import centrality, components, distances, paths, structure
from penstock.tools.networkx.held import LeftToNetworkxError, PenstockGraph, StoredGraph, networkx
from penstock.tools.networkx.info import FUNCTIONS
from penstock.tools.networkx.info import get_info as get_info  # an editable installation may look for it here
from penstock.tools.networkx.limits import reason_against

if TYPE_CHECKING:
    from numpy.typing import NDArray

NODE_BYTES, EDGE_BYTES = 600, 400
"""At most what a graph of networkx takes for each, measured with directed graphs of Python 3.11."""

_FUNCTIONS = {
    name: getattr(module, name)
    for module in (centrality, components, distances, paths, structure)
    for name in FUNCTIONS
    if hasattr(module, name)
}
globals().update(_FUNCTIONS)


def convert_from_nx(
    graph: Any,
    edge_attrs: Mapping[str, Any] | None = None,
    node_attrs: Any = None,
    preserve_edge_attrs: bool = False,
    **asked: Any,
) -> PenstockGraph:
    """Convert a networkx graph; the one of `edge_attrs` (name: default) becomes the weights.

    Raises LeftToNetworkxError for weights that are not numbers.
    """
    from penstock.storage.convert.from_arrays import from_edges

    if preserve_edge_attrs or len(edge_attrs or ()) > 1:
        raise LeftToNetworkxError("a graph has at most one weight on an edge")
    nodes = list(graph)
    index = {node: vertex for vertex, node in enumerate(nodes)}
    ends = np.fromiter((index[node] for edge in graph.edges() for node in edge[:2]), np.int64).reshape(-1, 2)
    weights = None
    if edge_attrs:
        attribute, default = next(iter(edge_attrs.items()))
        weights = _weights([value for *_, value in graph.edges(data=attribute, default=default)], default)
    try:
        made = from_edges(ends, weights=weights, vertices=len(nodes), undirected=not graph.is_directed())
    except InputError as error:
        raise LeftToNetworkxError(str(error)) from error
    return PenstockGraph(nodes, made, multigraph=graph.is_multigraph())


def _weights(values: list[Any], default: Any) -> NDArray[Any] | None:
    """Weights as an array; none where all are the 1 that an edge without weight counts."""
    if not all(isinstance(value, int | float | np.number) for value in values):
        raise LeftToNetworkxError("weights that are not numbers are left to networkx")
    array = np.asarray(values, dtype=None if values else np.int64)
    return None if default == 1 and array.dtype.kind in "iu" and bool((array == 1).all()) else array


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """Convert a graph to networkx; other results are networkx's already.

    Raises InputError for a stored graph that would not fit into memory so.
    """
    if isinstance(result, Graph):
        return _loaded(StoredGraph(result))
    if not isinstance(result, PenstockGraph):
        return result
    made = _empty(result.is_directed(), result.is_multigraph())
    made.add_nodes_from(result.nodes)
    sources, targets, weights = result.edges()
    ends = [(result.nodes[u], result.nodes[v]) for u, v in zip(sources.tolist(), targets.tolist(), strict=True)]
    if weights is None:
        made.add_edges_from(ends)
    else:
        made.add_weighted_edges_from((*pair, weight) for pair, weight in zip(ends, weights.tolist(), strict=True))
    return made


def _loaded(stored: StoredGraph) -> Any:
    """All of a stored graph as networkx holds it."""
    graph = stored.graph
    needed, free = graph.vertices * NODE_BYTES + graph.input_edges * EDGE_BYTES, available_memory()
    if needed > free:
        raise InputError(
            f"the graph has {graph.vertices:,} vertices and {graph.input_edges:,} edges; as Python objects of networkx "
            f"they take about {format_bytes(needed)}, and {format_bytes(free)} are free; call a function that Penstock "
            "answers itself (penstock.tools.networkx.info.FUNCTIONS)"
        )
    made = _empty(graph.directed, multigraph=False)
    made.add_nodes_from(stored.names.of(np.arange(graph.vertices)))
    for batch in graph.edge_batches():
        columns = [column.to_pylist() for column in batch.columns]
        rows = zip(*columns, strict=True)
        if graph.weight_dtype is None:
            made.add_edges_from(rows)
        else:
            made.add_weighted_edges_from(rows)
    return made


def _empty(directed: bool, multigraph: bool) -> Any:
    """A graph of networkx without nodes."""
    nx = networkx()
    kinds = {
        (True, True): nx.MultiDiGraph,
        (True, False): nx.DiGraph,
        (False, True): nx.MultiGraph,
        (False, False): nx.Graph,
    }
    return kinds[directed, multigraph]()


def can_run(name: str, args: Any, kwargs: Mapping[str, Any]) -> bool | str:
    """Whether a call can be answered, or why not."""
    if name not in _FUNCTIONS:
        return False
    try:
        call = inspect.signature(_FUNCTIONS[name]).bind(*args, **kwargs)
    except TypeError:
        return True  # the function names the argument that is wrong
    call.apply_defaults()
    return reason_against(name, call.arguments) or True
