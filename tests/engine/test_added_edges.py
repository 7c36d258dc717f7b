"""Edges that were added beside a graph's file, and removed, show in no answer, wherever edges are and come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from penstock.engine import Graph, convert, extract, run
from penstock.engine import append as append_file
from penstock.storage.convert.append import append
from penstock.storage.convert.remove import remove
from support.covering import covering
from support.graphs import ArraySource, EdgeList, in_memory, on_disk, shape
from support.program_cases import PROGRAMS, check, program_of

EMULATED: dict[str, Any] = {"device": "emulated", "device_edge_memory": 20_000, "partition_bytes": 4096}
WAYS: dict[str, dict[str, Any]] = {
    "memory": {},
    "disk": {"partition_bytes": 256, "threads": 1},
    "direct": {"partition_bytes": 700, "direct_io": True},
    "reference": {"kernels": "reference", "partition_bytes": 1500},
    "resident": {"device": "emulated", "route": "filter", "device_edge_memory": 1 << 20},
    "filter": EMULATED | {"route": "filter"},
    "compaction": EMULATED | {"route": "compaction"},
    "zero-copy": EMULATED | {"route": "zero-copy"},
    "auto": EMULATED,
}


def changed(edges: EdgeList, path: Path) -> Graph:
    """Write a graph of which a fifth of the edges are added, after others that are then removed again."""
    random = np.random.default_rng(7)
    first = random.random(len(edges.sources)) < 0.8
    apart = EdgeList(edges.vertices, *random.integers(0, edges.vertices, (2, 40)), None, edges.directed)
    there = set(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True))
    there |= {pair[::-1] for pair in there}
    new = np.array([pair not in there for pair in zip(apart.sources.tolist(), apart.targets.tolist(), strict=True)])
    weights = None if edges.weights is None else np.ones(40, edges.weights.dtype)
    apart = EdgeList(edges.vertices, apart.sources, apart.targets, weights, edges.directed)
    stored = joined(part_of(edges, first), part_of(apart, new & (np.arange(40) < 20)))
    on_disk(stored, path, chunk_edges=64)
    append(ArraySource("more", part_of(apart, new & (np.arange(40) >= 20))), path)
    append(ArraySource("others", part_of(edges, ~first)), path)
    remove(ArraySource("wrong", part_of(apart, new)), path)
    return Graph.open(path)


def part_of(edges: EdgeList, which: np.ndarray[Any, Any]) -> EdgeList:
    weights = None if edges.weights is None else edges.weights[which]
    return EdgeList(edges.vertices, edges.sources[which], edges.targets[which], weights, edges.directed)


def joined(ones: EdgeList, others: EdgeList) -> EdgeList:
    ends = [np.concatenate(pair) for pair in ((ones.sources, others.sources), (ones.targets, others.targets))]
    weights = None if ones.weights is None else np.concatenate([ones.weights, others.weights])
    return EdgeList(ones.vertices, *ends, weights, ones.directed)


@covering("way, name, directed", list(WAYS), PROGRAMS, [True, False], strength=2)
def test_changed_edges_give_the_answer(way: str, name: str, directed: bool, tmp_path: Path) -> None:
    edges = shape("skewed", directed=directed, weights="uint8")
    graph = changed(edges, tmp_path / "g.h5")
    assert graph.out.splice is not None
    assert graph.edges == in_memory(edges).edges
    assert len(graph.out.splice.removed) > 0
    result = run(program_of(name, edges), graph, **WAYS[way])
    check(name, edges, result.fields)


def test_a_part_of_a_grown_graph_grows(tmp_path: Path) -> None:
    """Ids of a part rise for fewer vertices than those of the whole, whose later ones are less."""
    (tmp_path / "a.txt").write_text("".join(f"{10 * v} {10 * v + 10}\n" for v in range(20)))
    (tmp_path / "b.txt").write_text("5 15\n15 100\n")
    (tmp_path / "c.txt").write_text("5 110\n7 130\n15 5\n")
    convert(tmp_path / "a.txt", tmp_path / "g.h5", undirected=True)
    append_file(tmp_path / "g.h5", tmp_path / "b.txt")
    extract(tmp_path / "g.h5", tmp_path / "p.h5", vertices=[100, 110, 5, 15, 130])
    found = run("wcc", append_file(tmp_path / "p.h5", tmp_path / "c.txt"))
    assert found.ids.tolist() == [100, 110, 130, 5, 15, 7]
    assert found.to_arrow()["component"].to_pylist() == [5, 7, 5, 5, 5, 7]
