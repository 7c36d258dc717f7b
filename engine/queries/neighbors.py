"""Sampled neighborhoods for graph neural networks: fan-outs hop by hop, in the layout of PyTorch Geometric.

Which edges are drawn follows from degrees, and from weights where they are asked for, so that only the chunks that hold
them are read where the graph is larger than memory. GraphSAGE (Hamilton, Ying and Leskovec, NeurIPS 2017) introduced
the sampling.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ids import VertexFinder
from penstock.engine.queries.edges_where import opened_where
from penstock.engine.queries.walk_memory import SLAB_BYTES
from penstock.engine.queries.walk_options import check_graph, source_vertices
from penstock.engine.resources.config import Config
from penstock.engine.resources.requirements_types import index_bytes, name_bytes
from penstock.storage.base.errors import InputError, for_python
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.read.reader import Reader
from penstock.transfer.planning.host_budget import HostBudgetRequest, reader_bytes


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


MOST_FANOUT = 10_000


class NeighborSampler:
    """Samples neighborhoods of one graph; a context manager, and the `collate_fn` of a `DataLoader` of PyTorch.

    Each worker of a `DataLoader` reads the graph by itself, on one thread, and keeps what `host_memory` allows; a
    forked one shares what its parent kept, a spawned one opens the file again (a graph in memory is copied to it).

    Parameters
    ----------
    graph : Graph, Path or str
        An open graph, or the path of a graph file.
    fanouts : sequence of int
        Of each hop how many neighbors of a node are sampled; -1: all.
    replace : bool
        Whether a neighbor may be sampled several times.
    weight : bool
        Whether neighbors are drawn in proportion to the weights of their edges, one after the other; an edge of
        weight 0 is never drawn, but by -1.
    direction : {"in", "out"}
        "in": neighbors from which edges lead to a node, as messages go; for an undirected graph both are the same.
    where : str, optional
        Sample of the edges of which this holds ("day < 2026-01-01"); edges are numbered among these.
    host_memory : int or str, optional
        Ceiling in bytes on what the sampler keeps, besides samples; a text such as "1GiB".
    threads : int, optional
        CPU threads; default: every core.
    direct_io : bool
        Read past the page cache.

    Raises
    ------
    InputError
        A fan-out is out of range, or the graph cannot be sampled, does not store in-edges, or has no weights.
    BudgetError
        The memory budget is too small; the message has the smallest that works.
    """

    @for_python
    def __init__(
        self,
        graph: Graph | Path | str,
        fanouts: Sequence[int],
        *,
        replace: bool = False,
        weight: bool = False,
        direction: str = "in",
        where: str | None = None,
        host_memory: int | str | None = None,
        threads: int | None = None,
        direct_io: bool = False,
    ) -> None:
        self._source = graph if isinstance(graph, Graph) else Graph.open(graph)
        self._options = {
            "replace": replace,
            "weight": weight,
            "direction": direction,
            "where": where,
            "host_memory": host_memory,
            "threads": threads,
            "direct_io": direct_io,
        }
        config = Config.of(host_memory=host_memory, threads=threads or None, direct_io=direct_io)
        self.graph = opened_where(self._source, where, config)
        check_graph(self.graph, weighted=weight)
        if weight and self.graph.weight_dtype is None:
            raise InputError("weight is True, and the graph has no weights; leave it out")
        self.fanouts, self.replace, self.weight = _checked(fanouts, replace=replace), replace, weight
        self._rows = _rows_of(self.graph, direction)
        self._finder = VertexFinder(self.graph)
        self._process, self._threads = os.getpid(), config.thread_count
        self._edges = ChunkedEdges(self.graph, self._rows, config, weighted=weight)
        self._prepare()
        self._rows.index(self._threads)  # before a fork, which then shares it, and ids
        self._finder.names(np.empty(0, np.int64))

    def __getstate__(self) -> dict[str, Any]:
        """What another process makes the same of: the graph's file, or the graph itself where it is in memory."""
        graph = self._source
        options = {**self._options, "threads": self._options["threads"] or 1}
        return {"graph": graph.path or graph, "id": graph.graph_id, "fanouts": self.fanouts, "options": options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        graph = state["graph"] if isinstance(state["graph"], Graph) else Graph.open(state["graph"])
        if graph.graph_id != state["id"]:
            raise InputError(f"{graph.path} is another graph now than the one that this sampler was made for")
        self.__init__(graph, state["fanouts"], **state["options"])  # type: ignore[misc]

    def __enter__(self) -> NeighborSampler:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """One line: fan-outs and graph."""
        return f"<NeighborSampler of {', '.join(str(one) for one in self.fanouts)} neighbors: {self.graph!r}>"

    def close(self) -> None:
        """Stop reading."""
        self._edges.close()

    def __call__(self, seeds: Any) -> SampledNeighbors:
        """Sample the neighborhood of a batch with random numbers of PyTorch's, which `torch.manual_seed` repeats.

        Parameters
        ----------
        seeds : sequence of int, or Tensor
            As `sample` takes them.

        Returns
        -------
        SampledNeighbors
            As of `sample`.

        Raises
        ------
        InputError, RunError
            As `sample`.
        """
        try:
            import torch
        except ImportError as error:
            raise InputError("torch is not installed; pip install torch, or call sample(seeds, seed=...)") from error
        return self.sample(seeds, seed=int(torch.randint(2**63 - 1, ())))

    def _prepare(self) -> None:
        """Let this process work with its own threads: what a fork has of them are only their names."""
        from penstock.engine.kernels.host.jit import use_workers  # the compiler

        if self._process != os.getpid():
            self._process, self._threads = os.getpid(), 1
            self._edges.reopen()
        if self._threads > 1:
            use_workers(self._threads)

    @for_python
    def sample(self, seeds: Any, *, seed: int = 0) -> SampledNeighbors:
        """Sample the neighborhood of some vertices.

        Parameters
        ----------
        seeds : vertex id, iterable of them, or Tensor
            Ids of the input. One that is given several times keeps all its places, with the same neighbors.
        seed : int
            Of the random numbers: the same seed gives the same sample, whatever memory and threads are.

        Returns
        -------
        SampledNeighbors
            Nodes and edges of all hops.

        Raises
        ------
        InputError
            The graph has no such vertex.
        RunError
            The graph cannot be read, or is damaged.
        """
        return self.sample_together([seeds], seed=seed)[0]

    @for_python
    def sample_together(self, batches: Iterable[Any], *, seed: int = 0) -> list[SampledNeighbors]:
        """Sample the neighborhoods of several batches, each hop of all at once.

        Where memory does not hold all edges, a batch reads nearly every chunk that the graph has; together they read
        each once for a hop (with weights still once for a batch), as Ginex does (Park, Min and Lee, VLDB 2022).

        Parameters
        ----------
        batches : iterable of seeds
            Of each batch what `sample` takes.
        seed : int
            Of the random numbers of the first batch; the next ones have those after it.

        Returns
        -------
        list of SampledNeighbors
            What ``sample(batch, seed=seed + i)`` gives for each batch.

        Raises
        ------
        InputError, RunError
            As `sample`.
        """
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 1 << 63:
            raise InputError(f"seed is {seed!r}; give a whole number from 0 to {(1 << 63) - 1}")
        self._prepare()
        growing = [_Neighborhood(self._seeds(batch), int(seed) + i) for i, batch in enumerate(batches)]
        for hop, fanout in enumerate(self.fanouts):
            drawn = [self._draw(one.frontier, fanout, (one.seed, hop)) for one in growing]
            edges = [drawn_edges for drawn_edges, _ in drawn]
            found = self._edges.targets(np.concatenate(edges)) if edges else np.empty(0, np.int64)
            ends = np.cumsum([len(one) for one in edges])
            for one, (drawn_edges, counts), end in zip(growing, drawn, ends, strict=True):
                one.grow(drawn_edges, counts, found[end - len(drawn_edges) : end].astype(np.int64))
        return [one.sample(self._finder) for one in growing]

    def _seeds(self, seeds: Any) -> NDArray[np.int64]:
        found = source_vertices(self._finder, _plain(seeds))
        if found is None:
            raise InputError("seeds are None; give ids of vertices")
        return found.astype(np.int64)

    def vertices(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The vertices of ids that are numbers, -1 for one that the graph lacks."""
        return self._finder.found(ids)  # type: ignore[arg-type]

    def edge_ends(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The vertices at both ends of all edges, in memory, by the numbers of edges: neighbors, and what has them."""
        self._prepare()
        vertices = np.arange(self.graph.vertices)
        degrees = self._rows.index(self._threads).lengths_of(vertices)
        return self._edges.targets(np.arange(self._rows.edges)), np.repeat(vertices, degrees)

    def _draw(
        self, vertices: NDArray[np.int64], fanout: int, key: tuple[int, int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Edges drawn of the rows of some vertices, and how many of each."""
        from penstock.engine.kernels.host.walks import draw_by_weight, draw_edges
        from penstock.engine.kernels.walk_steps import mix64

        index = self._rows.index(self._threads)
        degrees = index.lengths_of(vertices)
        counts = degrees if fanout < 0 else np.minimum(degrees, fanout)
        if self.replace and fanout > 0:
            counts = np.where(degrees > 0, fanout, 0)
        edges = np.empty(int(counts.sum()), np.int64)
        bases, offsets, shift = index.arrays()
        with np.errstate(over="ignore"):
            hashed = mix64(np.uint64(key[0])), np.uint64(key[1])  # type: ignore[no-untyped-call]
        arrays, replace, ends = (bases, offsets, np.uint64(shift)), self.replace and fanout > 0, np.cumsum(counts)
        if not self.weight or fanout < 0:
            draw_edges(self._threads, len(vertices), arrays, vertices, ends, hashed, replace, edges)
            return edges, counts
        edges[:] = -1
        keys, starts = np.full(len(edges), np.inf), index.starts_of(vertices)
        for e0, weights in self._edges.weights_of(starts, starts + degrees):
            draw_by_weight(
                self._threads, len(vertices), arrays, vertices, ends, hashed, replace, e0, weights, keys, edges
            )
        drawn = edges >= 0
        return edges[drawn], np.bincount(np.repeat(np.arange(len(vertices)), counts)[drawn], minlength=len(vertices))


class _Neighborhood:
    """A neighborhood that grows hop by hop: known vertices, and the edges of each hop with the places of both ends."""

    def __init__(self, seeds: NDArray[np.int64], seed: int) -> None:
        self.known, self.seed, self.nodes_per_hop = seeds, seed, [len(seeds)]
        self.parts: list[tuple[NDArray[np.int64], ...]] = []

    @property
    def frontier(self) -> NDArray[np.int64]:
        """The vertices that the last hop has found."""
        return self.known[len(self.known) - self.nodes_per_hop[-1] :]

    def grow(self, edges: NDArray[np.int64], counts: NDArray[np.int64], neighbors: NDArray[np.int64]) -> None:
        """Add a hop: edges that were drawn, so many for each vertex of the frontier, and their neighbors."""
        before = len(self.known)
        of = np.repeat(np.arange(before - self.nodes_per_hop[-1], before), counts)
        self.known, row = _joined(self.known, neighbors)
        self.nodes_per_hop.append(len(self.known) - before)
        self.parts.append((row, of, edges))

    def sample(self, finder: VertexFinder) -> SampledNeighbors:
        """What it has become."""
        row, col, edge = (np.concatenate(arrays) for arrays in zip(*self.parts, strict=True))
        counts = [len(part[0]) for part in self.parts]
        return SampledNeighbors(finder.names(self.known), self.known, row, col, edge, self.nodes_per_hop, counts)


@for_python
def sample_neighbors(
    graph: Graph | Path | str,
    seeds: Any,
    fanouts: Sequence[int],
    *,
    seed: int = 0,
    **options: Any,
) -> SampledNeighbors:
    """Sample the neighborhood of some vertices once; `NeighborSampler` does so for many batches.

    Parameters
    ----------
    graph : Graph, Path or str
        An open graph, or the path of a graph file.
    seeds : vertex id, iterable of them, or Tensor
        Ids of the input.
    fanouts : sequence of int
        Of each hop how many neighbors of a node are sampled; -1: all.
    seed : int
        Of the random numbers.
    **options
        ``replace``, ``weight``, ``direction``, ``where``, ``host_memory``, ``threads`` and ``direct_io`` of
        `NeighborSampler`.

    Returns
    -------
    SampledNeighbors
        Nodes and edges of all hops.

    Raises
    ------
    InputError, BudgetError, RunError
        As `NeighborSampler` and its `sample`.

    Examples
    --------
    >>> from penstock.engine import from_edges, sample_neighbors
    >>> graph = from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
    >>> sample_neighbors(graph, [0], [-1, -1]).nodes_per_hop
    [1, 2, 0]
    """
    with NeighborSampler(graph, fanouts, **options) as sampler:
        return sampler.sample(seeds, seed=seed)


def _checked(fanouts: Sequence[int], *, replace: bool) -> tuple[int, ...]:
    if isinstance(fanouts, str | int) or len(fanouts) == 0:
        raise InputError(f"fanouts is {fanouts!r}; give a number of neighbors for each hop, as in [15, 10]")
    for one in fanouts:
        if isinstance(one, bool) or not isinstance(one, int | np.integer) or not (one == -1 or 1 <= one <= MOST_FANOUT):
            raise InputError(f"fanouts has {one!r}; give numbers from 1 to {MOST_FANOUT}, or -1 for all neighbors")
        if replace and one == -1:
            raise InputError("fanouts has -1, all neighbors, which are not drawn with replacement; leave replace out")
    return tuple(int(one) for one in fanouts)


def _rows_of(graph: Graph, direction: str) -> Adjacency:
    if direction not in ("in", "out"):
        raise InputError(f"direction is {direction!r}; give one of in, out")
    rows = graph.out if direction == "out" else graph.into
    if rows is None:
        raise InputError(
            'the graph does not store in-edges; convert it with --direction both, or sample along direction="out"'
        )
    return rows


def _plain(seeds: Any) -> Any:
    """Seeds without what PyTorch makes of them: a tensor, or a list of tensors of one number each."""
    if isinstance(seeds, list) and seeds and hasattr(seeds[0], "detach"):
        return np.array([one.item() for one in seeds])
    return np.asarray(seeds)[()] if hasattr(seeds, "detach") else seeds


def _joined(known: NDArray[np.int64], found: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Known vertices and, in the order in which they were found, new ones; and where each found one is among them."""
    from penstock.engine.kernels.host.walks import number_found

    nodes, places = np.concatenate([known, found]), np.empty(len(found), np.int64)
    table = np.full(2 << len(nodes).bit_length(), -1, np.int32)
    return nodes[: number_found(nodes, len(known), found, table, places)], places


class ChunkedEdges:
    """Neighbors, and weights where they are asked for, by the number of their edge.

    All are in memory where they fit, else those of chunks that are read when they are asked for.
    """

    def __init__(self, graph: Graph, rows: Adjacency, config: Config, *, weighted: bool) -> None:
        self._graph, self._config, self._rows = graph, config, rows
        self._reader: Reader | None = None
        self._kept: NDArray[Any] | None = None
        self._weights: NDArray[Any] | None = None
        if rows.arrays is not None:
            self._kept, self._weights = rows.arrays
            return
        threads, edge = config.thread_count, rows.edge_bytes(weighted)
        host = HostBudgetRequest.of(graph, config.memory_bytes, index_bytes(rows) + name_bytes(graph), threads)
        reading = reader_bytes(host, 1)
        left = host.left - reading
        whole = rows.edges * edge <= left
        slab = rows.edges if whole else min(left, SLAB_BYTES) // (edge * rows.chunk_edges) * rows.chunk_edges
        if slab < min(rows.chunk_edges, rows.edges):
            raise host.refusal("index and names", "reading chunks", reading + rows.chunk_edges * edge)
        self._slab = np.empty(slab, rows.neighbor_dtype)
        self._weight_slab = np.empty(slab, rows.weight_dtype) if weighted else None
        reader = self._reader = self._opened(threads)
        if whole:
            with reader:
                reader.fetch_all(rows, self._slab, self._weight_slab)
            self._kept, self._weights, self._reader = self._slab, self._weight_slab, None

    def _opened(self, threads: int) -> Reader:
        return Reader(self._graph, decode_threads=threads, reads_in_flight=1, direct_io=self._config.direct_io)

    def reopen(self) -> None:
        """Read by a thread of this process, which was forked: it has none of those that its parent started."""
        if self._reader is not None:
            self._reader = self._opened(1)

    def targets(self, edges: NDArray[np.int64]) -> NDArray[Any]:
        """The neighbors of some edges, in their order. Raises RunError."""
        if self._kept is not None:
            return self._kept[edges]
        found = np.empty(len(edges), self._rows.neighbor_dtype)
        chunks = (edges // self._rows.chunk_edges).astype(np.min_scalar_type(self._rows.chunks))  # two bytes: fast
        order, counts, first = np.argsort(chunks, kind="stable"), np.bincount(chunks), 0
        before = np.cumsum(counts)
        for e0, end in self._windows(np.flatnonzero(counts), None):
            last = int(before[(end - 1) // self._rows.chunk_edges])
            here = order[first:last]
            found[here] = self._slab[edges[here] - e0]
            first = last
        return found

    def _windows(self, chunks: NDArray[np.int64], weights: NDArray[Any] | None) -> Iterator[tuple[int, int]]:
        """Read ascending chunks into the slab, as many at once as it has room for; yield the edges [e0, e1) of each."""
        assert self._reader is not None, "closed"
        chunk, first = self._rows.chunk_edges, 0
        while first < len(chunks):
            last = int(np.searchsorted(chunks, chunks[first] + len(self._slab) // chunk))
            e0 = int(chunks[first]) * chunk
            self._reader.fetch(self._rows, chunks[first:last], e0, self._slab, weights).result()
            yield e0, min(int(chunks[last - 1] + 1) * chunk, self._rows.edges)
            first = last

    def weights_of(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield the weights of rows of edges, in ascending windows: the number of an edge, and weights from it on.

        A window is valid until the next. Raises RunError.
        """
        if self._weights is not None:
            yield 0, self._weights
            return
        assert self._weight_slab is not None, "weights are asked for"
        chunk = self._rows.chunk_edges
        wanted = np.zeros(self._rows.chunks + 1, np.int64)
        filled = ends > starts
        np.add.at(wanted, starts[filled] // chunk, 1)
        np.add.at(wanted, (ends[filled] - 1) // chunk + 1, -1)
        for e0, end in self._windows(np.flatnonzero(np.cumsum(wanted)), self._weight_slab):
            yield e0, self._weight_slab[: end - e0]

    def close(self) -> None:
        """Stop reading."""
        if self._reader is not None:
            self._reader.close()
