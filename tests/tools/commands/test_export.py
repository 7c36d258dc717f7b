"""`penstock export`: what it writes is what libraries and `penstock convert` read, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse
from penstock.engine import Graph, from_edges
from penstock.storage.access.edge_files import ExportOptions, export_edges
from penstock.tools import cli
from support.commands import answered, refused

READERS: dict[str, Callable[[Path], Any]] = {
    "csv": pyarrow.csv.read_csv,
    "csv.gz": pyarrow.csv.read_csv,
    "tsv": lambda path: pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter="\t")),
    "tsv.gz": lambda path: pyarrow.csv.read_csv(path, parse_options=pyarrow.csv.ParseOptions(delimiter="\t")),
    "parquet": pyarrow.parquet.read_table,
    "feather": pyarrow.feather.read_table,
}


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    path = tmp_path / "towns.h5"
    from_edges(["rome", "oslo", "a,b"], ["oslo", "bern", "rome"], [1.5, 2, 3]).save(path)
    return path


@pytest.fixture
def roads(tmp_path: Path) -> Path:
    """Undirected, with spread ids, a loop, parallel edges and a vertex without edges."""
    path = tmp_path / "roads.h5"
    from_edges([7, 3, 3, 50], [3, 7, 900, 50], [1, 2, 3, 4], undirected=True, vertices=[3, 7, 50, 900, 901]).save(path)
    return path


@pytest.mark.parametrize("name", READERS)
def test_tables(name: str, towns: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = answered(capsys, "export", towns, tmp_path / f"e.{name}")
    assert (facts["edges"], facts["format"], facts["bytes"]) == (3, name, (tmp_path / f"e.{name}").stat().st_size)
    table = READERS[name](tmp_path / f"e.{name}")
    expected = {"source": ["a,b", "oslo", "rome"], "target": ["rome", "bern", "oslo"], "weight": [3, 2, 1.5]}
    assert table.to_pydict() == expected


def test_long_names_make_small_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk of edges with long names would take more memory than chunks of numbers."""
    names = [f"{number:04}" + "x" * 500 for number in range(3000)]
    graph = from_edges(names, names[1:] + names[:1], range(3000))
    monkeypatch.setattr("penstock.storage.tables.arrow_edges.TEXT_BYTES", 1 << 18)
    assert export_edges(graph, tmp_path / "e.feather", ExportOptions()) == 3000
    with pyarrow.ipc.open_file(tmp_path / "e.feather") as file:
        assert file.num_record_batches == 6
        assert file.read_all().to_pydict() == {
            "source": names, "target": names[1:] + names[:1], "weight": list(range(3000))
        }  # fmt: skip


def test_one_long_name_that_most_edges_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.storage.tables.arrow_edges.TEXT_BYTES", 1 << 16)
    hub, count = "h" * 16_000, 2000
    graph = from_edges([f"v{number}" for number in range(count)], [hub] * count)
    assert export_edges(graph, tmp_path / "e.feather", ExportOptions()) == count
    with pyarrow.ipc.open_file(tmp_path / "e.feather") as file:
        sizes = [file.get_batch(number).nbytes for number in range(file.num_record_batches)]
        assert sum(map(len, map(file.get_batch, range(len(sizes))))) == count
    assert max(sizes) < 17 << 16


def test_undirected_edges_once_or_twice(roads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = answered(capsys, "export", roads, tmp_path / "a.parquet")
    assert (facts["edges"], facts["without_edges"]) == (4, 1)
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert table.to_pydict() == {"source": [3, 3, 3, 50], "target": [7, 7, 900, 50], "weight": [1, 2, 3, 4]}
    assert answered(capsys, "export", roads, tmp_path / "b.csv", "--both-directions")["edges"] == 7
    assert cli.run_command(["export", str(roads), str(tmp_path / "c.csv")]) == 0
    shown = capsys.readouterr().out
    assert "4 (undirected, each once)" in shown
    assert "1 of the vertices, which are not in the table" in shown


@pytest.mark.parametrize("suffix", ["npz", "csv.gz", "parquet"])
def test_convert_reads_it_again(suffix: str, roads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, again = tmp_path / f"e.{suffix}", tmp_path / "again.h5"
    answered(capsys, "export", roads, table)
    weights = [] if suffix == "npz" else ["--weights"]
    answered(capsys, "convert", table, again, "--undirected", "--renumber", *weights)
    first, second = (pyarrow.table(Graph.open(path)) for path in (roads, again))
    assert first.to_pydict() == second.to_pydict()


def test_a_matrix_of_scipy(roads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answered(capsys, "export", roads, tmp_path / "m.npz", "--both-directions")
    matrix = scipy.sparse.load_npz(tmp_path / "m.npz")
    assert matrix.shape == (902, 902)
    assert sorted(zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)) == [
        (3, 7, 1), (3, 7, 2), (3, 900, 3), (7, 3, 1), (7, 3, 2), (50, 50, 4), (900, 3, 3),
    ]  # fmt: skip
    from_edges([0, 1], [1, 2]).save(tmp_path / "plain.h5")
    answered(capsys, "export", tmp_path / "plain.h5", tmp_path / "p.npz")
    plain = scipy.sparse.load_npz(tmp_path / "p.npz")
    assert (plain.dtype, plain.toarray().nonzero()[1].tolist()) == (np.dtype(bool), [1, 2])


def test_standard_output(towns: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert cli.run_command(["export", str(towns), "-", "--format", "tsv"]) == 0
    shown = capfdbinary.readouterr()
    assert shown.out == b"source\ttarget\tweight\na,b\trome\t3\noslo\tbern\t2\nrome\toslo\t1.5\n"
    assert shown.err == b""


def test_what_cannot_be_written_is_refused(
    towns: Path, roads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no format of edges ends in '.xls'; use one of .csv, .csv.gz" in refused(capsys, "export", towns, "a.xls")
    assert "npz holds numbers, and ids are strings" in refused(capsys, "export", towns, tmp_path / "a.npz")
    assert "npz cannot be written to standard output" in refused(capsys, "export", roads, "-", "--format", "npz")
    assert "is directed, so" in refused(capsys, "export", towns, tmp_path / "a.csv", "--both-directions")
    (tmp_path / "b.csv").write_text("mine")
    assert "--force replaces it" in refused(capsys, "export", towns, tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text() == "mine"
    from_edges([1], [1], bipartite=True).save(tmp_path / "two.h5")
    assert "the graph is bipartite" in refused(capsys, "export", tmp_path / "two.h5", tmp_path / "c.npz")
    assert not list(tmp_path.glob(".*"))
