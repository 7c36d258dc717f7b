"""Edges that come row by row take the short way, and it gives what plain Python and the long way give."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.storage.convert import convert as story
from penstock.storage.convert.convert import convert
from penstock.storage.convert.csr_passthrough import CsrPassthrough
from penstock.storage.convert.sort import workspace
from penstock.storage.convert.sort.groups import SortPlan
from penstock.storage.convert.sort.options import ConvertOptions, ConvertReport
from penstock.storage.convert.sort.sort_groups import Ordering, Sorter
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions, RowPiece
from penstock.storage.ingest.open_source import open_source
from support.conversions import Edge, expected, stored

WEIGHT_KINDS = {"whole": "<u4", "float": "<f8"}


def rows_of(edges: list[Edge], vertices: int, folder: Path, kind: str | None) -> list[Path]:
    """The edges as files of raw CSR arrays, rows in the order given."""
    edges = sorted(edges, key=lambda edge: edge[0])
    degrees = np.bincount([edge[0] for edge in edges], minlength=vertices) if edges else np.zeros(vertices)
    arrays: list[Any] = [
        np.concatenate([[0], np.cumsum(degrees)]).astype("<u8"),
        np.array([edge[1] for edge in edges], "<u4"),
    ]
    if kind is not None:
        arrays.append(np.array([edge[2] for edge in edges], WEIGHT_KINDS[kind]))
    names = [folder / f"part{number}" for number in range(len(arrays))]
    for name, array in zip(names, arrays, strict=True):
        array.tofile(name)
    return names


def converted(names: list[Path], options: ConvertOptions, output: Path) -> ConvertReport:
    source = open_source(names, "csr", IngestOptions(threads=2))
    report = convert(source, output, options)
    assert report.input_bytes == source.total_bytes
    return report


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes every time that rows are taken as they are."""
    taken: list[str] = []
    rows = CsrPassthrough.rows

    def noted(self: CsrPassthrough) -> Iterator[Any]:
        taken.append("straight")
        return rows(self)

    monkeypatch.setattr(CsrPassthrough, "rows", noted)
    return taken


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_rows(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Sorted rows and others, with loops and parallel edges, longer than a piece, in any group size."""
    folder = tmp_path_factory.mktemp("rows")
    vertices = data.draw(st.sampled_from([1, 2, 5, 40, 3000]), "vertices")
    kind = data.draw(st.sampled_from([None, "whole", "float"]), "weights")
    weight: st.SearchStrategy[Any] = st.integers(0, 70000) if kind == "whole" else st.none()
    if kind == "float":
        weight = st.integers(-64, 64).map(lambda value: value / 8)
    vertex = st.integers(0, vertices - 1)
    source = st.just(vertices // 2) if data.draw(st.booleans(), "hub") else vertex
    edges = data.draw(st.lists(st.tuples(source, vertex, weight), max_size=60), "edges")
    if data.draw(st.booleans(), "sorted"):
        edges = sorted(edges, key=lambda edge: edge[:2])
    group = data.draw(st.sampled_from([1, 2, 5, 40]), "edges of a group")
    options = ConvertOptions(
        dedupe=data.draw(st.sampled_from([None, "first", "sum", "min", "max"]), "dedupe"),
        drop_self_loops=data.draw(st.booleans(), "no loops"),
        direction=data.draw(st.sampled_from(["out", "both"]), "direction"),
        threads=2,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story, "sort_plan", lambda *_: SortPlan(2, group, 3 * group))
        report = converted(rows_of(edges, vertices, folder, kind), options, folder / "graph.h5")
    graph = Graph.open(folder / "graph.h5")
    found = stored(folder / "graph.h5")
    assert found["out"] == expected(edges, options)
    assert found.get("in", found["out"]) == found["out"]
    assert ("in" in found) is (options.direction == "both")
    assert (graph.vertices, graph.edges, graph.input_edges) == (vertices, len(found["out"]), len(edges))
    assert report.scratch_bytes == 0
    assert (graph.weight_dtype is None) is (kind is None)


def test_a_row_alone_whose_first_neighbor_shares_its_top_bit_with_the_last_vertex(tmp_path: Path) -> None:
    """The range of a piece's keys is that of its rows, not of the neighbors that happen to stand first and last."""
    edges: list[Edge] = [(20, 32, None), (20, 0, None)]
    converted(rows_of(edges, 40, tmp_path, None), ConvertOptions(threads=2), tmp_path / "graph.h5")
    assert stored(tmp_path / "graph.h5")["out"] == sorted(edges)


def test_only_options_that_move_edges_take_the_long_way(tmp_path: Path, ways: list[str]) -> None:
    edges: list[Edge] = [(0, 1, None), (0, 0, None), (2, 1, None)]
    names = rows_of(edges, 4, tmp_path, None)
    for options in (ConvertOptions(force=True), ConvertOptions(force=True, dedupe="sum", direction="both")):
        converted(names, options, tmp_path / "graph.h5")
        assert ways.pop() == "straight"
    for changed in (
        {"undirected": True},
        {"symmetrize": True},
        {"renumber": True},
        {"order": "hubs"},
        {"order": "degree"},
    ):
        given_options = ConvertOptions(force=True, **changed)  # type: ignore[arg-type]
        converted(names, given_options, tmp_path / "graph.h5")
        assert stored(tmp_path / "graph.h5")["out"] == expected(edges, given_options)
        assert ways == []


def test_ids_from_32_bits_on(tmp_path: Path) -> None:
    """Wide keys: more vertices than a file of offsets for a test can have, so the source is made here."""
    first = (1 << 37) + 3

    class Wide:
        def pieces(self, limit: int) -> Iterator[RowPiece]:
            yield RowPiece(first, np.array([0, 3, 3, 5], np.int64))
            yield RowPiece(first + 5, np.array([5, 7], np.int64), whole=False)
            yield RowPiece(first + 5, np.array([7, 8], np.int64), whole=False)

        def load(self, piece: RowPiece) -> tuple[Any, None]:
            targets = np.array([first, 1, 1, 7, 2, 9, 8, first + 5], np.uint64)
            return targets[piece.offsets[0] : piece.offsets[-1]], None

    vertices = first + 6
    ordering = Ordering(vertices=vertices, vertex_dtype=np.dtype(np.uint64), weight_dtype=None, rule=None, wide=True)
    given_source: Any = Wide()
    given_source.name, given_source.total_bytes, given_source.known_vertices = "wide", 64, vertices
    given_source.undirected, given_source.bytes_done = False, 0
    options = ConvertOptions(threads=2)
    with workspace.Workspace(given_source, tmp_path / "graph.h5", options, workspace.ignore) as space:
        sorter = Sorter(space.pool, SortPlan(2, 100, 300), space.room, 64)
        found = list(CsrPassthrough(given_source, sorter, ordering, drop_loops=False).rows())
    assert [rows.first for rows in found] == [first, first + 5]
    assert [rows.degrees.tolist() for rows in found] == [[3, 0, 2], [3]]
    assert [rows.neighbors.tolist() for rows in found] == [[1, 1, first, 2, 7], [8, 9, first + 5]]


def test_what_is_wrong_with_the_input_leaves_nothing(tmp_path: Path) -> None:
    names = rows_of([(0, 1, 1.0), (1, 0, np.nan)], 2, tmp_path, "float")
    with pytest.raises(InputError, match=r"a weight is nan"):
        converted(names, ConvertOptions(), tmp_path / "graph.h5")
    np.array([1, 7], "<u4").tofile(names[1])
    with pytest.raises(InputError, match=r"neighbor 7 \(number 1\) is no vertex"):
        converted(names[:2], ConvertOptions(), tmp_path / "graph.h5")
    assert not list(tmp_path.glob("*.h5*"))
