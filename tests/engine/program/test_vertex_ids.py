"""Ids that are strings, and ids on two sides: asked for, given back as values, and written in every table format."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from penstock.engine import convert, from_edges, run
from penstock.engine.program import vertex_ids
from penstock.engine.program.vertex_ids import (
    StoredNumbers,
    VertexFinder,
    internal_id,
    names_by_rank,
    original_order,
    original_ranks,
    smallest_members,
    tie_breakers,
    vertices_of,
)
from penstock.storage.access import vertex_lookup
from penstock.storage.base.errors import InputError
from penstock.storage.format.frames import StringIdFrames
from penstock.storage.format.graph import Graph
from support.covering import covering

NAMES = ["b", "a", "c", "07", 'q"x', "é"]


@pytest.fixture(scope="module")
def named() -> Graph:
    """b → a → c, 07 → q"x, é alone but for a loop."""
    return from_edges(np.array(["b", "a", "07", "é"]), np.array(["a", "c", 'q"x', "é"]))


@pytest.fixture(scope="module")
def sided() -> Graph:
    """Sources 1, 2, 3 and targets 1, 9."""
    return from_edges([1, 1, 2, 3], [1, 9, 9, 1], bipartite=True)


def test_numbers_are_found_as_text_too() -> None:
    graph = from_edges([10, 20], [20, 30], renumber=True)
    assert internal_id(graph, "20") == internal_id(graph, 20) == 1
    with pytest.raises(InputError, match="vertex x is not in the graph: its 3 ids lie between 10 and 30"):
        internal_id(graph, "x")


def test_an_id_on_both_sides_must_say_which(sided: Graph) -> None:
    assert [internal_id(sided, name) for name in ("source:1", 2, 3, "target:1", 9)] == [0, 1, 2, 3, 4]
    with pytest.raises(InputError, match="both sides of the graph; say source:1 or target:1"):
        internal_id(sided, 1)
    with pytest.raises(InputError, match="vertex target:2 is not in the graph"):
        internal_id(sided, "target:2")


def test_values_that_are_vertices(named: Graph, sided: Graph) -> None:
    result = run("bfs", named, source="b")
    parents = dict(zip(named.original_ids().tolist(), result.fields["parent"].tolist(), strict=True))  # type: ignore[union-attr]
    assert parents == {"b": "b", "a": "b", "c": "a", "07": "", 'q"x': "", "é": ""}
    assert result.reached("parent").tolist() == result.reached("level").tolist()
    components = run("wcc", named).fields["component"].tolist()
    assert sorted(components) == ["07", "07", "a", "a", "a", "é"]
    assert run("wcc", sided).fields["component"].tolist() == [0] * 5
    assert run("bfs", sided, source="source:2").fields["parent"].tolist()[4] == 1


def test_groups_are_named_by_their_first(named: Graph) -> None:
    group = np.zeros(named.vertices, np.uint32)
    assert np.asarray(smallest_members(named, group)).tolist() == ["07"] * 6
    assert original_order(named).tolist() == list(range(6))


def test_tables_hold_strings(named: Graph, tmp_path: Path) -> None:
    result = run("bfs", named, source="b")
    for suffix in (".csv", ".parquet", ".h5", ".npy"):
        result.write(tmp_path / f"t{suffix}")
    ids = sorted(NAMES, key=str.encode)
    table: Any = pyarrow.parquet.read_table(tmp_path / "t.parquet")
    assert table["vertex"].to_pylist() == ids
    assert table["parent"].to_pylist() == [None, "b", "b", "a", None, None]
    options = pyarrow.csv.ConvertOptions(column_types={"vertex": pyarrow.string()})
    table = pyarrow.csv.read_csv(tmp_path / "t.csv", convert_options=options)
    assert table["vertex"].to_pylist() == ids
    with h5py.File(tmp_path / "t.h5") as file:
        assert file["vertex"].asstr()[()].tolist() == ids
    components = run("wcc", named)
    components.write(tmp_path / "c.npy")
    records = np.load(tmp_path / "c.npy")
    assert records["vertex"].tolist() == ids
    assert records["component"].tolist() == ["07", "a", "a", "a", "07", "é"]


def test_plain_strings_need_no_quotes(tmp_path: Path) -> None:
    run("wcc", from_edges(["x"], ["y"])).write(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "vertex,component\nx,x\ny,x\n"


def test_tables_hold_sides(sided: Graph, tmp_path: Path) -> None:
    result = run("bfs", sided, source="source:1")
    result.write(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines() == [
        "vertex,side,level,parent",
        "1,0,0,0",
        "2,0,,",
        "3,0,,",
        "1,1,1,0",
        "9,1,1,0",
    ]
    assert result.top(2) == [("source:1", 0), ("target:1", 1)]
    result.write(tmp_path / "t.npy")
    assert np.load(tmp_path / "t.npy")[["vertex", "side"]].tolist() == [(1, 0), (2, 0), (3, 0), (1, 1), (9, 1)]


@pytest.mark.parametrize("ids", [[2, 0, 1, 3], [30, 20, 10, 40], [2, 0, 1, 9], [2, 0, 2, 3]])
def test_places_of_ids_in_any_order(ids: list[int]) -> None:
    """Ids that are all numbers below that of the vertices are not sorted: each has its place."""
    graph = Graph.from_arrays([0, 2, 3, 4, 4], [1, 2, 3, 3], original_id=np.array(ids, np.uint32))
    order = sorted(range(4), key=lambda vertex: ids[vertex])
    assert original_order(graph).tolist() == order
    assert original_ranks(graph).tolist() == [order.index(vertex) for vertex in range(4)]
    none = np.iinfo(np.uint32).max
    names = names_by_rank(graph, np.array([3, none, 0], np.uint32))
    assert np.asarray(names).tolist() == [ids[order[3]], none, ids[order[0]]]


def test_what_breaks_ties_is_read_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("70 20\n20 30\n20 90\n")
    convert(tmp_path / "e.txt", tmp_path / "g.h5", order="hubs", renumber=True)
    graph = Graph.open(tmp_path / "g.h5")
    ids, ties = graph.original_ids(), tie_breakers(graph)
    assert isinstance(ties, StoredNumbers)
    assert ids is not None
    assert ids[0] == 20
    assert ties[1:3].tolist() == ids[1:3].tolist()
    assert ties[np.array([3, 0])].tolist() == ids[[3, 0]].tolist()
    assert run("degrees", graph).top(9) == [(20, 3), (30, 1), (70, 1), (90, 1)]


@covering("kind, on_disk, order", ("names", "gaps", "numbers", "sides", "named sides"), (False, True), ("none", "hubs"))
def test_many_ids_are_found_as_each_alone(kind: str, on_disk: bool, order: Any, tmp_path: Path) -> None:
    """Some 300 ids in any order, those that the graph lacks among them; some of them alone."""
    random = np.random.default_rng(7)
    ends = random.integers(0, 90, (2, 400)) * (1 if kind == "numbers" else 3)
    texts = kind in ("names", "named sides")
    lines = "".join(
        f"p{one:02}x{'y' * (one % 40)} p{other:02}\n" if texts else f"{one} {other}\n" for one, other in ends.T
    )
    (tmp_path / "e.txt").write_text(lines)
    options: dict[str, Any] = {"bipartite": True} if "side" in kind else {"renumber": kind != "numbers"}
    convert(tmp_path / "e.txt", tmp_path / "g.h5", order="none" if "side" in kind else order, **options)
    graph = Graph.open(tmp_path / "g.h5")
    if not on_disk:
        graph = replace(graph, original=graph.original_ids())
    names = ["x", "5000", 2**64 - 1, "p", "07", -4, "source:3", "target:3", "\ud800", *range(100)]
    ids = [*names, *map(str, range(40)), *(graph.original_ids_in(0, graph.vertices)[::-1].tolist())]
    found_ids = list(zip(ids, VertexFinder(graph).found(ids).tolist(), strict=True))
    for one, found in (*found_ids[:9], *found_ids[9::4]):
        try:
            assert internal_id(graph, one) == found
            assert vertices_of(graph, [one] * 100).tolist() == [found] * 100
        except InputError:
            assert found == -1
            with pytest.raises(InputError, match="vertex"):
                vertices_of(graph, [one] * 100)
    with pytest.raises(InputError, match="vertex x is not in the graph"):
        VertexFinder(graph).vertices(ids)
    every = graph.original_ids_in(0, graph.left or graph.vertices)[::-1].tolist()
    if graph.left is None:
        assert vertices_of(graph, every).tolist() == list(range(graph.vertices))[::-1]


@pytest.mark.parametrize("order", ["none", "hubs"])
def test_a_name_is_looked_for_without_strings_of_all(
    order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its message names the first and the last of them."""
    (tmp_path / "e.txt").write_text("b a\na c\nc n4\nc n10\nn4 zz\n")
    convert(tmp_path / "e.txt", tmp_path / "g.h5", order=order, string_ids=True)
    graph = Graph.open(tmp_path / "g.h5")
    names = graph.original_ids()
    assert names is not None
    monkeypatch.setattr(StringIdFrames, "whole", None)
    monkeypatch.setattr(vertex_lookup, "ROWS", 2)
    assert [internal_id(graph, name) for name in names] == list(range(6))
    with pytest.raises(InputError, match="vertex y is not in the graph: its 6 ids lie between a and zz"):
        internal_id(graph, "y")


def test_a_range_of_names_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So are a few of them; of many all are read."""
    (tmp_path / "e.txt").write_text("b a\na c\nc n4\nc é10\nn4 zz\n")
    convert(tmp_path / "e.txt", tmp_path / "g.h5", string_ids=True)
    graph = Graph.open(tmp_path / "g.h5")
    names, many = graph.original_ids(), np.arange(100) % 6
    assert names is not None
    assert graph.original_ids_of(many).tolist() == names[many].tolist()
    monkeypatch.setattr(StringIdFrames, "names", None)
    for first in range(7):
        for last in range(first, 7):
            assert graph.original_ids_in(first, last).tolist() == names[first:last].tolist()
    assert graph.original_ids_of(many[:9]).tolist() == names[many[:9]].tolist()


@pytest.mark.parametrize("order", ["none", "hubs"])
def test_a_few_names_are_found_by_one_reading(order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a file; what reads them all is called once for several."""
    (tmp_path / "e.txt").write_text("b a\na c\nc n4\nc n10\nn4 zz\n")
    convert(tmp_path / "e.txt", tmp_path / "g.h5", order=order, string_ids=True)
    graph = Graph.open(tmp_path / "g.h5")
    read, names = [], StringIdFrames.names
    monkeypatch.setattr(StringIdFrames, "names", lambda ids: read.append(ids) or names(ids))
    found = vertices_of(graph, ["zz", "a", "n10", "a"])
    assert len(read) == 1
    assert graph.original_ids_of(found).tolist() == ["zz", "a", "n10", "a"]


@pytest.mark.parametrize("left", [None, 0, 7, 30])
@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
def test_a_number_is_found_by_reading_each_chunk_once_at_most(left: int | None, kind: Any) -> None:
    """Of rising ids in a file; those between, before and behind them are refused. Several need no more readings."""
    sides = [np.arange(5, 5 + 3 * count, 3, dtype=kind) for count in (left or 0, 30 - (left or 0))]
    ids, read = np.concatenate(sides), []

    class Stored(SimpleNamespace):
        def original_ids_in(self, first: int, last: int) -> Any:
            assert 0 <= first < last <= 30
            read.append(first // 4)
            return ids[first:last]

    frames = SimpleNamespace(spec=SimpleNamespace(chunk_items=4))
    kept: dict[str, list[int]] = {}
    graph: Any = Stored(
        vertices=30, left=left, original=frames, reordered=False, id_dtype=np.dtype(kind), looked_up=kept
    )
    for number in [*range(100), 2**32 - 1, 2**32, 2**64 - 1, 2**64, -1]:
        found = []
        for name, low, end in (("source", 0, left or 0), ("target", left or 0, 30)):
            read.clear()
            kept.clear()
            asked = number if left is None else f"{name}:{number}"
            if number in ids[low:end].tolist():
                found.append(vertex_lookup.internal_id(graph, asked))
                assert ids[found[-1]] == number
                assert low <= found[-1] < end
                assert len(read) <= 8
                assert max(read.count(chunk) for chunk in read) <= 2
        if not found:
            with pytest.raises(InputError, match=f"vertex {number} is not in the graph: its 30 ids lie between"):
                vertex_lookup.internal_id(graph, number)
    read.clear()
    kept.clear()
    names = [one if left is None else f"{'source' if at < left else 'target'}:{one}" for at, one in enumerate(ids)]
    assert vertex_lookup.few_internal_ids(graph, [*names, *names[::-1]]) == [*range(30), *range(30)[::-1]]
    assert len(read) <= 9


@pytest.mark.parametrize("order", ["none", "hubs"])
@pytest.mark.parametrize("texts", [False, True])
def test_an_id_that_was_looked_up_is_found_again_without_reading(
    texts: bool, order: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the graph has it or not; only those of the last few are kept."""
    (tmp_path / "e.txt").write_text("".join(f"{'n' * texts}{one} {'n' * texts}{one * 7}\n" for one in range(1, 99)))
    convert(tmp_path / "e.txt", tmp_path / "g.h5", order=order, string_ids=texts)
    graph = Graph.open(tmp_path / "g.h5")
    ids = graph.original_ids()
    assert ids is not None
    for at, one in enumerate(ids.tolist()):
        assert internal_id(graph, one) == at
        assert 0 < len(graph.looked_up) <= vertex_lookup.KEPT
    run("bfs", graph, source=one)
    with pytest.raises(InputError, match="vertex 3000 is not in the graph"):
        internal_id(graph, 3000)
    monkeypatch.setattr(vertex_lookup, "_read_places", None)
    assert internal_id(graph, one) == at
    run("bfs", graph, source=one)
    with pytest.raises(InputError, match="vertex 3000 is not in the graph"):
        internal_id(graph, 3000)
    with pytest.raises(TypeError, match="not callable"):
        internal_id(graph, ids.tolist()[0])


def test_an_id_that_was_looked_up_is_not_taken_for_one_that_only_equals_it(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("1 2\n")
    convert(tmp_path / "e.txt", tmp_path / "g.h5", string_ids=True)
    graph = Graph.open(tmp_path / "g.h5")
    assert internal_id(graph, 1) == internal_id(graph, "1") == 0
    with pytest.raises(InputError, match="vertex True is not in the graph"):
        internal_id(graph, True)


def test_a_finder_reads_ids_once_where_more_than_a_few_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = from_edges(np.arange(300, 100, -1), np.arange(100, 300), renumber=True, order="hubs")
    sorted_sides, order = [], vertex_ids._order
    monkeypatch.setattr(vertex_ids, "_order", lambda ids: sorted_sides.append(ids) or order(ids))
    finder, asked = VertexFinder(graph), list(range(100, 150))
    assert not sorted_sides
    for _ in range(3):
        assert finder.names(finder.vertices(asked)).tolist() == asked
    assert len(sorted_sides) == 1
