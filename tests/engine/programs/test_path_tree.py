"""Parents of shortest and widest paths, and searches that end early: by the definition, and by networkx."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from penstock.engine import Graph, Program, Session, from_edges, run
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.widest import WidestPath
from penstock.storage.base.errors import InputError
from support.graphs import in_memory, on_disk, skewed
from support.oracles import EdgeList
from support.thread_ranks import on_ranks

SOURCE = 5
SIMULATOR = pytest.param(
    {"device": "emulated", "kernels": "cuda"},
    marks=pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu"),
)
SLOW: dict[str, Any] = {"kernels": "reference"}
WAYS: list[Any] = [
    SLOW | {"direction": "push"},
    SLOW | {"direction": "pull", "mode": "sync"},
    {},
    SIMULATOR,
]
KINDS: dict[str, tuple[type[Program], str]] = {
    "bfs": (BFS, "level"),
    "sssp": (SSSP, "distance"),
    "widest": (WidestPath, "width"),
}


@cache
def edges_of(*, directed: bool, weights: str = "uint8") -> EdgeList:
    """Weights 0 to 2, so that many paths are as short, and some of the vertices on them as near."""
    ends = skewed(40, 110, 3)
    random = np.random.default_rng(2)
    values = random.integers(0, 3, ends.shape[1]).astype(weights)
    if values.dtype.kind == "f":  # so light that they change no sum; and sums that are rounded
        values = np.where(values == 0, 1e-20, values * random.random(len(values))).astype(weights)
    return EdgeList(40, ends[0], ends[1], values, directed)


def links(edges: EdgeList) -> dict[tuple[int, int], list[Any]]:
    """The weights of the edges from one vertex to another."""
    found: dict[tuple[int, int], list[Any]] = {}
    for u, v, weight in zip(edges.sources.tolist(), edges.targets.tolist(), edges.weights.tolist(), strict=True):
        for pair in ((u, v),) if edges.directed else {(u, v), (v, u)}:
            found.setdefault(pair, []).append(weight)
    return found


def by_definition(name: str, edges: EdgeList, values: dict[int, Any]) -> dict[int, int]:
    """The smallest of the vertices that give a vertex its value: of better ones, else of the level before."""
    combine: Callable[[Any, Any], Any] = min if name == "widest" else lambda value, weight: value + weight
    tight = {
        pair
        for pair, weights in links(edges).items()
        if pair[0] in values
        for weight in weights
        if combine(values[pair[0]], weight) == values[pair[1]]
    }
    parents = {SOURCE: SOURCE}
    for v in values.keys() - parents.keys():
        better = [u for u, to in tight if to == v and values[u] != values[v]]
        if better:
            parents[v] = min(better)
    while level := {
        v: min(before)
        for v in values.keys() - parents.keys()
        if (before := [u for u, to in tight if to == v and u in parents and values[u] == values[v]])
    }:
        parents |= level
    assert parents.keys() == values.keys()
    return parents


def best(name: str, edges: EdgeList) -> dict[int, Any]:
    """Distances by networkx; widths as the best of all thresholds under which networkx finds a way."""
    graph = nx.MultiDiGraph() if edges.directed else nx.MultiGraph()
    graph.add_node(SOURCE)
    rows = list(zip(edges.sources.tolist(), edges.targets.tolist(), edges.weights.tolist(), strict=True))
    graph.add_weighted_edges_from(rows)
    if name == "sssp":
        return dict(nx.single_source_dijkstra_path_length(graph, SOURCE))
    found = {}
    for least in sorted({row[2] for row in rows}):
        graph = nx.MultiDiGraph() if edges.directed else nx.MultiGraph()
        graph.add_node(SOURCE)
        graph.add_edges_from(row[:2] for row in rows if row[2] >= least)
        found |= dict.fromkeys(nx.descendants(graph, SOURCE), least)
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", ["sssp", "widest"])
def test_parents_are_those_of_the_definition(name: str, directed: bool, way: dict[str, Any]) -> None:
    edges, (kind, field) = edges_of(directed=directed), KINDS[name]
    result = run(kind(SOURCE, parents=True), in_memory(edges), **way)
    values = result.to_dict(field)
    assert {v: x for v, x in values.items() if v != SOURCE} == {
        v: x for v, x in best(name, edges).items() if v != SOURCE
    }
    assert result.to_dict("parent") == by_definition(name, edges, values)


@pytest.mark.parametrize("name", ["sssp", "widest"])
def test_floats_that_are_rounded_have_parents_too(name: str) -> None:
    """The same in every order of relaxations, and whatever the order of the vertices."""
    edges, (kind, field) = edges_of(directed=True, weights="float64"), KINDS[name]
    plain = in_memory(edges)
    moved = from_edges(edges.sources, edges.targets, edges.weights, vertices=edges.vertices, order="hubs")
    results = [run(kind(SOURCE, parents=True), graph, **way) for graph in (plain, moved) for way in WAYS[:2]]
    values = results[0].to_dict(field)
    for result in results:
        assert result.to_dict(field) == values
        assert result.to_dict("parent") == by_definition(name, edges, values)
    farthest = max(values, key=lambda v: (values[v], v))
    for graph in (plain, moved):
        assert run(kind(SOURCE, target=farthest), graph, **SLOW).path(farthest) == results[0].path(farthest)


@pytest.mark.parametrize("way", [*WAYS[:2], SIMULATOR])
@pytest.mark.parametrize("name", KINDS)
def test_what_ends_early_has_the_answer_so_far(name: str, way: dict[str, Any]) -> None:
    """A target, several, a cutoff: the values up to the horizon, with the parents of the whole answer."""
    edges, (kind, field) = edges_of(directed=True), KINDS[name]
    graph = in_memory(edges)
    whole = run(kind(SOURCE, parents=True), graph, **SLOW)
    values, parents = whole.to_dict(field), whole.to_dict("parent")
    order = sorted(values, key=lambda v: (-values[v] if name == "widest" else values[v], v))
    target = order[len(order) // 2]
    wanted = {v: x for v, x in values.items() if (x >= values[target] if name == "widest" else x <= values[target])}
    assert 1 < len(wanted) < len(values)
    for given in ({"target": [target, SOURCE]}, {"cutoff": values[target]}):
        found = run(kind(SOURCE, parents=True, **given), graph, **way)
        assert found.to_dict(field) == wanted
        assert found.to_dict("parent") == {v: parents[v] for v in wanted}
        assert found.converged
    found = run(kind(SOURCE, target=[target, order[1]]), graph, **way)
    assert found.to_dict(field) == wanted
    assert found.to_dict("parent").items() <= {v: parents[v] for v in wanted}.items()
    assert [found.path(v) for v in found.targets] == [whole.path(v) for v in (target, order[1])]
    alone = run(kind(SOURCE, target=target, parents=False), graph, **way)
    assert (list(alone.fields), alone.to_dict()) == ([field], wanted)
    unreachable = next(v for v in range(edges.vertices) if v not in values)
    assert run(kind(SOURCE, target=[target, unreachable]), graph, **way).to_dict() == values


@pytest.mark.parametrize("name", KINDS)
def test_a_long_way_is_not_walked_to_its_end(name: str, tmp_path: Path) -> None:
    """Fused iterations and those on disk look at the target, too."""
    ends = np.stack([np.arange(249), np.arange(1, 250)])
    weights = (np.arange(249, 0, -1) if name == "widest" else np.full(249, 7)).astype(np.uint8)
    edges, (kind, field) = EdgeList(250, ends[0], ends[1], weights, True), KINDS[name]
    for graph in (in_memory(edges), on_disk(edges, tmp_path / "g.h5")):
        for given in (
            {"target": 40},
            {"cutoff": weights[39] if name == "widest" else 40 * (7 if name == "sssp" else 1)},
        ):
            result = run(kind(0, **given), graph)
            assert result.iterations <= 120
            assert int(result.reached(field).sum()) == 41


def test_every_rank_ends_at_the_same_moment() -> None:
    edges = edges_of(directed=False)
    wanted = [run(kind(SOURCE, target=7), in_memory(edges), **SLOW).fields for kind, _ in KINDS.values()]

    def work(ranks: Any) -> list[Any]:
        with Session(in_memory(edges), ranks=ranks, threads=1, **SLOW) as session:
            return [session.run(kind(SOURCE, target=7)).fields for kind, _ in KINDS.values()]

    for found in on_ranks(2, work):
        for ours, theirs in zip(found, wanted, strict=True):
            assert all(np.array_equal(ours[name], values) for name, values in theirs.items())


@pytest.mark.parametrize("name", ["sssp", "widest"])
def test_a_run_with_a_target_goes_on_from_a_checkpoint(name: str, tmp_path: Path) -> None:
    """Cut off after each iteration, in the search and in the phases after it."""
    graph, (kind, _) = in_memory(edges_of(directed=True)), KINDS[name]
    whole = run(kind(SOURCE, target=7), graph, **SLOW)
    for stop in range(1, whole.iterations + 1):
        with Session(graph, **SLOW) as session:
            steps = session.steps(kind(SOURCE, target=7), Checkpoints(tmp_path, stop))
            for _ in range(stop):
                next(steps)
            steps.close()
        found = run(kind(SOURCE, target=7), graph, checkpoint=tmp_path, resume=True, **SLOW)
        assert found.before == stop
        assert all(np.array_equal(found.fields[field], values) for field, values in whole.fields.items())
        assert found.path(7) == whole.path(7)


def test_weights_that_may_not_fit_32_bits_have_wide_distances() -> None:
    edges = EdgeList(3, np.array([0, 1]), np.array([1, 2]), np.array([2**32 - 2, 5], np.uint32), True)
    result = run(SSSP(0, target=2), in_memory(edges), **SLOW)
    assert result.path(2).length == 2**32 + 3
    assert run(SSSP(0, cutoff=2**32 - 3), in_memory(edges), **SLOW).to_dict() == {0: 0}


def test_the_way_is_found_without_in_edges_too() -> None:
    """There parents are those of all vertices; else of vertices on shortest paths to the target only."""
    edges = EdgeList(5, np.array([0, 0, 1, 1]), np.array([1, 2, 3, 4]), np.array([1, 1, 1, 9], np.uint8), True)
    for both, parents in ((True, {0: 0, 1: 0, 3: 1}), (False, {0: 0, 1: 0, 2: 0, 3: 1})):
        result = run(SSSP(0, target=3), in_memory(edges, both=both), **SLOW)
        assert result.to_dict("parent") == parents
        assert result.path(3).vertices == [0, 1, 3]


@pytest.mark.parametrize("kind", [BFS, SSSP, WidestPath])
@pytest.mark.parametrize("graph", [from_edges([0, 1], [1, 2]), in_memory(EdgeList(0, *np.empty((2, 0), int), None))])
def test_vertices_that_the_graph_does_not_have_are_named(kind: type[Program], graph: Graph) -> None:
    with pytest.raises(InputError, match=r"vertex (9|0) is not in the graph"):
        run(kind(0, target=9), graph, **SLOW)
