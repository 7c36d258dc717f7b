"""One table of all answers of a job: the columns that each program writes alone, side by side, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
from penstock.engine import convert
from penstock.storage.results import column_file
from penstock.storage.tables.formats import ANSWERS, formats_of
from penstock.storage.tables.synced_file import write_all
from penstock.tools import cli
from support.commands import answered, refused

NAMES = ["rank", "component", "strong_component", "level", "parent", "distance_ann", "distance_cy", "degree"]
JOB = """
graph = "g.h5"

[[programs]]
name = "pagerank"

[[programs]]
name = "wcc"

[[programs]]
name = "scc"
prefix = "strong_"

[[programs]]
name = "bfs"
source = "ann"

[[programs]]
name = "distances"
source = ["ann", "cy"]

[[programs]]
name = "degrees"
"""
EDGES = "ann,bob\nbob,cy\ncy,ann\ncy,dan\neve,dan\nfay,gus\n"
PEOPLE = "id,age\nann,31\nbob,\ncy,5\ndan,7\neve,8\nfay,9\ngus,1\n"


@pytest.fixture(autouse=True, params=["none", "degree"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job on a graph of names, in their order or in another."""
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text(f"from,to\n{EDGES}")
    Path("people.csv").write_text(PEOPLE)
    convert("edges.csv", "g.h5", string_ids=True, direction="both", order=request.param, vertices="people.csv")
    Path("job.toml").write_text(JOB)
    return tmp_path


def run(*arguments: object) -> None:
    assert cli.run_command(["run", "job.toml", *map(str, arguments), "-q"]) == 0


def alone(program: str, *arguments: str) -> dict[str, list[Any]]:
    """What a program writes by itself."""
    assert cli.run_command(["run", program, "g.h5", *arguments, "-q", "--force", "--output", "alone.parquet"]) == 0
    found: dict[str, list[Any]] = pq.read_table("alone.parquet").to_pydict()
    return found


def test_the_table_has_what_each_program_writes_alone(capsys: pytest.CaptureFixture[str]) -> None:
    facts = answered(capsys, "run", "job.toml", "--output", "all.parquet")
    assert facts["output"] == "all.parquet"
    assert [one["output"] for one in facts["programs"]] == [None] * 6
    found = pq.read_table("all.parquet").to_pydict()
    wanted = alone("pagerank") | alone("wcc")
    wanted |= {name if name == "vertex" else f"strong_{name}": some for name, some in alone("scc").items()}
    wanted |= alone("bfs", "--source", "ann") | alone("distances", "--source", "ann", "--source", "cy")
    wanted |= alone("degrees")
    assert found == wanted
    assert list(found) == list(wanted)
    assert found["distance_cy"][3] == 1
    assert found["level"][5] is None


@pytest.mark.parametrize(
    "format", [one for one in formats_of(ANSWERS) if one not in ("npy", "graphalytics", "graphar")]
)
def test_every_format_has_all_columns(format: str, capfd: pytest.CaptureFixture[str]) -> None:
    run("--output", "all", "--format", format)
    assert Path("all").stat().st_size
    if format == "csv":
        head, first, *_ = Path("all").read_text().splitlines()
        assert head.split(",")[1:9] == NAMES
        assert first.startswith("ann,0.")
        run("--output", "-", "--join", "age")
        assert capfd.readouterr().out.splitlines()[:2] == [f"{head},age", f"{first},31"]
    if format == "hdf5":
        run("--output", "one.parquet", "--force")
        with h5py.File("all") as file:
            assert set(file) == {"vertex", *NAMES, "in_degree", "out_degree"}
            assert file["level"][5] == np.iinfo(np.uint32).max
            assert file["rank"][:].tolist() == pq.read_table("one.parquet")["rank"].to_pylist()


def test_the_file_may_say_it_and_a_run_directory_repeats_it(folder: Path) -> None:
    Path("sub").mkdir()
    Path("sub/job.toml").write_text('output = "all.csv"\njoin = "age"\n' + JOB.replace("g.h5", "../g.h5"))
    assert cli.run_command(["run", "sub/job.toml", "-q"]) == 0
    wanted = Path("sub/all.csv").read_text()
    assert wanted.splitlines()[0].endswith(",age")
    assert cli.run_command(["run", "sub/job.toml", "-q", "--run-dir", "one"]) == 0
    assert cli.run_command(["run", "one/job.toml", "-q", "--run-dir", "two"]) == 0
    for place in ("one", "two"):
        assert Path(place, "all.csv").read_text() == wanted
        assert not list(Path(place).glob("*.parquet"))
    run("--run-dir", "three", "--output", folder / "far.csv")
    assert "far.csv" in Path("three/job.toml").read_text()


def test_a_program_has_its_own_output_too() -> None:
    Path("job.toml").write_text(JOB + 'output = "degrees.csv"\nprefix = "d_"\n')
    run("--output", "all.csv")
    assert Path("degrees.csv").read_text().splitlines()[0] == "vertex,d_degree,d_in_degree,d_out_degree"
    assert Path("all.csv").read_text().splitlines()[0].endswith(",d_degree,d_in_degree,d_out_degree")


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (('prefix = "strong_"', ""), ["--output", "a.csv"], "wcc and scc both have a column 'component'"),
        (('"strong_"', '"a/b"'), ["--output", "a.csv"], "--prefix a/b"),
        (("", ""), [], "--prefix strong_"),
        (("", ""), ["--output", "a.npy"], "a.npy is to have the answers of all programs: npy has one field"),
        (("", ""), ["--output", "a.csv", "--format", "graphalytics"], "graphalytics has one field"),
        (("", ""), ["--output", "edges.csv"], "edges.csv exists already"),
        (("", ""), ["--output", "g.h5", "--force"], "g.h5 is an input too"),
        (('prefix = "strong_"', ""), ["--format", "csv"], "--format csv is the format of an output"),
        (('prefix = "strong_"', 'prefix = "a"\noutput = "a.csv"'), ["--output", "a.csv"], "a.csv is written 2 times"),
        (('prefix = "strong_"', 'prefix = "ag"'), ["--output", "a.csv", "--join", "name"], "no property 'name'"),
        (('"strong_"', '"a"'), ["--top", "3"], "--top belongs to a program"),
    ],
)
def test_what_cannot_be_one_table_is_refused(
    change: tuple[str, str], arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("job.toml").write_text(JOB.replace(*change))
    before = sorted(Path().iterdir())
    assert message in refused(capsys, "run", "job.toml", *arguments)
    assert sorted(Path().iterdir()) == before


def test_a_property_named_as_a_column_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("people.csv").write_text(PEOPLE.replace("age", "rank"))
    convert("edges.csv", "g.h5", string_ids=True, vertices="people.csv", force=True, direction="both")
    assert "--join rank: pagerank has a column" in refused(capsys, "run", "job.toml", "-o", "a.csv", "--join", "rank")


def test_a_disk_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    count = iter(range(100))

    def failing(file: Any, pieces: Any) -> None:
        if next(count) == 3:
            raise OSError(28, "No space left on device")
        write_all(file, pieces)

    monkeypatch.setattr(column_file, "write_all", failing)
    before = sorted(Path().iterdir())
    assert cli.run_command(["run", "job.toml", "--output", "all.parquet"]) == 1
    assert "a file that keeps an answer could not be written: No space left" in capsys.readouterr().err
    assert sorted(Path().iterdir()) == before


def test_a_dry_run_says_what_it_would_write(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["run", "job.toml", "--dry-run", "--output", "all.csv"]) == 0
    assert "would write all answers: all.csv" in capsys.readouterr().out
    assert not Path("all.csv").exists()
