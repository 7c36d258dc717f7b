"""LLVM vectors of eight lanes in Numba's compiled code: what simd.py and simd_pack.py are written with.

Explicit vectors are lowered to the instructions of the machine (SSE, AVX2, AVX-512, NEON); Numba's loops over the same
items are vectorized or not, by chance.
"""

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.extending import intrinsic
from penstock.storage.encoding.payload import LANES

I8 = ir.IntType(8)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
Signature = tuple[Any, Callable[..., Any]]


def emitted(emit: Callable[..., Signature]) -> Callable[..., Any]:
    """Make a function of Numba's compiled code from one that types it and emits its LLVM code."""
    return cast(Callable[..., Any], intrinsic(emit))


def pointer(context: Any, builder: Any, kind: Any, value: Any, first: Any) -> Any:
    """Return the address of ``value[first]`` of an array argument."""
    return builder.gep(context.make_array(kind)(context, builder, value).data, [first])


def vector(element: Any) -> Any:
    """Return the type of eight such elements."""
    return ir.VectorType(element, LANES)


def shuffle(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    """Return the lanes of these numbers, of ``a`` (from 0 on) and ``b`` (from 8 on)."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, LANES), lanes))


def splat(builder: Any, scalar: Any) -> Any:
    """Return eight times the scalar."""
    empty = ir.Constant(vector(scalar.type), ir.Undefined)
    return shuffle(builder, builder.insert_element(empty, scalar, I32(0)), empty, [0] * LANES)


def load(builder: Any, source: Any, offset: Any) -> Any:
    """Return the eight items from ``source[offset]`` on."""
    kind = vector(source.type.pointee)
    address = builder.bitcast(builder.gep(source, [offset]), kind.as_pointer())
    return builder.load(address, align=source.type.pointee.width // 8)


def store(builder: Any, values: Any, target: Any, offset: Any) -> None:
    """Write a vector to ``target[offset]`` and on."""
    address = builder.gep(target, [offset])
    builder.store(values, builder.bitcast(address, values.type.as_pointer()), align=4)


def resized(builder: Any, value: Any, kind: Any) -> Any:
    """Return the unsigned scalar or vector in another width."""
    width = getattr(value.type, "element", value.type).width
    target = getattr(kind, "element", kind).width
    if width == target:
        return value
    return builder.zext(value, kind) if width < target else builder.trunc(value, kind)
