"""tools/json.md as a rule: every key there is printed with its type, and no other is."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "tools" / "json.md"
TYPES: dict[str, Any] = {
    "text": str,
    "whole": int,
    "number": (int, float),
    "yes/no": bool,
    "list": list,
    "object": dict,
}


@cache
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


def check_documented(facts: dict[str, Any], command: str | None = None) -> None:
    """Hold what a command has printed to the page; command: its name there, by default the one that the facts have."""
    command = command or str(facts["command"])
    page = documented()[command]
    odd = {key: value for key, value in facts.items() if key not in page or not fits(value, page[key])}
    assert not odd, (command, odd)
    always = {key for key, kind in page.items() if "(sometimes)" not in kind}
    assert always <= facts.keys(), (command, always - facts.keys())
