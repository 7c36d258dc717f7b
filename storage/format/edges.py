"""Edge batches: bounded numbers of edges on their way to disk, in any order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
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


def joined(
    batches: Sequence[EdgeBatch], weight_dtype: DTypeLike | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Sources, targets and weights of all batches, one after another; weight_dtype: None where they have no weights."""
    sources = np.concatenate([np.empty(0, np.uint32), *(batch.sources for batch in batches)])
    targets = np.concatenate([np.empty(0, np.uint32), *(batch.targets for batch in batches)])
    if weight_dtype is None:
        return sources, targets, None
    weights = [batch.weights for batch in batches if batch.weights is not None]
    return sources, targets, np.concatenate([np.empty(0, weight_dtype), *weights]).astype(weight_dtype, copy=False)
