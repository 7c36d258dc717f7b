"""Adjacency lists in text: what is written reads back, whatever the spelling and the blocks' size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from support.reading import edges_of, small_blocks

FUZZED = {
    "adjacency": [b"0: 1 2\n1: 2\n4: 1,3\n", b"7\t1,2,3\n"],
    "rows": [b"1 2\n2\n0\n\n1 3\n"],
    "webgraph": [b"5\n1 2\n2\n0\n\n1 3\n"],
}
"""Valid files, which `test_fuzz.py` damages."""


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 128)


def file_of(folder: Path, text: str, name: str = "graph.adj") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


IDS = st.one_of(st.integers(0, 30), st.integers(0, 2**64 - 1))
ROWS = st.lists(st.lists(IDS, max_size=40), max_size=12)
BETWEEN = st.sampled_from([" ", "\t", ",", " , ", "  "])
END = st.sampled_from(["\n", "\r\n", " \n"])


@given(rows=ROWS, owners=st.lists(IDS, min_size=12, max_size=12), data=st.data())
def test_owned_rows_read_back(
    rows: list[list[int]], owners: list[int], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A row may be longer than a block, which then ends between two neighbors."""
    lines, expected = [], []
    for owner, row in zip(owners, rows, strict=False):
        after = data.draw(st.sampled_from([": ", " : ", "\t", " ", ":"] + [","] * bool(row)))
        lines.append(f"{owner}{after}{data.draw(BETWEEN).join(map(str, row))}{data.draw(END)}")
        lines.append(data.draw(st.sampled_from(["", "\n", "# c 1 2\n", "  % 1\n"])))
        expected += [(owner, neighbor) for neighbor in row]
    path = file_of(tmp_path_factory.mktemp("rows"), "".join(lines).rstrip("\n"))
    found, source = edges_of(path)
    assert found == expected
    batches = open_source([path], "adjacency", IngestOptions()).batches()
    lone = [batch.lone.tolist() for batch in batches if batch.lone is not None]
    assert [one for part in lone for one in part] == [
        owner for owner, row in zip(owners, rows, strict=False) if not row
    ]
    assert source.known_vertices is None


@given(rows=ROWS, data=st.data())
def test_numbered_rows_read_back(
    rows: list[list[int]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    between, end = data.draw(BETWEEN), data.draw(END)
    lines = [between.join(map(str, row)) + end for row in rows]
    path = file_of(tmp_path_factory.mktemp("rows"), "# numbered\n" + "".join(lines))
    found, source = edges_of(path, "rows")
    assert found == [(row, neighbor) for row, neighbors in enumerate(rows) for neighbor in neighbors]
    assert source.known_vertices == len(rows)


@given(count=st.integers(0, 40), data=st.data())
def test_webgraph_text_reads_back(count: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    row = st.lists(st.integers(0, max(0, count - 1)), max_size=20 if count else 0)
    rows = [data.draw(row) for _ in range(count)]
    text = f"{count}\n" + "".join(" ".join(map(str, neighbors)) + " \n" for neighbors in rows)
    found, source = edges_of(file_of(tmp_path_factory.mktemp("web"), text, "web.graph-txt"))
    assert found == [(row, neighbor) for row, neighbors in enumerate(rows) for neighbor in neighbors]
    assert source.known_vertices == count


def test_weights_follow_their_neighbors(tmp_path: Path) -> None:
    many = " ".join(f"{i} {i}.5" for i in range(100))
    path = file_of(tmp_path, f"7: 1 0.5 2 -3\n8\n9 {many}\n")
    expected = [(7, 1, 0.5), (7, 2, -3.0), *[(9, i, i + 0.5) for i in range(100)]]
    assert edges_of(path, weights=True)[0] == expected


@pytest.mark.parametrize(
    ("format", "text", "options", "line", "words"),
    [
        ("adjacency", "1: 2\nx 3\n", {}, 2, "vertex 'x' is not a number"),
        ("adjacency", "1: 2\n\n3: 4 y\n", {}, 3, "neighbor 'y' is not a number"),
        ("adjacency", "1: 2 -3\n", {}, 1, "neighbor '-3' is negative"),
        ("adjacency", "1: 2,,3\n", {}, 1, "neighbor '' is an empty field"),
        ("adjacency", "1: 2,\n", {}, 1, "neighbor '' is an empty field"),
        ("adjacency", f"5 {2**64}\n", {}, 1, "larger than"),
        ("adjacency", "1: 2 3 4\n", {"weights": True}, 1, "no weight"),
        ("adjacency", "1: 2 x\n", {"weights": True}, 1, "weight 'x' is not a number"),
        ("rows", "1 2\n3 z\n", {}, 2, "neighbor 'z'"),
        ("webgraph", "2\n1\n0\n1\n", {}, 4, "one row more than the 2 vertices"),
        ("webgraph", "2\n1\n2\n", {}, 3, "neighbor '2' is no vertex.* 0 to 1"),
        ("webgraph", "1 2\n1\n", {}, 1, "--format rows"),
    ],
)
def test_a_bad_line_is_named(
    tmp_path: Path, format: str, text: str, options: dict[str, Any], line: int, words: str
) -> None:
    path = file_of(tmp_path, text)
    with pytest.raises(InputError, match=rf"graph\.adj, line {line}: (.|\n)*{words}"):
        edges_of(path, format, **options)


def test_a_truncated_count_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="states 3 vertices, and it has 2 rows"):
        edges_of(file_of(tmp_path, "3\n1\n0\n"), "webgraph")
    with pytest.raises(InputError, match="first line is missing"):
        edges_of(file_of(tmp_path, "# nothing\n"), "webgraph")


def test_what_is_no_adjacency_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no adjacency list"):
        edges_of(file_of(tmp_path, "7" * 500), "rows")
    with pytest.raises(InputError, match="carriage returns alone"):
        edges_of(file_of(tmp_path, "1 2\r3 4\r"), "adjacency")
    with pytest.raises(InputError, match="no columns to choose"):
        edges_of(file_of(tmp_path, "1 2\n"), "rows", columns=(0, 1))
    path = file_of(tmp_path, "1\n0\n")
    with pytest.raises(InputError, match="whole graph"):
        open_source([path, path], "rows", IngestOptions())


def test_several_files_and_a_byte_order_mark(tmp_path: Path) -> None:
    one, two = file_of(tmp_path, "\ufeff1: 2 3\n", "one.adj"), file_of(tmp_path, "4: 5\n", "two.adjlist")
    source = open_source([one, two], None, IngestOptions())
    found = [np.stack([batch.sources, batch.targets]).T.tolist() for batch in source.batches()]
    assert [pair for part in found for pair in part] == [[1, 2], [1, 3], [4, 5]]
    assert source.bytes_done == source.total_bytes
