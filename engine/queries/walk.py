"""Random walks over a graph: `walk` checks what is asked for, and returns `Walks`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from penstock.engine.queries.walk_options import Sources, WalkOptions, WalkResources
from penstock.engine.queries.walks import Walks
from penstock.engine.resources.config import Config
from penstock.engine.resources.device_resources import device_of
from penstock.storage.base.errors import for_python
from penstock.storage.format.graph import Graph
from penstock.transfer.devices.device import Device


@for_python
def walk(
    graph: Graph | Path | str,
    *,
    length: int = 80,
    walks_per_vertex: int = 10,
    sources: Sources = None,
    host_memory: int | str | None = None,
    threads: int | None = None,
    direct_io: bool = False,
    scratch: Path | str | None = None,
    device: str = "cpu",
    device_memory: int | str | None = None,
    device_edge_memory: int | str | None = None,
    **options: Any,
) -> Walks:
    """Return random walks along the out-edges of a graph; they are made when they are read.

    Walk w begins at source w modulo the number of sources. Random numbers are functions of the seed, the walk and the
    step, so that walks are the same for every device, budget and number of threads.

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
    device : str
        Where walkers advance: "cpu", "cuda:N", or "auto", the first GPU if there is one.
    device_memory, device_edge_memory : int or str, optional
        Ceilings on all that is allocated on the GPU (default: nine tenths of what is free), and on edges there.
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
        An option is unknown or out of range, a source is not in the graph, the graph cannot be walked on, or the device
        is not here.
    BudgetError
        The memory budget is too small; the message has the smallest that works.

    Examples
    --------
    >>> from penstock.engine import from_edges, walk
    >>> graph = from_edges([(0, 1), (1, 2), (2, 0)])
    >>> walk(graph, length=3, walks_per_vertex=1).to_numpy().tolist()
    [[0, 1, 2, 0], [1, 2, 0, 1], [2, 0, 1, 2]]
    """
    wanted = WalkOptions.of(length=length, walks_per_vertex=walks_per_vertex, **options)
    opened = graph if isinstance(graph, Graph) else Graph.open(Path(graph))
    given: dict[str, Any] = {"device": device, "device_memory": device_memory, "device_edge_memory": device_edge_memory}
    config = Config.of(**given, host_memory=host_memory, threads=threads, direct_io=direct_io)

    def lend() -> closing[Device]:
        return closing(device_of(config))

    with lend() as here:
        memory = here.own_bytes
        config.check_used(here)
    return Walks(opened, wanted, sources, WalkResources(config, scratch, lend, memory))
