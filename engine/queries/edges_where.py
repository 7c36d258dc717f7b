"""The graph that a run, walks or a sampler works on: with only the edges of which a condition holds (`--where`)."""

from __future__ import annotations

import os
from contextlib import nullcontext
from os import W_OK, X_OK, access
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.resources.config import Config
from penstock.storage.base.atomic import debris, temporary_place
from penstock.storage.base.freed_memory import give_back_freed_memory
from penstock.storage.convert.subgraph.chosen_vertices import VertexBitmap
from penstock.storage.convert.subgraph.edge_filter import EdgeFilter
from penstock.storage.convert.subgraph.extract import ExtractOptions, as_selection, extract_to_memory, select_to_file
from penstock.storage.format.graph import Graph

if TYPE_CHECKING:
    from penstock.engine.ranks.communicator import Communicator


def opened_where(graph: Graph | Path | str, where: str | None, config: Config) -> Graph:
    """An open graph, or that of a file, with the edges of which a condition holds. Raises as `edges_where`."""
    opened = graph if isinstance(graph, Graph) else Graph.open(Path(graph))
    return opened if where is None else edges_where(opened, where, config)


def edges_where(
    graph: Graph,
    where: str,
    config: Config,
    ranks: Communicator | None = None,
) -> Graph:
    """The same graph with only the edges of which a condition holds: what `run --where` runs on.

    Edges are read once. Those that stay are written to a file, in the scratch folder or beside the graph, or in the
    system's where that cannot be written, which loses its name when it is open; of a graph in memory to memory.
    config: memory, threads, scratch. ranks: the first writes it, all open it. Raises as `extract`.
    """
    condition = EdgeFilter.of(where, graph)
    limits: dict[str, Any] = {"host_memory": config.memory_bytes, "threads": config.threads}
    options = ExtractOptions(where=condition, columns=False, **limits)
    if graph.path is None:
        return as_selection(graph, extract_to_memory(graph, VertexBitmap.whole(graph.vertices), options))
    number = np.array([int.from_bytes(os.urandom(8))], np.uint64)
    number = number if ranks is None else ranks.gather_numbers(number)[0]
    folder = config.scratch or _writable(graph.path.parent)
    place = folder / f".penstock-where-{int(number[0]):016x}.h5"
    first = ranks is None or ranks.rank == 0
    with debris(place) if first else nullcontext():
        if first:
            select_to_file(graph, place, options)
        if ranks is not None:
            ranks.wait()
        made = Graph.open(place)
        if ranks is not None:
            ranks.wait()
    give_back_freed_memory()
    return as_selection(graph, made)


def _writable(folder: Path) -> Path:
    """A folder, or the system's for temporary files where that cannot be written."""
    return folder if access(folder, W_OK | X_OK) else temporary_place()
