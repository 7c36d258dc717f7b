"""Graphs from graph objects of other libraries: networkx, igraph, PyTorch and PyTorch Geometric.

None of them is imported: an object is known by what it can do, and an array on a device is copied to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError, brief, for_python
from penstock.storage.convert.from_arrays import from_edges, host_array
from penstock.storage.encoding.string_array import STRINGS
from penstock.storage.format.graph import Graph


@for_python
def from_networkx(graph: Any, *, weight: str | None = "weight", **options: Any) -> Graph:
    """Make a graph in memory of a networkx graph.

    Parameters
    ----------
    graph : Graph, DiGraph, MultiGraph or MultiDiGraph of networkx
        Its nodes are whole numbers from 0, or strings; results name them so. Nodes without edges are vertices too.
    weight : str, optional
        The attribute of edges that is their weight, if any edge has it; an edge without it counts 1. None: no weights.
    **options
        As for `from_edges`.

    Returns
    -------
    Graph
        In memory, directed if the networkx graph is.

    Raises
    ------
    InputError
        Another object, or nodes that are neither all numbers nor all strings.
    """
    if not hasattr(graph, "is_directed") or not hasattr(graph, "nodes") or not hasattr(graph, "edges"):
        raise InputError(f"{type(graph).__name__} is no graph of networkx")
    nodes = list(graph)
    _check_nodes(nodes)
    edges = list(graph.edges(data=weight, default=None)) if weight is not None else list(graph.edges())
    weights = [edge[-1] for edge in edges] if weight is not None else []
    if all(value is None for value in weights):
        weights = []
    return from_edges(
        _ids([edge[0] for edge in edges], nodes),
        _ids([edge[1] for edge in edges], nodes),
        [1 if value is None else value for value in weights] if weights else None,
        vertices=_ids(nodes, nodes),
        **({"undirected": True} if not graph.is_directed() else {}) | options,
    )


def _check_nodes(nodes: Sequence[Any]) -> None:
    """Refuse nodes that are no ids, or of both kinds."""
    first_text = bool(nodes) and isinstance(nodes[0], str)
    for node in nodes:
        number = isinstance(node, int | np.integer) and not isinstance(node, bool) and 0 <= node < 1 << 64
        if (not isinstance(node, str) and not number) or isinstance(node, str) != first_text:
            raise InputError(
                f"node {brief(repr(node))} is no id beside the others: nodes are all whole numbers from 0 to 2^64 - 1, "
                "or all strings; networkx.convert_node_labels_to_integers numbers them"
            )


def _ids(nodes: Sequence[Any], all_nodes: Sequence[Any]) -> NDArray[Any]:
    """Some nodes as ids of the kind that all have."""
    return np.array(nodes, STRINGS if all_nodes and isinstance(all_nodes[0], str) else np.uint64)


@for_python
def from_igraph(graph: Any, *, weight: str | None = "weight", name: str | None = "name", **options: Any) -> Graph:
    """Make a graph in memory of a graph of igraph.

    Parameters
    ----------
    graph : igraph.Graph
        The graph.
    weight : str, optional
        The attribute of edges that is their weight, if there is one of that name.
    name : str, optional
        The attribute of vertices that names them, if there is one; without it ids are igraph's numbers.
    **options
        As for `from_edges`.

    Returns
    -------
    Graph
        In memory, directed if igraph's is.

    Raises
    ------
    InputError
        Another object, or names that are not unique.
    """
    if not hasattr(graph, "get_edgelist") or not hasattr(graph, "vcount"):
        raise InputError(f"{type(graph).__name__} is no graph of igraph")
    ends = np.array(graph.get_edgelist(), np.uint64).reshape(-1, 2)
    vertices: Any = graph.vcount()
    if name is not None and name in graph.vs.attributes():
        named = list(graph.vs[name])
        if len(set(named)) != len(named):
            raise InputError(f"the names of vertices (attribute {name!r}) are not unique; name=None takes numbers")
        _check_nodes(named)
        vertices = _ids(named, named)
        ends = vertices[ends.astype(np.intp)]
    weights = graph.es[weight] if weight is not None and weight in graph.es.attributes() else None
    return from_edges(
        ends[:, 0],
        ends[:, 1],
        weights,
        vertices=vertices,
        **({"undirected": True} if not graph.is_directed() else {}) | options,
    )


@for_python
def from_torch(edges: Any, weights: Any = None, *, vertices: int | None = None, **options: Any) -> Graph:
    """Make a graph in memory of an edge index of PyTorch, or of a `Data` object of PyTorch Geometric.

    Parameters
    ----------
    edges : tensor of whole numbers (2, edges), or torch_geometric.data.Data
        Sources and targets, on any device. Of a `Data` object `edge_index` is taken, `num_nodes`, and as weights
        `edge_weight`, or an `edge_attr` of one number an edge.
    weights : tensor of numbers, (edges,), optional
        One weight per edge.
    vertices : int, optional
        How many vertices there are at least.
    **options
        As for `from_edges`: edges are directed, as they are stored, unless ``undirected=True``.

    Returns
    -------
    Graph
        In memory.

    Raises
    ------
    InputError
        The edge index has another shape, or edges have several types (`HeteroData`).
    """
    index = getattr(edges, "edge_index", None) if not hasattr(edges, "shape") else edges
    if index is None or not hasattr(index, "shape"):
        raise InputError(f"{type(edges).__name__} has no edge_index; give a tensor (2, edges), of one type of edges")
    if index is not edges:
        vertices = getattr(edges, "num_nodes", None) if vertices is None else vertices
        weights = _edge_weights(edges) if weights is None else weights
    ends = host_array(index)
    if ends.ndim != 2 or ends.shape[0] != 2:
        raise InputError(f"the edge index has shape {tuple(ends.shape)}; it is sources and targets, (2, edges)")
    values = None if weights is None else host_array(weights).reshape(-1)
    return from_edges(ends[0], ends[1], values, vertices=vertices, **options)


def _edge_weights(data: Any) -> Any:
    """The weights of a `Data` object: `edge_weight`, or an `edge_attr` of one number an edge; else None."""
    weights = getattr(data, "edge_weight", None)
    if weights is not None:
        return weights
    values = getattr(data, "edge_attr", None)
    single = values is not None and (len(values.shape) == 1 or (len(values.shape) == 2 and values.shape[1] == 1))
    return values if single else None
