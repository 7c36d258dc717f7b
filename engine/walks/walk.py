"""Random walks over a graph: `walk` checks what is asked for, and returns `Walks`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from penstock.engine.walks.options import WalkOptions, WalkResources, check_graph
from penstock.engine.walks.sources import source_vertices
from penstock.engine.walks.walks import Walks
from penstock.storage.base.budget import cores, host_memory_bytes
from penstock.storage.base.errors import InputError, for_python
from penstock.storage.format.graph import Graph


@for_python
def walk(
    graph: Graph | Path | str,
    *,
    length: int = 80,
    walks_per_vertex: int = 10,
    sources: int | str | Iterable[int | str] | None = None,
    host_memory: int | str | None = None,
    threads: int | None = None,
    direct_io: bool = False,
    scratch: Path | str | None = None,
    **options: Any,
) -> Walks:
    """Return random walks along the out-edges of a graph; they are made when they are read.

    Walk w begins at source w modulo the number of sources. Random numbers are functions of the seed, the walk and the
    step, so that walks are the same for every budget and number of threads.

    Parameters
    ----------
    graph : Graph, Path or str
        An open graph, or the path of a graph file.
    length : int
        Steps of a walk, which so has at most ``length + 1`` vertices.
    walks_per_vertex : int
        Walks from each source.
    sources : vertex id or iterable of them, optional
        Where walks begin; by default every vertex.
    host_memory : int or str, optional
        Ceiling in bytes, or a text such as "1GiB"; by default a share of what is free.
    threads : int, optional
        CPU threads; default: every core.
    direct_io : bool
        Read past the page cache.
    scratch : Path or str, optional
        The folder of temporary data, which a graph larger than memory needs; by default the system's.
    **options
        ``seed`` (0); ``weight`` (True): choose edges in proportion to their weights, where there are any; ``p`` and
        ``q`` (1.0) of node2vec; ``restart`` (0.0): the probability that a step goes back to the source;
        ``dead_ends``: "end" or "restart" a walk at a vertex without out-edges. See `WalkOptions`.

    Returns
    -------
    Walks
        With `save`, `to_arrow`, `to_numpy` and `blocks`; an Arrow stream.

    Raises
    ------
    InputError
        An option is unknown or out of range, a source is not in the graph, or the graph cannot be walked on.
    BudgetError
        The memory budget is too small; the message has the smallest that works.

    Examples
    --------
    >>> from penstock.engine import from_edges, walk
    >>> graph = from_edges([(0, 1), (1, 2), (2, 0)])
    >>> walk(graph, length=3, walks_per_vertex=1).to_numpy().tolist()
    [[0, 1, 2, 0], [1, 2, 0, 1], [2, 0, 1, 2]]
    """
    known = {entry.name for entry in fields(WalkOptions)}
    for name in options:
        if name not in known:
            raise InputError(f"unknown option {name!r}; the options of walks are {', '.join(sorted(known))}")
    wanted = WalkOptions(length=length, walks_per_vertex=walks_per_vertex, **options)
    opened = graph if isinstance(graph, Graph) else Graph.open(Path(graph))
    check_graph(opened, weighted=wanted.weight)
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}; it must be at least 1")
    memory = host_memory_bytes(host_memory)
    folder = None if scratch is None else Path(scratch)
    resources = WalkResources(memory, threads or cores(), direct_io, folder)
    return Walks(opened, wanted, source_vertices(opened, sources), resources)
