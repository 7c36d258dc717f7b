"""Answers as tables of other libraries: original ids ascending, absent values null."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest
from penstock.engine import Graph, Result, from_edges, run
from penstock.engine.programs.bfs import BFS
from penstock.storage.base.errors import InputError
from penstock.storage.tables import arrow_files, arrow_tables


@pytest.fixture
def result() -> Result:
    """0 -> 1 -> 2 and a lonely 3, whose original ids are 70, 2^63, 5, 30."""
    ids = np.array([70, 2**63, 5, 30], dtype=np.uint64)
    return run(BFS(source=70), Graph.from_arrays([0, 1, 2, 2, 2], [1, 2], original_id=ids))


def test_arrow_reads_a_result(result: Result) -> None:
    expected = {"vertex": [5, 30, 70, 2**63], "level": [2, None, 0, 1], "parent": [2**63, None, 70, 70]}
    assert pa.table(result).to_pydict() == expected
    assert result.to_arrow().to_pydict() == expected
    assert pa.table(result).schema == pa.schema(
        [("vertex", pa.uint64()), ("level", pa.uint32()), ("parent", pa.uint64())]
    )


def test_a_stream_gives_what_schema_its_reader_wants(result: Result) -> None:
    wanted = pa.schema([("vertex", pa.uint64()), ("level", pa.int64()), ("parent", pa.uint64())])
    assert pa.table(result, schema=wanted).schema == wanted


def test_strings_and_sides() -> None:
    named = run("bfs", from_edges(["b", "a"], ["a", "c"], undirected=True), source="b")
    assert pa.table(named).to_pydict() == {"vertex": ["a", "b", "c"], "level": [1, 0, 2], "parent": ["b", "b", "a"]}
    sided = run("degrees", from_edges([7, 7, 8], [8, 9, 9], bipartite=True))
    assert pa.table(sided).select(["vertex", "side"]).to_pydict() == {"vertex": [7, 8, 8, 9], "side": [0, 0, 1, 1]}


def test_batches_are_made_as_they_are_read(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(arrow_files, "GROUP_ROWS", 3)
    whole = arrow_tables.arrow_array
    monkeypatch.setattr(arrow_tables, "arrow_array", lambda part: made.append(len(part[0])) or whole(part))
    reader = pa.RecordBatchReader.from_stream(result)
    assert made == []
    assert reader.read_next_batch().num_rows == 3
    assert made == [3, 3, 3]
    assert reader.read_next_batch().num_rows == 1


def test_numbers_are_not_copied() -> None:
    found = run("pagerank", from_edges([0, 1, 2], [1, 2, 0]))
    column = found.to_arrow().column("rank").chunk(0)
    assert column.buffers()[1].address == found.fields["rank"].ctypes.data


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_what_is_not_installed_is_named(result: Result, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=f"to_{name} needs {name}, which cannot be imported .*: pip install {name}"):
        getattr(result, f"to_{name}")()


def test_pandas(result: Result) -> None:
    pandas = pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert frame["vertex"].tolist() == [5, 30, 70, 2**63]
    assert [str(kind) for kind in frame.dtypes] == ["uint64", "UInt32", "UInt64"]
    assert frame["parent"].tolist() == [2**63, pandas.NA, 70, 70]


def test_polars(result: Result) -> None:
    pytest.importorskip("polars")
    assert result.to_polars()["level"].to_list() == [2, None, 0, 1]
