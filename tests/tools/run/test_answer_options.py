"""Answers on standard output, and the order of the vertices that --top shows."""

from __future__ import annotations

import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pyarrow.parquet
import pytest
from penstock.engine import convert, from_edges
from penstock.tools import cli
from support.commands import answered, refused


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "g.h5"
    from_edges([0, 0, 1, 2, 4], [1, 2, 3, 3, 4]).save(path)
    return path


BFS = ("run", "bfs", "--source", 0, "--no-calibrate")


def test_a_table_on_stdout(graph: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert cli.run_command([*map(str, BFS), str(graph), "--output", "-", "--top", "1"]) == 0
    shown = capfdbinary.readouterr()
    assert shown.out == b"vertex,level,parent\n0,0,0\n1,1,0\n2,1,0\n3,2,1\n4,,\n"
    assert b"standard output" in shown.err
    assert cli.run_command([*map(str, BFS), str(graph), "-o", "-", "--format", "parquet", "--quiet"]) == 0
    shown = capfdbinary.readouterr()
    assert pyarrow.parquet.read_table(BytesIO(shown.out)).column("level").to_pylist() == [0, 1, 1, 2, None]
    assert shown.err == b""


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error(graph: Path) -> None:
    line = f"{sys.executable} -m penstock.tools.main {' '.join(map(str, BFS))} {graph} -o - -q | true; echo $PIPESTATUS"
    told = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert (told.stdout, told.stderr) in (("141\n", ""), ("0\n", ""))


def test_what_stdout_cannot_take(graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = (*BFS, graph, "--output", "-")
    assert "both want standard output" in refused(capsys, *run, "--json")
    assert "exclude each other" in refused(capsys, *run, "--run-dir", tmp_path / "d")
    assert "npy cannot be written to standard output; name a file, or one of csv" in refused(
        capsys, *run, "--format", "npy"
    )
    job = tmp_path / "job.toml"
    programs = '[[programs]]\nname = "degrees"\noutput = "-"\n' * 2
    job.write_text(f'graph = "{graph}"\n{programs}')
    assert "one answer fits on standard output" in refused(capsys, "run", job)
    assert not (tmp_path / "d").exists()


def test_the_order_of_the_first_vertices(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answered(capsys, *BFS, graph, "--top", 1)["top"] == [{"vertex": 0, "level": 0}]
    assert answered(capsys, *BFS, graph, "--top", 1, "--largest")["top"] == [{"vertex": 3, "level": 2}]
    assert answered(capsys, *BFS, graph, "--top", 1, "--by", "parent", "--largest")["top"] == [
        {"vertex": 3, "parent": 1}
    ]
    degrees = ("run", "degrees", graph, "--top", 2, "--by", "in_degree")
    assert answered(capsys, *degrees)["top"] == [{"vertex": 3, "in_degree": 2}, {"vertex": 1, "in_degree": 1}]
    assert answered(capsys, *degrees, "--smallest")["top"][0] == {"vertex": 0, "in_degree": 0}
    wcc = ("run", "wcc", graph, "--top", 1)
    assert answered(capsys, *wcc, "--by", "component")["top"] == [{"component": 0, "vertices": 4}]
    assert answered(capsys, *wcc, "--largest")["top"] == [{"vertex": 4, "component": 4}]


def test_an_order_that_there_is_not(graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no such field; it has level, parent" in refused(capsys, *BFS, graph, "--top", 1, "--by", "rank")
    assert "no such field; it has level" in refused(capsys, *BFS, graph, "--top", 1, "--by", "parent", "--no-parents")
    assert "--largest is the order of the vertices that --top shows" in refused(capsys, *BFS, graph, "--largest")
    assert "--by level is the order" in refused(capsys, *BFS, graph, "--by", "level")
    from_edges(["a"], ["b"]).save(tmp_path / "names.h5")
    names = ("run", "bfs", tmp_path / "names.h5", "--source", "a", "--top", 1, "--by", "parent")
    assert "parent holds texts, which have no order" in refused(capsys, *names)


def test_a_job_file_keeps_the_order(graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "kept"
    answered(capsys, *BFS, graph, "--top", 1, "--by", "level", "--largest", "--run-dir", folder)
    facts = answered(capsys, "run", folder / "job.toml", "--run-dir", tmp_path / "again")
    assert facts["programs"][0]["top"] == [{"vertex": 3, "level": 2}]
    assert json.loads((folder / "run.json").read_text())["programs"][0]["top"] == [{"vertex": 3, "level": 2}]


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    """A graph whose vertices have properties, and one vertex without an edge."""
    (tmp_path / "n.csv").write_text("id,name,people\nrome,Roma,2777\noslo,Oslo,\nlone,L,3\n")
    (tmp_path / "e.csv").write_text("from,to\nrome,oslo\n")
    path = tmp_path / "towns.h5"
    convert(tmp_path / "e.csv", path, vertices=tmp_path / "n.csv", renumber=True)
    return path


def test_properties_go_to_answers(towns: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bfs = ("run", "bfs", towns, "--source", "rome", "--no-calibrate", "--no-parents")
    top = answered(capsys, *bfs, "--top", 2, "--join", "people,name")["top"]
    assert top == [
        {"vertex": "rome", "level": 0, "people": 2777, "name": "Roma"},
        {"vertex": "oslo", "level": 1, "people": None, "name": "Oslo"},
    ]
    assert cli.run_command([*map(str, bfs), "--join", "people, name", "--output", "-", "--quiet"]) == 0
    assert capsys.readouterr().out == "vertex,level,people,name\nlone,,3,L\noslo,1,,Oslo\nrome,0,2777,Roma\n"


def test_properties_that_there_are_not(
    towns: Path, graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bfs = ("run", "bfs", towns, "--source", "rome", "--join")
    assert "has no property 'nam'; there is name, people" in refused(capsys, *bfs, "nam", "--top", 1)
    assert "--join name adds columns to an answer; add --output FILE or --top K" in refused(capsys, *bfs, "name")
    assert "npy has one field" in refused(capsys, *bfs, "name", "-o", tmp_path / "a.npy")
    assert "must name different properties" in refused(capsys, *bfs, "name,name", "--top", 1)
    assert "g.h5 has no properties of vertices; convert with --vertices" in refused(
        capsys, *BFS, graph, "--top", 1, "--join", "name"
    )
    towns.with_name("towns.vertices.parquet").unlink()
    assert "towns.vertices.parquet is missing" in refused(capsys, *bfs, "name", "--top", 1)
