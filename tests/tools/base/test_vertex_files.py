"""Files of vertices are looked up some lines at a time; what is wrong in one is named with its line."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from penstock.engine import Graph, from_edges
from penstock.storage.base.errors import InputError
from penstock.tools.base import vertex_files
from penstock.tools.base.vertex_files import LONGEST_LINE, read_pairs, read_sources, read_values
from support.covering import covering


@pytest.fixture(params=["none", "hubs"])
def named(request: pytest.FixtureRequest) -> Graph:
    """The vertices 07, 4, 7, n01, in this order or another."""
    return from_edges(["4", "7", "7"], ["7", "n01", "07"], order=request.param)


@pytest.fixture
def numbered() -> Graph:
    return from_edges([0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7, 8])


def by_id(graph: Graph, values: np.ndarray) -> dict[object, float]:
    ids = graph.original_ids()
    assert ids is not None
    return dict(zip(ids.tolist(), values.tolist(), strict=True))


@pytest.mark.parametrize("batch", [1, 2, 1 << 14])
def test_personalization_is_read(batch: int, named: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of a vertex are added up."""
    monkeypatch.setattr(vertex_files, "BATCH", batch)
    path = tmp_path / "p.txt"
    path.write_text("# who\n4 0.5\n7\n\n4,0.25\nn01 2\n")
    assert by_id(named, read_values(path, "personalization", named)) == {"4": 0.75, "7": 1.0, "n01": 2.0, "07": 0.0}


@pytest.mark.parametrize("line", ["-3", "4 -1", "9", "n01"])
def test_bad_personalization_names_the_line(line: str, numbered: Graph, tmp_path: Path) -> None:
    path = tmp_path / "p.txt"
    path.write_text(f"1 1\n{line}\n")
    with pytest.raises(InputError, match=r"p\.txt:2"):
        read_values(path, "personalization", numbered)
    with pytest.raises(InputError, match="absent"):
        read_values(tmp_path / "absent", "personalization", numbered)


@pytest.mark.parametrize("batch", [1, 1 << 14])
def test_values_are_read(batch: int, named: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer in CSV is such a file."""
    monkeypatch.setattr(vertex_files, "BATCH", batch)
    path = tmp_path / "v.csv"
    path.write_text("vertex,temperature\n4,-0.5\n# none\nn01 2e3\n")
    found = by_id(named, read_values(path, "initial", named))
    assert {name for name, value in found.items() if np.isnan(value)} == {"7", "07"}
    assert (found["4"], found["n01"]) == (-0.5, 2000.0)


@covering(
    "batch, line",
    [1, 1 << 14],
    ["7", "7,", "-3 1", "4 y", "1 2 3", "8 nan", "8 inf", "1 2", "vertex,name", "9 1", "07b 1"],
    strength=1,
)
def test_bad_values_name_the_line(
    batch: int, line: str, numbered: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second value for a vertex is one of them, and so are none and a stranger."""
    monkeypatch.setattr(vertex_files, "BATCH", batch)
    path = tmp_path / "v.csv"
    path.write_text(f"1,1\n{line}\n")
    with pytest.raises(InputError, match=r"v\.csv:2"):
        read_values(path, "initial", numbered)
    with pytest.raises(InputError, match=r"--time-step .*absent"):
        read_values(tmp_path / "absent", "time_step", numbered)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 2\n" + "x" * (LONGEST_LINE + 1), f"line 2 is longer than {LONGEST_LINE} characters"),
        ("1 2\n3 " + "y" * 5000 + " z " + "9" * 5000 + " 4 5", "is not a vertex id and a value"),
        ("1 2\n" + "y" * 5000 + " 3", "v.txt:2: vertex y.* is not in the graph"),
        ("1 2\n\xff", "v.txt is not UTF-8 text"),
    ],
)
def test_long_lines_of_values_are_refused_in_short(text: str, reason: str, numbered: Graph, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=reason) as caught:
        read_values(tmp_path / "v.txt", "initial", numbered)
    assert len(str(caught.value)) < 600


def test_devices_have_no_lines(numbered: Graph) -> None:
    with pytest.raises(InputError, match="--pairs /dev/zero is a device; name a file or a pipe"):
        read_pairs(Path("/dev/zero"), numbered)
    with pytest.raises(InputError, match="--personalization /dev/zero is a device; name a file or a pipe"):
        read_values(Path("/dev/zero"), "personalization", numbered)


def test_long_pairs_are_refused_in_short(numbered: Graph, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    for text, reason in (('1,"' + "y" * 200_000 + '"', "is no line of CSV"), (f"-{'9' * 5000},1", "a negative number")):
        path.write_text(f"1,2\n{text}\n")
        with pytest.raises(InputError, match=reason) as caught:
            read_pairs(path, numbered)
        assert len(str(caught.value)) < 600


@pytest.mark.parametrize("batch", [1, 1 << 14])
def test_pairs_and_sources_keep_their_order(
    batch: int, named: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vertex_files, "BATCH", batch)
    (tmp_path / "p.csv").write_text('vertex,other\nn01,7\n"07",4\nn01,7\n')
    assert read_pairs(tmp_path / "p.csv", named)[:].tolist() == [["n01", "7"], ["07", "4"], ["n01", "7"]]
    (tmp_path / "s.txt").write_text("n01\n\n4\nn01\n")
    assert read_sources(tmp_path / "s.txt", named)[:].tolist() == ["n01", "4", "n01"]
    for text, read in (("n01,x\n", read_pairs), ("x\n", read_sources)):
        (tmp_path / "w").write_text("4 4\n" * (read is read_pairs) + text)
        with pytest.raises(InputError, match=r"w:[12]: vertex x is not in the graph"):
            read(tmp_path / "w", named)
    for text, read in (("\n", read_pairs), ("\n", read_sources)):
        (tmp_path / "w").write_text(text)
        with pytest.raises(InputError, match="w has no"):
            read(tmp_path / "w", named)


def test_memory_holds_numbers_of_vertices_not_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some 100 bytes a line would be 1 MB."""
    monkeypatch.setattr(vertex_files, "BATCH", 1 << 10)
    count = 10_000
    graph = Graph.from_arrays(np.zeros(count + 1, np.int64), [], original_id=np.arange(count) * 3)
    lines = "".join(f"{number * 3}\n" for number in range(count))
    (tmp_path / "s.txt").write_text(lines)
    read_sources(tmp_path / "s.txt", graph)
    tracemalloc.start()
    try:
        found = read_sources(tmp_path / "s.txt", graph)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found[:].tolist() == (np.arange(count) * 3).tolist()
    assert peak < 60 * vertex_files.BATCH * 10 + 24 * count
