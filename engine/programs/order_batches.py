"""Greedy walks in an order that memory has no room for at once: the next vertices of it, and the edges between them.

Of a share f of an order at random about f^2 of the edges are within it (prefixes of Blelloch, Fineman, Shun, SPAA
2012). So a batch is as many vertices as memory has room for the edges of; these are read once, and walked there in the
order. What a batch says to later vertices is an iteration of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ranges import MANY_ROWS, THREADS, over_ranges
from penstock.storage.access.graph_queries import pieces_of
from penstock.storage.base.budget import cores
from penstock.storage.base.threads import pooled_map
from penstock.storage.checkpoint.state_pages import PagedValues
from penstock.storage.convert.subgraph.chosen_vertices import VertexBitmap
from penstock.storage.format.graph import Graph

FEWEST = 1 << 14
"""Edges for which there is always room."""
EDGE_BYTES = 112
"""Bytes of an edge of a batch while it is walked, with those of its ends, where no two edges have one in common."""
PIECE_BYTES = 16
"""Bytes of an edge of a chunk while those of the batch are picked, a few at a time."""
FEW = 1 << 15
BATCH_BYTES = 0.25
"""Bytes of a vertex for the set of those in a batch."""
LARGEST = 2**64 - 1
Ends = tuple[NDArray[Any], NDArray[Any]]
"""Both ends of as many edges."""


@contextmanager
def batch_room(values: NDArray[np.uint64] | PagedValues) -> Iterator[int]:
    """Have room for a batch within, in bytes: half of what pages take that can be written to a file.

    In memory, as much as messages to all take; of a device's pages, which still have these, none.
    """
    if not isinstance(values, PagedValues):
        yield values.nbytes
    elif not values.folders:
        yield 0
    else:
        with values.lent() as size:
            yield size


def next_batch(
    graph: Graph, hashes: NDArray[np.uint64], left: Callable[[int, int], NDArray[np.bool_]], room: int
) -> tuple[VertexBitmap, Ends]:
    """The first vertices in the order of their hashes of those that are left, none if none is, and edges between them.

    left: which vertices of a range are. room: bytes that all of it may take. Raises RunError.
    """

    def census(first: int, last: int) -> tuple[int, int]:
        found = hashes[first:last][left(first, last)]
        return len(found), int(found.min(initial=LARGEST))

    def below(bound: int) -> VertexBitmap:
        last = np.uint64(min(bound, LARGEST))
        return VertexBitmap.of(graph.vertices, lambda a, b: left(a, b) & (hashes[a:b] <= last))

    pieces = pieces_of(graph, both_directions=False)
    each = PIECE_BYTES * graph.out.chunk_edges
    threads = max(1, min(THREADS, room // 4 // each))  # of which batches depend, and they are the same in all ranks
    most = max(FEWEST, (room - threads * each) // EDGE_BYTES)
    counts, least = zip(*over_ranges(census, graph.vertices, size=MANY_ROWS), strict=True)
    low, wanted = min(least), graph.vertices * (most / max(1, graph.input_edges)) ** 0.5
    span = int((LARGEST - low) * min(1.0, wanted / max(1, sum(counts))))
    chosen, found, held, none = below(low + span), list[Ends](), 0, np.empty(0, graph.vertex_dtype)

    def between(ends: Ends) -> Ends:
        inside = chosen.holds(ends[0])
        some, others = ends[0][inside], ends[1][inside]
        inside = chosen.holds(others) & (some != others)
        return some[inside], others[inside]

    def pick(piece: int) -> Ends:
        sources, targets, _ = pieces.read(piece)
        return joined([between((sources[at : at + FEW], targets[at : at + FEW])) for at in range(0, len(sources), FEW)])

    def joined(parts: list[Ends]) -> Ends:
        sources, targets = zip(*parts, strict=True) if parts else ((none,), (none,))
        return np.concatenate(sources), np.concatenate(targets)

    for picked in pooled_map(pick, range(pieces.count if len(chosen) else 0), min(cores(), threads), "batch"):
        found.append(between(picked))  # of which there may be fewer by now
        held += len(found[-1][0])
        while held > most and len(chosen) > 1:
            span //= 2
            chosen = below(low + span)
            found = [*map(between, found)]
            held = sum(len(sources) for sources, _ in found)
    return chosen, joined(found)


def bits_of_earlier(
    hashes: NDArray[np.uint64], ends: Ends, taken: NDArray[np.uint64]
) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """The vertices of a batch that have edges in it, ascending, and what is taken of each when it is its turn.

    A vertex takes the lowest bit that nobody took before who has an edge to it and a smaller hash; the highest counts
    for nothing. taken: of all vertices, by those that are not in the batch.
    """
    vertices = _distinct(np.concatenate(ends))
    order = np.argsort(_of(hashes, vertices)).astype(np.uint32)
    turns = np.empty_like(order)
    turns[order] = np.arange(len(order), dtype=np.uint32)
    one, other = (turns[np.searchsorted(vertices, some)] for some in ends)
    edges = np.minimum(one, other).astype(np.uint64) << np.uint64(32)
    edges |= np.maximum(one, other)
    del turns, one, other
    edges.sort()
    lengths = np.bincount(edges >> np.uint64(32), minlength=len(order)).astype(np.uint32)
    later = edges.astype(np.uint32)
    del edges
    starts = np.cumsum(lengths, dtype=np.uint32) - lengths
    waits = np.bincount(later, minlength=len(order)).astype(np.uint32)
    bits = _of(taken, vertices)[order]
    ready = np.flatnonzero(waits == 0)
    while len(ready):  # all at once whom nobody stands before any more
        lowest = ~bits[ready] & (bits[ready] + np.uint64(1))
        each = lengths[ready].astype(np.int64)
        behind = later[np.repeat(starts[ready] - np.cumsum(each) + each, each) + np.arange(each.sum())]
        np.bitwise_or.at(bits, behind, np.repeat(lowest & np.uint64(2**63 - 1), each))
        np.subtract.at(waits, behind, 1)
        ready = _distinct(behind[waits[behind] == 0])
    found = np.empty_like(bits)
    found[order] = bits
    return vertices, found


def _of(values: NDArray[np.uint64], vertices: NDArray[Any]) -> NDArray[np.uint64]:
    """The values of some vertices, ascending; a few at a time, for where they are in a file places take as much."""
    found = np.empty(len(vertices), np.uint64)
    for at in range(0, len(vertices), FEW):
        found[at : at + FEW] = values[vertices[at : at + FEW]]
    return found


def _distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The values, ascending, each once; they are sorted in place, which takes a fifth of the time of `numpy.unique`."""
    values.sort()
    first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values[first]
