"""The correlation of numbers at both ends of edges, held against networkx."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from penstock.storage.format.graph import Graph
from penstock.storage.read.assortativity import assortativity, degree_assortativity
from support.graphs import on_disk, skewed
from support.oracles import EdgeList


def simple(directed: bool) -> tuple[EdgeList, nx.Graph]:
    """A graph without self-loops and parallel edges, and networkx's of the same edges."""
    pairs = skewed(80, 500, 4)
    kind = nx.DiGraph if directed else nx.Graph
    theirs = kind([(int(a), int(b)) for a, b in pairs.T if a != b])
    ends = np.array(theirs.edges(), np.uint32).T
    return EdgeList(80, ends[0], ends[1], None, directed), theirs


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("directed", [True, False])
def test_degrees_equal_networkx(directed: bool, both: bool, tmp_path: Path) -> None:
    edges, theirs = simple(directed)
    graph = on_disk(edges, tmp_path / "graph.h5", both=both, chunk_edges=64)
    assert degree_assortativity(graph, 2) == pytest.approx(nx.degree_pearson_correlation_coefficient(theirs))


@pytest.mark.parametrize("directed", [True, False])
def test_a_list_has_what_rows_have(directed: bool) -> None:
    edges, theirs = simple(directed)
    graph = Graph.from_list(edges.sources, edges.targets, None, vertices=80, directed=directed)
    assert degree_assortativity(graph) == pytest.approx(nx.degree_pearson_correlation_coefficient(theirs))


def test_numbers_equal_networkx_and_edges_at_missing_ones_are_left_out(tmp_path: Path) -> None:
    edges, theirs = simple(False)
    graph = on_disk(edges, tmp_path / "graph.h5")
    ages = np.random.default_rng(1).integers(1, 90, 80) + 1e6
    nx.set_node_attributes(theirs, {v: float(ages[v] - 1e6) for v in theirs}, "age")
    values = ages.astype(np.float64)
    assert assortativity(graph, values, values) == pytest.approx(nx.numeric_assortativity_coefficient(theirs, "age"))
    values[7] = np.nan
    theirs.remove_node(7)
    assert assortativity(graph, values, values) == pytest.approx(nx.numeric_assortativity_coefficient(theirs, "age"))


def test_it_is_not_defined_without_edges_or_where_all_are_alike(tmp_path: Path) -> None:
    ring = np.arange(9, dtype=np.uint32)
    alike = on_disk(EdgeList(9, ring, (ring + 1) % 9, None, False), tmp_path / "ring.h5")
    assert degree_assortativity(alike) is None
    none = np.empty(0, np.uint32)
    assert degree_assortativity(on_disk(EdgeList(3, none, none, None, True), tmp_path / "none.h5")) is None
