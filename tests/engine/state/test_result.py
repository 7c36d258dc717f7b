"""Result tables in every format: original ids ascending, absent values absent."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from re import findall
from typing import Any

import numpy as np
import pytest
from penstock.engine import Field, Graph, Program, Result, Start, from_edges, run
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.widest import WidestPath
from penstock.storage.base.errors import InputError


@pytest.fixture
def result() -> Result:
    """0 -> 1 -> 2 and a lonely 3, whose original ids are 70, 2^63, 5, 30."""
    ids = np.array([70, 2**63, 5, 30], dtype=np.uint64)
    return run(BFS(source=70), Graph.from_arrays([0, 1, 2, 2, 2], [1, 2], original_id=ids))


@pytest.mark.parametrize("order", ["none", "degree"])
def test_npy_of_ids_from_0_on_has_the_values_alone(order: str, tmp_path: Path) -> None:
    graph = from_edges([0, 2, 3], [1, 1, 1], order=order)
    run("bfs", graph, source=3).write(tmp_path / "a.npy")
    assert np.load(tmp_path / "a.npy").tolist() == [2**32 - 1, 1, 2**32 - 1, 0]
    run("bfs", from_edges([0, 2, 9], [1, 1, 1], order=order), source=9).write(tmp_path / "b.npy")
    assert np.load(tmp_path / "b.npy")["vertex"].tolist() == [0, 1, 2, 9]


def test_an_unknown_format_and_an_existing_file_are_refused(result: Result, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no format of answers ends in '.xlsx'; use one of .csv"):
        result.write(tmp_path / "a.xlsx")
    result.write(tmp_path / "a.csv")
    with pytest.raises(InputError, match="--force"):
        result.write(tmp_path / "a.csv")
    result.write(tmp_path / "a.csv", force=True)


def test_dict_is_networkx_style(result: Result) -> None:
    assert result.to_dict() == {70: 0, 2**63: 1, 5: 2}
    assert result.to_dict("parent") == {70: 70, 2**63: 70, 5: 2**63}
    with pytest.raises(InputError, match="no field 'rank' in the answer; it has level, parent"):
        result.to_dict("rank")


def test_a_field_by_its_name(result: Result) -> None:
    assert result["level"].tolist() == result.fields["level"].tolist()
    assert result["parent"].tolist() == result.fields["parent"].tolist()
    assert list(result) == ["level", "parent"]
    assert "level" in result
    with pytest.raises(InputError, match="no field 'rank' in the answer; it has level, parent"):
        result["rank"]


def test_graphalytics(result: Result, tmp_path: Path) -> None:
    result.to_graphalytics(tmp_path / "a.out")
    assert (tmp_path / "a.out").read_text() == f"5 2\n30 9223372036854775807\n70 0\n{2**63} 1\n"
    with pytest.raises(InputError, match=r"'ldbc' is not a format of answers; there are csv, csv\.gz"):
        result.write(tmp_path / "b.out", format="ldbc")


def test_ids_are_those_of_the_fields(result: Result) -> None:
    assert result.ids.tolist() == [70, 2**63, 5, 30]
    assert dict(zip(result.ids.tolist(), result.fields["level"].tolist(), strict=True))[5] == 2


def test_sides_are_told_apart() -> None:
    """User 1 rates items 1 and 2: two vertices have the id 1."""
    found = run("degrees", from_edges([1, 1], [1, 2], bipartite=True))
    assert found.to_dict() == {"source:1": 2, "target:1": 1, "target:2": 1}
    assert found.ids.tolist() == [1, 1, 2]


def test_it_shows_itself_in_a_line(result: Result) -> None:
    assert repr(result) == "<Result of BFS on 4 vertices: level, parent; 3 iterations, converged>"
    assert result.measures == {}


def cells(html: str) -> list[list[str]]:
    """The rows of a table in HTML."""
    rows = findall("<tr>(.*?)</tr>", html)
    return [[unescape(cell) for cell in findall("<t[dh]>(.*?)</t[dh]>", row)] for row in rows]


def test_notebooks_show_the_first_rows_by_id(result: Result) -> None:
    assert cells(result._repr_html_()) == [
        ["vertex", "level", "parent"],
        ["5", "2", str(2**63)],
        ["30", "null", "null"],
        ["70", "0", "70"],
        [str(2**63), "1", "70"],
    ]
    names = from_edges([("b<i>", "a"), ("a", "c")])
    assert cells(run("bfs", names, source="a")._repr_html_())[2] == ["b<i>", "null", "null"]
    ranks = cells(run("pagerank", from_edges(range(50), range(1, 51)), max_iter=3)._repr_html_())
    assert [row[0] for row in ranks] == ["vertex", *map(str, range(10)), "…"]
    assert all(len(row[1]) <= 10 for row in ranks[1:])
    rated = cells(run("cf", from_edges([1, 1], [1, 2], [2.0, 3.0], bipartite=True), rank=20)._repr_html_())
    assert [row[0] for row in rated] == ["vertex", "source:1", "target:1", "target:2"]
    assert rated[0][-2:] == ["vector_10", "…"]


def test_top_of_names_and_of_large_numbers() -> None:
    numbers = Graph.from_arrays([0, 1, 1, 1], [1], original_id=np.array([2**63, 5, 2**64 - 2], dtype=np.uint64))
    assert run("wcc", numbers).top(2) == [(2**64 - 2, 2**64 - 2), (5, 5)]
    assert run("wcc", from_edges(["a", "c"], ["b", "d"])).top(2) == []


def test_top_of_the_smallest_number_of_a_kind() -> None:
    class Given(Program):
        x = Field(np.int8)
        max_iter = 0

        def start(self, graph: Graph, state: dict[str, Any]) -> Start:
            state["x"][:] = [-128, 5, 3]
            return Start(everything=True)

        def edge(x):  # type: ignore[no-untyped-def]
            return x

        def vertex(x, incoming):  # type: ignore[no-untyped-def]
            return min(x, incoming)

    found = run(Given(), Graph.from_arrays([0, 1, 2, 2], [1, 2]), kernels="reference")
    assert found.top(3) == [(1, 5), (2, 3), (0, -128)]


def test_top_is_the_nearest_or_the_largest(result: Result) -> None:
    widths = run(WidestPath(source=0), Graph.from_arrays([0, 2, 2, 2], [1, 2], np.array([5, 9], np.uint8)))
    assert widths.top(2) == [(0, 2**63 - 1), (2, 9)]
    assert result.top(2) == [(70, 0), (2**63, 1)]
    ranks = run(PageRank(), Graph.from_arrays([0, 1, 2, 2], [2, 2]))
    assert [vertex for vertex, _ in ranks.top(1)] == [2]
    assert sum(value for _, value in ranks.top(3)) == pytest.approx(1.0)
