"""Edge batches: bounded numbers of edges on their way to disk, in any order."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.encoding.string_array import StringArray


@dataclass(frozen=True, slots=True)
class LocalNames:
    """The distinct names of a batch: 128 bits of hash of each, uint64 (n, 2), where each came first, and
    the names themselves."""

    keys: NDArray[np.uint64]
    firsts: NDArray[np.int64]
    names: StringArray


@dataclass(frozen=True, slots=True)
class EdgeBatch:
    """A bounded number of edges.

    ``sources`` and ``targets`` are uint32 or uint64 (both the same) of shape ``(m,)``, in external or
    internal ids as their producer says; ``weights`` is a numeric array of shape ``(m,)``, or None. ``lone``,
    uint64, are ids of vertices that the input names without an edge (None: none). With ``names``, sources and
    targets are numbers of these names. ``again``, where there is one, reads the same edges from the input once more, in
    any thread; it raises RunError or InputError where the input was changed.
    """

    sources: NDArray[Any]
    targets: NDArray[Any]
    weights: NDArray[Any] | None = None
    lone: NDArray[Any] | None = None
    names: LocalNames | None = None
    again: Callable[[], "EdgeBatch"] | None = None

    def __len__(self) -> int:
        return len(self.sources)
