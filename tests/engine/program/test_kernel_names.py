"""Names of kernels say what the author's functions are, not where a library is installed."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from penstock.engine.program.bindings import digest_of


def distance(value: float) -> float:
    """Takes functions from modules, as an author's does."""
    return math.sqrt(np.float64(value))


@pytest.mark.parametrize("module", [np, math])
def test_libraries_may_be_installed_anywhere(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    before, shown = digest_of(distance), repr(module)
    monkeypatch.setattr(module.__spec__, "origin", "/elsewhere/module.py")
    monkeypatch.setattr(module.__spec__, "has_location", True, raising=False)
    assert repr(module) != shown
    assert digest_of(distance) == before


def test_modules_of_an_author_are_told_by_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for folder in (tmp_path / "one", tmp_path / "other"):
        folder.mkdir()
        (folder / "helper_of_kernels.py").write_text("FACTOR = 2.0\n")
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, "helper_of_kernels", raising=False)
        names: dict[str, object] = {}
        exec("import helper_of_kernels\ndef scaled(value):\n    return value * helper_of_kernels.FACTOR\n", names)
        digests.add(digest_of(names["scaled"]))  # type: ignore[arg-type]
    assert len(digests) == 2
