"""What LLVM offers and Numba's CPU code does not: atomics, and counting bits.

An atomic changes array[index] whatever other threads do there, and returns the value that stood there before. Indices
are unsigned 64-bit; nothing is bounds-checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def emitted(emit: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of Numba's compiled code from one that types it and emits its LLVM code."""
    return cast(Callable[..., Any], intrinsic(emit))


def pointer(context: Any, builder: Any, kind: Any, array: Any, item: Any) -> Any:
    """Return the address of ``array[item]`` of an array argument."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [item])


def _read_modify_write(signed: str, unsigned: str, floating: str | None) -> Callable[..., Any]:
    def operation(_: Any, array: Any, index: Any, value: Any) -> Any:
        if floating is None and isinstance(array.dtype, types.Float):
            return None
        signature = array.dtype(array, types.uint64, array.dtype)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = signature.args[0]
            place = pointer(context, builder, kind, *arguments[:2])
            whole = signed if getattr(kind.dtype, "signed", False) else unsigned
            name = floating if isinstance(kind.dtype, types.Float) else whole
            return builder.atomic_rmw(name, place, arguments[2], "monotonic")

        return signature, generate

    return emitted(operation)


atomic_add = _read_modify_write("add", "add", "fadd")
atomic_min = _read_modify_write("min", "umin", "fmin")
atomic_max = _read_modify_write("max", "umax", "fmax")
atomic_or = _read_modify_write("or", "or", None)
atomic_and = _read_modify_write("and", "and", None)


@emitted
def pop_count(_: Any, word: Any) -> Any:
    """Number of set bits of a uint64."""
    return word(word), lambda context, builder, signature, values: builder.ctpop(values[0])


@emitted
def leading_zeros(_: Any, word: Any) -> Any:
    """Zeros before the highest set bit of a uint64."""
    flag = ir.Constant(ir.IntType(1), 0)
    return word(word), lambda context, builder, signature, values: builder.ctlz(values[0], flag)


@emitted
def lowest_bit(_: Any, word: Any) -> Any:
    """Position of the lowest set bit of a uint32 that is not zero, as int64."""
    flag, wide = ir.Constant(ir.IntType(1), 1), ir.IntType(64)
    signature = types.int64(types.uint32)
    return signature, lambda context, builder, signature, values: builder.zext(builder.cttz(values[0], flag), wide)
