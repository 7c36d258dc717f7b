"""`penstock extract`: what it answers, counts and refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from penstock.engine import Graph, from_edges
from penstock.tools import cli
from support.commands import answered, refused


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    path = tmp_path / "towns.h5"
    from_edges(["rome", "oslo", "bern", "a,b"], ["oslo", "bern", "rome", "nice"], [1.5, 2, 3, 4]).save(path)
    return path


def test_a_part_and_its_dry_run(towns: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("extract", towns, tmp_path / "part.h5", "--component-of", "oslo", "--weights", "2..")
    counted = answered(capsys, *arguments, "--dry-run")
    assert (counted["vertices"], counted["edges"], counted["output"]) == (3, 2, None)
    assert not (tmp_path / "part.h5").exists()
    facts = answered(capsys, *arguments)
    assert (facts["vertices"], facts["of_vertices"], facts["input_edges"], facts["of_edges"]) == (3, 5, 2, 4)
    assert facts["conditions"] == {"component_of": "oslo", "weights": "2..inf"}
    assert Graph.open(tmp_path / "part.h5").neighbors("bern").tolist() == ["rome"]
    assert answered(capsys, "info", tmp_path / "part.h5")["provenance"]["extracted"]["from"] == str(towns)


def test_what_people_see(towns: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = tmp_path / "ids.txt"
    listed.write_text("rome\noslo\nnowhere\n")
    assert (
        cli.run_command(["extract", str(towns), str(tmp_path / "p.h5"), "--vertices", str(listed), "--skip-missing"])
        == 0
    )
    shown = capsys.readouterr().out
    assert "vertices     2 of 5" in shown
    assert "edges        1 of 4 (directed)" in shown


def test_refusals(towns: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--dry-run" in refused(capsys, "extract", towns, "--core", 1)
    assert "name it part.h5" in refused(capsys, "extract", towns, tmp_path / "part.csv", "--core", 1)
    assert "would be replaced" in refused(capsys, "extract", towns, towns, "--core", 1, "--force")
    assert "nothing says what to extract" in refused(capsys, "extract", towns, tmp_path / "p.h5")
    assert "exclude each other" in refused(
        capsys, "extract", towns, tmp_path / "p.h5", "--component-of", "rome", "--largest-component"
    )
