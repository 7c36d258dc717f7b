"""Answers in an object store: whole or not at all, and never over another object unless asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from penstock.engine import Graph, Session, convert
from penstock.engine.programs.wcc import WCC
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.places import Address, exists
from pyarrow import fs
from support.commands import answered, refused
from support.object_store import object_store

JOB = """
graph = "g.h5"
output = "s3://bucket/jobs/all.parquet"

[[programs]]
name = "wcc"

[[programs]]
name = "degrees"
"""


DEGREES = {"out_degree": 1, "in_degree": 0, "degree": 1}


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    with object_store() as made:
        yield made


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "e.csv").write_text("1,2\n2,3\n7,8\n")
    convert(tmp_path / "e.csv", tmp_path / "g.h5")
    monkeypatch.chdir(tmp_path)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    return tmp_path


def rows_of(store: Any, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(f"bucket/{name}", filesystem=store).to_pylist()
    return rows


def test_an_answer_goes_to_a_store_whole(store: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = answered(capsys, "run", "wcc", "g.h5", "--output", "s3://bucket/a/wcc.parquet")
    assert said["output"] == "s3://bucket/a/wcc.parquet"
    assert rows_of(store, "a/wcc.parquet")[-1] == {"vertex": 8, "component": 7}
    assert list((folder / "temporary").iterdir()) == []
    message = refused(capsys, "run", "degrees", "g.h5", "--output", "s3://bucket/a/wcc.parquet")
    assert "s3://bucket/a/wcc.parquet exists already; --force replaces it" in message
    assert "component" in rows_of(store, "a/wcc.parquet")[0]
    answered(capsys, "run", "degrees", "g.h5", "--output", "s3://bucket/a/wcc.parquet", "--force")
    assert "degree" in rows_of(store, "a/wcc.parquet")[0]


def test_a_job_file_and_a_run_directory(store: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "job.toml").write_text(JOB)
    answered(capsys, "run", "job.toml", "--run-dir", "first")
    assert rows_of(store, "jobs/all.parquet")[0] == {"vertex": 1, "component": 1, **DEGREES}
    assert sorted(one.name for one in (folder / "first").iterdir() if one.suffix == ".parquet") == []
    assert "s3://bucket/jobs/all.parquet" in (folder / "first" / "job.toml").read_text()


def test_python_writes_to_a_store(store: Any) -> None:
    with Session(Graph.open("g.h5")) as session:
        session.run(WCC()).write("s3://bucket/p/wcc.csv")
    with store.open_input_stream("bucket/p/wcc.csv") as file:
        assert file.read().decode().splitlines()[:2] == ["vertex,component", "1,1"]


def test_a_store_that_fails_gets_nothing(store: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Session(Graph.open("g.h5")) as session:
        result = session.run(WCC())
        with pytest.raises(InputError, match=r"s3://others/wcc\.csv does not exist: there is no such bucket"):
            result.write("s3://others/wcc.csv")

        def fails(*_: object, **__: object) -> None:
            raise OSError("AWS Error INTERNAL_FAILURE during CompleteMultipartUpload operation")

        monkeypatch.setattr(fs, "copy_files", fails)
        with pytest.raises(RunError, match=r"s3://bucket/f/wcc\.csv: the store failed: AWS Error INTERNAL_FAILURE"):
            result.write("s3://bucket/f/wcc.csv")
    assert not exists(Address("s3://bucket/f/wcc.csv"))
    assert list((folder / "temporary").iterdir()) == []


def test_addresses_that_cannot_be_written_are_refused_before_the_run(
    store: Any, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "run", lambda *_, **__: pytest.fail("it ran"))
    said = refused(capsys, "run", "wcc", "g.h5", "--output", "s3://others/wcc.csv", "--force")
    assert "s3://others/wcc.csv does not exist: there is no such bucket" in said
    said = refused(capsys, "run", "wcc", "g.h5", "--output", "s3://bucket", "--format", "csv")
    assert "s3://bucket is a bucket; name a file in it" in said
    for words in (("--run-dir", "s3://bucket/a"), ("--checkpoint", "s3://bucket/a")):
        assert "s3://bucket/a is no file of this machine" in refused(capsys, "run", "wcc", "g.h5", *words)
    assert "s3://bucket/g.h5 is no file of this machine" in refused(capsys, "run", "wcc", "s3://bucket/g.h5")
    assert not (folder / "s3:").exists()


def test_edges_of_a_store_are_appended(store: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with store.open_output_stream("bucket/more.csv") as file:
        file.write(b"8,9\n")
    answered(capsys, "append", "g.h5", "s3://bucket/more.csv")
    assert Graph.open("g.h5").edges == 4
