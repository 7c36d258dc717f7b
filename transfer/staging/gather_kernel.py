"""The loop that copies the marked rows of a partition (`gather.py` checks what it gets and what it found)."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from penstock.storage.base.jit import jit
from penstock.storage.base.thread_atomics import emitted, lowest_bit, pointer

_AHEAD = 16  # runs that are fetched into the processor's cache before the first of them is copied
_LINE = 64  # bytes that it fetches at once
_LINES = 4  # of a run's lines, how many are asked for; a longer run's others follow by themselves
_ONE = np.uint32(1)
_ALL = np.uint32(0xFFFFFFFF)


@emitted
def _copy(_: Any, to: Any, to_weights: Any, at: Any, neighbors: Any, weights: Any, item: Any, count: Any) -> Any:
    """Copy items [item, item + count) of one pair of arrays to [at, at + count) of another; no weights: None.

    LLVM makes calls of the C library's memcpy of it; Numba's own assignment of slices first looks for overlap.
    """
    pairs = [(to, 0, neighbors, 3)] + ([] if isinstance(weights, types.NoneType) else [(to_weights, 1, weights, 4)])

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        for target, i, source, k in pairs:
            places = (
                pointer(context, builder, target, values[i], values[2]),
                pointer(context, builder, source, values[k], values[5]),
            )
            size = context.get_abi_sizeof(context.get_data_type(target.dtype))
            cgutils.raw_memcpy(builder, *places, values[6], size)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(to, to_weights, integer, neighbors, weights, integer, integer), emit


@emitted
def _prefetch(_: Any, array: Any, item: Any) -> Any:
    """Ask for the cache line of array[item] and do not wait; harmless outside the array. Of None: nothing."""
    if isinstance(array, types.NoneType):
        return types.void(array, types.int64), lambda context, *_: context.get_dummy_value()

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word, address = ir.IntType(32), cgutils.voidptr_t
        kind = ir.FunctionType(ir.VoidType(), [address, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address], kind)
        place = builder.bitcast(pointer(context, builder, array, values[0], values[1]), address)
        builder.call(function, [place, word(0), word(3), word(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(array, types.int64), emit


@jit
def gather(marks: Any, index: Any, bounds: Any, source: Any, place: Any, target: Any) -> Any:
    """Gather edges [e0, e1) of the marked rows k0 + first .. k1 + first - 1; return row parts and edges found.

    What does not fit the place is counted and not written. Neighboring rows are one run; runs wait in a ring while
    their lines come (0.6 of the time at 10 % density). All in one function: handing arrays on to another one counts
    references, atomically, which costs five times the copy.
    """
    bases, row_offsets, shift = index
    k0, k1, first, e0, e1 = bounds
    neighbors, weights, s0 = source
    r0, r1, a0, a1 = place
    offsets, rows, to, to_weights = target
    step = _LINE // neighbors.itemsize
    runs = np.zeros((_AHEAD, 3), np.int64)  # first edge, edge past the last, place in the target
    now, low, high, at, r, a = 0, e0, e0, a0, r0, a0
    for word in range(k0 >> 5, (k1 + 31) >> 5):
        bits = marks[word] if len(marks) else _ALL
        if word == k0 >> 5:
            bits &= _ALL << np.uint32(k0 & 31)
        if word == k1 >> 5:
            bits &= (_ONE << np.uint32(k1 & 31)) - _ONE
        while bits != 0:
            v = word * 32 + lowest_bit(bits) + first
            bits &= bits - _ONE
            start = max(bases[v >> shift] + np.int64(row_offsets[v]), e0)
            end = min(bases[(v + 1) >> shift] + np.int64(row_offsets[v + 1]), e1)
            if end > start and r < r1 and a + end - start <= a1:
                offsets[r], rows[r] = a, v
                if start != high:
                    runs[now, 0], runs[now, 1], runs[now, 2] = low, high, at
                    now = (now + 1) % _AHEAD
                    _copy(
                        to, to_weights, runs[now, 2], neighbors, weights, runs[now, 0] - s0, runs[now, 1] - runs[now, 0]
                    )
                    for e in range(start, min(end, start + _LINES * step), step):
                        _prefetch(neighbors, e - s0)
                    _prefetch(weights, start - s0)
                    low, at = start, a
                high = end
            r, a = r + (end > start), a + max(end - start, 0)
    runs[now, 0], runs[now, 1], runs[now, 2] = low, high, at
    for i in range(_AHEAD):
        _copy(to, to_weights, runs[i, 2], neighbors, weights, runs[i, 0] - s0, runs[i, 1] - runs[i, 0])
    return r - r0, a - a0
