"""The page that leads from a table to a picture runs as it is written, block after block."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib
import pytest

PAGE = Path(__file__).resolve().parents[2] / "tools" / "walkthrough.md"


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{PAGE.name}, block {number + 1}", "exec"), names)
    said = capsys.readouterr().out
    assert "Valjean" in said.splitlines()[1], "the first of the five best"
    assert "Myriel > Valjean > Gavroche" in said
    assert re.search(r"\d communities, modularity 0\.5\d\d", said)
    assert {path.name for path in tmp_path.iterdir()} >= {"communities.parquet", "communities.png"}
    assert (tmp_path / "communities.png").stat().st_size > 20_000
