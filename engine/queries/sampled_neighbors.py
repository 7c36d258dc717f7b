"""A sampled neighborhood, and what libraries for graph neural networks take of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError


class Block(NamedTuple):
    """A layer's edges: of each the place of its source and of its target; how many sources and targets there are."""

    row: NDArray[np.int64]
    col: NDArray[np.int64]
    sources: int
    targets: int


@dataclass(frozen=True)
class SampledNeighbors:
    """A sampled neighborhood, in the layout of PyTorch Geometric's `SamplerOutput`.

    Attributes
    ----------
    node : ndarray, (nodes,)
        Ids of the input: the seeds first, then what each hop found first.
    vertex : ndarray of int64, (nodes,)
        The same as numbers 0 to vertices - 1, the places of `Graph.original_ids`.
    row, col : ndarray of int64, (edges,)
        Of each sampled edge the place in `node` of the sampled neighbor, and of the node that it was sampled for.
    edge : ndarray of int64, (edges,)
        Its number in the adjacency.
    nodes_per_hop : list of int
        How many nodes are new in each hop, the seeds first (`num_sampled_nodes`).
    edges_per_hop : list of int
        How many edges were sampled in each hop (`num_sampled_edges`).
    """

    node: NDArray[Any]
    vertex: NDArray[np.int64]
    row: NDArray[np.int64]
    col: NDArray[np.int64]
    edge: NDArray[np.int64]
    nodes_per_hop: list[int]
    edges_per_hop: list[int]

    def __repr__(self) -> str:
        """One line: how many nodes and edges, hop by hop."""
        nodes, edges = (", ".join(f"{one:,}" for one in counts) for counts in (self.nodes_per_hop, self.edges_per_hop))
        return f"<SampledNeighbors: {len(self.node):,} nodes ({nodes}), {len(self.edge):,} edges ({edges})>"

    @property
    def edge_index(self) -> NDArray[np.int64]:
        """Rows and columns as (2, edges): `torch.from_numpy(sample.edge_index)`."""
        return np.stack([self.row, self.col])

    def blocks(self) -> list[Block]:
        """Return the sample as one bipartite graph for each layer of a network, the outermost hop first.

        A block has the edges that lead to the nodes of all hops but its last; these nodes are the first of its sources.

        Returns
        -------
        list of Block
            Of ``torch.from_numpy`` of its arrays `dgl.create_block((row, col), num_src_nodes=..., num_dst_nodes=...)`
            makes a block of DGL's. The features of the sources of the first block are those of `node`.
        """
        nodes, edges = np.cumsum(self.nodes_per_hop).tolist(), np.cumsum(self.edges_per_hop).tolist()
        layers = list(enumerate(edges))[::-1]
        return [Block(self.row[:end], self.col[:end], nodes[hop + 1], nodes[hop]) for hop, end in layers]

    def to_pyg(self) -> Any:
        """Return the sample as a `torch_geometric.data.Data`, with the names that a `NeighborLoader` gives.

        Returns
        -------
        torch_geometric.data.Data
            `edge_index`, `n_id` (`vertex`), `e_id` (`edge`), `batch_size` (the seeds, which come first),
            `num_sampled_nodes` and `num_sampled_edges`. The tensors share memory with the sample. Features are added by
            the caller: ``data.x = features[data.n_id]``.

        Raises
        ------
        InputError
            PyTorch or PyTorch Geometric is not installed.
        """
        try:
            import torch
            from torch_geometric.data import Data
        except ImportError as error:
            raise InputError(f"{error.name} is not installed; pip install torch torch_geometric") from error
        return Data(
            edge_index=torch.from_numpy(self.edge_index),
            n_id=torch.from_numpy(self.vertex),
            e_id=torch.from_numpy(self.edge),
            num_nodes=len(self.vertex),
            batch_size=self.nodes_per_hop[0],
            num_sampled_nodes=list(self.nodes_per_hop),
            num_sampled_edges=list(self.edges_per_hop),
        )
