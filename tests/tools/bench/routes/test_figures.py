"""Pictures: legible whatever ran, written whole or not at all, and a clear word where matplotlib is not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.storage.base.errors import InputError
from penstock.tools.base.plots import COLOURS, check, grouped
from penstock.tools.bench.routes.matrix import Configuration, case_of
from penstock.tools.bench.routes.report import LONG, draw_routes, route_shares
from penstock.tools.bench.routes.trials import Outcome, Row, Trial
from penstock.transfer.routes.registry import ROUTES


def iteration(edges: int, **routes: int) -> dict[str, Any]:
    came = {name.replace("_", "-"): {"partitions": count, "tasks": 1} for name, count in routes.items()}
    return {"frontier_edges": edges, "routes": came}


TRACE = [iteration(1, zero_copy=1), iteration(90, filter=3, resident=1), iteration(0)]


def test_every_route_has_a_colour_of_its_own() -> None:
    assert set(ROUTES) <= set(COLOURS)
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_shares_are_percent_of_each_iteration() -> None:
    names, shares = route_shares([*TRACE, iteration(4, ferry=0)])
    assert names == ["resident", "filter", "zero-copy", "ferry"]
    assert shares.tolist() == [[0, 25, 0, 0], [0, 75, 0, 0], [100, 0, 0, 0], [0, 0, 0, 100]]
    assert route_shares([])[1].shape == (0, 0)


@pytest.mark.parametrize("length", [1, LONG, LONG + 1, 1684])
def test_long_runs_are_averaged_in_groups(length: int) -> None:
    values = np.vstack([np.full(length, 30.0), np.arange(length)])
    found = grouped(values, LONG)
    assert found.shape == (2, min(length, LONG))
    assert found[0] == pytest.approx(30)
    assert (np.diff(found[1]) > 0).all()


def outcomes(length: int) -> list[Outcome]:
    """One program that ran in every way a row can end, and one of which auto did not run."""

    def row(name: str, seconds: list[float], *, single: bool = True) -> Row:
        made = Row(Configuration(name, {"route": name} if single else {}))
        made.trials = [Trial(value, 1e9 * value, 0, length, TRACE * length) for value in seconds]
        return made

    failed = row("cel", [0.1])
    failed.problem, failed.failed = "wrong answer", True
    refused = Row(Configuration("resident", {"route": "resident"}), "too large")
    rows = [refused, failed, row("filter", [9.0]), row("zero-copy", [0.1, 0.2]), row("auto", [0.1], single=False)]
    everything = Outcome(case_of("sssp", (3,), 1), rows, 10**9, 10**8, 2e9, 1.0)
    return [everything, Outcome(case_of("wcc", (), 1), [refused, row("filter", [0.5])], 10**9, None, None, 1.0)]


def test_a_picture_says_what_the_tables_say(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "routes.svg"
    draw_routes(outcomes(100), "a title", path)
    text = path.read_text()
    for word in ("a title", "sssp: auto takes", "wcc", "failed", "not run", "zero-copy", "auto was not run", "ms"):
        assert word in text, word
    for route in ("filter", "zero-copy", "resident"):
        assert COLOURS[route].lower() in text


def test_a_picture_replaces_only_by_force(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "routes.png"
    draw_routes(outcomes(1), "a title", path)
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="--force"):
        check(path, force=False)
    check(path, force=True)
    draw_routes(outcomes(1), "a title", path, force=True)
    assert list(tmp_path.iterdir()) == [path]


def test_without_matplotlib_the_way_to_get_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install '\.\[plot\]' in Penstock's sources"):
        check(tmp_path / "routes.png", force=False)
