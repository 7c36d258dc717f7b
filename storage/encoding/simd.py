"""The vector code of the packed encoding: eight 32-bit lanes, written as LLVM vectors.

Numba's loops reach 3.6 GB/s here and these 21 GB/s (one core, Zen 5), because LLVM neither sees that two arrays do not
overlap nor rotates lanes by itself; explicit vectors need neither and are lowered to the instructions of the machine
(SSE, AVX2, AVX-512, NEON). The layout is SIMD-BP128's of Lemire and Boytsov, widened to eight lanes. Bounds are not
checked here: unpack.py checks them, once a payload.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from penstock.storage.base.thread_atomics import emitted, pointer
from penstock.storage.encoding.payload import LANES, ROWS

I8 = ir.IntType(8)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
Signature = tuple[Any, Callable[..., Any]]


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


def _unpack_row(builder: Any, source: Any, row: int, width: Any, mask: Any) -> Any:
    """Row ``row`` of a block: the 32-bit window that starts at bit row * width of every lane."""
    bit = builder.mul(I64(row), width)
    word = builder.mul(builder.lshr(bit, I64(5)), I64(LANES))
    shift = builder.trunc(builder.and_(bit, I64(31)), I32)
    low = builder.lshr(load(builder, source, word), splat(builder, shift))
    high = load(builder, source, builder.add(word, I64(LANES)))
    high = builder.shl(high, ir.Constant(high.type, [1] * LANES))
    high = builder.shl(high, splat(builder, builder.sub(I32(31), shift)))
    return builder.and_(builder.or_(low, high), mask)


@emitted
def unpack_block(typing: Any, words: Any, first: Any, width: Any, out: Any) -> Signature:
    """unpack_block(words uint32[], first, width <= 32, out uint32[256] or uint64[256]).

    Reads words[first : first + 8 * width + 8]: eight more than the block has.
    """
    signature = types.void(words, types.int64, types.int64, out)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = pointer(context, builder, sig.args[0], args[0], args[1])
        target = pointer(context, builder, sig.args[3], args[3], I64(0))
        ones = builder.sub(builder.shl(I64(1), args[2]), I64(1))
        mask = splat(builder, builder.trunc(ones, I32))
        for row in range(ROWS):
            values = _unpack_row(builder, source, row, args[2], mask)
            wide = resized(builder, values, vector(target.type.pointee))
            store(builder, wide, target, I64(row * LANES))
        return context.get_dummy_value()

    return signature, codegen


def _running_sum(builder: Any, values: Any) -> Any:
    """Inclusive prefix sum over the lanes, by doubling (Hillis and Steele)."""
    zero = ir.Constant(values.type, [0] * LANES)
    step = 1
    while step < LANES:
        lanes = [LANES + i - step if i >= step else 0 for i in range(LANES)]
        values = builder.add(values, shuffle(builder, zero, values, lanes))
        step *= 2
    return values


def _largest(builder: Any, values: Any) -> Any:
    step = LANES // 2
    while step:
        lanes = [(i + step) % LANES for i in range(LANES)]
        values = _maximum(builder, values, shuffle(builder, values, values, lanes))
        step //= 2
    return builder.extract_element(values, I32(0))


def _maximum(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_unsigned(">", a, b), a, b)


@emitted
def sum_block(typing: Any, residuals: Any, start: Any, step: Any, mask: Any, out: Any, first: Any) -> Signature:
    """sum_block(residuals T[256], start, step, mask, out T[], first) -> largest value written, T.

    out[first + i] = (start + the sum of (residuals[j] + step) for j <= i) & mask, T uint32 or uint64.
    """
    kind = out.dtype
    signature = kind(residuals, kind, kind, kind, out, types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = pointer(context, builder, sig.args[0], args[0], I64(0))
        target = pointer(context, builder, sig.args[4], args[4], args[5])
        carry, steps, masks = (splat(builder, scalar) for scalar in args[1:4])
        largest = ir.Constant(carry.type, [0] * LANES)
        for row in range(ROWS):
            values = builder.add(load(builder, source, I64(row * LANES)), steps)
            values = _running_sum(builder, values)
            ids = builder.and_(builder.add(values, carry), masks)
            carry = builder.add(carry, shuffle(builder, values, values, [LANES - 1] * LANES))
            largest = _maximum(builder, largest, ids)
            store(builder, ids, target, I64(row * LANES))
        return _largest(builder, largest)

    return signature, codegen
