"""`penstock verify`: exit codes 0, 1 and 2, problems listed on stdout, one message on stderr."""

import json
from pathlib import Path
from typing import Any

import pytest
from penstock.storage.format.graph import Graph
from penstock.tools import cli
from support.faults import flip_bit


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "g.h5"
    arguments = ["rmat", "--scale", "6", "--direction", "both", "--output", str(path), "--quiet"]
    assert cli.run_command(["generate", *arguments]) == 0
    return path


def damage(path: Path) -> None:
    """Flip a bit in both adjacencies' neighbors."""
    graph = Graph.open(path)
    for adjacency in (graph.out, graph.into):
        assert adjacency is not None
        assert adjacency.neighbors is not None
        flip_bit(path, int(adjacency.neighbors.offsets[0]) + 20)


def told(capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> tuple[dict[str, Any], str]:
    """Run `penstock verify --json`; return its JSON and what it said on stderr."""
    assert cli.run_command(["verify", *map(str, arguments), "--json"]) == code
    shown = capsys.readouterr()
    facts: dict[str, Any] = json.loads(shown.out)
    return facts, shown.err


def test_a_whole_graph(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts, complaint = told(capsys, 0, graph, "--threads", "2")
    assert (facts["whole"], facts["problems"], facts["problem_count"], complaint) == (True, [], 0, "")
    assert facts["chunks"] == 4
    assert cli.run_command(["verify", str(graph), "--direct-io"]) == 0
    assert "g.h5 is whole: 4 chunks" in capsys.readouterr().out


def test_a_damaged_graph(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(graph)
    facts, complaint = told(capsys, 1, graph)
    assert (facts["whole"], facts["problem_count"]) == (False, 2)
    assert [problem["what"] for problem in facts["problems"]] == ["its checksum does not match"] * 2
    assert complaint.startswith(f"penstock: {graph} is damaged: 2 problems; convert the input again")
    assert cli.run_command(["verify", str(graph)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "chunk 0 of in/neighbors" in lines[1]
    assert lines[2].startswith("read 4 chunks")


def test_a_quiet_one_says_one_line(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["verify", str(graph), "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    damage(graph)
    assert cli.run_command(["verify", str(graph), "-q"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert "without --quiet they are listed" in shown.err


def test_many_problems_are_counted(
    graph: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.storage.read.verify.MOST_PROBLEMS", 1)
    damage(graph)
    assert cli.run_command(["verify", str(graph)]) == 1
    assert "… and 1 more" in capsys.readouterr().out


def test_what_is_no_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("1 2\n")
    assert cli.run_command(["verify", str(tmp_path / "text")]) == 2
    assert cli.run_command(["verify", str(tmp_path / "nothing")]) == 2
    assert cli.run_command(["verify", str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 3
