"""DIMACS: arcs and edges read back, ids from 1 become ids from 0, and the problem line must tell the truth."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from support.reading import edges_of, small_blocks

FUZZED = {
    "dimacs": [b"c roads\np sp 5 5\na 1 2 2\na 2 3 5\na 3 1 1\na 5 2 9\na 5 4 7\n", b"p edge 3 2\ne 1 2\ne 2 3\n"]
}
"""Valid files, which `test_fuzz.py` damages."""


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 128)


def file_of(folder: Path, text: str) -> Path:
    path = folder / "graph.gr"
    path.write_bytes(text.encode())
    return path


ENDS = st.integers(1, 20)
ARCS = st.lists(st.tuples(ENDS, ENDS, st.integers(-5, 10**6)), max_size=60)


@given(arcs=ARCS, data=st.data())
def test_arcs_read_back(
    arcs: list[tuple[int, int, int]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = ["c 9th DIMACS", f"p sp 20 {len(arcs)}"]
    for u, v, weight in arcs:
        lines.append(data.draw(st.sampled_from([f"a {u} {v} {weight}", f" a\t{u}  {v} {weight}\r"])))
        lines += data.draw(st.sampled_from([[], ["c between"], ["c"], [""]]))
    path = file_of(tmp_path_factory.mktemp("gr"), "\n".join(lines) + data.draw(st.sampled_from(["", "\n"])))
    found, source = edges_of(path)
    assert found == [(u - 1, v - 1, float(weight)) for u, v, weight in arcs]
    assert (source.known_vertices, source.undirected, source.bytes_done) == (20, False, source.total_bytes)
    assert edges_of(path, weights=False)[0] == [(u - 1, v - 1) for u, v, _ in arcs]


def test_edges_of_a_coloring_problem_are_undirected(tmp_path: Path) -> None:
    found, source = edges_of(file_of(tmp_path, "c\np edge 4 2\ne 1 2\ne 4 1\n"))
    assert (found, source.undirected, source.known_vertices) == ([(0, 1), (3, 0)], True, 4)
    with pytest.raises(InputError, match="no weights to take"):
        edges_of(tmp_path / "graph.gr", weights=True)


@pytest.mark.parametrize("head", ["", "c roads\n\n"])
def test_arcs_without_a_problem_line_are_taken_as_they_stand(head: str, tmp_path: Path) -> None:
    path = file_of(tmp_path, head + "a 0 7 5\nc between\na 7 3 0\n")
    found, source = edges_of(path)
    assert found == [(0, 7, 5.0), (7, 3, 0.0)]
    assert (source.known_vertices, source.undirected, source.bytes_done) == (None, False, source.total_bytes)
    assert edges_of(path, weights=False)[0] == [(0, 7), (7, 3)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p sp 4 1\na 1 2 5\nc\na 3 3 0\n", "line 4: its problem line says 1 entries, and here is one more"),
        ("p sp 4 3\na 1 2 5\n", "says 3 entries, and it ends after 1"),
        ("p sp 4 1\na 1 5 5\n", "line 2: target 5 is outside 1..4"),
        ("p sp 4 1\na 0 1 5\n", "line 2: source 0 is outside 1..4"),
        ("p sp 4 1\nb 1 5 5\n", "line 2: a line of this file is 'c' and a comment, or 'a SOURCE"),
        ("p sp 4 1\na 1 5\n", "line 2: .*'a SOURCE TARGET WEIGHT'"),
        ("p sp 4 1\na 1 2 3 4\n", "line 2: .*'a SOURCE TARGET WEIGHT'"),
        ("p sp 4 1\na 1 -2 3\n", "line 2: target '-2' is negative"),
        ("p sp 4 1\na 1 2 x\n", "line 2: weight 'x' is not a number"),
        ("p edge 4 1\ne 1 2 3\n", "line 2: .*'e END END'"),
        ("p max 4 1\n", "line 1: the problem line must be"),
        ("p sp four 1\n", "line 1: the problem line must be"),
        ("c\ne 1 2\n", "line 2: .*--format text .*--columns 1,2,3"),
        ("c\na 1 2\n", "line 2: .*'a SOURCE TARGET WEIGHT'"),
        ("a 1 2 3\np sp 2 1\n", "line 2: .*'a SOURCE TARGET WEIGHT'"),
        ("c only\n", "problem line .* is missing"),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=rf"graph\.gr(.|\n)*{words}"):
        edges_of(file_of(tmp_path, text))


def test_options_that_cannot_be(tmp_path: Path) -> None:
    path = file_of(tmp_path, "p sp 1 0\n")
    with pytest.raises(InputError, match="no columns to choose"):
        edges_of(path, columns=(0, 1))
    with pytest.raises(InputError, match="dimacs is a whole graph"):
        open_source([path, path], None, IngestOptions())
    with pytest.raises(InputError, match="--string-ids is for text, csv, parquet, graphml"):
        edges_of(path, string_ids=True)
