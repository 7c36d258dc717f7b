"""What is missing is said once, and compiled by another process where there is one."""

from __future__ import annotations

from typing import Any

import pytest
from penstock.storage.base import missing_code
from penstock.storage.base.missing_code import compile_elsewhere, compiled_elsewhere, tell_missing, when_missing


def test_it_is_said_once() -> None:
    said: list[int] = []
    when_missing(lambda: said.append(1))
    tell_missing()
    tell_missing()
    assert said == [1]
    when_missing(lambda: said.append(2))
    when_missing(None)
    tell_missing()
    assert said == [1]


def test_another_process_compiles_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_code._Missing, "elsewhere", None)
    assert not compiled_elsewhere(dict, ())
    asked: list[Any] = []
    compile_elsewhere(lambda origin, signature: asked.append((origin(), signature)) is None)
    assert compiled_elsewhere(lambda: {"a": 1}, (2,))
    assert asked == [({"a": 1}, (2,))]
