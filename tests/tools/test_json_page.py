"""tools/json.md says what `--json` prints: every key there is printed with its type, and no other is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.commands import answered

PAGE = Path(__file__).resolve().parents[2] / "tools" / "json.md"
TYPES: dict[str, Any] = {
    "text": str,
    "whole": int,
    "number": (int, float),
    "yes/no": bool,
    "list": list,
    "object": dict,
}
COMMANDS: dict[str, list[tuple[object, ...]]] = {
    "generate": [("generate", "uniform", "--vertices", 50, "--edges", 200, "--output", "u.txt")],
    "convert": [
        ("convert", "u.txt", "u.h5", "--direction", "both"),
        ("convert", "u.txt", "l.h5", "--layout", "list"),
    ],
    "append": [("append", "l.h5", "u.txt")],
    "extract": [("extract", "u.h5", "x.h5", "--around", 0), ("extract", "u.h5", "--largest-component", "--dry-run")],
    "export": [("export", "u.h5", "e.csv")],
    "info": [("info", "u.h5"), ("info", "l.h5", "--degrees", "--assortativity", "degree", "--plot", "p.svg")],
    "verify": [("verify", "u.h5")],
    "run": [
        ("run", "bfs", "u.h5", "--source", 0, "--target", 5, "--top", 2, "--output", "b.csv"),
        ("run", "wcc", "u.h5"),
    ],
    "similarity": [("similarity", "u.h5", "--k", 2, "--output", "s.csv")],
    "walk": [("walk", "u.h5", "--length", 3, "--output", "w.txt")],
}


def documented() -> dict[str, dict[str, str]]:
    """By command, the type of each key, as the page has it."""
    found: dict[str, dict[str, str]] = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        keys = found[part.split("`")[1]] = {}
        for names, kind in re.findall(r"^\| (`.*?) \| (.*?) \|", part, re.MULTILINE):
            keys.update(dict.fromkeys(re.findall(r"`(\w+)`", names), kind))
    return found


def fits(value: Any, kind: str) -> bool:
    if value is None:
        return "?" in kind
    wanted = TYPES[kind.split(" ")[0].rstrip("?")]
    return isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))


def test_every_command_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = documented()
    assert page.keys() == COMMANDS.keys() | {"doctor"}  # whose own tests run it
    for command, calls in COMMANDS.items():
        seen: set[str] = set()
        for arguments in calls:
            facts = answered(capsys, *arguments)
            seen |= facts.keys()
            odd = {key: value for key, value in facts.items() if not fits(value, page[command].get(key, "text"))}
            assert not odd, (command, odd)
            always = {key for key, kind in page[command].items() if "(sometimes)" not in kind}
            assert always <= facts.keys(), (command, always - facts.keys())
        assert seen <= page[command].keys(), (command, seen - page[command].keys())
