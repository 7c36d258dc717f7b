"""The order by a hash of original ids: what sorting hashes and ids in NumPy makes of it, for every kind of ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.engine import from_edges
from penstock.engine.program.shuffle import shuffle
from penstock.engine.program.vertex_ids import original_ranks
from penstock.engine.program.vertex_ranges import ROWS
from penstock.storage.format.graph import Graph

COUNT = 2 * ROWS + 77


def ring(names: NDArray[Any], **options: Any) -> Graph:
    return from_edges(names, np.roll(names, 1), **options)


def with_ids(ids: NDArray[Any]) -> Graph:
    starts = np.arange(len(ids) + 1)
    return Graph.from_arrays(starts, np.roll(starts[:-1], 1), original_id=ids)


def expected(ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    """splitmix64's finalizer, and a sort by it."""
    mixed = (ids ^ (ids >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    rank = np.empty(len(ids), np.int64)
    rank[np.lexsort((ids, mixed))] = np.arange(len(ids))
    return rank


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("kind", ["internal", "ascending", "mixed", "strings", "sides"])
def test_ranks_are_in_the_order_of_the_hashes(kind: str, first: int) -> None:
    numbers = np.arange(COUNT, dtype=np.uint64)
    odd = np.random.default_rng(3).permutation(COUNT).astype(np.uint64) * np.uint64(2**40 + 9)
    graph, ids = {
        "internal": lambda: (ring(numbers), numbers),
        "ascending": lambda: (with_ids(numbers * np.uint64(3)), numbers * np.uint64(3)),
        "mixed": lambda: (with_ids(odd), odd),
        "strings": lambda: (ring(np.array(["b", "a", "é", "07"])), None),
        "sides": lambda: (ring(numbers[:1000], bipartite=True), np.arange(2000, dtype=np.uint64)),
    }[kind]()
    if ids is None:
        ids = original_ranks(graph).astype(np.uint64)
    rank = np.empty(graph.vertices, graph.vertex_dtype)
    shuffle(graph, rank, first)
    assert np.array_equal(rank, expected(ids) + first)
