"""The verifiers of the larger catalogue, against networkx and scipy, and shown to catch wrong answers."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from support import catalogue_oracles as v
from support import simulation_oracles as simulated
from support.oracles import EdgeList

KINDS = [(seed, directed) for seed in range(3) for directed in (True, False)]


def simple(seed: int, *, directed: bool) -> tuple[EdgeList, nx.Graph]:
    """A random graph without loops and parallel edges, as we and as networkx have it; weights 1 to 9."""
    random = np.random.default_rng(seed)
    count = int(random.integers(12, 40))
    ends = random.integers(0, count - 2, size=(2, 4 * count))
    ends = ends[:, ends[0] != ends[1]]
    ends = np.unique(ends if directed else np.sort(ends, axis=0), axis=1)
    weights = random.integers(1, 10, ends.shape[1])
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_weighted_edges_from(np.stack([*ends, weights]).T.tolist())
    return EdgeList(count, ends[0], ends[1], weights, directed), graph


def by_vertex(values: dict[int, float]) -> list[float]:
    return [values[vertex] for vertex in sorted(values)]


@pytest.mark.parametrize(("seed", "directed"), KINDS)
def test_centralities_equal_networkx(seed: int, directed: bool) -> None:
    edges, graph = simple(seed, directed=directed)
    assert v.katz(edges, alpha=0.03) == pytest.approx(by_vertex(nx.katz_centrality(graph, alpha=0.03, tol=1e-12)))
    heavy = by_vertex(nx.katz_centrality(graph, alpha=0.003, tol=1e-12, weight="weight"))
    assert v.katz(edges, alpha=0.003, weighted=True) == pytest.approx(heavy)
    for distance in (None, "weight"):
        weighted = distance is not None
        spread = by_vertex(nx.eigenvector_centrality(graph, max_iter=10_000, tol=1e-12, weight=distance))
        assert v.eigenvector(edges, weighted=weighted) == pytest.approx(spread, abs=1e-7)
        near = by_vertex(nx.closeness_centrality(graph, distance=distance))
        assert v.closeness(edges, range(edges.vertices), weighted=weighted) == pytest.approx(near)
        inverse = by_vertex(nx.harmonic_centrality(graph, distance=distance))
        assert v.harmonic(edges, weighted=weighted) == pytest.approx(inverse)
    assert v.betweenness(edges) == pytest.approx(by_vertex(nx.betweenness_centrality(graph)))
    hub, authority = v.hits(edges)
    theirs = nx.hits(nx.from_numpy_array(v.matrix(edges, weighted=False), create_using=nx.DiGraph))
    assert hub == pytest.approx(by_vertex(theirs[0]), abs=1e-8)
    assert authority == pytest.approx(by_vertex(theirs[1]), abs=1e-8)


@pytest.mark.parametrize(("seed", "directed"), KINDS)
def test_structure_equals_networkx(seed: int, directed: bool) -> None:
    edges, graph = simple(seed, directed=directed)
    assert v.coreness(edges).tolist() == by_vertex(nx.core_number(graph))
    flat = nx.Graph(graph)
    assert v.triangles(edges).tolist() == by_vertex(nx.triangles(flat))
    parts = list(nx.connected_components(flat))
    far = {u: far for part in parts for u, far in nx.eccentricity(flat.subgraph(part)).items()}
    assert v.eccentricities(edges).tolist() == by_vertex(far)
    sparse = EdgeList(edges.vertices, edges.sources[::4], edges.targets[::4], edges.weights[::4], directed)
    several = nx.MultiGraph()
    several.add_nodes_from(range(edges.vertices))
    several.add_weighted_edges_from(zip(*(part.tolist() for part in sparse.arcs if part is not None), strict=True))
    if not directed:  # arcs have each edge twice
        several = nx.MultiGraph(nx.Graph(several))
    toward, component = v.bridges(sparse)
    found = {tuple(sorted((u, int(toward[u])))) for u in np.flatnonzero(toward >= 0).tolist()}
    assert found == {tuple(sorted(edge[:2])) for edge in nx.bridges(several)}
    blocks, top, named = v.articulation(sparse)
    assert set(np.flatnonzero(blocks > 1).tolist()) == set(nx.articulation_points(several))
    joined = {(int(top[u]), int(named[u])): set[int]() for u in np.flatnonzero(top >= 0).tolist()}
    for u in np.flatnonzero(top >= 0).tolist():
        joined[int(top[u]), int(named[u])] |= {int(top[u]), u}
    assert sorted(map(sorted, joined.values())) == sorted(map(sorted, nx.biconnected_components(several)))
    assert blocks.tolist() == [sum(u in part for part in joined.values()) for u in range(edges.vertices)]
    several.remove_edges_from(list(nx.bridges(several)))
    assert component.tolist() == by_vertex({u: min(part) for part in nx.connected_components(several) for u in part})
    _, above = v.spanning_forest(edges)
    all_edges = nx.MultiGraph()  # made of a DiGraph it would have one edge for a mutual pair
    all_edges.add_weighted_edges_from(graph.edges(data="weight"))
    least = nx.minimum_spanning_tree(all_edges).edges(data="weight")
    assert sorted(above[above >= 0].tolist()) == sorted(weight for *_, weight in least)
    if directed:
        labels = connected_components(coo_matrix(v.matrix(edges, weighted=False)), connection="strong")[1]
        smallest = {label: int(np.flatnonzero(labels == label)[0]) for label in labels}
        assert v.strong_components(edges).tolist() == [smallest[label] for label in labels]
    else:
        assert v.clustering(edges) == pytest.approx(by_vertex(nx.clustering(graph)))
    out, into = v.degrees(edges)
    assert (out + into if directed else out).tolist() == by_vertex(dict(graph.degree()))
    reached = nx.multi_source_dijkstra_path_length(graph, {1, 3}, weight=None)
    assert v.levels(edges, [1, 3]).tolist() == [reached.get(u, -1) for u in range(edges.vertices)]


@pytest.mark.parametrize(("seed", "directed"), KINDS)
def test_widths_are_those_of_thresholds(seed: int, directed: bool) -> None:
    """A path of width w is one of edges that weigh w at least."""
    edges, graph = simple(seed, directed=directed)
    for u, width in enumerate(v.widths(edges, 0)):
        ways = [w for w in range(1, 10) if u != 0 and _connected(graph, u, w)]
        assert width == (np.inf if u == 0 else max(ways, default=None))


def _connected(graph: nx.Graph, u: int, least: int) -> bool:
    heavy = [(a, b) for a, b, w in graph.edges(data="weight") if w >= least]
    kept = graph.edge_subgraph(heavy)
    return 0 in kept and u in kept and nx.has_path(kept, 0, u)


def test_hand_made_answers() -> None:
    """PHP, adsorption, CDLP and directed LCC of graphs small enough for a pencil."""
    fork = EdgeList(3, np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([1, 3, 5]))
    assert v.penalized_hitting(fork, 0, 0.8) == pytest.approx([1.0, 0.2, 0.6 + 0.8 * 0.2])
    assert v.adsorption(fork, {0: 1.0}, 0.5) == pytest.approx([0.5, 0.25, 0.5 * (0.5 * 3 + 0.25 * 5) / 8])
    triangle = EdgeList(4, np.array([0, 1, 0, 2, 3]), np.array([1, 2, 2, 1, 0]))
    assert v.clustering(triangle) == pytest.approx([2 / 6, 1 / 2, 1 / 2, 0])
    star = EdgeList(4, np.array([0, 0, 0]), np.array([1, 2, 3]), None, directed=False)
    assert v.label_propagation(star, 1).tolist() == [1, 0, 0, 0]
    assert v.label_propagation(star, 2).tolist() == [0, 1, 1, 1]


def test_wrong_sets_and_colors_are_caught() -> None:
    path = EdgeList(3, np.array([0, 1]), np.array([1, 2]), None, directed=False)
    right = v.independent_set(path)
    v.check_independent_set(path, right)
    for wrong, message in (([1, 1, 0], "neighbors"), ([0, 0, 0], "could join"), ((1 - right).tolist(), "another set")):
        with pytest.raises(AssertionError, match=message):
            v.check_independent_set(path, np.array(wrong))
    with pytest.raises(AssertionError, match="have the color"):
        v.check_coloring(path, np.array([0, 0, 1]))
    with pytest.raises(AssertionError, match=r"not [01]"):
        v.check_coloring(path, np.array([4, 5, 4]))


@pytest.mark.parametrize(
    ("rule", "got", "message"),
    [
        ("exact", {1: "3", 2: "9223372036854775806"}, "2 has"),
        ("exact", {1: "3"}, "same vertices"),
        ("equivalence", {1: "7", 2: "7"}, "other sets"),
        ("epsilon", {1: "3.001", 2: "9223372036854775807"}, "1 has"),
        ("epsilon", {1: "inf", 2: "9223372036854775807"}, "1 has"),
    ],
)
def test_graphalytics_rules_refuse(rule: str, got: dict[int, str], message: str) -> None:
    right = {1: "3", 2: "9223372036854775807"}
    v.check_graphalytics("exact", dict(right), right)
    v.check_graphalytics("equivalence", {1: "8", 2: "5"}, right)
    v.check_graphalytics("epsilon", {1: "3.0001", 2: "9223372036854775807"}, right)
    v.check_graphalytics("epsilon", {1: "infinity"}, {1: "inf"})
    with pytest.raises(AssertionError, match=message):
        v.check_graphalytics(rule, got, right)


@pytest.mark.parametrize(("seed", "directed"), KINDS)
def test_simulations_equal_networkx_and_scipy(seed: int, directed: bool) -> None:
    edges, graph = simple(seed, directed=directed)
    if not directed:
        matrix = nx.laplacian_matrix(graph, nodelist=range(edges.vertices)).toarray()
        np.testing.assert_array_equal(simulated.laplacian(edges), matrix)
        heat = expm(-1e-2 * matrix)[:, 0]
        assert simulated.temperatures(edges, {0: 1.0}, {}, 1e-6, 10_000) == pytest.approx(heat, abs=1e-5)
        part = sorted(nx.node_connected_component(graph, 0))
        far = nx.resistance_distance(graph.subgraph(part), 0, part[-1], weight="weight", invert_weight=False)
        potential = simulated.potentials(edges, {0: 1.0, part[-1]: 0.0})
        assert float(matrix[0] @ np.where(np.isinf(potential), 0.0, potential)) == pytest.approx(1 / far)
        assert np.flatnonzero(np.isfinite(potential)).tolist() == part
    calm = simulated.activations(edges, {0: 1.0}, gain=1e-3, bias=-0.5)
    arriving = 1e-3 * v.matrix(edges, weighted=True).T @ calm - 0.5
    assert calm[1:] == pytest.approx((1 / (1 + np.exp(-arriving)))[1:], abs=1e-12)
    assert simulated.temperatures(edges, {}, {0: 2.0}, 1e-3, 0).tolist() == [2.0] + [0.0] * (edges.vertices - 1)
