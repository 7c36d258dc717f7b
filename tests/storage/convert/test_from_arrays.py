"""Graphs from arrays, tables and matrices of other libraries are those that a conversion makes of the same edges."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from penstock.engine import from_edges, from_scipy, from_table, run
from penstock.storage.base.errors import InputError
from penstock.storage.convert.convert import convert
from penstock.storage.convert.in_memory import EdgeArrays
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.graph import Graph
from support.conversions import stored


def random_edges(count: int, highest: int, seed: int = 1) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    return random.integers(0, highest, count, np.uint64), random.integers(0, highest, count, np.uint64)


def listed(graph: Graph) -> dict[str, list[tuple[Any, ...]]]:
    """Entries of each adjacency in original ids, as `conversions.stored` gives those of a file."""
    ids = graph.original_ids()
    names = list(range(graph.vertices)) if ids is None else ids.tolist()
    found = {}
    for direction, adjacency in (("out", graph.out), ("in", graph.into)):
        if adjacency is None or (direction == "in" and adjacency is graph.out):
            continue
        assert adjacency.arrays is not None
        neighbors, weights = adjacency.arrays
        rows = np.repeat(np.arange(graph.vertices), adjacency.index().degrees(0, graph.vertices))
        ends = (rows, neighbors) if direction == "out" else (neighbors, rows)
        values: list[Any] = [None] * len(rows) if weights is None else weights.tolist()
        pairs = zip(ends[0].tolist(), ends[1].tolist(), values, strict=True)
        found[direction] = sorted(
            ((names[u], names[v], w) for u, v, w in pairs), key=lambda edge: (*edge[:2], edge[2] or 0)
        )
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"direction": "out"},
        {"undirected": True},
        {"symmetrize": True, "drop_self_loops": True},
        {"dedupe": "sum"},
        {"renumber": True},
        {"order": "hubs", "dedupe": "max"},
        {"order": "degree", "dedupe": "min"},
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_edges_make_what_a_conversion_makes(tmp_path: Path, options: dict[str, Any], weighted: bool) -> None:
    sources, targets = random_edges(3000, 90)
    weights = np.random.default_rng(2).integers(0, 9, 3000) if weighted else None
    graph = from_edges(sources, targets, weights, **options)
    settings = ConvertOptions(**{"direction": "both", **options})
    source = EdgeArrays((sources, targets), weights, None, undirected=False)
    report = convert(source, tmp_path / "g.h5", settings)
    assert listed(graph) == stored(tmp_path / "g.h5")
    assert (graph.vertices, graph.edges, graph.input_edges) == (report.vertices, report.edges, 3000)
    assert graph.directed == report.directed


def test_pairs_as_igraph_gives_them() -> None:
    graph = from_edges([(0, 1), (1, 2), (5, 0)], vertices=9)
    assert listed(graph)["out"] == [(0, 1, None), (1, 2, None), (5, 0, None)]
    assert graph.vertices == 9
    assert from_edges([], []).vertices == 0
    assert from_edges(np.empty((0, 2), np.int64), vertices=3).vertices == 3


@pytest.mark.parametrize("kind", ["strings", "objects", "arrow", "mapping"])
def test_strings_are_ids(kind: str) -> None:
    names, others = ["zoe", "ann", "zoe", "élan"], ["ann", "élan", "zoe", "zoe"]
    table: Any = {"from": names, "to": others, "w": [1, 2, 3, 4]}
    if kind == "strings":
        table = {key: np.array(column) for key, column in table.items()}
    elif kind == "objects":
        table["from"] = np.array(names, object)
    elif kind == "arrow":
        table = pa.table(table)
    graph = from_table(table, "from", "to", "w")
    assert listed(graph)["out"] == sorted(zip(names, others, [1, 2, 3, 4], strict=True))
    result = run("bfs", graph, source="ann")
    assert dict(zip(result.columns()["vertex"][0].tolist(), result.fields["level"].tolist(), strict=True)) == {
        "ann": 0,
        "zoe": 2,
        "élan": 1,
    }


class Frame:
    """What a DataFrame of pandas or polars has of a table."""

    def __init__(self, **columns: Any) -> None:
        self.columns = list(columns)
        self._columns = columns

    def __getitem__(self, name: str) -> Any:
        return pa.chunked_array([self._columns[name]])


class Stream:
    """What a relation of duckdb has of a table: its columns are no arrays."""

    columns = ("from", "to", "km")

    def __init__(self, table: Any) -> None:
        self._table = table

    def __getitem__(self, name: str) -> Any:
        return self

    def __arrow_c_stream__(self, requested: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested)


class Lazy:
    """What a LazyFrame of polars is."""

    columns = ("from", "to", "km")

    def __init__(self, table: Any) -> None:
        self._table = table

    def collect_schema(self) -> Any:
        return self._table.schema

    def collect(self) -> Any:
        return self._table


@pytest.mark.parametrize("kind", [Stream, Lazy])
def test_tables_that_are_not_in_memory_yet(kind: Any) -> None:
    table = pa.table({"from": ["a", "b"], "to": ["b", "c"], "km": [Decimal("1.5"), Decimal("2")]})
    graph = from_table(kind(table), weight="km")
    assert listed(graph)["out"] == [("a", "b", 1.5), ("b", "c", 2.0)]


def test_whole_numbers_from_two_to_the_63_beside_smaller_ones() -> None:
    large = 2**63 + 1
    for graph in (
        from_edges([5, large], [large, 7]),
        from_edges([(5, large), (large, 7)], renumber=True),
        from_table({"u": [5, large], "v": [large, 7]}),
        from_edges([5, large], [large, 7], vertices=[5, 7, large]),
    ):
        assert sorted(graph.original_ids().tolist()) == [5, 7, large]
        assert graph.neighbors(5).tolist() == [large]
    with pytest.raises(InputError, match=r"row 1 \(from 0\), 18446744073709551616, is no id"):
        from_edges([5, 2**64], [1, 2])
    with pytest.raises(InputError, match=r"row 0 \(from 0\), -1, is no id"):
        from_edges([-1, large], [1, 2])


def test_columns_by_name_and_position() -> None:
    frame = Frame(a=[1, 2], b=[3, 4], c=[0.5, 1.5])
    assert listed(from_table(frame, weight="c"))["out"] == [(1, 3, 0.5), (2, 4, 1.5)]
    assert listed(from_table(frame, "b", 0))["out"] == [(3, 1, None), (4, 2, None)]
    assert listed(from_table(frame, 0, 1, renumber=True, direction="out"))["out"] == [(1, 3, None), (2, 4, None)]


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil"])
def test_sparse_matrices(layout: str) -> None:
    matrix = scipy.sparse.random(30, 20, 0.2, random_state=3)
    graph = from_scipy(matrix.asformat(layout))
    edges = sorted(zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True))
    assert listed(graph)["out"] == edges
    assert graph.vertices == 30
    assert from_scipy(matrix, weights=False).weight_dtype is None
    assert from_scipy(matrix > 0).weight_dtype is None
    assert from_scipy(matrix, bipartite=True).left == len(set(matrix.row.tolist()))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: from_edges([1.5], [2]), r"sources 1\.5 is not a whole number"),
        (lambda: from_edges([-1], [2]), "sources -1 is negative"),
        (lambda: from_edges([1, 2]), r"shape \(2,\).*pairs"),
        (lambda: from_edges([1], [2, 3]), "sources have shape"),
        (lambda: from_edges([1], [2], [np.nan]), "weight weights is nan"),
        (lambda: from_edges([1], [2], [1, 2]), "weights have shape"),
        (lambda: from_edges([1], [2], [-(2**53) - 1]), "the weight -9007199254740993 is a whole number"),
        (lambda: from_edges([1, 1], [2, 3], [5, 2**60 + 1], dedupe="sum"), "the weight 1152921504606846977 is a whole"),
        (lambda: from_edges([1], [2], colour=3), "'colour' is no option"),
        (lambda: from_edges([0], [1 << 40], renumber=False), "; renumber=True keeps such ids"),
        (lambda: from_edges(["a", None], ["b", "c"]), r"sources: row 1 \(from 0\) is missing \(None\).*drop"),
        (lambda: from_edges(["a", float("nan")], ["b", "c"]), r"row 1 \(from 0\) is missing \(nan\)"),
        (lambda: from_edges(["a", 5], ["b", "c"]), "neither whole numbers nor strings: row 1 .* is 5, of type int"),
        (lambda: from_edges([1.0, float("nan")], [1, 2]), r"row 1 .*sources is missing"),
        (lambda: from_edges([0, 2**70], [1, 2]), rf"row 1 .*{2**70}, is no id.*2\^64 - 1"),
        (lambda: from_edges([1, 2], [1, 2], [1.0, None]), r"weights: row 1 .*is None"),
        (lambda: from_table({"id": [1], "src": [2], "dst": [3]}), 'perhaps source="src", target="dst"'),
        (lambda: from_table({"ts": [1], "payer": [2], "payee": [3]}), 'perhaps source="payer", target="payee"'),
        (lambda: from_edges(["a", ""], ["b", "c"]), r"row 1 .*is empty"),
        (lambda: from_edges(["a"], ["b"], renumber=True), "numbered already"),
        (lambda: from_table({"a": [1]}, "a", "b"), "no column 'b'; it has a"),
        (lambda: from_table({"a": [1]}), "no column 1; it has 1: a"),
        (lambda: from_table([1, 2]), "list is no table"),
        (lambda: from_scipy(np.eye(3)), "no sparse matrix"),
        (lambda: from_scipy(scipy.sparse.eye_array(3) * 1j), "complex128"),
    ],
)
def test_what_is_no_graph_is_refused(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_long_strings_on_a_ring_and_in_another_order_than_listed() -> None:
    """NumPy 2.4 sorts these into a crash by its usual sort, and finds none of them in a second array."""
    names = [f"{number:04}, longer than what an array of strings holds in place" for number in range(3000)]
    ring = from_edges(names, names[1:] + names[:1])
    assert ring.original_ids().tolist() == names
    assert ring.neighbors(names[-1]).tolist() == names[:1]
    backwards = from_edges(names[::-1], names[::-1], vertices=names)
    assert [backwards.neighbors(name).tolist() for name in names[:3]] == [[name] for name in names[:3]]


@pytest.mark.parametrize("order", ["none", "degree", "hubs"])
def test_exactly_the_vertices_given_exist(order: str) -> None:
    graph = from_edges([7, 3], [3, 10], vertices=[10, 3, 5, 7, 3], order=order)
    ids = graph.original_ids()
    assert ids is not None
    assert sorted(ids.tolist()) == [3, 5, 7, 10]
    assert listed(graph)["out"] == [(3, 10, None), (7, 3, None)]
    levels = run("bfs", graph, source=7).to_dict("level")
    assert {vertex: levels[vertex] for vertex in (3, 7, 10)} == {3: 1, 7: 0, 10: 2}
    assert from_edges([1], [0], vertices=np.arange(3)).original is None
    assert from_edges([1], [0], vertices=3).vertices == 3
    assert from_edges([], [], vertices=[4, 9]).original_ids().tolist() == [4, 9]  # type: ignore[union-attr]


def test_strings_are_vertices_where_given() -> None:
    graph = from_edges(["b", "a"], ["a", "c"], vertices=["c", "a", "zoe", "b"])
    assert graph.original_ids().tolist() == ["a", "b", "c", "zoe"]  # type: ignore[union-attr]
    assert listed(graph)["out"] == [("a", "c", None), ("b", "a", None)]
    assert from_edges([], [], vertices=["b", "a"]).original_ids().tolist() == ["a", "b"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("sources", "targets", "vertices", "options", "words"),
    [
        ([1, 2], [2, 5], [1, 2], {}, "edge 1 .from 0.: target 5 is not in"),
        (["a", "b"], ["b", "a"], ["b"], {}, "edge 0 .from 0.: source a is not in"),
        ([1], [2], [], {}, "source 1 is not in"),
        ([1], [2], ["1", "2"], {}, "vertices are strings"),
        ([1], [2], [[1, 2]], {}, "shape"),
        ([1], [2], [1, 2], {"bipartite": True}, "which side"),
        ([1], [2], [1.5, 2], {}, "vertices"),
    ],
)
def test_what_vertices_exclude_is_refused(
    sources: Any, targets: Any, vertices: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        from_edges(sources, targets, vertices=vertices, **options)


@pytest.mark.parametrize("order", ["degree", "hubs", "paths"])
def test_strings_take_an_order_too(order: str) -> None:
    ends = [["a", "b", "c", "d"], ["c", "c", "d", "c"]]
    graph = from_edges(*ends, order=order)
    ids = graph.original_ids()
    assert ids is not None
    assert ids.tolist() == {"degree": list("cdab"), "hubs": list("cabd"), "paths": list("abdc")}[order]
    assert listed(graph)["out"] == sorted((u, v, None) for u, v in zip(*ends, strict=True))
    assert run("bfs", graph, source="a").to_dict("level") == {"a": 0, "c": 1, "d": 2}
    with pytest.raises(InputError, match=r"order is 'wrong'; choose one of none, degree, hubs, paths"):
        from_edges(*ends, order="wrong")
