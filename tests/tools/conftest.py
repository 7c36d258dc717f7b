"""What tests of commands share: garbage is left where it is, for looking through a whole test session takes long."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let benchmarks not collect before each trial: half a second each, in a process that holds many kernels."""
    monkeypatch.setattr("gc.collect", lambda *_: 0)
