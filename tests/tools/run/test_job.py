"""`penstock run job.toml`: several programs share what was read; what is said beside the file goes first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from penstock.engine.session import Session
from penstock.tools import cli
from support.commands import answered, refused
from support.graphs import on_disk, shape

JOB = """
graph = "g.h5"
host-memory = "256MiB"

[[programs]]
name = "pagerank"
tol = 0
max-iter = 2
top = 2

[[programs]]
name = "bfs"
source = 0
output = "levels.csv"

[[programs]]
name = "bfs"
source = [1, 2]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job and its graph, in another folder than the one at hand."""
    place = tmp_path / "job"
    place.mkdir()
    on_disk(shape("skewed"), place / "g.h5")
    (place / "job.toml").write_text(JOB)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return place


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """Run to success; the JSON."""
    return answered(capsys, "run", *arguments)


def test_programs_run_in_order_and_share_what_was_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = run(capsys, folder / "job.toml")
    pagerank, first, second = facts["programs"]
    assert [one["program"] for one in facts["programs"]] == ["pagerank", "bfs", "bfs"]
    assert pagerank["iterations"] == 2
    assert len(pagerank["top"]) == 2
    assert pagerank["bytes_read"] > 0
    read = sum(one["bytes_read"] for one in facts["programs"])
    assert read <= 2 * pagerank["bytes_read"]  # one chunk of in-edges, one of out-edges: each once
    assert second["parameters"] == {"source": [1, 2]}
    assert (folder / "levels.csv").read_text().startswith("vertex,level,parent\n0,0,0\n")
    assert first["output"] == str(folder / "levels.csv")
    assert list(Path.cwd().iterdir()) == []


def test_the_wall_time_is_accounted_for_by_program(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = run(capsys, folder / "job.toml")
    assert sum(facts["stages"].values()) == pytest.approx(facts["wall_seconds"])
    assert "opening" in facts["stages"]
    for one in facts["programs"]:
        assert sum(one["stages"].values()) == pytest.approx(one["wall_seconds"])
        assert "iterations" in one["stages"]
        assert one["stage_bytes"].get("iterations", 0) == one["bytes_read"]
        assert not {"opening", "closing"} & one["stages"].keys(), "what programs share"
    assert sum(one["wall_seconds"] for one in facts["programs"]) < facts["wall_seconds"]


def test_people_are_told_of_every_program(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["run", str(folder / "job.toml")]) == 0
    shown = capsys.readouterr().out
    for words in ("pagerank tol=0.0 max_iter=2 on", "bfs source=0 on", "bfs source=[1, 2] on"):
        assert words in shown


def test_the_command_line_overrides_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    begin = Session.__init__
    monkeypatch.setattr(Session, "__init__", lambda self, graph, **o: seen.append(o) or begin(self, graph, **o))
    run(capsys, folder / "job.toml", "--host-memory", "128MiB", "--threads", 1)
    assert (seen[0]["host_memory"], seen[0]["threads"]) == (128 << 20, 1)
    on_disk(shape("path"), Path("other.h5"))
    assert run(capsys, folder / "job.toml", "other.h5", "--force")["programs"][0]["vertices"] == 400
    assert seen[1]["host_memory"] == 256 << 20
    assert "threads" not in seen[1]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--top", "3"], "--top belongs to a program: write top = ... below its [[programs]]"),
        (["--source", "3"], "--source belongs to a program"),
        (["--prefix", "x"], "--prefix belongs to a program"),
        (["absent.h5"], "absent.h5"),
        (["--host-memory", "1000"], "--host-memory"),
    ],
)
def test_what_belongs_to_a_program_is_not_said_beside_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], named: str
) -> None:
    assert named in refused(capsys, "run", folder / "job.toml", *arguments)
    assert not (folder / "levels.csv").exists()


def test_a_file_that_names_no_graph_takes_one_beside_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = folder / "short.toml"
    short.write_text('[[programs]]\nname = "wcc"\n')
    assert 'names no graph: write graph = "..."' in refused(capsys, "run", short)
    assert run(capsys, short, folder / "g.h5")["programs"][0]["program"] == "wcc"


def test_a_program_without_a_graph_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Missing argument 'GRAPH.h5': on which graph is wcc to run?" in refused(capsys, "run", "wcc")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[[programs]]\nname = "walktrap"', "there is no program 'walktrap'"),
        ('[[programs]]\nname = "bfs"', "bfs needs --source"),
        ('[[programs]]\nname = "wcc"\nset = { depth = 1 }', "wcc does not take --set depth=..."),
        ('[[programs]]\nname = "wcc"\noutput = "x.xls"', "x.xls"),
        ('[[programs]]\nname = "wcc"\noutput = "absent/x.csv"', "absent"),
        (
            '[[programs]]\nname = "wcc"\noutput = "x.csv"\n[[programs]]\nname = "bfs"\nsource = 1\noutput = "x.csv"',
            "x.csv is written 2 times by this job",
        ),
        ('[[programs]]\nname = "wcc"\n[[programs]]\nname = "bfs"\nsource = 7777', "vertex 7777 is not in the graph"),
    ],
)
def test_bad_jobs_are_refused_before_anything_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, named: str
) -> None:
    job = folder / "bad.toml"
    job.write_text(f'graph = "g.h5"\n{text}\n')
    before = sorted(folder.iterdir())
    assert named in refused(capsys, "run", job)
    assert sorted(folder.iterdir()) == before


def test_a_users_program_is_found_beside_the_job(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "own.py").write_text(
        "from penstock.engine.programs.bfs import BFS\nclass Mine(BFS):\n    def __init__(self, root):\n"
        "        super().__init__(root)\n"
    )
    (folder / "own.toml").write_text('graph = "g.h5"\n[[programs]]\nname = "own.py:Mine"\nset = { root = 0 }\n')
    facts = run(capsys, folder / "own.toml")
    assert facts["programs"][0]["parameters"] == {"root": 0}
