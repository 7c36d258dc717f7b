"""What demand kernels must count and mark: rows of one edge side by side, of none, and one of many blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.format.index import Index

DEMAND_DEGREES = np.tile([1, 1, 0, 40, 700], 60)
DEMAND_DEGREES[90] = 70 * 256 + 3
DEMAND_ACTIVE = np.array([0, 1, 2, 3, 10, 11, 12, 90, 91, 94, 299])


def check_demand(
    index: Index, sizes: tuple[int, int, int], active: NDArray[Any], count: Callable[[Any, Any, Any], None]
) -> None:
    """Count with and without blocks, and compare with what every edge of the active rows says.

    count: takes the table, the chunks and the blocks, or None.
    """
    partition_edges, chunk_edges, line_edges = sizes
    partitions = -(-index.edges // partition_edges)
    expected = np.zeros((partitions, 4), np.int64)
    for v in active.tolist():
        edges = np.arange(index.starts(v, v + 1)[0], index.starts(v + 1, v + 2)[0])
        for partition in np.unique(edges // partition_edges):
            part = edges[edges // partition_edges == partition]
            expected[partition, :3] += 1, len(part), len(np.unique(part // line_edges))
    rows = [np.arange(*index.starts(v, v + 2)) for v in active.tolist()]
    wanted = np.unique(np.concatenate(rows) // 256)
    np.add.at(expected[:, 3], wanted * 256 // partition_edges, 1)
    table, chunks = np.zeros(partitions * 3, np.int64), np.zeros(-(-index.edges // chunk_edges), np.uint8)
    count(table, chunks, None)
    assert table.reshape(-1, 3).tolist() == expected[:, :3].tolist()
    assert np.flatnonzero(chunks).tolist() == np.unique(np.concatenate(rows) // chunk_edges).tolist()
    again, seen = np.zeros(partitions * 4, np.int64), np.zeros_like(chunks)
    blocks = np.full(-(-index.edges // 8192), 0xFFFFFFFF, np.uint32)
    count(again, seen, blocks)
    assert np.flatnonzero(np.unpackbits(blocks.view(np.uint8), bitorder="little")).tolist() == wanted.tolist()
    assert again.reshape(-1, 4).tolist() == expected.tolist()
    assert seen.tolist() == chunks.tolist()
