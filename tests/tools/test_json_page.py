"""tools/json.md says what `--json` prints; commands that measure are held to it by their own tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from penstock.engine.planning.cluster_forecast import EXAMPLE
from support.commands import answered
from support.json_page import check_documented, documented

COMMANDS: dict[str, list[tuple[object, ...]]] = {
    "generate": [("generate", "uniform", "--vertices", 50, "--edges", 200, "--output", "u.txt")],
    "convert": [
        ("convert", "u.txt", "u.h5", "--direction", "both"),
        ("convert", "u.txt", "l.h5", "--layout", "list"),
    ],
    "append": [("append", "l.h5", "u.txt"), ("append", "u.h5", "u.txt")],
    "remove": [("remove", "u.h5", "u.txt")],
    "compact": [("compact", "u.h5"), ("compact", "u.h5")],
    "extract": [("extract", "u.h5", "x.h5", "--around", 0), ("extract", "u.h5", "--largest-component", "--dry-run")],
    "export": [("export", "u.h5", "e.csv")],
    "info": [("info", "u.h5"), ("info", "l.h5", "--degrees", "--assortativity", "degree", "--plot", "p.svg")],
    "verify": [("verify", "u.h5")],
    "run": [
        ("run", "bfs", "u.h5", "--source", 0, "--target", 5, "--top", 2, "--output", "b.csv"),
        ("run", "wcc", "u.h5", "--metrics", "m.jsonl"),
    ],
    "similarity": [("similarity", "u.h5", "--k", 2, "--output", "s.csv")],
    "report": [("report", "m.jsonl")],
    "plan": [
        ("plan", "--write-example"),
        ("plan", "--vertices", 100, "--edges", 1000, "--machine", "m.toml", "--ranks", "2"),
    ],
    "walk": [("walk", "u.h5", "--length", 3, "--output", "w.txt")],
}
ELSEWHERE = {
    "calibrate",
    "compile",
    "demo",
    "doctor",
    *(f"bench {one}" for one in ("compare", "disk", "encodings", "routes")),
}
"""Their own tests call `check_documented`."""


def test_every_command_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert documented().keys() == COMMANDS.keys() | ELSEWHERE
    (tmp_path / "m.toml").write_text(EXAMPLE)
    for command, calls in COMMANDS.items():
        for arguments in calls:
            check_documented(answered(capsys, *arguments), command)
