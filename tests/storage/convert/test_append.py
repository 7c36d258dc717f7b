"""Edges are appended to a list as if they had been converted with it; what does not suit it is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.folder_lock import FolderLock
from penstock.storage.convert.append import append
from penstock.storage.convert.convert import convert
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.fingerprint import fingerprint
from penstock.storage.format.graph import Graph
from penstock.storage.read.verify import verify
from support.conversions import Edge, Given
from support.lists import edges_of, opened, small_chunks

EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 200)), max_size=25)


def weighed(edges: list[Edge], weighted: bool) -> list[Edge]:
    return [(one, two, float(value or 0) if weighted else None) for one, two, value in edges]


@settings(max_examples=8)
@given(
    st.lists(EDGES, min_size=2, max_size=3),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2),
    st.sampled_from([None, False, True]),
)
def test_appending_is_converting_all_together(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[list[Edge]],
    undirected: bool,
    drop: bool,
    weighted: bool,
    stripes: int,
    renumber: bool | None,
) -> None:
    folder = tmp_path_factory.mktemp("append")
    places = tuple(folder / str(number) for number in range(stripes))
    for place in places:
        place.mkdir()
    parts = [weighed([(0, 1, 255), *part] if number == 0 else part, weighted) for number, part in enumerate(parts)]
    options: dict[str, Any] = {"undirected": undirected, "drop_self_loops": drop, "threads": 1, "layout": "list"}
    options["renumber"] = renumber
    with small_chunks():
        convert(Given(parts[0], []), folder / "g.h5", ConvertOptions(stripes=places, **options))
        old = {path: path.read_bytes() for path in folder.rglob("*.h5") if stripes and path.name != "g.h5"}
        stays = True
        for part in parts[1:]:
            stays = stays and Graph.open(folder / "g.h5").original is None  # else all is converted once more
            report = append(Given(part, [3]), folder / "g.h5", threads=1)
        everything = [edge for part in parts for edge in part]
        convert(Given(everything, []), folder / "all.h5", ConvertOptions(**options))
        graph, together = opened(folder / "g.h5"), opened(folder / "all.h5")
        assert verify(folder / "g.h5", threads=1).problems == []
        assert edges_of(graph) == edges_of(together)
        assert fingerprint(graph) == fingerprint(together)
        assert graph.without_edges == together.without_edges
        assert not stays or graph.input_edges == together.input_edges
        assert graph.weight_range == (together.weight_range and pytest.approx(together.weight_range))
        assert report.edges == graph.edges
        assert not stays or graph.provenance["appended"] == {"times": len(parts) - 1, "last": "given"}
    assert not stays or all(path.read_bytes() == data for path, data in old.items())


def listed(path: Path, **options: Any) -> Path:
    convert(Given([(0, 1, None), (2, 1, None)], []), path, ConvertOptions(layout="list", **options))
    return path


def test_an_open_graph_stays_what_it_was_and_force_replaces_all_parts(tmp_path: Path) -> None:
    path = listed(tmp_path / "g.h5")
    before = Graph.open(path)
    append(Given([(5, 5, None)], []), path)
    assert (before.vertices, edges_of(before)) == (3, [(0, 1, None), (2, 1, None)])
    graph = Graph.open(path)
    assert edges_of(graph) == [(0, 1, None), (2, 1, None), (5, 5, None)]
    assert graph.original_ids().tolist() == [0, 1, 2, 5]  # type: ignore[union-attr]
    assert len(list(tmp_path.iterdir())) == 3
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in tmp_path.glob("*.h5"):
        file.rename(moved / file.name)
    assert Graph.open(moved / "g.h5").vertices == 4
    convert(Given([(0, 1, None)], []), moved / "g.h5", ConvertOptions(force=True))
    assert [file.name for file in moved.iterdir()] == ["g.h5"]


def test_a_symbolic_link_stays(tmp_path: Path) -> None:
    path = listed(tmp_path / "g.h5")
    link = tmp_path / "elsewhere" / "link.h5"
    link.parent.mkdir()
    link.symlink_to(path)
    append(Given([(1, 0, None)], []), link)
    assert link.is_symlink()
    assert Graph.open(link).edges == 3
    assert list(link.parent.iterdir()) == [link]


@pytest.mark.parametrize(
    ("options", "edges", "message"),
    [
        ({"renumber": True}, [(0, 1, 2.0)], "has weights, and .*g.h5 has none"),
        ({"renumber": False}, [(0, 1, 2.0)], "some of the input has weights and some has none"),
        ({"renumber": False}, [(1 << 32, 1, None)], "below 2\\^32"),
    ],
)
def test_what_does_not_suit_the_graph_is_refused(
    tmp_path: Path, options: dict[str, Any], edges: list[Edge], message: str
) -> None:
    made = {"layout": "list", **options}
    convert(Given([(3, 1, None), (2, 1, None)], []), tmp_path / "g.h5", ConvertOptions(**made))
    before = (tmp_path / "g.h5").read_bytes()
    with pytest.raises(InputError, match=message):
        append(Given(edges, []), tmp_path / "g.h5")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"g.h5": before}


def test_weights_keep_their_dtype(tmp_path: Path) -> None:
    convert(Given([(0, 1, 7.0)], []), tmp_path / "g.h5", ConvertOptions(layout="list"))
    with pytest.raises(InputError, match="its weights take float32, and the graph has uint8"):
        append(Given([(0, 1, 1.5)], []), tmp_path / "g.h5")
    append(Given([(0, 1, 9.0)], []), tmp_path / "g.h5")
    assert Graph.open(tmp_path / "g.h5").weight_range == (7.0, 8.0, 9.0)


def test_appends_exclude_each_other(tmp_path: Path) -> None:
    path = listed(tmp_path / "g.h5")
    with FolderLock(tmp_path, ".g.h5.append", "graph").holding(), pytest.raises(InputError, match="in use by another"):
        append(Given([(1, 0, None)], []), path)
    assert Graph.open(path).edges == 2


def test_without_hard_links_the_graph_stays_and_the_way_out_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = listed(tmp_path / "g.h5")

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", refuse)
        with pytest.raises(RunError, match="convert with --stripe FOLDER"):
            append(Given([(1, 0, None)], []), path)
    assert [file.name for file in tmp_path.iterdir()] == ["g.h5"]
    assert Graph.open(path).edges == 2


def test_a_graph_without_degrees_stays_without(tmp_path: Path) -> None:
    edges: list[Edge] = [(0, 1, None), (5_000_000, 2, None)]
    made = ConvertOptions(layout="list", host_memory=32 << 20, renumber=False)
    convert(Given(edges, []), tmp_path / "g.h5", made)
    append(Given([(1, 1, None)], []), tmp_path / "g.h5")
    graph = Graph.open(tmp_path / "g.h5")
    assert graph.degree_index() is None
    assert graph.edges == 3
