"""The delta encoding: each neighbor id less the one before, whatever the row, modulo the id's width.

The frame's zstd finds the lists that web pages copy from each other as repeated bytes.
"""

from typing import Any

from penstock.storage.base.jit import jit


@jit
def differences(ids: Any, out: Any) -> None:
    """Fill ``out`` with the differences of ``ids``, both uint32 or both uint64; the first from 0."""
    before = ids.dtype.type(0)
    for i in range(len(ids)):
        out[i] = ids[i] - before
        before = ids[i]


@jit
def sums(deltas: Any, out: Any) -> int:
    """Fill ``out`` with running sums and return the largest, -1 for none and -2 beyond 2^63."""
    kind = deltas.dtype.type
    now = kind(0)
    largest = kind(0)
    for i in range(len(out)):
        now = kind(now + deltas[i])
        out[i] = now
        largest = max(largest, now)
    if len(out) == 0:
        return -1
    return int(largest) if int(largest) >= 0 else -2
