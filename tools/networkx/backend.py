"""The dispatch backend of networkx: `nx.pagerank(G, backend="penstock")`, and `nx.pagerank(Graph.open("web.h5"))`.

networkx finds it by the entry points `networkx.backends` and `networkx.backend_info`. It calls it with stored graphs as
they are, and with graphs converted by `convert_from_nx`, which it keeps (so a graph may have weights that a call does
not ask for). Answers have networkx's keys, rules and exceptions. networkx and the engine are imported only when called.
Options of a run may be given beside the arguments of networkx (`threads=4`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from penstock.storage.base.budget import available_memory, format_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph
from penstock.tools.networkx.held import Call, LeftToNetworkxError, PenstockGraph, StoredGraph, networkx
from penstock.tools.networkx.info import TABLE, Function
from penstock.tools.networkx.info import get_info as get_info  # an editable installation may look for it here

NODE_BYTES, EDGE_BYTES = 600, 400
"""At most what a graph of networkx takes for each, measured with directed graphs of Python 3.11."""


@cache
def _signature(name: str) -> inspect.Signature:
    """The parameters that networkx has for a function."""
    from networkx.utils import backends

    return inspect.signature(backends._registered_algorithms[name].orig_func)


def _arguments(name: str, args: Any, kwargs: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The arguments of networkx by name, and what else was given: options of a run. Raises TypeError as a call does."""
    signature = _signature(name)
    given = {key: value for key, value in kwargs.items() if key in signature.parameters}
    call = signature.bind(*args, **given)
    call.apply_defaults()
    return call.arguments, {key: value for key, value in kwargs.items() if key not in given}


def _callable(function: Function) -> Callable[..., Any]:
    """What networkx calls: the answer of a function of the table."""
    file, _, name = function.answer.partition(":")
    answer = getattr(import_module(f"penstock.tools.networkx.{file}"), name or function.name)

    def dispatched(*args: Any, **kwargs: Any) -> Any:
        return answer(Call(function, *_arguments(function.name, args, kwargs)))

    return dispatched


_FUNCTIONS = {function.name: function for function in TABLE}
globals().update({name: _callable(function) for name, function in _FUNCTIONS.items()})


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
        values = [value for *_, value in graph.edges(data=attribute, default=default)]
        if not all(isinstance(value, int | float | np.number) for value in values):
            raise LeftToNetworkxError("weights that are not numbers are left to networkx")
        array = np.asarray(values, dtype=None if values else np.int64)
        ones = default == 1 and array.dtype.kind in "iu" and bool((array == 1).all())
        weights = None if ones else array  # an edge without weight counts 1
    try:
        made = from_edges(ends, weights=weights, vertices=len(nodes), undirected=not graph.is_directed())
    except InputError as error:
        raise LeftToNetworkxError(str(error)) from error
    return PenstockGraph(nodes, made, multigraph=graph.is_multigraph())


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """Convert a graph to networkx; other results are networkx's already.

    Raises InputError for a stored graph that would not fit into memory so.
    """
    if isinstance(result, Graph):
        needed, free = result.vertices * NODE_BYTES + result.input_edges * EDGE_BYTES, available_memory()
        if needed > free:
            raise InputError(
                f"the graph has {result.vertices:,} vertices and {result.input_edges:,} edges; as Python objects of "
                f"networkx they take about {format_bytes(needed)}, and {format_bytes(free)} are free; call a function "
                "that Penstock answers itself (penstock.tools.networkx.info.FUNCTIONS)"
            )
        held = StoredGraph(result)
        columns: Any = ([column.to_pylist() for column in batch.columns] for batch in result.edge_batches())
    elif isinstance(result, PenstockGraph):
        held = result
        sources, targets, weights = result.edges()
        columns = [[result.of(sources), result.of(targets), *([] if weights is None else [weights.tolist()])]]
    else:
        return result
    multigraph = isinstance(held, PenstockGraph) and held.is_multigraph()
    made = getattr(networkx(), f"{'Multi' * multigraph}{'Di' * held.is_directed()}Graph")()
    made.add_nodes_from(held.of(np.arange(len(held))))
    add = made.add_edges_from if held.graph.weight_dtype is None else made.add_weighted_edges_from
    for parts in columns:
        add(zip(*parts, strict=True))
    return made


def can_run(name: str, args: Any, kwargs: Mapping[str, Any]) -> bool | str:
    """Whether a call can be answered, or why not."""
    if name not in _FUNCTIONS:
        return False
    try:
        arguments, _ = _arguments(name, args, kwargs)
    except TypeError:
        return True  # the call says which argument is wrong
    return _FUNCTIONS[name].reason_against(arguments) or True
