"""A graph file and files of features as the stores of PyTorch Geometric, which a `NeighborLoader` of its samples from.

The only file that imports PyTorch when it is imported. Nodes are the ids of the input; where these are strings, or the
graph is bipartite, the numbers of its vertices. A node that the graph lacks has no edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ids import VertexReferences
from penstock.engine.queries.neighborhood import torch_seed
from penstock.engine.queries.neighbors import NeighborSampler
from penstock.storage.base.errors import InputError

try:
    import torch
    from torch_geometric.data import FeatureStore, GraphStore, TensorAttr
    from torch_geometric.data.graph_store import EdgeAttr, EdgeLayout
    from torch_geometric.sampler import BaseSampler, EdgeSamplerInput, NodeSamplerInput, SamplerOutput
    from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample
except ImportError as error:
    raise ImportError(f"{error.name} cannot be imported; pip install torch torch_geometric", name=error.name) from error


def _tensor(numbers: NDArray[Any]) -> Any:
    return torch.from_numpy(numbers.astype(np.int64, copy=False))


READ_ONLY = "a graph file and its features are only read here; convert or save what is to be in them"


def pyg_stores(sampler: NeighborSampler, **features: Any) -> tuple[PygFeatures, PygGraph]:
    """Features and the graph of a sampler as a `FeatureStore` and a `GraphStore` of PyTorch Geometric.

    Parameters
    ----------
    sampler : NeighborSampler
        Which edges are sampled; a loader's ``num_neighbors`` are not asked.
    **features : FeatureRows, ndarray or Tensor
        What a batch has under these names (``x=FeatureRows("x.npy")``): of node i its row i.

    Returns
    -------
    tuple of FeatureStore and GraphStore
        The second also samples: ``NeighborLoader(stores, sampler.fanouts, neighbor_sampler=stores[1], ...)``, or a
        `LinkNeighborLoader`.

    Raises
    ------
    InputError
        There are no features, which say how many nodes there are, or fewer than nodes of the graph.
    """
    if not features:
        raise InputError("pyg_stores has no features; give one at least, as in y=labels")
    return PygFeatures(features), PygGraph(sampler, min(map(len, features.values())))


class PygGraph(GraphStore, BaseSampler):  # type: ignore[misc]
    """The edges of a graph as a `GraphStore`, and what samples them (``neighbor_sampler=`` of a loader)."""

    def __init__(self, sampler: NeighborSampler, nodes: int) -> None:
        super().__init__()
        graph = sampler.graph
        self.sampler, self._numbered = sampler, graph.id_dtype.kind == "T" or graph.left is not None
        ids = None if self._numbered else graph.original_ids()
        least = graph.vertices if ids is None else int(ids.max()) + 1
        if nodes < least:
            raise InputError(f"features have {nodes:,} rows, and the graph has nodes up to {least - 1:,}")
        self._attribute = EdgeAttr(None, EdgeLayout.COO, size=(nodes, nodes))

    def get_all_edge_attrs(self) -> list[Any]:
        """Return the one kind of edges that there is."""
        return [self._attribute]

    def _get_edge_index(self, edge_attr: Any) -> Any:
        """All edges in memory, for samplers other than this one."""
        if (edge_attr.edge_type, edge_attr.layout) != (None, EdgeLayout.COO):
            return None
        ends = self.sampler.edge_ends()
        return tuple(_tensor(one if self._numbered else self.sampler.graph.original_ids_of(one)) for one in ends)

    def _put_edge_index(self, edge_index: Any, edge_attr: Any) -> bool:
        raise InputError(READ_ONLY)

    def _remove_edge_index(self, edge_attr: Any) -> bool:
        raise InputError(READ_ONLY)

    def sample_from_nodes(self, index: NodeSamplerInput, **kwargs: Any) -> SamplerOutput:
        """Sample the neighborhoods of nodes."""
        return node_sample(index, self._sample)

    def sample_from_edges(self, index: EdgeSamplerInput, neg_sampling: Any = None) -> SamplerOutput:
        """Sample the neighborhoods of the ends of edges, and of negative ones."""
        apart = self.sampler.time is not None
        return edge_sample(index, self._sample, self._attribute.size[0], apart, neg_sampling=neg_sampling)

    def _sample(self, seeds: Any, times: Any) -> SamplerOutput:
        vertices = seeds.numpy() if self._numbered else self.sampler.vertices(seeds.numpy())
        known = np.flatnonzero((vertices >= 0) & (vertices < self.sampler.graph.vertices))  # others have no edges
        until = None if times is None else times.numpy()[known]
        found = self.sampler.sample(
            VertexReferences(self.sampler.graph, vertices[known]), seed=torch_seed(), until=until
        )
        others = (found.vertex if self._numbered else found.node)[len(known) :]
        places = np.concatenate([known, np.arange(len(others)) + len(seeds)])
        batch = None
        if found.batch is not None:
            batch = _tensor(np.concatenate([np.arange(len(seeds)), known[found.batch[len(known) :]]]))
        return SamplerOutput(
            torch.cat([seeds, _tensor(others)]),
            *map(_tensor, (places[found.row], places[found.col], found.edge)),
            batch,
            num_sampled_nodes=[len(seeds), *found.nodes_per_hop[1:]],
            num_sampled_edges=list(found.edges_per_hop),
        )


class PygFeatures(FeatureStore):  # type: ignore[misc]
    """Features by name, from files, arrays or tensors, as a `FeatureStore`; the row of a node is that of its number."""

    def __init__(self, features: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__["features"] = features

    def get_all_tensor_attrs(self) -> list[Any]:
        """Return the names."""
        return [TensorAttr(None, name) for name in self.features]

    def _get_tensor(self, attr: Any) -> Any:
        values = self.features.get(attr.attr_name)
        if values is None:
            return None
        return torch.as_tensor(values[np.arange(len(values)) if attr.index is None else attr.index])

    def _get_tensor_size(self, attr: Any) -> Any:
        return tuple(self.features[attr.attr_name].shape)

    def _put_tensor(self, tensor: Any, attr: Any) -> bool:
        raise InputError(READ_ONLY)

    def _remove_tensor(self, attr: Any) -> bool:
        raise InputError(READ_ONLY)
