"""Similarity of vertices by the sets of their neighbors: of given pairs, or of each vertex and its best K.

    pairs:    their vertices -> runs of rows that fit memory -> run by run with every other, pairs are counted
    best K:   blocks of vertices that fit memory -> all rows against each -> counts -> the best K so far

Of an undirected graph the sets are the neighbors, of a directed one those that edges lead to; self-loops are left out.
Jaccard, New Phytologist 1912; the overlap is Szymkiewicz and Simpson's, the cosine Salton's. Only vertices two steps
apart share a neighbor, so that the best K are looked for among these (Liben-Nowell and Kleinberg, CIKM 2003).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.jit import use_workers
from penstock.engine.program.vertex_ids import VertexReferences
from penstock.engine.queries.edges_where import opened_where
from penstock.engine.queries.pair_table import MEASURES, PairTable
from penstock.engine.queries.pairs import best_pairs, common_of, counter_on, internal_pairs
from penstock.engine.queries.walk_options import check_graph
from penstock.engine.resources.config import Config
from penstock.engine.resources.requirements_types import index_bytes, name_bytes
from penstock.storage.base.budget import parse_bytes
from penstock.storage.base.errors import InputError, for_python
from penstock.storage.format.graph import Graph
from penstock.transfer.planning.host_budget import HostBudgetRequest

OWN_BYTES = 8 << 20
"""Pieces that are read, and small things."""
PAIR_BYTES = 192
"""Of a given pair: as Python has it, its ids, numbers and scores."""


@for_python
def similarity(
    graph: Graph | Path | str,
    pairs: Iterable[tuple[Any, Any]] | NDArray[Any] | VertexReferences | None = None,
    *,
    k: int | None = None,
    by: str = "jaccard",
    missing_only: bool = False,
    sources: Iterable[int | str] | None = None,
    where: str | None = None,
    host_memory: int | str | None = None,
    threads: int | None = None,
    device: str = "cpu",
    device_memory: int | str | None = None,
) -> PairTable:
    """Return how similar pairs of vertices are by the neighbors that they share.

    Parameters
    ----------
    graph : Graph, Path or str
        An open graph, or the path of a graph file.
    pairs : iterable of (id, id), or ndarray, shape (n, 2), optional
        Pairs in the ids of the input; the table has them in this order.
    k : int, optional
        Instead of pairs: for each vertex so many others with the largest scores above 0, ties by the ids.
    by : {"jaccard", "overlap", "cosine", "common"}
        With `k`: which score counts.
    missing_only : bool
        With `k`: leave out pairs that an edge joins (link prediction).
    sources : iterable of ids, optional
        With `k`: of which vertices; default: all.
    where : str, optional
        Neighbors along the edges of which this holds: "amount >= 100 and kind = 'wire'".
    host_memory : int or str, optional
        Ceiling in bytes, or a text such as "1GiB"; by default a share of what is free.
    threads : int, optional
        CPU threads; default: every core.
    device : str
        "cpu", or with `pairs` a GPU, "cuda:0"; the counts are the same.
    device_memory : int or str, optional
        Ceiling on the GPU in bytes, or a text; default: nine tenths of what is free.

    Returns
    -------
    PairTable
        Columns `vertex`, `other`, `common` (shared neighbors), `jaccard`, `overlap` and `cosine`.

    Raises
    ------
    InputError
        Both or none of `pairs` and `k`; an id that the graph lacks; a graph whose edges are in the order of the input;
        a device that is not here, or is given with `k`.
    BudgetError
        The memory budget is too small; the message has the smallest that works.

    Examples
    --------
    >>> from penstock.engine import from_edges, similarity
    >>> square = from_edges([(0, 1), (1, 2), (2, 3), (3, 0)], undirected=True)
    >>> similarity(square, [(0, 2), (0, 1)]).scores("jaccard").tolist()
    [1.0, 0.0]
    """
    check_request(pairs, k, by, sources, device, device_memory, missing_only=missing_only)
    config = Config.of(host_memory=host_memory, threads=threads)
    opened = opened_where(graph, where, config)
    check_graph(opened, weighted=False, why="no vertex has a row of them")
    workers = config.thread_count
    room = HostBudgetRequest.of(opened, config.memory_bytes, _held(opened) + OWN_BYTES, workers)
    use_workers(workers)
    if pairs is not None:
        ends = internal_pairs(opened, pairs)
        room = replace(room, fixed=room.fixed + PAIR_BYTES * len(ends))
        counter = counter_on(device, None if device_memory is None else parse_bytes(device_memory), workers)
        try:
            return PairTable(opened, ends, *common_of(opened, ends, room, workers, counter))
        finally:
            counter.close()
    assert k is not None, "checked"
    wanted = None if sources is None else np.unique(internal_pairs(opened, [(one, one) for one in sources])[:, 0])
    return best_pairs(opened, wanted, (k, tuple(MEASURES).index(by), missing_only), room, workers)


def _held(graph: Graph) -> int:
    """Bytes of the row index and ids of a graph, and of what finds ids."""
    ids = 0 if graph.original is None else max(32 * graph.vertices, name_bytes(graph))
    return index_bytes(graph.out) + ids


def check_request(
    pairs: Any, k: int | None, by: str, sources: Any, device: str, device_memory: Any, *, missing_only: bool
) -> None:
    """Refuse what no graph answers; parameters are those of `similarity`. Raises InputError."""
    if (pairs is None) == (k is None):
        raise InputError("give either --pairs, or --k for the k most similar vertices of each")
    if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= 10_000):
        raise InputError(f"k is {k!r}; it must be a whole number in [1, 10000]")
    if by not in MEASURES:
        raise InputError(f"by is {by!r}; it must be one of {', '.join(MEASURES)}")
    if k is None and (sources is not None or missing_only):
        raise InputError("sources and --missing-only are for --k; leave them out with --pairs")
    if k is not None and device != "cpu":
        raise InputError(
            f"--device {device}: a GPU counts given --pairs; the --k most similar are found on CPU cores, so leave "
            "--device out"
        )
    if device == "cpu" and device_memory is not None:
        raise InputError("--device-memory is for a GPU; give --device cuda:0 as well, or leave it out")
