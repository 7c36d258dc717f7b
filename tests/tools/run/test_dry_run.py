"""`--dry-run`: says what a run would take, checks what a run checks, and reads, writes and measures nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from penstock.storage.base.errors import RunError
from penstock.storage.format.graph import Graph
from penstock.storage.read.reader import Reader
from penstock.tools import cli
from penstock.tools.run import rates
from support.commands import answered
from support.graphs import on_disk, shape


@pytest.fixture(autouse=True)
def nothing_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph; readers and measurements end the test."""

    def never(*arguments: Any, **more: Any) -> None:
        raise AssertionError("a dry run reads and measures nothing")

    monkeypatch.chdir(tmp_path)
    on_disk(shape("skewed"), tmp_path / "g.h5")
    monkeypatch.setattr(Reader, "__init__", never)
    monkeypatch.setattr(rates, "_measured", never)
    monkeypatch.setattr(rates, "_with_disk", never)


def forecast_job(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    facts = answered(capsys, "run", *arguments, "--dry-run")
    assert [path.name for path in Path.cwd().iterdir() if path.suffix != ".toml"] == ["g.h5"]
    return facts


def test_memory_adds_up_and_sweeps_are_priced(capsys: pytest.CaptureFixture[str]) -> None:
    facts = forecast_job(capsys, "pagerank", "g.h5", "--max-iter", 5, "--host-memory", "256MiB", "-o", "r.parquet")
    (told,) = facts["programs"]
    assert told["host"]["budget"] == 256 << 20
    assert told["host"]["total"] == sum(told["host"]["parts"].values()) < 256 << 20
    assert told["first"]["disk_bytes"] > 0 == told["later"]["disk_bytes"]
    assert told["most_iterations"] == 5
    assert told["most_seconds"] == pytest.approx(told["first"]["seconds"] + 4 * told["later"]["seconds"])
    assert told["output"] == "r.parquet"


def test_a_job_is_rehearsed_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    Path("job.toml").write_text(
        'graph = "g.h5"\nrun-dir = "out"\n[[programs]]\nname = "bfs"\nsource = 1\n[[programs]]\nname = "scc"\n'
    )
    facts = forecast_job(capsys, "job.toml")
    assert [one["output"] for one in facts["programs"]] == ["out/bfs.parquet", "out/scc.parquet"]
    assert [one["phases"] for one in facts["programs"]] == [False, True]
    assert [one["most_seconds"] for one in facts["programs"]] == [None, None]


def test_people_read_it_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["run", "bfs", "g.h5", "--source", "1", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    for words in (
        "(dry run)",
        "host memory",
        "= state",
        "first sweep",
        "later sweeps",
        "only the run can tell",
        "rates",
    ):
        assert words in shown
    assert cli.run_command(["run", "pagerank", "g.h5", "--dry-run"]) == 0
    assert "at most 100 sweeps" in capsys.readouterr().out


def test_a_device_is_rehearsed_too(capsys: pytest.CaptureFixture[str]) -> None:
    from penstock.engine.session import Session
    from penstock.tools.run.dry_run import _lines
    from penstock.tools.run.job import JobStep

    step = JobStep("wcc")
    with Session(Graph.open("g.h5"), device="emulated", device_edge_memory=4000, partition_bytes=256) as session:
        told = session.forecast(step.make(lambda: session.graph))
    lines = "\n".join(_lines(step, told))
    for words in ("device memory", "over the link", "to the device", "emulated:0"):
        assert words in lines


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["bfs", "g.h5"], "bfs needs --source"),
        (["wcc", "absent.h5"], "absent.h5"),
        (["wcc", "g.h5", "--host-memory", "1MiB"], "is too small"),
        (["wcc", "g.h5", "-o", "x.xls"], "x.xls"),
        (["wcc", "g.h5", "-o", "g.h5"], "--force"),
        (["wcc", "g.h5", "--run-dir", "."], "is not empty"),
        (["wcc", "g.h5", "--resume"], "--resume needs --checkpoint"),
        (["pagerank", "g.h5", "--route", "cel"], "cel"),
    ],
)
def test_what_a_run_would_refuse_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], named: str
) -> None:
    assert cli.run_command(["run", *arguments, "--dry-run"]) == 2
    shown = capsys.readouterr()
    assert named in shown.err
    assert shown.out == ""


def test_a_damaged_chunk_ends_it_as_any_other_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # where runs are known, no search reads the graph
    neighbors = Graph.open("g.h5").out.neighbors
    assert neighbors is not None
    with Path("g.h5").open("r+b") as file:
        file.seek(int(neighbors.offsets[0]))
        file.write(b"\xff" * int(neighbors.lengths[0]))
    with pytest.raises(RunError) as read:
        Graph.open("g.h5").neighbors(0)
    assert cli.run_command(["run", "bfs", "g.h5", "--source", "1", "--dry-run"]) == 1
    shown = capsys.readouterr()
    assert shown.err == f"penstock: {read.value}\n"
    assert shown.out == ""
