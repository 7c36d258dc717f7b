"""The command line inside the test's own process: its answers and its refusals.

Owns what holds of every command: an answer is one line of JSON on stdout; a refusal is exit code 2, nothing on stdout,
and no traceback. Refuses the other codes; who expects those calls `cli.run_command`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from penstock.tools import cli


def answered(capsys: pytest.CaptureFixture[str], *arguments: object, silent: bool = False) -> dict[str, Any]:
    """Run a command that must succeed; its JSON. silent: it has nothing to say beside."""
    code = cli.run_command([*map(str, arguments), "--json"])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    assert shown.out.count("\n") == 1
    assert not (silent and shown.err), shown.err
    facts: dict[str, Any] = json.loads(shown.out)
    return facts


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a command that must be refused; the message."""
    code = cli.run_command([*map(str, arguments)])
    shown = capsys.readouterr()
    assert code == 2, shown.err
    assert shown.out == ""
    assert "Traceback" not in shown.err
    return shown.err
