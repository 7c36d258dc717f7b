"""A contracted graph has the sums of what was joined, in memory and through a sort, in chunks as large as before."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from penstock.storage.base.errors import BudgetError
from penstock.storage.convert import contract as contracting
from penstock.storage.convert.contract import Grouping, contract, contraction_bytes
from penstock.storage.format.graph import Graph
from support.graphs import on_disk, skewed, weighed
from support.oracles import EdgeList

CHUNK = 32


def sums(edges: EdgeList, group: np.ndarray, groups: int) -> np.ndarray:
    """Weights between groups, counted as an undirected graph's rows have them."""
    found = np.zeros((groups, groups), np.int64)
    weights = np.ones(len(edges.sources), np.int64) if edges.weights is None else edges.weights
    for source, target, weight in zip(group[edges.sources], group[edges.targets], weights, strict=True):
        if source < groups and target < groups:
            found[source, target] += weight
            if source != target:
                found[target, source] += weight
    return found


def matrix(graph: Graph) -> np.ndarray:
    found = np.zeros((graph.vertices, graph.vertices), np.int64)
    for batch in graph.edge_batches():
        columns = {name: batch.column(name).to_numpy() for name in batch.schema.names}
        source, target, *_ = columns
        np.add.at(found, (columns[source], columns[target]), columns.get("weight", 1))
    return np.maximum(found, found.T)


@pytest.mark.parametrize("where", ["few", "in memory", "on disk"])
@pytest.mark.parametrize("weights", [None, "uint8"])
def test_weights_between_groups_are_added_up(
    weights: str | None, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = weighed(EdgeList(90, *skewed(90, 600, 3), None, False), weights)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=CHUNK)
    group = np.random.default_rng(2).integers(0, 9, 90)  # the last group's vertices are left out
    memory = contraction_bytes(90) + (64 << 20)
    monkeypatch.setattr(contracting, "are_left", lambda items: where == "few" and items > 0)
    if where == "on disk":
        monkeypatch.setattr(contracting, "EDGE_BYTES", 1 << 40)
    found = contract(graph, Grouping(group, 8), memory, 2)
    assert (found.vertices, found.directed) == (8, False)
    np.testing.assert_array_equal(matrix(found), sums(edges, group, 8))
    if where != "on disk":
        assert found.out.chunk_edges == CHUNK
    assert [path.name for path in tmp_path.iterdir()] == ["graph.h5"], "no file of it is left"


def test_too_little_memory_is_refused_with_what_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = on_disk(EdgeList(90, *skewed(90, 600, 3), None, False), tmp_path / "graph.h5", chunk_edges=CHUNK)
    monkeypatch.setattr(contracting, "EDGE_BYTES", 1 << 40)
    with pytest.raises(BudgetError, match="--host-memory"):
        contract(graph, Grouping(np.arange(90) % 7, 7), 1 << 20, 2)
