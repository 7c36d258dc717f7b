"""Ranks on paper: a communicator for a session that forecasts what one of several equal ranks would take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass
class PaperRanks:
    """The first of so many ranks that all have its options. Refuses what only runs need: there is nobody to ask."""

    size: int
    rank: int = 0

    def gather_numbers(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return these numbers once for every rank."""
        return np.stack([numbers] * self.size)

    def _refuse(self, *arguments: Any) -> NoReturn:
        raise RuntimeError("ranks on paper forecast a run, and cannot take part in one")

    gather_parts = gather_slices = exchange_slices = broadcast = wait = abort = _refuse
