"""`penstock run heat`, `circuit` and `neural`: files of values, an answer that is such a file, refusals, a job file."""

from __future__ import annotations

from pathlib import Path

import pytest
from penstock.tools import cli
from support.commands import answered, refused


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of conductances 1, 2 and 4."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "edges.txt").write_text("10 20 1\n20 30 2\n30 40 4\n")
    arguments = [
        str(folder / "edges.txt"),
        str(folder / "g.h5"),
        "--renumber",
        "--weights",
        "--direction",
        "both",
        "-q",
    ]
    assert cli.run_command(["convert", *arguments]) == 0
    return folder / "g.h5"


def test_heat_goes_on_from_its_own_answer(graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "first.txt").write_text("10 8.0  # hot\n")
    middle, last, whole = (tmp_path / f"{name}.csv" for name in ("middle", "last", "whole"))
    asked = ("run", "heat", graph, "--time-step", 0.125, "--tol", 0, "--output")
    told = answered(capsys, *asked, middle, "--initial", tmp_path / "first.txt", "--max-iter", 4, silent=True)
    assert told["weighted"]
    assert told["measures"]["time"] == [0.125, 0.5]
    answered(capsys, *asked, last, "--initial", middle, "--max-iter", 3)
    answered(capsys, *asked, whole, "--initial", tmp_path / "first.txt", "--max-iter", 7)
    assert last.read_text() == whole.read_text()
    (tmp_path / "cold.csv").write_text("40,0\n")
    wrong = ("run", "heat", graph, "--fixed", tmp_path / "cold.csv", "--time-step", 0.17)
    message = refused(capsys, *wrong)
    assert "0.17 is not stable on this graph: it must be at most 0.166665" in " ".join(message.split())


def test_circuit_and_neural_take_files(graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fixed, answer = tmp_path / "fixed.csv", tmp_path / "answer.csv"
    fixed.write_text("10,7\n40,0\n")
    answered(capsys, "run", "circuit", graph, "--fixed", fixed, "--output", answer, silent=True)
    rows = [line.split(",") for line in answer.read_text().splitlines()]
    assert [rows[0], rows[1], rows[4]] == [["vertex", "potential"], ["10", "7"], ["40", "0"]]
    assert [float(row[1]) for row in rows[2:4]] == pytest.approx([3.0, 1.0])
    inputs = ("--inputs", fixed, "--set", "function=tanh", "--precision", "single")
    job = tmp_path / "job.toml"
    job.write_text(f'graph = "{graph}"\nprecision = "single"\n[[programs]]\nname = "neural"\ninputs = "fixed.csv"\n')
    assert answered(capsys, "run", "neural", graph, *inputs)["converged"]
    assert [step["converged"] for step in answered(capsys, "run", job)["programs"]] == [True]


def test_what_is_missing_or_wrong_is_named(graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fixed = tmp_path / "fixed.csv"
    fixed.write_text("10,7\n10,8\n")
    for program, given, message in (
        ("circuit", (), "circuit needs --fixed"),
        ("neural", (), "neural needs --inputs"),
        ("heat", (), "give some vertices one with --initial, or --fixed"),
        ("circuit", ("--fixed", fixed), "fixed.csv:2: vertex 10 has a value already, 7; give it one"),
        ("wcc", ("--time-step", 1), "wcc does not take --time-step"),
    ):
        assert message in " ".join(refused(capsys, "run", program, graph, *given).split())
