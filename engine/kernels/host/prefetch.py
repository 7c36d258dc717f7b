"""Ask for memory before it is read: the processor fetches a line while it works on others."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_TO_READ, _TO_FIRST_LEVEL, _DATA = 0, 3, 1


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Fetch the line of array[index] (uint64) for reading; nothing is bounds-checked, and nothing can fail."""
    signature = types.void(array, types.uint64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [pointer, word(_TO_READ), word(_TO_FIRST_LEVEL), word(_DATA)])
        return context.get_dummy_value()

    return signature, generate
