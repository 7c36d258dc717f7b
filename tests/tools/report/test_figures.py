"""The bar of a job says how long each of its stages took, whatever their names are."""

from __future__ import annotations

import pytest
from penstock.storage.clocks.stage_clock import STAGES, StageTimes
from penstock.tools.base.plots import as_svg
from penstock.tools.report.figures import STAGE_COLOURS, stage_bar
from penstock.tools.run.account import Account


def test_every_stage_has_a_colour() -> None:
    assert set(STAGE_COLOURS) == set(STAGES)
    assert len(set(STAGE_COLOURS.values())) == len(STAGES)


def test_the_bar_names_stages_and_shares() -> None:
    pytest.importorskip("matplotlib")
    account = Account(StageTimes(10.0, {"imports": 0.2, "compiling": 6.0, "iterations": 3.8}))
    shown = as_svg(stage_bar(account, 11.0))
    for words in ("the whole job: 10 s", "compiling kernels 6 s", "60 %", "38 %", "imports, options 200 ms"):
        assert words in shown
    assert "2 %" not in shown, "there is no room for it"


@pytest.mark.parametrize("stages", [{"_x": 1.0}, {"$x_{$": 1.0}, {"imports": 0.0}, {"imports": float(1 << 62)}])
def test_odd_accounts_are_drawn(stages: dict[str, float]) -> None:
    pytest.importorskip("matplotlib")
    assert as_svg(stage_bar(Account(StageTimes(sum(stages.values()), stages)), 11.0)).startswith("<svg")
