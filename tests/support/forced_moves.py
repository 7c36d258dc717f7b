"""Ranks whose bounds move after every walk, wherever they are: what a run has to bear that measures nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from penstock.engine.execution.rebalance import Rebalance


@contextmanager
def moving() -> Iterator[None]:
    """Let the bounds of every run of several ranks be others after each iteration; empty ranges are among them."""

    def after_walk(self: Rebalance, loop: Any, *walk: Any) -> None:
        record = walk[2]
        random, old = np.random.default_rng(record.number), loop.ownership.bounds
        inner = np.sort(random.integers(0, old[-1] + 1, len(old) - 2))
        self._move(loop, np.array([0, *inner, old[-1]]), record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rebalance, "after_walk", after_walk)
        yield
