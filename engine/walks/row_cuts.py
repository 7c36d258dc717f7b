"""How rows are cut into partitions of whole rows, and whole chunks that hold them."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.storage.format.graph import Adjacency
from penstock.storage.format.index import Index

IN_MEMORY_CHUNK = 1 << 12
"""Edges of what is a chunk of a graph in memory: partitions of its rows, which go to a device, are whole ones."""


@dataclass(frozen=True)
class RowPartition:
    """Rows [v0, v1), whose edges are in chunks [c0, c1)."""

    v0: int
    v1: int
    c0: int
    c1: int


def chunk_of(rows: Adjacency) -> int:
    """Edges of the chunks that partitions of an adjacency are made of."""
    return IN_MEMORY_CHUNK if rows.arrays is not None else rows.chunk_edges


def row_before(index: Index, edge: int) -> int:
    """How many of the first rows end at an edge or before it."""
    low, high = 0, index.vertices
    while low < high:
        middle = (low + high + 1) // 2
        if int(index.starts(middle, middle + 1)[0]) <= edge:
            low = middle
        else:
            high = middle - 1
    return low


def cut(index: Index, chunk: int, rows: tuple[int, int], most: int) -> list[RowPartition]:
    """Cut rows [first, last) into partitions whose chunks have at most so many edges; a row may have no more."""
    found, (v0, last) = [], rows
    while v0 < last:
        e0 = int(index.starts(v0, v0 + 1)[0])
        v1 = min(last, row_before(index, e0 // chunk * chunk + most))
        end = int(index.starts(v1, v1 + 1)[0])
        assert v1 > v0, "the longest row fits"
        found.append(RowPartition(v0, v1, e0 // chunk, -(-end // chunk)))
        v0 = v1
    return found


def longest_span(index: Index, chunk: int) -> int:
    """Edges of the chunks that hold the row whose edges are in most chunks."""
    longest, step = chunk, 1 << 16
    for first in range(0, index.vertices, step):
        starts = index.starts(first, min(first + step, index.vertices) + 1)
        spans = -(-starts[1:] // chunk) - starts[:-1] // chunk
        longest = max(longest, int(spans.max(initial=1)) * chunk)
    return longest
