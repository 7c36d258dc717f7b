"""Graphs of graph objects of other libraries: networkx itself, and objects that do what igraph, torch and CuPy do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from penstock.engine import Graph, from_edges, from_igraph, from_networkx, from_table, from_torch
from penstock.storage.base.errors import InputError


class Tensor:
    """What Penstock uses of a tensor of PyTorch on a GPU."""

    def __init__(self, values: Any, *, copied: bool = False) -> None:
        self.values, self.copied = np.asarray(values), copied
        self.shape = self.values.shape

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return Tensor(self.values, copied=True)

    def numpy(self) -> Any:
        assert self.copied, "on the device"
        return self.values


class OnDevice:
    """What Penstock uses of an array of CuPy (`get`) or Numba (`copy_to_host`)."""

    def __init__(self, values: Any, way: str) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {}
        setattr(self, way, lambda: np.asarray(values))

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("implicit conversion is not allowed")


class IGraph:
    """What Penstock uses of a graph of igraph."""

    def __init__(self, pairs: list[tuple[int, int]], names: list[Any] | None = None, **weights: list[Any]) -> None:
        self._pairs = pairs
        self.vs = _Attributes({} if names is None else {"name": names})
        self.es = _Attributes(weights)

    def get_edgelist(self) -> list[tuple[int, int]]:
        return self._pairs

    def vcount(self) -> int:
        return 4

    def is_directed(self) -> bool:
        return False


class _Attributes(dict):  # type: ignore[type-arg]
    def attributes(self) -> list[str]:
        return list(self)


def columns(graph: Graph) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = pa.table(graph).to_pydict()
    return found


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_networkx(kind: Any) -> None:
    given = kind([("b", "a"), ("b", "c"), ("b", "b")])
    given.add_edge("c", "a", weight=2.5)
    given.add_node("alone")
    graph = from_networkx(given)
    assert (graph.vertices, graph.directed, graph.input_edges) == (4, given.is_directed(), 4)
    found = columns(graph)
    pairs = zip(found["source"], found["target"], strict=True)
    wanted = {tuple(pair if graph.directed else sorted(pair)): 1.0 for pair in given.edges() if pair != ("c", "a")}
    wanted[("c", "a") if graph.directed else ("a", "c")] = 2.5
    assert dict(zip(pairs, found["weight"], strict=True)) == wanted
    assert from_networkx(given, weight=None).weight_dtype is None
    assert from_networkx(given, weight="km").weight_dtype is None


def test_networkx_numbers_and_no_edges() -> None:
    graph = from_networkx(nx.path_graph([30, 10, 20], create_using=nx.DiGraph))
    assert columns(graph) == {"source": [10, 30], "target": [20, 10]}
    empty = nx.Graph()
    empty.add_nodes_from(["x", "y"])
    assert from_networkx(empty).neighbors("y").tolist() == []
    assert from_networkx(nx.Graph()).vertices == 0


@pytest.mark.parametrize("node", [(0, 1), -1, "a", 1.5, True])
def test_networkx_nodes_that_are_no_ids(node: Any) -> None:
    with pytest.raises(InputError, match=r"is no id beside the others: .*convert_node_labels_to_integers"):
        from_networkx(nx.Graph([(7, node)]))


def test_igraph() -> None:
    graph = from_igraph(IGraph([(2, 1), (1, 0)], weight=[5, 6]))
    assert (graph.vertices, graph.directed) == (4, False)
    assert columns(graph) == {"source": [0, 1], "target": [1, 2], "weight": [6, 5]}
    assert columns(from_igraph(IGraph([(2, 1)], ["d", "c", "b", "a"]))) == {"source": ["b"], "target": ["c"]}
    assert columns(from_igraph(IGraph([(2, 1)], ["d", "d", "b", "a"]), name=None)) == {"source": [1], "target": [2]}
    with pytest.raises(InputError, match=r"names of vertices .* are not unique; name=None takes numbers"):
        from_igraph(IGraph([(2, 1)], ["d", "d", "b", "a"]))


def test_torch() -> None:
    index = Tensor([[0, 5], [5, 1]])
    assert columns(from_torch(index)) == {"source": [0, 5], "target": [5, 1]}
    assert from_torch(index, vertices=9).vertices == 9
    data = SimpleNamespace(edge_index=index, edge_attr=Tensor([[2.0], [3.0]]), num_nodes=7)
    assert columns(from_torch(data)) == {"source": [0, 5], "target": [5, 1], "weight": [2, 3]}
    assert from_torch(data).vertices == 7
    data.edge_attr = Tensor([[2.0, 1.0], [3.0, 1.0]])
    assert from_torch(data).weight_dtype is None
    data.edge_weight = Tensor([4, 5])
    assert columns(from_torch(data))["weight"] == [4, 5]


@pytest.mark.parametrize("other", [nx.Graph(), Tensor([[1, 2, 3]]), 7])
def test_what_is_no_such_object_is_refused(other: Any) -> None:
    with pytest.raises(InputError, match=r"edge_index|the edge index has shape \(1, 3\)"):
        from_torch(other)
    with pytest.raises(InputError, match="is no graph of igraph"):
        from_igraph(other)
    if not isinstance(other, nx.Graph):
        with pytest.raises(InputError, match="is no graph of networkx"):
            from_networkx(other)


@pytest.mark.parametrize("way", ["get", "copy_to_host", "to_numpy"])
def test_arrays_on_a_device(way: str) -> None:
    ends = OnDevice([0, 1], way), OnDevice([1, 2], way)
    assert columns(from_edges(*ends, OnDevice([3, 4], way))) == {"source": [0, 1], "target": [1, 2], "weight": [3, 4]}
    assert columns(from_table({"source": ends[0], "target": ends[1]})) == {"source": [0, 1], "target": [1, 2]}


def test_what_streams_or_is_lazy_is_a_table() -> None:
    table = pa.table({"from": ["x", "y"], "to": ["y", "z"]})
    for given in (table.to_reader(), SimpleNamespace(to_table=lambda: table), from_table(table)):
        assert columns(from_table(given))["target"] == ["y", "z"]
