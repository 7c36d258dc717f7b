"""Which vertices stay: neighborhoods, components, cores, degrees and lists, each against networkx."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from penstock.engine import Graph, extract, from_edges, run, subgraph
from penstock.engine.execution import triangles
from penstock.storage.base.errors import InputError
from support.graphs import skewed

SOURCES, TARGETS = skewed(300, 260, 4) * 3


@pytest.fixture(params=["directed", "undirected", "list"])
def both(request: pytest.FixtureRequest) -> tuple[Graph, Any]:
    """A graph with spread ids, and the same for networkx."""
    undirected = request.param == "undirected"
    graph = from_edges(
        SOURCES, TARGETS, renumber=True, undirected=undirected, layout="list" if request.param == "list" else "rows"
    )
    peer = nx.MultiGraph() if undirected else nx.MultiDiGraph()
    peer.add_edges_from(zip(SOURCES.tolist(), TARGETS.tolist(), strict=True))
    return graph, peer


def ids(graph: Graph) -> set[int]:
    return set(graph.original_ids_in(0, graph.vertices).tolist())


def far(peer: Any, source: int, hops: int) -> set[int]:
    return set(nx.single_source_shortest_path_length(peer, source, cutoff=hops))


def test_neighborhoods(both: tuple[Graph, Any]) -> None:
    graph, peer = both
    source = int(SOURCES[7])
    assert ids(extract(graph, around=source, hops=2)) == far(peer, source, 2)
    assert ids(extract(graph, around=[source, int(TARGETS[9])])) == far(peer, source, 1) | far(peer, int(TARGETS[9]), 1)
    assert ids(extract(graph, around=source, hops=0)) == {source}
    against = peer.reverse() if peer.is_directed() else peer
    assert ids(extract(graph, around=source, hops=2, along="in")) == far(against, source, 2)
    assert ids(extract(graph, around=source, hops=2, along="both")) == far(peer.to_undirected(), source, 2)


def test_components(both: tuple[Graph, Any]) -> None:
    graph, peer = both
    weak = list(nx.connected_components(peer.to_undirected()))
    assert len(weak) > 2
    assert ids(extract(graph, largest_component=True)) == max(weak, key=len)
    small = min(weak, key=len)
    assert ids(extract(graph, component_of=min(small))) == small
    if graph.layout == "rows":
        strong = list(nx.strongly_connected_components(peer)) if peer.is_directed() else weak
        assert ids(extract(graph, largest_component=True, strong=True)) == max(strong, key=len)


def test_cores_degrees_and_all_together(both: tuple[Graph, Any]) -> None:
    graph, peer = both
    plain = peer.copy()
    plain.remove_edges_from(list(nx.selfloop_edges(plain, keys=True)))
    core = set(plain)
    while low := {v for v in core if plain.subgraph(core).degree(v) < 4}:  # networkx's takes no parallel edges
        core -= low
    assert ids(extract(graph, core=4)) == core
    degree = dict(peer.degree())
    if not peer.is_directed():
        degree = {v: d - peer.number_of_edges(v, v) for v, d in degree.items()}  # a self-loop counts once here
    some = {v for v, d in degree.items() if 5 <= d <= 9}
    assert ids(extract(graph, degrees="5..9")) == some
    listed = sorted(peer)[::2]
    part = extract(graph, degrees=(5, 9), core=2, vertices=listed)
    wide = set(plain)
    while low := {v for v in wide if plain.subgraph(wide).degree(v) < 2}:
        wide -= low
    assert ids(part) == some & set(listed) & wide
    kept = [tuple(edge) if peer.is_directed() else tuple(sorted(edge)) for edge in peer.subgraph(ids(part)).edges()]
    assert sorted(zip(*part.edge_batches().read_all().to_pydict().values(), strict=True)) == sorted(kept)


@pytest.mark.parametrize("strip", [None, 40])
def test_trusses(both: tuple[Graph, Any], strip: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vertices and edges; in strips, with rows in a file; with another condition; not of a list."""
    graph, peer = both
    if graph.layout == "list":
        with pytest.raises(InputError, match="order of the input"):
            extract(graph, truss=4)
        return
    if strip is not None:
        monkeypatch.setattr(triangles, "strip_edges", lambda graph, memory_bytes: strip)
        monkeypatch.setattr(triangles, "_rows_stay", lambda graph, memory_bytes: False)
    flat = nx.Graph(peer)
    flat.remove_edges_from(list(nx.selfloop_edges(flat)))
    for k in (2, 3, 4, 5, 40):
        wanted = nx.k_truss(flat, k)
        part = extract(graph, tmp_path / f"{k}.h5", truss=k, host_memory="200MiB")
        assert ids(part) == set(wanted)
        kept = {frozenset(edge) for edge in zip(*part.edge_batches().read_all().to_pydict().values(), strict=True)}
        assert kept == {frozenset(edge) for edge in wanted.edges()}
    listed = sorted(peer)[::2]
    assert ids(extract(graph, truss=3, vertices=listed)) == set(nx.k_truss(flat, 3)) & set(listed)
    assert not [*tmp_path.glob(".*")]


def test_a_truss_without_isolated_vertices_has_its_own_edges_alone(tmp_path: Path) -> None:
    """Two triangles that an edge of no triangle joins; another condition leaves one of them no edge."""
    ends = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5)]
    graph = from_edges(*zip(*ends, strict=True), [5.0] * 3 + [1.0] * 4, undirected=True)
    for output in (None, tmp_path / "part.h5"):
        part = extract(graph, output, truss=3, drop_isolated=True, force=True)
        assert (ids(part), part.edges) == ({*range(6)}, 12)
        part = extract(graph, output, truss=3, weights="2..", drop_isolated=True, force=True)
        assert (ids(part), part.edges) == ({0, 1, 2}, 6)


def test_a_file_of_its_own_answers_in_the_ids_of_the_first(tmp_path: Path) -> None:
    graph = from_edges(["ann", "bob", "cy", "dan"], ["bob", "cy", "ann", "eve"], [1, 2, 3, 4]).save(tmp_path / "g.h5")
    seen: list[str] = []
    part = extract(
        tmp_path / "g.h5",
        tmp_path / "part.h5",
        component_of="bob",
        weights="2..",
        progress=lambda stage, done, total: seen.append(stage),
        host_memory="200MiB",
        threads=1,
    )
    assert part.path == tmp_path / "part.h5"
    assert run("bfs", part, source="bob").to_dict() == {"ann": 2, "bob": 0, "cy": 1}
    assert part.provenance["extracted"] == {"from": str(graph.path), "component_of": "bob", "weights": "2..inf"}
    assert seen == ["out", "in"]
    with pytest.raises(InputError, match="exists already"):
        extract(graph, tmp_path / "part.h5", core=1)
    again = extract(part, around="cy", hops=5)
    assert again.original_ids_in(0, again.vertices).tolist() == ["ann", "cy"]


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({}, "nothing says what to extract"),
        ({"hops": 2}, "nothing says what to extract"),
        ({"core": 1, "along": "in"}, "how far from around"),
        ({"truss": 1}, "give 2 or more"),
        ({"around": 0, "along": "up"}, "along up is none of out, in, both"),
        ({"core": -1}, "numbers below 0"),
        ({"component_of": 0, "largest_component": True}, "exclude each other"),
        ({"core": 1, "strong": True}, "which components"),
        ({"core": 1, "skip_missing": True}, "is about vertices"),
        ({"weights": "1..2"}, "no weights to go by"),
        ({"degrees": "5"}, "is no range"),
        ({"degrees": (3, 1)}, "holds no number"),
        ({"around": 99}, "vertex 99 is not in the graph"),
        ({"vertices": [0, 99]}, "skip_missing=True passes over"),
        ({"core": 1, "color": "red"}, "unknown option 'color'"),
    ],
)
def test_what_cannot_be_is_refused(conditions: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        extract(from_edges([(0, 1), (1, 2)]), **conditions)


def test_an_empty_graph_has_empty_parts() -> None:
    graph = from_edges([], [])
    for conditions in ({"largest_component": True}, {"core": 2}, {"degrees": "1.."}):
        assert extract(graph, **conditions).vertices == 0  # type: ignore[arg-type]


def test_memory_of_the_choice_is_given_back_before_the_part_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Edges that the run cached would else be held while the part is read and written."""
    steps: list[str] = []
    session, give_back, take = subgraph.Session.__exit__, subgraph.give_back_freed_memory, subgraph.extract_to_memory

    def noted(name: str, function: Any) -> Any:
        return lambda *given: (steps.append(name), function(*given))[1]

    monkeypatch.setattr(subgraph.Session, "__exit__", noted("session closed", session))
    monkeypatch.setattr(subgraph, "give_back_freed_memory", noted("given back", give_back))
    monkeypatch.setattr(subgraph, "extract_to_memory", noted("taken", take))
    assert ids(extract(from_edges([0, 1, 5], [1, 2, 6]), largest_component=True)) == {0, 1, 2}
    assert steps == ["session closed", "given back", "taken"]
