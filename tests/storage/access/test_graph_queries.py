"""Graphs answer in the ids of their input: edges as Arrow batches, neighbors, degrees; in memory and in a file."""

from __future__ import annotations

from collections import Counter
from html import escape
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.engine import Graph, convert, from_edges
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.tables import edge_pieces

EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30)


def rows(stream: Any) -> list[tuple[Any, ...]]:
    return list(zip(*pa.table(stream).to_pydict().values(), strict=True))


@settings(max_examples=25)
@given(edges=EDGES, undirected=st.booleans(), spread=st.sampled_from([1, 1000]), chunk=st.sampled_from([3, 1 << 18]))
def test_edges_come_back(edges: list[tuple[int, int]], undirected: bool, spread: int, chunk: int) -> None:
    given_edges = [(u * spread, v * spread) for u, v in edges]
    graph = from_edges(given_edges, undirected=undirected, renumber=spread > 1)
    graph.out.chunk_edges = chunk
    same = (lambda edge: tuple(sorted(edge))) if undirected else tuple
    assert Counter(map(same, rows(graph))) == Counter(map(same, given_edges))
    assert graph.number_of_edges() == len(given_edges)
    assert len(graph) == graph.number_of_nodes() == graph.vertices
    once = from_edges(given_edges, undirected=undirected, renumber=spread > 1, dedupe="first")
    assert once.number_of_edges() == len(set(map(same, given_edges)))
    if undirected:
        both = given_edges + [(v, u) for u, v in given_edges if u != v]
        assert Counter(rows(graph.edge_batches(both_directions=True))) == Counter(both)


@pytest.fixture(params=["memory", "file"])
def towns(request: pytest.FixtureRequest, tmp_path: Path) -> Graph:
    """A graph with names, weights, a loop and parallel edges."""
    sources, targets = ["rome", "oslo", "rome", "bern", "bern"], ["oslo", "bern", "oslo", "bern", 'an,"x']
    graph = from_edges(sources, targets, [1.5, 2, 3, 4, 0])
    return graph if request.param == "memory" else graph.save(tmp_path / "towns.h5")


def test_names_and_weights(towns: Graph) -> None:
    assert rows(towns) == [
        ("bern", 'an,"x', 0.0),
        ("bern", "bern", 4.0),
        ("oslo", "bern", 2.0),
        ("rome", "oslo", 1.5),
        ("rome", "oslo", 3.0),
    ]
    assert pa.RecordBatchReader.from_stream(towns).schema.names == ["source", "target", "weight"]


def test_notebooks_show_the_first_edges(towns: Graph) -> None:
    html = towns._repr_html_()
    assert escape(repr(towns)[1:-1]) in html
    assert html.count("<tr>") == 6
    assert "<th>weight</th></tr><tr><td>bern</td><td>an,&quot;x</td><td>0</td>" in html
    path = from_edges([(v, v + 1) for v in range(99)], undirected=True)
    path.out.chunk_edges = 3
    assert "<td>9</td><td>10</td></tr></table>" in path._repr_html_()


def test_neighbors_and_degrees(towns: Graph) -> None:
    assert towns.neighbors("rome").tolist() == ["oslo", "oslo"]
    assert towns.neighbors("bern", "in").tolist() == ["bern", "oslo"]
    assert (towns.degree("rome"), towns.degree("rome", "in"), towns.degree('an,"x')) == (2, 0, 0)


def test_neighbors_are_read_without_weights(tmp_path: Path) -> None:
    graph = from_edges([0, 0], [1, 2], [0.5, 4.0]).save(tmp_path / "g.h5")
    graph.out.weights = cast("Any", "what is not read")
    assert graph.neighbors(0).tolist() == [1, 2]


def test_what_is_no_vertex_is_refused(towns: Graph) -> None:
    with pytest.raises(InputError, match='vertex paris is not in the graph: its 4 ids lie between an,"x and rome'):
        towns.neighbors("paris")
    with pytest.raises(InputError, match="None is no vertex id: give a whole number, or a text where ids are strings"):
        towns.degree(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="direction is 'up'; give one of out, in"):
        towns.degree("rome", "up")


def test_in_edges_that_are_not_stored_are_refused() -> None:
    with pytest.raises(InputError, match='the graph does not store in-edges; convert it with direction="both"'):
        from_edges([0], [1], direction="out").neighbors(1, "in")


def test_pieces_are_read_as_the_stream_is(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = from_edges(np.arange(100), np.arange(100))
    graph.out.chunk_edges = 1
    read: list[int] = []
    whole = edge_pieces.EdgePieces.read
    monkeypatch.setattr(edge_pieces.EdgePieces, "read", lambda pieces, n: read.append(n) or whole(pieces, n))
    reader = graph.edge_batches(threads=2)
    assert reader.read_next_batch().to_pydict() == {"source": [0], "target": [0]}
    assert len(read) <= 4


def test_damage_ends_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "g.h5"
    from_edges([0, 1], [1, 2]).save(path)
    graph = Graph.open(path)
    graph.out.index()
    assert graph.out.neighbors is not None
    graph.out.neighbors.checksums[0] ^= np.uint64(1)
    with pytest.raises(RunError, match="is damaged: its checksum does not match"):
        graph.neighbors(0)
    with pytest.raises(Exception, match="is damaged: its checksum does not match"):
        graph.edge_batches().read_all()


def test_edges_in_the_order_of_the_input(tmp_path: Path) -> None:
    sources, targets = [3, 0, 1, 2], [1, 2, 0, 2]
    graph = Graph.from_list(sources, targets, [5, 6, 7, 8])
    assert rows(graph) == [(3, 1, 5), (0, 2, 6), (1, 0, 7), (2, 2, 8)]
    for asked in (graph.neighbors, graph.degree):
        with pytest.raises(InputError, match="no vertex has a row of them; `penstock convert` of the graph file sorts"):
            asked(3)
    with pytest.raises(InputError, match="only a graph with sorted rows can be saved"):
        graph.save(tmp_path / "g.h5")
    (tmp_path / "list.txt").write_text("3 1\n0 2\n2 2\n")
    stored = convert(tmp_path / "list.txt", tmp_path / "l.h5", layout="list", undirected=True)
    assert rows(stored) == [(3, 1), (0, 2), (2, 2)]
    assert rows(stored.edge_batches(both_directions=True)) == [(3, 1), (0, 2), (2, 2), (1, 3), (2, 0)]
