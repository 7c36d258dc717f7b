"""The graphs of benchmarks: generated in a scratch folder, and read into memory once.

Sessions on a graph in memory do not decode it again, and only pin its arrays.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.storage.base.budget import cores, default_host_memory
from penstock.storage.base.slot_pool import aligned_empty
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.synthetic import grid, rmat, web
from penstock.storage.read.reader import Reader
from penstock.tools.base.graph_making import make_graph
from penstock.tools.base.output import Console

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.storage.format.graph import Adjacency
    from penstock.storage.ingest.synthetic import SyntheticSource

KINDS = ("rmat", "web", "grid")
WEIGHTS = (1, 63)


def source_of(kind: str, scale: int, edge_factor: int) -> SyntheticSource:
    """A generated graph of 2^scale vertices, weights 1..63; edge_factor: edges a vertex (a grid has two)."""
    if kind == "grid":
        return grid(1 << scale // 2, 1 << scale - scale // 2, weights=WEIGHTS)
    if kind == "web":
        return web(1 << scale, edge_factor, weights=WEIGHTS)
    return rmat(scale, edge_factor, weights=WEIGHTS)


def generated(source: SyntheticSource, folder: Path, console: Console) -> Graph:
    """Write a generated graph to a file in `folder` and open it.

    R-MAT is undirected here, as the Graph500 has it: both rows hold every edge. A web graph has both adjacencies.
    """
    path = folder / "graph.h5"
    options = ConvertOptions(
        direction="both",
        undirected=source.name.startswith("rmat"),
        host_memory=default_host_memory(),
    )
    make_graph(lambda: source, path, options, console)
    return Graph.open(path)


def in_memory(graph: Graph) -> Graph:
    """The same graph with its edges in host memory; the graph itself where they do not fit, or are there already."""
    weight = 0 if graph.weight_dtype is None else graph.weight_dtype.itemsize
    size = sum(adjacency.edges for adjacency in graph.adjacencies) * (graph.vertex_dtype.itemsize + weight)
    if graph.out.arrays is not None or size > default_host_memory():
        return graph
    with Reader(graph, decode_threads=cores()) as reader:
        out, *into = [_arrays(reader, adjacency) for adjacency in graph.adjacencies]
    return Graph.from_arrays(
        *out, into=into[0] if into else None, directed=graph.directed, original_id=graph.original_ids()
    )


def _arrays(reader: Reader, adjacency: Adjacency) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Offsets, neighbors, weights."""
    neighbors = aligned_empty(adjacency.edges, adjacency.neighbor_dtype)
    weights = None if adjacency.weight_dtype is None else aligned_empty(adjacency.edges, adjacency.weight_dtype)
    reader.fetch_all(adjacency, neighbors, weights)
    return adjacency.index().starts(0, adjacency.vertices + 1), neighbors, weights
