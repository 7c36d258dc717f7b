"""What LLVM offers and Numba's CPU code does not: prefetching, choices, lowest bits; and combiners made of atomics.

The combiners are those of `engine/program/combiners.py`, atomic (several threads write one target) and plain (one
does).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from penstock.engine.kernels.host.jit import inline
from penstock.engine.kernels.shared_functions import make_combine, make_combine_alone
from penstock.engine.program.combiners import COMBINERS
from penstock.storage.base.thread_atomics import atomic_add, atomic_max, atomic_min, atomic_or

_TO_READ, _TO_FIRST_LEVEL, _TO_SECOND_LEVEL, _DATA = 0, 3, 2, 1
"""How LLVM prefetches."""
ATOMICS = {"add": atomic_add, "min": atomic_min, "max": atomic_max, "or_": atomic_or}


def _make_prefetch(level: int) -> Any:
    def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
        signature = types.void(array, types.uint64)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            pointer = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            builder.call(function, [pointer, word(_TO_READ), word(level), word(_DATA)])
            return context.get_dummy_value()

        return signature, generate

    return intrinsic(prefetch)


prefetch = _make_prefetch(_TO_FIRST_LEVEL)
"""Fetch the line of array[index] (uint64) for reading; nothing is bounds-checked, and nothing can fail."""
prefetch_early = _make_prefetch(_TO_SECOND_LEVEL)
"""The same for what is read so much later that the first-level cache would not hold what is asked for meanwhile."""


@intrinsic
def choose(typing_context: Any, condition: Any, one: Any, other: Any) -> Any:
    """`one if condition else other`, of the type of `other`, without a branch: for conditions that no predictor learns.

    Of other choices in a small loop LLVM makes branches again (its pass x86-cmov-conversion).
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        holds = context.cast(builder, arguments[0], signature.args[0], types.boolean)
        found = builder.select(holds, context.cast(builder, arguments[1], one, other), arguments[2])
        found.set_metadata("unpredictable", builder.module.add_metadata([]))
        return found

    return other(condition, one, other), generate


@intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """Position of the lowest set bit of a non-zero uint64, as uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


COMBINE = {
    name: inline(make_combine(inline(combiner.changes), ATOMICS[combiner.atomic]))
    for name, combiner in COMBINERS.items()
}
"""Combine a value into an entry that several threads write; whether that changes it."""
COMBINE_ALONE = {
    name: inline(make_combine_alone(inline(combiner.changes), inline(combiner.merge)))
    for name, combiner in COMBINERS.items()
}
"""The same where only one thread writes."""
MERGE = {name: inline(combiner.merge) for name, combiner in COMBINERS.items()}
CHANGES = {name: inline(combiner.changes) for name, combiner in COMBINERS.items()}


def make_absorb(combine: str) -> Any:
    """Inlined: combine into an entry that only this thread writes; whether that changes it."""
    merge, always = MERGE[combine], combine == "sum"

    @inline
    def absorb(target, at, value):  # type: ignore[no-untyped-def]
        old = target[at]
        new = merge(old, value)
        target[at] = new
        return always or new != old

    return absorb
