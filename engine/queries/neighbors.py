"""Sampled neighborhoods for graph neural networks: fan-outs hop by hop, in the layout of PyTorch Geometric.

Which edges are drawn follows from degrees, and from weights where they are asked for, so that only the chunks that hold
them are read where the graph is larger than memory. GraphSAGE (Hamilton, Ying and Leskovec, NeurIPS 2017) introduced
the sampling.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ids import VertexFinder
from penstock.engine.queries.chunked_edges import ChunkedEdges
from penstock.engine.queries.edges_where import opened_where
from penstock.engine.queries.neighborhood import Neighborhood, SampledNeighbors, torch_seed
from penstock.engine.queries.walk_options import WalkOptions, check_device, check_graph, source_vertices
from penstock.engine.resources.config import Config
from penstock.engine.resources.device_resources import device_of
from penstock.storage.base.errors import InputError, for_python
from penstock.storage.format.graph import Adjacency, Graph

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
    time : str, optional
        A column beside the edges (numbers, dates or timestamps): of each seed's neighborhood, which then has nodes of
        its own, only edges that are not later than ``until`` of `sample` are drawn, each as likely.
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
    device : str
        Where edges are drawn: "cpu", "cuda:N", or "auto", the first GPU if there is one. Samples are the same.
    device_memory, device_edge_memory : int or str, optional
        Ceilings on all that is allocated on the GPU (default: nine tenths of what is free), and on edges there; the
        others are read in place, from host memory.

    Raises
    ------
    InputError
        A fan-out is out of range, or the graph cannot be sampled, does not store in-edges, or has no weights or times;
        the device is not here, or is to draw by weight or time.
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
        time: str | None = None,
        direction: str = "in",
        where: str | None = None,
        host_memory: int | str | None = None,
        threads: int | None = None,
        direct_io: bool = False,
        device: str = "cpu",
        device_memory: int | str | None = None,
        device_edge_memory: int | str | None = None,
    ) -> None:
        self._source = graph if isinstance(graph, Graph) else Graph.open(graph)
        resources: dict[str, Any] = {
            "host_memory": host_memory,
            "threads": threads or None,
            "direct_io": direct_io,
            "device": device,
            "device_memory": device_memory,
            "device_edge_memory": device_edge_memory,
        }
        self._options = resources | {"replace": replace, "weight": weight, "time": time}
        self._options |= {"direction": direction, "where": where}
        config = Config.of(**resources)
        check_device(config)
        self._device = device_of(config)
        config.check_used(self._device)
        if not self._device.reads_host and (weight or time is not None):
            raise InputError("a GPU draws every neighbor alike; leave weight and time out, or device")
        if time is not None and (weight or where is not None):
            raise InputError("time takes the place of weights, and where leaves its column out; leave these out")
        self.graph = opened_where(self._source, where, config)
        check_graph(self.graph, weighted=weight)
        if weight and self.graph.weight_dtype is None:
            raise InputError("weight is True, and the graph has no weights; leave it out")
        if time is not None:
            self.graph = self.graph.with_times(time)
        self.fanouts, self.replace, self.weight, self.time = _checked(fanouts, replace=replace), replace, weight, time
        self._rows = _rows_of(self.graph, direction)
        self._finder = VertexFinder(self.graph)
        self._process, self._threads, self._there = os.getpid(), config.thread_count, None
        self._edges = ChunkedEdges(self.graph, self._rows, config, weighted=weight or time is not None)
        self._prepare()
        self._rows.index(self._threads)  # before a fork, which then shares it, and ids
        self._finder.names(np.empty(0, np.int64))
        if not self._device.reads_host:
            from penstock.engine.queries.device_samples import DeviceSamples  # the compiler

            self._there = DeviceSamples(self._device, self._rows, self._edges, config)

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
        """Stop reading, and give back what is on a device."""
        self._edges.close()
        self._device.close()

    def __call__(self, seeds: Any) -> SampledNeighbors:
        """Sample the neighborhood of a batch with random numbers of PyTorch's, which `torch.manual_seed` repeats.

        Parameters
        ----------
        seeds : sequence of int, or Tensor
            As `sample` takes them; with `time` pairs of a seed and its time.

        Returns
        -------
        SampledNeighbors
            As of `sample`.

        Raises
        ------
        InputError, RunError
            As `sample`.
        """
        until = None
        if self.time is not None:
            seeds, until = (list(one) for one in zip(*seeds, strict=True))
        return self.sample(seeds, seed=torch_seed(), until=until)

    def _prepare(self) -> None:
        """Let this process work with its own threads: what a fork has of them are only their names."""
        from penstock.engine.kernels.host.jit import use_workers  # the compiler

        if self._process != os.getpid():
            if self._there is not None:
                raise InputError("a forked process has no GPU; give the loader multiprocessing_context='spawn'")
            self._process, self._threads = os.getpid(), 1
            self._edges.reopen()
        if self._threads > 1:
            use_workers(self._threads)

    @for_python
    def sample(self, seeds: Any, *, seed: int = 0, until: Any = None) -> SampledNeighbors:
        """Sample the neighborhood of some vertices.

        Parameters
        ----------
        seeds : vertex id, iterable of them, or Tensor
            Ids of the input. One that is given several times keeps all its places, with the same neighbors.
        seed : int
            Of the random numbers: the same seed gives the same sample, whatever memory, threads and device are.
        until : number, text, date or datetime, or a sequence of them
            With `time`: the latest time of the edges for all seeds, or for each.

        Returns
        -------
        SampledNeighbors
            Nodes and edges of all hops.

        Raises
        ------
        InputError
            The graph has no such vertex, or `until` is no time of the column.
        RunError
            The graph cannot be read, or is damaged, or a batch does not fit the device.
        """
        return self.sample_together([seeds], seed=seed, until=[until])[0]

    @for_python
    def sample_together(
        self, batches: Iterable[Any], *, seed: int = 0, until: Iterable[Any] | None = None
    ) -> list[SampledNeighbors]:
        """Sample the neighborhoods of several batches, each hop of all at once.

        Where memory does not hold all edges, a batch reads nearly every chunk that the graph has; together they read
        each once for a hop (with weights still once for a batch), as Ginex does (Park, Min and Lee, VLDB 2022).

        Parameters
        ----------
        batches : iterable of seeds
            Of each batch what `sample` takes.
        seed : int
            Of the random numbers of the first batch; the next ones have those after it.
        until : iterable, optional
            Of each batch what `sample` takes.

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
        batches = list(batches)
        times = [None] * len(batches) if until is None else list(until) if np.iterable(until) else [until]
        if len(times) != len(batches):
            raise InputError(f"until has {len(times)} entries for {len(batches)} batches; give one for each batch")
        growing = [
            self._begun(batch, int(seed) + i, time) for i, (batch, time) in enumerate(zip(batches, times, strict=True))
        ]
        if self._there is not None:
            for one in growing:
                self._there.grow(one, self.fanouts, replace=self.replace)
            return [one.sample(self._finder) for one in growing]
        for hop, fanout in enumerate(self.fanouts):
            drawn = [self._draw(one, fanout, hop) for one in growing]
            unread = [edges for edges, _, found in drawn if found is None]
            read = self._edges.targets(np.concatenate(unread)).astype(np.int64) if unread else np.empty(0, np.int64)
            parts = iter(np.split(read, np.cumsum([len(edges) for edges in unread])))
            for one, (edges, counts, found) in zip(growing, drawn, strict=True):
                one.grow(edges, counts, next(parts) if found is None else found)
        return [one.sample(self._finder) for one in growing]

    def _begun(self, seeds: Any, seed: int, until: Any) -> Neighborhood:
        """The seeds of a batch alone."""
        found = source_vertices(self._finder, _plain(seeds))
        if found is None:
            raise InputError("seeds are None; give ids of vertices")
        limits = WalkOptions(time=self.time, until=_plain(until)).limits(self.graph, len(found))
        limits = np.broadcast_to(limits, len(found) if len(limits) else 0)
        return Neighborhood(found.astype(np.int64), seed, self.graph.vertices, limits)

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
        self, one: Neighborhood, fanout: int, hop: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]:
        """Edges drawn of the rows of a frontier, how many of each, and their neighbors, if all are in memory."""
        from penstock.engine.kernels.host.walks import draw_by_weight, draw_edges
        from penstock.engine.kernels.walk_steps import key_of

        (vertices, limits), kept = one.frontier(), self._edges.kept
        index = self._rows.index(self._threads)
        degrees = index.lengths_of(vertices)
        counts = degrees if fanout < 0 else np.minimum(degrees, fanout)
        if self.replace and fanout > 0:
            counts = np.where(degrees > 0, fanout, 0)
        edges = np.empty(int(counts.sum()), np.int64)
        bases, offsets, shift = index.arrays()
        key = key_of(one.seed, hop)
        arrays, replace, ends = (bases, offsets, np.uint64(shift)), self.replace and fanout > 0, np.cumsum(counts)
        if not len(limits) and (not self.weight or fanout < 0):
            found = None if kept is None else np.empty(len(edges), np.int64)
            room = (np.empty(0, self._rows.neighbor_dtype), edges[:0]) if found is None else (kept, found)
            draw_edges(self._threads, len(vertices), arrays, vertices, ends, key, replace, room[0], edges, room[1])
            return edges, counts, found
        edges[:] = -1
        keys, starts = np.full(len(edges), np.inf), index.starts_of(vertices)
        for e0, weights in self._edges.weights_of(starts, starts + degrees):
            draw_by_weight(
                self._threads, len(vertices), arrays, vertices, ends, key, replace, e0, weights, limits, keys, edges
            )
        drawn = edges >= 0
        found = edges[drawn]
        return found, np.bincount(np.repeat(np.arange(len(vertices)), counts)[drawn], minlength=len(vertices)), None


@for_python
def sample_neighbors(
    graph: Graph | Path | str,
    seeds: Any,
    fanouts: Sequence[int],
    *,
    seed: int = 0,
    until: Any = None,
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
    until : number, text, date or datetime, or a sequence of them
        With ``time``: the latest time of the edges for all seeds, or for each.
    **options
        Those of `NeighborSampler`.

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
        return sampler.sample(seeds, seed=seed, until=until)


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
