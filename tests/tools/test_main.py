"""Leftovers of an earlier installation that hide this one are told in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from penstock.tools.main import leftovers
from support.faults import python

START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from penstock.tools.main import main; main()"


def test_nothing_hides_this_installation() -> None:
    assert leftovers() is None


@pytest.mark.parametrize("inner", ["storage/convert"])
def test_leftovers_are_told(tmp_path: Path, inner: str) -> None:
    kept = tmp_path / "penstock" / inner / "__pycache__"
    kept.mkdir(parents=True)
    (kept / "sort.split_keys-136.py311.nbi").write_bytes(b"")
    child = python(START, str(tmp_path), "--version")
    assert (child.returncode, child.stdout) == (2, "")
    assert f"rm -r {tmp_path / 'penstock'}\n" in child.stderr
    assert len(child.stderr.splitlines()) == 1


def test_without_them_the_command_runs(tmp_path: Path) -> None:
    child = python(START, str(tmp_path), "--version")
    assert (child.returncode, child.stdout.split(",")[0]) == (0, "penstock")
