"""Whether edges join vertices that are alike: the correlation of a number at both ends, over all edges.

Newman, "Mixing patterns in networks" (Phys. Rev. E 67, 026126, 2003), equation 21 for numbers, 26 for degrees. Edges
are read once, chunk by chunk; every vertex takes 8 bytes for each end.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.storage.access.graph_queries import pieces_of
from penstock.storage.base.budget import cores
from penstock.storage.base.threads import pooled_map

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from penstock.storage.format.graph import Graph
    from penstock.storage.format.index import Index
    from penstock.storage.tables.edge_pieces import Edges

    Values = NDArray[np.float64]


STEP = 1 << 16
"""Vertices whose values are looked at together."""


def degree_assortativity(graph: Graph, threads: int | None = None) -> float | None:
    """Correlate the degrees at both ends: of an edge's source the out-degree, of its target the in-degree.

    As `networkx.degree_assortativity_coefficient`, but that a self-loop of an undirected graph counts once in a degree.
    None where it is not defined: no edge, or all degrees alike. Raises RunError where edges cannot be read.
    """
    threads = threads or cores()
    out = graph.degree_index("out", threads)
    sent = _counted(graph, 0, threads) if out is None else _degrees(out, graph.vertices)
    if not graph.directed:
        return assortativity(graph, sent, sent, threads)
    into = graph.degree_index("in", threads)
    received = _counted(graph, 1, threads) if into is None else _degrees(into, graph.vertices)
    return assortativity(graph, sent, received, threads)


def assortativity(graph: Graph, of_sources: Values, of_targets: Values, threads: int | None = None) -> float | None:
    """Correlate numbers at both ends of all edges, each of an undirected graph in both directions.

    Parameters
    ----------
    graph : Graph
        In rows or a list.
    of_sources, of_targets : ndarray of float64, (vertices,)
        By internal id; edges at NaN are left out.
    threads : int, optional
        Most threads that read; None: one per core.

    Returns
    -------
    float or None
        -1 to 1; None where it is not defined.

    Raises
    ------
    RunError
        Edges cannot be read.
    """
    middle = _middle(of_sources), _middle(of_targets)

    def sums(edges: Edges) -> Values:
        one, other = of_sources[edges[0]] - middle[0], of_targets[edges[1]] - middle[1]
        there = ~(np.isnan(one) | np.isnan(other))
        if not there.all():
            one, other = one[there], other[there]
        return np.array([len(one), one.sum(), other.sum(), one @ one, other @ other, one @ other])

    total = np.zeros(6)
    for found in _by_piece(graph, sums, threads or cores()):
        total += found
    count, one, other, squares, other_squares, products = total.tolist()
    if not count:
        return None
    variance, other_variance = squares - one * one / count, other_squares - other * other / count
    if min(variance, other_variance) <= 1e-12 * max(squares, other_squares, 1e-300):
        return None
    return float((products - one * other / count) / sqrt(variance * other_variance))


def _middle(values: Values) -> float:
    """A number near which most are, so that their squares lose no digits."""
    total, count = 0.0, 0
    for first in range(0, len(values), STEP):
        known = values[first : first + STEP]
        known = known[~np.isnan(known)]
        total, count = total + float(known.sum()), count + len(known)
    return total / count if count else 0.0


def _degrees(known: Index, vertices: int) -> Values:
    """The degrees of all vertices."""
    found = np.empty(vertices)
    for first in range(0, vertices, STEP):
        last = min(vertices, first + STEP)
        found[first:last] = known.degrees(first, last)
    return found


def _counted(graph: Graph, end: int, threads: int) -> Values:
    """How many edges have each vertex at this end."""
    degrees = np.zeros(graph.vertices)
    for ends in _by_piece(graph, lambda edges: edges[end], threads):
        np.add.at(degrees, ends, 1.0)
    return degrees


def _by_piece(graph: Graph, work: Callable[[Edges], Any], threads: int) -> Iterator[Any]:
    """What work makes of each piece of the edges, in order."""
    pieces = pieces_of(graph, both_directions=not graph.directed)
    found = range(pieces.count)
    return pooled_map(lambda piece: work(pieces.read(piece)), found, threads, "penstock-assortativity")
