"""What the kernels of walks take, on the cores and on a GPU: walkers, the rows in memory, and how a step is chosen."""

from __future__ import annotations

from typing import Any, NamedTuple


class Walkers(NamedTuple):
    """Where walkers are, an item each.

    at: the vertex whose row is needed next, the largest value where the walk is over. step: uint32, steps made.
    previous, candidate: vertices, or the largest value for none, and trial: uint32; empty where steps are of the first
    order. A walker with a candidate is at the vertex before, and `previous` is where it goes from. first: uint64, the
    number of the first one's walk. sources: vertices, or empty for all; walk w begins at number w % source_count.
    limits: float64, the latest time of an edge for walks from each source, or one for all; empty without times.
    """

    at: Any
    step: Any
    previous: Any
    candidate: Any
    trial: Any
    first: Any
    sources: Any
    source_count: Any
    limits: Any


class Window(NamedTuple):
    """Rows in memory: those before `kept_rows`, and of rows [v0, v1) those whose chunks are flagged.

    bases, offsets, shift: of the row index. kept, kept_sums: of edges from 0 on. loaded, loaded_sums: of edges from e0
    on, of which chunks of chunk_edges are flagged in `here`. Sums are of the weights in a row up to each edge, float64;
    empty without weights. Where edges have times, these are in the place of sums.
    """

    bases: Any
    offsets: Any
    shift: Any
    kept_rows: Any
    kept: Any
    kept_sums: Any
    v0: Any
    v1: Any
    e0: Any
    loaded: Any
    loaded_sums: Any
    chunk_edges: Any
    here: Any


class Rule(NamedTuple):
    """How a step is chosen.

    back, far: 1/p and 1/q of node2vec. bound: what candidates are accepted by; a larger `back` is drawn apart.
    symmetric: whether each edge is in the rows of both its ends. revives: whether a walk in a dead end restarts.
    """

    seed: Any
    length: Any
    restart: Any
    revives: Any
    weighted: Any
    second: Any
    back: Any
    far: Any
    bound: Any
    symmetric: Any
