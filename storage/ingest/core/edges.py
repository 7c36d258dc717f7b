"""Edge batches: bounded numbers of edges on their way to disk, in any order; what typed columns may hold as such."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.schema import EXACT


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


OTHERS = "--columns names other columns"


def as_ids(values: NDArray[Any], name: str, file: str, row: int, way_out: str = OTHERS) -> NDArray[Any]:
    """Ids as uint32, or uint64 where one does not fit; floats must be whole numbers below 2^53.

    ``name``, ``file``, the ``row`` of the first value and the ``way_out`` are for messages.

    Raises:
        InputError: a value that is no id.
    """
    if values.dtype.kind not in "iuf":
        raise InputError(f"{file}: {name} holds {values.dtype}, and ids are whole numbers; {way_out}")
    if values.dtype.kind == "f":
        values = _whole(values, name, file, row, way_out)
    if values.dtype.kind == "i" and len(values) and int(values.min()) < 0:
        at = int(np.argmax(values < 0))
        raise InputError(f"{file}, row {row + at} (from 0): {name} {values[at]} is negative; ids are 0 or more")
    narrow = len(values) == 0 or int(values.max()) < 1 << 32
    return values.astype(np.uint32 if narrow else np.uint64)


def _whole(values: NDArray[Any], name: str, file: str, row: int, way_out: str) -> NDArray[Any]:
    bad = ~((values == np.floor(values)) & (np.abs(values) < EXACT))
    if bad.any():
        at = int(np.argmax(bad))
        if np.isnan(values[at]):
            raise InputError(f"{file}, row {row + at} (from 0): {name} is missing (nan); drop such rows")
        raise InputError(
            f"{file}, row {row + at} (from 0): {name} {values[at]} is not a whole number below 2^53; {way_out}"
        )
    return values.astype(np.int64)


def as_weights(values: NDArray[Any], name: str, file: str, row: int) -> NDArray[Any]:
    """Weights as they are, if they are finite numbers.

    Raises:
        InputError: one that is not.
    """
    if values.dtype.kind not in "iuf":
        raise InputError(f"{file}: {name} holds {values.dtype}, and weights are numbers; --no-weights drops them")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        raise InputError(
            f"{file}, row {row + at} (from 0): weight {name} is {values[at]}, and weights are "
            "finite; drop such rows, or leave weights out"
        )
    return values


def edge_batch(sources: NDArray[Any], targets: NDArray[Any], weights: NDArray[Any] | None) -> EdgeBatch:
    """Edges of ids in the dtype that holds both ends."""
    common = np.promote_types(sources.dtype, targets.dtype)
    return EdgeBatch(sources.astype(common, copy=False), targets.astype(common, copy=False), weights)
