"""Another process compiles what is missing, where there is one."""

from __future__ import annotations

from typing import Any

import pytest
from penstock.storage.base import missing_code
from penstock.storage.base.missing_code import tell_missing, when_missing


def test_another_process_compiles_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_code, "_missing", None)
    assert not tell_missing("sum", "entry", dict, ())
    asked: list[Any] = []
    when_missing(lambda name, entry, origin, signature: asked.append((name, entry, origin, signature)) is None)
    assert tell_missing("sum", "entry", dict, (2,))
    assert tell_missing("sum", "entry")
    assert asked == [("sum", "entry", dict, (2,)), ("sum", "entry", None, None)]
