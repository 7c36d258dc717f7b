"""The windows of a graph file hold its edges, each those that lead to its vertices, and conversions write them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.engine import convert
from penstock.storage.base.errors import InputError
from penstock.storage.convert.append import append
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.convert.windows import most_windows, window_vertices
from penstock.storage.format.fingerprint import fingerprint
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.schema import ROWS_VERSION, WINDOWS_VERSION, HeaderError
from penstock.storage.format.writer import GraphWriter
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from penstock.storage.read.verify import verify
from support.graphs import on_disk, shape, weighed
from support.oracles import EdgeList

PAGE = 1 << 19
FOUR: dict[str, Any] = {"vertices": 4, "directed": True, "vertex_dtype": "u4", "weight_dtype": None}


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of 64 rows."""
    monkeypatch.setattr("penstock.storage.convert.windows.CHUNK_VERTICES", 64)
    monkeypatch.setattr("penstock.storage.format.row_pages.PAGE_ROWS", 64)


def rows_of(adjacency: Adjacency) -> list[list[tuple[int, Any]]]:
    """Neighbors and weights, row by row."""
    neighbors, weights = adjacency.edges_in(0, adjacency.edges)
    values = np.zeros(len(neighbors)) if weights is None else weights
    starts = adjacency.index().starts(0, adjacency.vertices + 1).tolist()
    pairs = list(zip(neighbors.tolist(), values.tolist(), strict=True))
    return [pairs[first:last] for first, last in pairwise(starts)]


def check_windows(graph: Graph, size: int) -> None:
    for adjacency in graph.adjacencies:
        assert len(adjacency.windows) == -(-graph.vertices // size)
        assert sum(window.edges for window in adjacency.windows) == graph.edges
        for number, window in enumerate(adjacency.windows):
            neighbors, _ = window.edges_in(0, window.edges)
            assert (neighbors // size == number).all()
        parts = [rows_of(window) for window in adjacency.windows]
        joined = [[edge for part in parts for edge in part[v]] for v in range(graph.vertices)]
        assert joined == rows_of(adjacency)  # rows ascend, and so do windows
    assert graph.path is not None
    assert verify(graph.path, threads=2).problems == []


@given(
    st.data(),
    st.integers(1, 40),
    st.integers(1, 45),
    st.booleans(),
    st.sampled_from([None, "uint8", "float64"]),
    st.integers(0, 2),
    st.sampled_from(["packed", "delta", "plain"]),
)
@settings(max_examples=15)
def test_windows_hold_the_edges_of_each_adjacency(
    data: st.DataObject, vertices: int, size: int, directed: bool, weights: str | None, stripes: int, encoding: str
) -> None:
    ids = st.integers(0, vertices - 1)
    ends = np.array(data.draw(st.lists(st.tuples(ids, ids), max_size=200)), np.int64).reshape(-1, 2).T
    edges = weighed(EdgeList(vertices, ends[0], ends[1], None, directed), weights)
    with TemporaryDirectory() as name:
        folders = [Path(name) / str(number) for number in range(stripes)]
        for folder in folders:
            folder.mkdir()
        options = {"window_vertices": size, "stripes": folders, "encoding": encoding}
        with mock.patch("penstock.storage.format.adjacency_writer.CHUNK_VERTICES", 16):
            check_windows(on_disk(edges, Path(name) / "g.h5", chunk_edges=32, **options), size)


def test_a_graph_is_the_same_with_windows_and_without(tmp_path: Path) -> None:
    edges = shape("skewed", weights="uint8")
    plain, windows = (on_disk(edges, tmp_path / f"{size}.h5", window_vertices=size) for size in (0, 50))
    assert fingerprint(plain) == fingerprint(windows)
    assert plain.out.windows == ()
    versions = []
    for size in (0, 50):
        with h5py.File(tmp_path / f"{size}.h5") as file:
            versions.append(int(file.attrs["penstock_format"]))
    assert versions == [ROWS_VERSION, WINDOWS_VERSION]


@pytest.mark.parametrize("wrong", ["window", "edges"])
def test_wrong_windows_are_found(tmp_path: Path, wrong: str) -> None:
    path, neighbors = tmp_path / "g.h5", {"window": ([0, 2], [3]), "edges": ([0, 0], [3])}[wrong]
    with GraphWriter(path, window_vertices=2, **FOUR) as writer:
        rows = writer.adjacency("out")
        for window, targets in ((None, [0, 2, 3]), *enumerate(neighbors)):
            rows = rows if window is None else writer.window("out", window, np.dtype(np.uint8))
            rows.append(np.array(targets, np.uint32))
            rows.degrees(np.array([len(targets), 0, 0, 0]))
            rows.finish()
    message = {"window": "edge 1 does not lead to the window", "edges": "windows of the out-adjacency do not hold"}
    assert message[wrong] in verify(path, threads=1).problems[0].what


def test_a_header_that_names_other_windows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.h5"

    def write() -> None:
        with GraphWriter(path, window_vertices=2, **FOUR) as writer:
            rows = writer.adjacency("out")
            rows.degrees(np.zeros(4, np.int64))
            rows.finish()

    with pytest.raises(HeaderError, match="arrays of out/windows/0"):
        write()
    assert not path.exists()


@pytest.mark.usefixtures("small_pages")
def test_conversions_write_windows_and_appends_make_them_anew(tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("".join(f"{v} {7 * v % 300}\n" for v in range(300)))
    (tmp_path / "more.txt").write_text("3 4\n400 5\n")
    options: dict[str, Any] = {"direction": "both", "renumber": False, "host_memory": "64MiB"}
    graph = convert(tmp_path / "edges.txt", tmp_path / "g.h5", windows=3, **options)
    check_windows(graph, 128)
    plain = convert(tmp_path / "edges.txt", tmp_path / "plain.h5", windows="auto", **options)
    assert plain.out.windows == ()
    assert fingerprint(graph) == fingerprint(plain)
    append(open_source([tmp_path / "more.txt"], None, IngestOptions(threads=1)), tmp_path / "g.h5", threads=1)
    grown = Graph.open(tmp_path / "g.h5")
    assert grown.edges == 302
    check_windows(grown, 192)


def test_as_few_windows_are_made_as_memory_has_room_for() -> None:
    for windows, vertices, memory, size in (
        (None, 1 << 25, 1 << 30, 0),
        ("auto", 1 << 25, 1 << 30, 0),
        ("auto", 1 << 25, 1 << 28, 1 << 24),
        ("auto", 1 << 25, 100 << 20, 11 * PAGE),
        ("auto", (1 << 25) + 1, 1 << 30, 0),
        ("auto", 0, 1 << 30, 0),
        (5, 1 << 25, 1 << 30, 13 * PAGE),
        (1000, 1 << 21, 1 << 30, PAGE),
        (3, 0, 1 << 30, 0),
    ):
        assert window_vertices(windows, vertices, memory, 256) == size


def test_no_more_windows_are_made_than_can_be_written() -> None:
    assert most_windows(4, 0, 64 << 20) == 5
    assert most_windows(8, 4, 1 << 20) == 1
    assert window_vertices("auto", 1 << 25, 100 << 20, 2) == 32 * PAGE
    assert window_vertices("auto", 1 << 25, 100 << 20, 1) == 0
    assert window_vertices(5, 1 << 25, 64 << 20, 5) == 13 * PAGE
    with pytest.raises(InputError, match=r"6 windows are written at once.* 64.0 MiB is too small.*at most 5 windows"):
        window_vertices(6, 1 << 25, 64 << 20, 5)


@pytest.mark.parametrize("windows", ["many", 0, 257, 1.5])
def test_numbers_of_windows_that_cannot_be_are_refused(windows: Any) -> None:
    with pytest.raises(InputError, match=r"--windows is .*; give auto, or a number from 1 to 256"):
        ConvertOptions(windows=windows)


def test_a_list_has_no_windows() -> None:
    with pytest.raises(InputError, match="--layout list does not take --windows 4"):
        ConvertOptions(layout="list", windows=4)
