"""Owns what typed columns may hold as ids and as weights, whatever file they are from."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.format.schema import EXACT

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
