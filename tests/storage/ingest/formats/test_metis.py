"""METIS: graphs in every FMT read back, and files that do not say the same forward and backward are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from support.reading import Edges, edges_of, small_blocks

FUZZED = {
    "metis": [
        b"% mesh\n4 4 001\n2 5 3 6\n1 5 4 7\n1 6 4 8\n2 7 3 8\n",
        b"3 2\n2 3\n1\n1\n",
        b"2 1 011 2\n1 1 2 5\n2 2 1 5\n",
    ]
}
"""Valid files, which `test_fuzz.py` damages."""


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 128)


def file_of(folder: Path, text: str) -> Path:
    path = folder / "graph.metis"
    path.write_bytes(text.encode())
    return path


@st.composite
def spelled(draw: st.DrawFn) -> tuple[str, int, Edges]:
    """A graph in METIS format, how many vertices it has, and its edges."""
    count = draw(st.integers(1, 12))
    ends = st.tuples(st.integers(1, count), st.integers(1, count))
    weights = draw(st.booleans())
    edges = {(min(e), max(e)): draw(st.integers(1, 9)) for e in draw(st.lists(ends, max_size=30))}
    sizes, constraints = draw(st.booleans()), draw(st.integers(0, 3))
    rows: list[list[str]] = [["7"] * (sizes + constraints) for _ in range(count)]
    for (u, v), weight in edges.items():
        for one, other in {(u, v), (v, u)}:
            rows[one - 1] += [str(other), str(weight)] if weights else [str(other)]
    fmt = f"{int(sizes)}{int(constraints > 0)}{int(weights)}"
    header = f"{count} {len(edges)}"
    if fmt != "000" or draw(st.booleans()):
        header += f" {draw(st.sampled_from([fmt, fmt.lstrip('0') or '0']))}"
        header += f" {constraints}" if constraints > 1 else ""
    lines = [header, *map(" ".join, rows)]
    for at in sorted(draw(st.lists(st.integers(0, len(lines)), max_size=3)), reverse=True):
        lines.insert(at, "% a comment 1 2 3, longer than a block of sixty-four bytes, to be passed")
    found = [(u - 1, v - 1, float(w)) if weights else (u - 1, v - 1) for (u, v), w in edges.items()]
    return "\n".join(lines) + draw(st.sampled_from(["\n", "\n\n"])), count, sorted(found)


@given(case=spelled())
def test_every_format_reads_back(case: tuple[str, int, Edges], tmp_path_factory: pytest.TempPathFactory) -> None:
    text, count, edges = case
    path = file_of(tmp_path_factory.mktemp("metis"), text)
    found, source = edges_of(path)
    assert sorted(found) == edges
    assert (source.known_vertices, source.undirected, source.bytes_done) == (count, True, len(text))
    assert sorted(edges_of(path, weights=False)[0]) == [edge[:2] for edge in edges]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("3 3\n2\n1 3\n2\n", "says 3 edges.*name 2 .*larger.* 2 with a smaller"),
        ("3 2\n2\n1 3\n\n", "1 with a smaller"),
        ("4 2\n2\n1\n4\n1\n", "rows do not agree"),
        ("3 1\n2\n1 4\n\n", r"line 3: neighbor '4' is no vertex.* 1 to 3"),
        ("2 1\n2\n1\n2\n", "line 4: it is one row more than the 2 vertices"),
        ("2 1\n0\n1\n", "neighbor '0' is no vertex"),
        ("2 1\n2\nx\n", "line 3: neighbor 'x' is not a number"),
        ("2 1 1\n2\n1 1\n", "line 2: its last neighbor has no weight"),
        ("2 1 011 2\n1\n", "line 2: it has 1 fields, and 2 come before"),
        ("2 1 2\n", "FMT of three digits 0 or 1"),
        ("2\n", "METIS header"),
        ("", "first line is missing"),
    ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=rf"graph\.metis(.|\n)*{words}"):
        edges_of(file_of(tmp_path, text))


def test_options_that_cannot_be(tmp_path: Path) -> None:
    path = file_of(tmp_path, "2 1\n2\n1\n")
    with pytest.raises(InputError, match="no weights to take"):
        edges_of(path, weights=True)
    with pytest.raises(InputError, match="no columns to choose"):
        edges_of(path, columns=(0, 1))


def test_of_two_weights_that_of_the_smaller_end_counts(tmp_path: Path) -> None:
    assert edges_of(file_of(tmp_path, "2 1 1\n2 5\n1 6\n"))[0] == [(0, 1, 5.0)]
