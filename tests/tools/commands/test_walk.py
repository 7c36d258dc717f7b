"""`penstock walk`: the same walks as from Python, in the ids of the input, within its memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from penstock.engine import Graph, from_edges, walk
from penstock.tools import cli
from support.commands import answered, refused


@pytest.fixture(scope="module")
def roads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("walk") / "roads.h5"
    from_edges([7, 3, 3, 50], [3, 50, 900, 900], [1, 2, 3, 4], undirected=True, vertices=[3, 7, 50, 900]).save(path)
    return path


def test_walks_are_those_of_python(roads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--length", 9, "--walks-per-vertex", 3, "--seed", 4, "--p", 0.5, "--q", 2, "--restart", 0.1)
    facts = answered(capsys, "walk", roads, "--output", tmp_path / "w.npy", *given)
    assert (facts["walks"], facts["steps"], facts["weighted"], facts["sweeps"]) == (12, 12 * 9, True, 0)
    assert facts["bytes"] == (tmp_path / "w.npy").stat().st_size
    expected = walk(Graph.open(roads), length=9, walks_per_vertex=3, seed=4, p=0.5, q=2.0, restart=0.1)
    np.testing.assert_array_equal(np.load(tmp_path / "w.npy"), expected.to_numpy())


def test_sources_of_a_file(roads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ids").write_text("900\n\n7\n")
    arguments = ["--sources", tmp_path / "ids", "--length", 1, "--walks-per-vertex", 1, "--no-weight"]
    answered(capsys, "walk", roads, "--output", tmp_path / "w.txt", *arguments)
    walks = [line.split() for line in (tmp_path / "w.txt").read_text().splitlines()]
    assert [path[0] for path in walks] == ["900", "7"]
    assert walks[1][1] == "3"


def test_standard_output(roads: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert cli.run_command(["walk", str(roads), "--source", "7", "--length", "1", "--output", "-"]) == 0
    assert capfdbinary.readouterr().out == b"7 3\n" * 10


def test_what_people_read(roads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["walk", str(roads), "--output", str(tmp_path / "w.csv")]) == 0
    shown = capsys.readouterr().out
    assert "40 of 80 steps, weighted" in shown
    assert "M/s" in shown


def test_refusals(roads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = ("--output", tmp_path / "w.txt")
    (tmp_path / "ids").write_text("\n")
    (tmp_path / "minus").write_text("3\n-4\n")
    for arguments, message in (
        (("--output", tmp_path / "w.xyz"), "no format of walks"),
        ((*output, "--source", 8), "vertex 8 is not in the graph"),
        ((*output, "--source", 7, "--sources", tmp_path / "ids"), "give one of them"),
        ((*output, "--sources", tmp_path / "ids"), "has no line"),
        ((*output, "--sources", tmp_path / "minus"), "minus:2: -4 is negative"),
        ((*output, "--device", "cuda:99"), "device cuda:99"),
        ((*output, "--device", "emulated"), "give cpu or cuda:0"),
        ((*output, "--device-memory", "1MiB"), "leave it out, or run with --device"),
        ((*output, "--restart", 2), "restart is 2.0"),
        ((*output, "--host-memory", "1MiB"), "give --host-memory"),
    ):
        assert message in refused(capsys, "walk", roads, *arguments)
    assert not (tmp_path / "w.txt").exists()
