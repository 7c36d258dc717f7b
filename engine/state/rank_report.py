"""What one rank did in a run of several: sums, and columns by iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.transfer.values.cost import RESOURCES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COUNTS = ("bytes_disk", "bytes_link", "value_bytes", "tasks")
SECONDS = ("seconds", "exchange_seconds", "value_seconds")
COLUMNS = (*COUNTS, *SECONDS, *RESOURCES)
"""Of every iteration: what was moved, by how many tasks; seconds, and each resource's."""


@dataclass(frozen=True)
class RankReport:
    """One rank's part in a run.

    Attributes
    ----------
    rank : int
        Its number.
    host, device : str
        Where it ran.
    peak_memory_bytes : int
        Most host memory that its process held until the run was over.
    iterations : ndarray of float64, shape (iterations, len(COLUMNS))
        The columns of COLUMNS for every iteration.
    """

    rank: int
    host: str
    device: str
    peak_memory_bytes: int
    iterations: NDArray[np.float64]

    @property
    def totals(self) -> dict[str, Any]:
        """The sum of each column over all iterations."""
        sums = dict(zip(COLUMNS, self.iterations.sum(axis=0).tolist(), strict=True))
        return {name: int(value) if name in COUNTS else value for name, value in sums.items()}

    @property
    def bytes_disk(self) -> int:
        """Bytes read from disk."""
        return int(self.totals["bytes_disk"])

    def facts(self) -> dict[str, Any]:
        """The sums as plain values, for JSON; busy_seconds: how long each resource was at work."""
        known = self.totals
        busy = {name: known.pop(name) for name in RESOURCES}
        own = {"rank": self.rank, "host": self.host, "device": self.device}
        return {**own, **known, "busy_seconds": busy, "peak_memory_bytes": self.peak_memory_bytes}

    def by_iteration(self) -> dict[str, list[float]]:
        """The columns as plain values, for JSON."""
        return dict(zip(COLUMNS, self.iterations.T.tolist(), strict=True))
