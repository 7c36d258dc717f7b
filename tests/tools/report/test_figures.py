"""Pictures: the bar of a job says how long each of its stages took; degrees are counted in growing bins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from penstock.engine import from_edges
from penstock.storage.base.stage_clock import STAGES
from penstock.tools.base.plots import as_svg
from penstock.tools.commands import info
from penstock.tools.report.figures import STAGE_COLOURS, DegreeCounts, at_least, log_bins, stage_bar
from penstock.tools.run.account import Account
from support.commands import answered, refused


def test_every_stage_has_a_colour() -> None:
    assert set(STAGE_COLOURS) == set(STAGES)
    assert len(set(STAGE_COLOURS.values())) == len(STAGES)


def test_the_bar_names_stages_and_shares() -> None:
    pytest.importorskip("matplotlib")
    account = Account(10.0, {"imports": 0.2, "compiling": 6.0, "iterations": 3.8})
    shown = as_svg(stage_bar(account, 11.0))
    for words in ("the whole job: 10 s", "compiling kernels 6 s", "60 %", "38 %", "imports, options 200 ms"):
        assert words in shown
    assert "2 %" not in shown, "there is no room for it"


@pytest.mark.parametrize("stages", [{"_x": 1.0}, {"$x_{$": 1.0}, {"imports": 0.0}, {"imports": float(1 << 62)}])
def test_odd_accounts_are_drawn(stages: dict[str, float]) -> None:
    pytest.importorskip("matplotlib")
    assert as_svg(stage_bar(Account(sum(stages.values()), stages), 11.0)).startswith("<svg")


def sparse(counts: list[int]) -> DegreeCounts:
    """Degrees that occur, and how often; counts: of each degree from 0 on."""
    all_counts = np.array(counts)
    return np.flatnonzero(all_counts), all_counts[all_counts > 0]


def test_bins_hold_all_vertices_with_edges_and_grow() -> None:
    counts = np.random.default_rng(5).integers(1, 9, 3000)
    degree, density = log_bins(sparse(counts.tolist()))
    assert np.all(np.diff(degree) > 0)
    assert degree[:3].tolist() == [1, 2, 3]
    assert density[:3].tolist() == counts[1:4].tolist()
    assert len(degree) < 50
    assert [len(part) for part in log_bins(sparse([7]))] == [0, 0]
    one, vertices = log_bins(sparse([0, 0, 0, 0, 0, 4]))
    assert (one.tolist(), (vertices > 0).tolist()) == ([5.0], [True])


def test_shares_are_of_all_vertices() -> None:
    degrees, shares = at_least(sparse([2, 4, 0, 1, 1]))
    assert (degrees.tolist(), shares.tolist()) == ([1, 3, 4], [6 / 8, 2 / 8, 1 / 8])
    assert [len(part) for part in at_least(sparse([7]))] == [0, 0]


def test_large_degrees_are_counted_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A star of n vertices has no array of n counters."""
    monkeypatch.setattr(info, "ROWS", 2)
    monkeypatch.setattr(info, "SMALL_DEGREES", 3)
    ends = [0] * 9 + [1] * 4 + [2] * 2 + [5] * 4, [*range(1, 10), 2, 3, 4, 5, 0, 1, 6, 7, 8, 9]
    from_edges(*ends).save(tmp_path / "g.h5")
    found = answered(capsys, "info", tmp_path / "g.h5", "--degrees")["degrees"]["out"]
    assert found == {"mean": 1.9, "max": 9, "empty": 6, "percentiles": {"50": 0, "90": 4, "99": 9, "99.9": 9}}


@pytest.mark.parametrize("directed", [True, False])
def test_a_picture(directed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from_edges([0, 0, 0, 5], [1, 2, 3, 0], vertices=6, undirected=not directed).save(tmp_path / "g.h5")
    arguments = ("info", tmp_path / "g.h5", "--plot", tmp_path / "degrees.svg")
    facts = answered(capsys, *arguments)
    assert facts["plot"] == str(tmp_path / "degrees.svg")
    assert set(facts["degrees"]) == ({"out", "in"} if directed else {"out"})
    assert facts["degrees"]["out"]["mean"] == pytest.approx(4 / 6 if directed else 8 / 6)
    text = (tmp_path / "degrees.svg").read_text()
    assert text.count("<svg") == 1
    assert "--force" in refused(capsys, *arguments)
    assert ".png" in refused(capsys, "info", tmp_path / "g.h5", "--plot", tmp_path / "degrees.txt")


def test_assortativity_of_degrees_and_of_a_property(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.csv").write_text("a,b\nann,bob\nbob,cid\ncid,ann\ncid,dan\ndan,eve\n")
    (tmp_path / "v.csv").write_text("id,age,town\nann,20,x\nbob,22,y\ncid,25,x\ndan,60,y\neve,64,x\n")
    made = ("convert", tmp_path / "e.csv", tmp_path / "g.h5", "--header", "--undirected", "--renumber")
    answered(capsys, *made, "--vertices", tmp_path / "v.csv")
    asked = ("info", tmp_path / "g.h5", "--assortativity")
    assert answered(capsys, *asked, "degree")["assortativity"]["value"] == pytest.approx(-1 / 9)
    assert answered(capsys, *asked, "age")["assortativity"]["value"] == pytest.approx(0.5970511326)  # networkx
    assert "no property 'size'; there is" in refused(capsys, *asked, "size")
    assert "no number" in refused(capsys, *asked, "town")
