"""The vector code of the packed encoding: eight 32-bit lanes, written as LLVM vectors.

Numba's loops reach 3.6 GB/s here and these 21 GB/s (one core, Zen 5), because LLVM neither sees that two arrays do not
overlap nor rotates lanes by itself; explicit vectors need neither and are lowered to the instructions of the machine
(SSE, AVX2, AVX-512, NEON). The layout is SIMD-BP128's of Lemire and Boytsov, widened to eight lanes. Bounds are not
checked here: unpack.py checks them, once a payload.
"""

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from penstock.storage.encoding.payload import LANES, ROWS

_I32 = ir.IntType(32)
_I64 = ir.IntType(64)
_Signature = tuple[Any, Callable[..., Any]]


def _emitted(emit: Callable[..., _Signature]) -> Callable[..., Any]:
    """Make a function of Numba's compiled code from one that types it and emits its LLVM code."""
    return cast(Callable[..., Any], intrinsic(emit))


def _pointer(context: Any, builder: Any, kind: Any, value: Any, first: Any) -> Any:
    """Address of ``value[first]`` of an array argument."""
    return builder.gep(context.make_array(kind)(context, builder, value).data, [first])


def _vector(element: Any) -> Any:
    return ir.VectorType(element, LANES)


def _shuffle(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_I32, LANES), lanes))


def _splat(builder: Any, scalar: Any) -> Any:
    empty = ir.Constant(_vector(scalar.type), ir.Undefined)
    return _shuffle(builder, builder.insert_element(empty, scalar, _I32(0)), empty, [0] * LANES)


def _load(builder: Any, pointer: Any, offset: Any) -> Any:
    kind = _vector(pointer.type.pointee)
    address = builder.bitcast(builder.gep(pointer, [offset]), kind.as_pointer())
    return builder.load(address, align=4)


def _store(builder: Any, vector: Any, pointer: Any, offset: int) -> None:
    address = builder.gep(pointer, [_I64(offset)])
    builder.store(vector, builder.bitcast(address, vector.type.as_pointer()), align=4)


def _resized(builder: Any, value: Any, kind: Any) -> Any:
    """The unsigned scalar or vector in another width."""
    width = getattr(value.type, "element", value.type).width
    target = getattr(kind, "element", kind).width
    if width == target:
        return value
    return builder.zext(value, kind) if width < target else builder.trunc(value, kind)


def _unpack_row(builder: Any, source: Any, row: int, width: Any, mask: Any) -> Any:
    """Row ``row`` of a block: the 32-bit window that starts at bit row * width of every lane."""
    bit = builder.mul(_I64(row), width)
    word = builder.mul(builder.lshr(bit, _I64(5)), _I64(LANES))
    shift = builder.trunc(builder.and_(bit, _I64(31)), _I32)
    low = builder.lshr(_load(builder, source, word), _splat(builder, shift))
    high = _load(builder, source, builder.add(word, _I64(LANES)))
    high = builder.shl(high, ir.Constant(high.type, [1] * LANES))
    high = builder.shl(high, _splat(builder, builder.sub(_I32(31), shift)))
    return builder.and_(builder.or_(low, high), mask)


@_emitted
def unpack_block(typing: Any, words: Any, first: Any, width: Any, out: Any) -> _Signature:
    """unpack_block(words uint32[], first, width <= 32, out uint32[256] or uint64[256]).

    Reads words[first : first + 8 * width + 8]: eight more than the block has.
    """
    signature = types.void(words, types.int64, types.int64, out)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = _pointer(context, builder, sig.args[0], args[0], args[1])
        target = _pointer(context, builder, sig.args[3], args[3], _I64(0))
        ones = builder.sub(builder.shl(_I64(1), args[2]), _I64(1))
        mask = _splat(builder, builder.trunc(ones, _I32))
        for row in range(ROWS):
            values = _unpack_row(builder, source, row, args[2], mask)
            wide = _resized(builder, values, _vector(target.type.pointee))
            _store(builder, wide, target, row * LANES)
        return context.get_dummy_value()

    return signature, codegen


def _running_sum(builder: Any, values: Any) -> Any:
    """Inclusive prefix sum over the lanes, by doubling (Hillis and Steele)."""
    zero = ir.Constant(values.type, [0] * LANES)
    step = 1
    while step < LANES:
        lanes = [LANES + i - step if i >= step else 0 for i in range(LANES)]
        values = builder.add(values, _shuffle(builder, zero, values, lanes))
        step *= 2
    return values


def _largest(builder: Any, values: Any) -> Any:
    step = LANES // 2
    while step:
        lanes = [(i + step) % LANES for i in range(LANES)]
        values = _maximum(builder, values, _shuffle(builder, values, values, lanes))
        step //= 2
    return builder.extract_element(values, _I32(0))


def _maximum(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.icmp_unsigned(">", a, b), a, b)


@_emitted
def sum_block(typing: Any, residuals: Any, start: Any, step: Any, mask: Any, out: Any, first: Any) -> _Signature:
    """sum_block(residuals T[256], start, step, mask, out T[], first) -> largest value written, T.

    out[first + i] = (start + the sum of (residuals[j] + step) for j <= i) & mask, T uint32 or uint64.
    """
    kind = out.dtype
    signature = kind(residuals, kind, kind, kind, out, types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = _pointer(context, builder, sig.args[0], args[0], _I64(0))
        target = _pointer(context, builder, sig.args[4], args[4], args[5])
        carry, steps, masks = (_splat(builder, scalar) for scalar in args[1:4])
        largest = ir.Constant(carry.type, [0] * LANES)
        for row in range(ROWS):
            values = builder.add(_load(builder, source, _I64(row * LANES)), steps)
            values = _running_sum(builder, values)
            ids = builder.and_(builder.add(values, carry), masks)
            carry = builder.add(carry, _shuffle(builder, values, values, [LANES - 1] * LANES))
            largest = _maximum(builder, largest, ids)
            _store(builder, ids, target, row * LANES)
        return _largest(builder, largest)

    return signature, codegen


@_emitted
def bit_length(typing: Any, value: Any) -> _Signature:
    """bit_length(uint64) -> int64: the bits that the value needs, 0 for 0."""
    signature = types.int64(types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        zeros = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(_I64(64), zeros)

    return signature, codegen
