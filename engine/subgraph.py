"""The entry point for parts of graphs: programs decide which vertices stay, storage writes them (`extract`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.engine.queries.selection import Conditions, Interval, all_conditions_hold, bounds_of, listed
from penstock.engine.resources.config import Config
from penstock.engine.session import Session
from penstock.storage.base.atomic import check_target
from penstock.storage.base.errors import for_python
from penstock.storage.base.freed_memory import give_back_freed_memory
from penstock.storage.convert.subgraph.chosen_vertices import VertexBitmap
from penstock.storage.convert.subgraph.extract import (
    ExtractOptions,
    Watch,
    extract_to_file,
    extract_to_memory,
)
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions


@for_python
def extract(
    graph: Graph | Path | str,
    output: Path | str | None = None,
    *,
    weights: Interval | None = None,
    where: str | None = None,
    degrees: Interval | None = None,
    drop_isolated: bool = False,
    force: bool = False,
    progress: Watch | None = None,
    **options: Any,
) -> Graph:
    """Take a part of a graph: chosen vertices, and the edges between them, as a graph of its own.

    Vertices stay for which all conditions hold; each is judged on the whole graph. They keep their ids of the input,
    names included, so that answers on the part name them as answers on the whole do. Direction, weights, layout and
    encoding stay too.

    Parameters
    ----------
    graph : Graph, Path or str
        An open graph, or the path of a graph file.
    output : Path or str, optional
        The graph file to write, whole or not at all; without it the part is made in memory.
    weights, degrees : str or tuple of float, optional
        "0.5..2", "10.." or "..5", or (low, high) with None for no bound: of the weights of edges, and of the degrees of
        vertices, in and out together. Both bounds are included.
    where : str, optional
        A condition on edges: "amount >= 100 and kind = 'wire' and day < 2026-01-01" (storage/convert/where.md).
    drop_isolated : bool
        Leave out vertices to which no edge is left.
    force : bool
        Replace an existing file.
    progress : callable, optional
        Called with a stage ("select", "out", "in"), and how many entries have been read of how many.
    **options
        The conditions: ``around`` (a vertex or several) with ``hops`` (1) and ``along`` ("out", "in", "both");
        ``component_of`` (a vertex) or ``largest_component``, with ``strong``; ``core`` (k); ``truss`` (k);
        ``vertices`` (ids, or the path of a list of them) with ``skip_missing``. And the fields of
        `penstock.engine.resources.config.Config`: ``host_memory``, ``threads``, ``device`` and others.

    Returns
    -------
    Graph
        The graph file, opened; or the part in memory.

    Raises
    ------
    InputError
        A condition, an option or the output cannot be used, or the memory is too little.
    RunError
        The graph cannot be read, or the disk is full or failed.

    Examples
    --------
    >>> from penstock.engine import extract, from_edges
    >>> graph = from_edges([("ann", "bob"), ("bob", "cy"), ("cy", "dan")])
    >>> extract(graph, around="ann", hops=2).original_ids().tolist()
    ['ann', 'bob', 'cy']
    """
    mine: dict[str, Any] = {
        name: options.pop(name) for name in list(options) if name in Conditions.__dataclass_fields__
    }
    mine |= {"weights": bounds_of(weights, "--weights"), "degrees": bounds_of(degrees, "--degrees"), "where": where}
    conditions = Conditions(**mine)
    opened = graph if isinstance(graph, Graph) else Graph.open(graph)
    if output is not None:
        check_target(Path(output), force=force)
    chosen = chosen_vertices(opened, conditions, **options)
    config = Config.of(**options)
    settings = ExtractOptions(
        where=conditions.on_edges(opened),
        drop_isolated=drop_isolated,
        conditions=conditions.given,
        host_memory=config.memory_bytes,
        threads=config.threads,
        force=force,
        watch=progress or (lambda stage, done, total: None),
    )
    if output is None:
        return extract_to_memory(opened, chosen, settings)
    extract_to_file(opened, chosen, Path(output), settings)
    return Graph.open(output)


def chosen_vertices(graph: Graph, conditions: Conditions, **options: Any) -> VertexBitmap:
    """The vertices for which all conditions hold. options: the fields of `Config`. Raises as `extract`."""
    conditions.on_edges(graph)  # refused before programs run
    with Session(graph, **options) as session:
        found = all_conditions_hold(graph, conditions, lambda program: session.run(program).stored)
        config = session.config
    some = listed(graph, conditions, IngestOptions(host_memory=config.memory_bytes, threads=config.threads))
    give_back_freed_memory()  # edges that were cached, or a list of ids: what takes the part comes on top of it
    if found is None:
        return VertexBitmap.whole(graph.vertices) if some is None else some
    return found if some is None else found & some
