"""Owns the edge batch, edges on their way to disk. Refuses order and bounds: it is a bag of edges."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class EdgeBatch:
    """A bounded number of edges.

    ``sources`` and ``targets`` are uint32 or uint64 (both the same) of shape ``(m,)``, in external or
    internal ids as their producer says; ``weights`` is a numeric array of shape ``(m,)``, or None.
    """

    sources: NDArray[Any]
    targets: NDArray[Any]
    weights: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.sources)
