"""Owns the copying of many slices out of many arrays in one call, without Python's lock.

A group's keys lie in a slice of every run, some hundred of them; a Python loop over those holds the lock, and
threads that sort side by side would wait for each other. Arrays are named by their addresses; whoever calls
keeps them alive. Refuses checks: the caller cuts slices from tables that it made itself.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba.extending import intrinsic
from numpy.typing import NDArray
from penstock.storage.base.jit import jit

KINDS = {np.dtype(name): code for code, name in enumerate(("u1", "u2", "u4", "f4", "f8"))}
"""What `copy_weights` calls the dtypes that a run's weights may have."""


def _emitted(emit: Callable[..., Any]) -> Callable[..., Any]:
    return cast(Callable[..., Any], intrinsic(emit))


@_emitted
def _item(_: Any, address: Any, kind: Any) -> Any:
    """The item of the type of ``kind`` (a value of it) at a uint64 address."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = context.get_data_type(kind).as_pointer()
        return builder.load(builder.inttoptr(values[0], place))

    return kind(address, kind), emit


@jit
def copy_keys(
    addresses: NDArray[np.uint64], starts: NDArray[np.int64], ends: NDArray[np.int64], out: NDArray[np.uint64]
) -> None:
    """Copy items [starts[i], ends[i]) of the uint64 array at ``addresses[i]``, one slice after another.

    A slice whose address is 0 is left out: its place in ``out`` is not touched.
    """
    at = 0
    for i in range(len(addresses)):
        if addresses[i] != np.uint64(0):
            place = addresses[i] + np.uint64(8) * np.uint64(starts[i])
            for k in range(ends[i] - starts[i]):
                out[at + k] = _item(place + np.uint64(8 * k), place)
        at += ends[i] - starts[i]


@jit
def copy_weights(
    addresses: NDArray[np.uint64],
    kinds: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    out: NDArray[Any],
) -> None:
    """As `copy_keys` with arrays of the dtypes that ``kinds`` (see `KINDS`) say, cast to that of ``out``."""
    at = 0
    for i in range(len(addresses)):
        first, count = np.uint64(starts[i]), ends[i] - starts[i]
        place = addresses[i]
        if place == np.uint64(0):
            at += count
            continue
        if kinds[i] == 0:
            for k in range(count):
                out[at + k] = _item(place + first + np.uint64(k), np.uint8(0))
        elif kinds[i] == 1:
            for k in range(count):
                out[at + k] = _item(place + np.uint64(2) * (first + np.uint64(k)), np.uint16(0))
        elif kinds[i] == 2:
            for k in range(count):
                out[at + k] = _item(place + np.uint64(4) * (first + np.uint64(k)), np.uint32(0))
        elif kinds[i] == 3:
            for k in range(count):
                out[at + k] = _item(place + np.uint64(4) * (first + np.uint64(k)), np.float32(0))
        else:
            for k in range(count):
                out[at + k] = _item(place + np.uint64(8) * (first + np.uint64(k)), np.float64(0))
        at += count
