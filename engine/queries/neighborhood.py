"""A sampled neighborhood: as it grows hop by hop, and as PyTorch Geometric and DGL take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ids import VertexFinder
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
        Ids of the input: the seeds first, as they are given, then what each hop found first.
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
    batch : ndarray of int64, (nodes,), or None
        Where edges have times: of each node the place of the seed for which it was found.
    """

    node: NDArray[Any]
    vertex: NDArray[np.int64]
    row: NDArray[np.int64]
    col: NDArray[np.int64]
    edge: NDArray[np.int64]
    nodes_per_hop: list[int]
    edges_per_hop: list[int]
    batch: NDArray[np.int64] | None = None

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
            `num_sampled_nodes`, `num_sampled_edges` and, with times, `batch`. The tensors share memory with the sample.
            Features are added by the caller: ``data.x = features[data.n_id]``.

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
        apart = {} if self.batch is None else {"batch": torch.from_numpy(self.batch)}
        return Data(
            edge_index=torch.from_numpy(self.edge_index),
            n_id=torch.from_numpy(self.vertex),
            e_id=torch.from_numpy(self.edge),
            num_nodes=len(self.vertex),
            batch_size=self.nodes_per_hop[0],
            num_sampled_nodes=list(self.nodes_per_hop),
            num_sampled_edges=list(self.edges_per_hop),
            **apart,
        )


class Neighborhood:
    """A neighborhood that grows hop by hop: known nodes, and the edges of each hop with the places of both ends.

    A node is a vertex; with `limits`, a time for each seed, it is a vertex of one seed: place * vertices + vertex, for
    each seed finds nodes of its own.
    """

    def __init__(self, seeds: NDArray[np.int64], seed: int, vertices: int, limits: NDArray[np.float64]) -> None:
        self.seed, self.nodes_per_hop, self._vertices, self._limits = seed, [len(seeds)], vertices, limits
        self.known = seeds + np.arange(len(seeds)) * vertices if len(limits) else seeds
        self.parts: list[tuple[NDArray[np.int64], ...]] = []

    def frontier(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The vertices that the last hop has found, and the time of each, if they have times."""
        newest = self.known[len(self.known) - self.nodes_per_hop[-1] :]
        if not len(self._limits):
            return newest, self._limits
        seeds, vertices = np.divmod(newest, self._vertices)
        return vertices, self._limits[seeds]

    def grow(self, edges: NDArray[np.int64], counts: NDArray[np.int64], neighbors: NDArray[np.int64]) -> None:
        """Add a hop: edges that were drawn, so many for each vertex of the frontier, and their neighbors."""
        before = len(self.known)
        of = np.repeat(np.arange(before - self.nodes_per_hop[-1], before), counts)
        if len(self._limits):
            neighbors = neighbors + self.known[of] // self._vertices * self._vertices
        self.known, row = _joined(self.known, neighbors)
        self.nodes_per_hop.append(len(self.known) - before)
        self.parts.append((row, of, edges))

    def sample(self, finder: VertexFinder) -> SampledNeighbors:
        """What it has become."""
        row, col, edge = (np.concatenate(arrays) for arrays in zip(*self.parts, strict=True))
        counts, nodes, batch = [len(part[0]) for part in self.parts], self.known, None
        if len(self._limits):
            batch, nodes = np.divmod(nodes, self._vertices)
        return SampledNeighbors(finder.names(nodes), nodes, row, col, edge, self.nodes_per_hop, counts, batch)


def _joined(known: NDArray[np.int64], found: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Known vertices and, in the order in which they were found, new ones; and where each found one is among them."""
    from penstock.engine.kernels.host.walks import number_found

    nodes, places = np.concatenate([known, found]), np.empty(len(found), np.int64)
    table = np.full(2 << len(nodes).bit_length(), -1, np.int32)
    return nodes[: number_found(nodes, len(known), found, table, places)], places


def torch_seed() -> int:
    """A random number of PyTorch's, which `torch.manual_seed` repeats. Raises InputError where it is not installed."""
    try:
        import torch
    except ImportError as error:
        raise InputError("torch is not installed; pip install torch, or call sample(seeds, seed=...)") from error
    return int(torch.randint(2**63 - 1, ()))
