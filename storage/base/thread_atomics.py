"""Atomics, which LLVM offers and Numba's CPU code does not: array[index] is changed whatever other threads do there.

Each returns the value that stood in the array before. Indices are unsigned 64-bit; nothing is bounds-checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba import types
from numba.extending import intrinsic


def _read_modify_write(signed: str, unsigned: str, floating: str | None) -> Callable[..., Any]:
    def operation(_: Any, array: Any, index: Any, value: Any) -> Any:
        if floating is None and isinstance(array.dtype, types.Float):
            return None
        signature = array.dtype(array, types.uint64, array.dtype)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array_type = signature.args[0]
            data = context.make_array(array_type)(context, builder, arguments[0]).data
            pointer = builder.gep(data, [arguments[1]])
            if isinstance(array_type.dtype, types.Float):
                name = floating
            else:
                name = signed if array_type.dtype.signed else unsigned
            return builder.atomic_rmw(name, pointer, arguments[2], "monotonic")

        return signature, generate

    return cast(Callable[..., Any], intrinsic(operation))


atomic_add = _read_modify_write("add", "add", "fadd")
atomic_min = _read_modify_write("min", "umin", "fmin")
atomic_max = _read_modify_write("max", "umax", "fmax")
atomic_or = _read_modify_write("or", "or", None)
atomic_and = _read_modify_write("and", "and", None)
