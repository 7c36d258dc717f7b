"""Rows of a block of 256 values: value 8 * row + lane is in word `lane` of eight, at the same bit for a whole row.

Tuples of eight are written out by `eight`: numba's device functions make no others, and each number is to be in a
register.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.driver import SIMULATED, cuda, device
from penstock.engine.kernels.packed.payload_blocks import U32
from penstock.engine.kernels.packed.warp import from_lane, make_added
from penstock.engine.program.bindings import define
from penstock.storage.encoding.payload import LANES

THREE, FIVE, LOW, WIDEST = (np.uint32(number) for number in (3, 5, 31, 32))
NOTHING = (np.uint32(0),) * LANES


def eight(name: str, arguments: str, item: str, **names: Any) -> Any:
    """Device function that returns a tuple of eight: `item` with the number of each for {0}; names: what it calls."""
    items = ", ".join(item.format(number) for number in range(LANES))
    return device(define(name, f"def {name}({arguments}):\n    return ({items})\n", {"np": np, **names}))


load_row = eight("load_row", "words, at", "words[np.uint64(at) + np.uint64({0})]")
"""Eight words from words[at] on."""
row_of_lane = eight("row_of_lane", "loaded, row", "from_lane(loaded[{0}], row)", from_lane=from_lane)
"""Eight words that another thread of the warp has loaded."""


@device
def _own_row(words, at, width):  # type: ignore[no-untyped-def]
    lane = np.uint32(cuda.threadIdx.x) & LOW
    loaded = NOTHING
    if lane < width:
        loaded = load_row(words, at + np.int64(lane << THREE))
    return loaded


@device
def _rows_of_others(words, at, loaded, bit, width):  # type: ignore[no-untyped-def]
    row = np.int32(bit >> FIVE)
    after = np.int32((row + np.int32(1)) & np.int32(LOW))
    return row_of_lane(loaded, row), row_of_lane(loaded, after)


@device
def _no_row(words, at, width):  # type: ignore[no-untyped-def]
    return NOTHING


@device
def _rows_loaded(words, at, loaded, bit, width):  # type: ignore[no-untyped-def]
    at += np.int64((bit >> FIVE) << THREE)
    high = NOTHING
    if np.uint32((bit & LOW) + width) > WIDEST:
        high = load_row(words, at + np.int64(LANES))
    return load_row(words, at), high


begin_rows = _no_row if SIMULATED else _own_row
"""Load what the threads of a warp need of a block's `width` rows of eight words, of which the first is words[at]."""
rows_at = _rows_loaded if SIMULATED else _rows_of_others
"""Of what a warp's threads have loaded, the row with bit number `bit` of each lane, and the next; all call it."""


@device
def bits_of(low, high, shift, low_bits):  # type: ignore[no-untyped-def]
    """The bits `low_bits` from bit `shift` of two words on; all uint32."""
    return np.uint32((np.uint64(low) | (np.uint64(high) << U32)) >> np.uint64(shift)) & low_bits


def make_residuals(kind: Any) -> Any:
    """Device function: what `bits_of` takes out of each of eight pairs of words, as values of this type."""

    item = "kind(bits_of(low[{0}], high[{0}], shift, mask))"
    return eight("residuals", "low, high, shift, mask", item, kind=kind, bits_of=bits_of)


add_room = eight("add_room", "room, own, r", "r[{0}] | room[own + np.uint64({0})]")
"""Eight residuals with the bits that are in room[own:own + 8]."""


@device
def put_room(room, own, v):  # type: ignore[no-untyped-def]
    """room[own:own + 8] = eight values."""
    room[own] = v[0]
    room[own + np.uint64(1)] = v[1]
    room[own + np.uint64(2)] = v[2]
    room[own + np.uint64(3)] = v[3]
    room[own + np.uint64(4)] = v[4]
    room[own + np.uint64(5)] = v[5]
    room[own + np.uint64(6)] = v[6]
    room[own + np.uint64(7)] = v[7]


def make_add_steps(kind: Any) -> Any:
    """Device function: eight residuals, each with the step added."""
    return eight("add_steps", "r, step", "added(r[{0}], step)", added=make_added(kind))


def make_add_up(kind: Any) -> Any:
    """Device function: the running sums of eight differences, the first 0 where the block begins with it."""
    added = make_added(kind)

    @device
    def add_up(d, begins):  # type: ignore[no-untyped-def]
        s0 = kind(0) if begins else d[0]
        s1 = added(s0, d[1])
        s2 = added(s1, d[2])
        s3 = added(s2, d[3])
        s4 = added(s3, d[4])
        s5 = added(s4, d[5])
        s6 = added(s5, d[6])
        s7 = added(s6, d[7])
        return s0, s1, s2, s3, s4, s5, s6, s7

    return add_up


def make_add_before(kind: Any) -> Any:
    """Device function: eight running sums with what comes before them, the bits `mask` of each."""
    item = "kind(added(s[{0}], before) & mask)"
    return eight("add_before", "s, before, mask", item, kind=kind, added=make_added(kind))


@device
def largest_of(v):  # type: ignore[no-untyped-def]
    """The largest of eight values."""
    return max(max(max(v[0], v[1]), max(v[2], v[3])), max(max(v[4], v[5]), max(v[6], v[7])))


def make_below(kind: Any) -> Any:
    """Device function: eight values, 0 for those that are not below the limit (uint64)."""
    return eight("below", "v, limit", "v[{0}] if np.uint64(v[{0}]) < limit else kind(0)", kind=kind)


@device
def is_over(v, limit, i, low, high):  # type: ignore[no-untyped-def]
    """Whether one of eight values that is not below the limit has a number in [low, high); the first has number i."""
    return (
        (low <= i + 0 < high and np.uint64(v[0]) >= limit)
        or (low <= i + 1 < high and np.uint64(v[1]) >= limit)
        or (low <= i + 2 < high and np.uint64(v[2]) >= limit)
        or (low <= i + 3 < high and np.uint64(v[3]) >= limit)
        or (low <= i + 4 < high and np.uint64(v[4]) >= limit)
        or (low <= i + 5 < high and np.uint64(v[5]) >= limit)
        or (low <= i + 6 < high and np.uint64(v[6]) >= limit)
        or (low <= i + 7 < high and np.uint64(v[7]) >= limit)
    )
