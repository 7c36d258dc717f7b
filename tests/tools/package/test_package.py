"""The top package: what a user calls, imported when it is first used."""

from __future__ import annotations

import penstock
import pytest
from penstock import engine


def test_names_are_those_of_the_engine() -> None:
    assert dir(penstock) == sorted([*engine.__all__, "__version__"])
    for name in engine.__all__:
        found = getattr(penstock, name)
        assert (found is getattr(engine, name)) == (name not in ("convert", "run"))
    assert penstock.__version__ == "0.1.0"


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'penstock' has no attribute 'bfs'"):
        _ = penstock.bfs  # type: ignore[attr-defined]
