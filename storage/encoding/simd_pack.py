"""The vector code of packing: differences, residuals, their lengths in bits, and lanes; blocks of 256 items.

As simd.py, whose layout this writes; bounds are the caller's.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once_value, for_range, get_or_insert_function
from penstock.storage.base.thread_atomics import emitted, pointer
from penstock.storage.encoding.payload import BLOCK, LANES, ROWS
from penstock.storage.encoding.simd import (
    I8,
    I32,
    I64,
    Signature,
    load,
    resized,
    shuffle,
    splat,
    store,
    vector,
)


@emitted
def step_block(typing: Any, ids: Any, first: Any, steps: Any) -> Signature:
    """step_block(ids T[], first, steps int64[256]) -> (least, least that is not negative), int64.

    Fills steps[1:256] with the differences of ids[first : first + 256], T uint32 or uint64.
    """
    signature = types.UniTuple(types.int64, 2)(ids, types.int64, steps)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = pointer(context, builder, sig.args[0], args[0], args[1])
        target = pointer(context, builder, sig.args[2], args[2], I64(0))
        kind = vector(I64)
        largest = ir.Constant(kind, [(1 << 63) - 1] * LANES)
        kept = [alloca_once_value(builder, largest) for _ in range(2)]

        def subtract(place: Any) -> None:
            before = resized(builder, load(builder, source, place), kind)
            now = resized(builder, load(builder, source, builder.add(place, I64(1))), kind)
            step = builder.sub(now, before)
            store(builder, step, target, builder.add(place, I64(1)))
            for least, compare in zip(kept, (builder.icmp_signed, builder.icmp_unsigned), strict=True):
                known = builder.load(least)
                builder.store(builder.select(compare("<", step, known), step, known), least)

        _each_row(builder, subtract, ROWS - 1)
        subtract(I64(BLOCK - LANES - 1))  # one less than a row is left: the last vector overlaps the one before
        both = [
            _reduced(builder, least, name) for least, name in zip(kept, ("icmp_signed", "icmp_unsigned"), strict=True)
        ]
        return context.make_tuple(builder, sig.return_type, both)

    return signature, codegen


@emitted
def value_block(typing: Any, values: Any, first: Any, steps: Any) -> Signature:
    """value_block(values T[], first, steps int64[256]) -> the least, int64; T is unsigned, of at most 32 bits.

    Fills steps with values[first : first + 256].
    """
    signature = types.int64(values, types.int64, steps)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = pointer(context, builder, sig.args[0], args[0], args[1])
        target = pointer(context, builder, sig.args[2], args[2], I64(0))
        kind = vector(I64)
        least = alloca_once_value(builder, ir.Constant(kind, [(1 << 63) - 1] * LANES))

        def widen(place: Any) -> None:
            step, known = resized(builder, load(builder, source, place), kind), builder.load(least)
            store(builder, step, target, place)
            builder.store(builder.select(builder.icmp_signed("<", step, known), step, known), least)

        _each_row(builder, widen)
        return _reduced(builder, least, "icmp_signed")

    return signature, codegen


def _each_row(builder: Any, body: Callable[[Any], None], rows: int = ROWS) -> None:
    """Emit a loop that gives ``body`` the first item of each row; it compiles sooner than rows one by one."""
    with for_range(builder, I64(rows)) as loop:
        body(builder.mul(loop.index, I64(LANES)))


def _reduced(builder: Any, kept: Any, compare: str) -> Any:
    """The least of the lanes kept."""
    values = builder.load(kept)
    step = LANES // 2
    while step:
        other = shuffle(builder, values, values, [(i + step) % LANES for i in range(LANES)])
        values = builder.select(getattr(builder, compare)("<", values, other), values, other)
        step //= 2
    return builder.extract_element(values, I32(0))


@emitted
def residual_block(typing: Any, steps: Any, start: Any, mask: Any, residuals: Any) -> Signature:
    """residual_block(steps int64[256], start, mask, residuals uint64[256]) -> all bits of the residuals, uint64.

    residuals[i] = (steps[i] - start) & mask.
    """
    return types.uint64(steps, types.uint64, types.uint64, residuals), _of_residuals(store)


def _of_residuals(write: Callable[[Any, Any, Any, Any], None]) -> Callable[[Any, Any, Any, Any], Any]:
    """Code for (steps, start, mask, target) that writes something of every residual, and returns all bits of them."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source, target = (pointer(context, builder, sig.args[i], args[i], I64(0)) for i in (0, 3))
        start, mask = (splat(builder, scalar) for scalar in args[1:3])
        bits = _no_bits(builder)

        def subtract(place: Any) -> None:
            values = builder.and_(builder.sub(load(builder, source, place), start), mask)
            write(builder, values, target, place)
            _add_bits(builder, bits, values)

        _each_row(builder, subtract)
        return _all_bits(builder, bits)

    return codegen


def _no_bits(builder: Any) -> Any:
    """Begin to or 64-bit lanes together."""
    return alloca_once_value(builder, ir.Constant(vector(I64), [0] * LANES))


def _add_bits(builder: Any, bits: Any, values: Any) -> None:
    builder.store(builder.or_(builder.load(bits), values), bits)


def _all_bits(builder: Any, bits: Any) -> Any:
    """All lanes that were added, or-ed together."""
    values = builder.load(bits)
    step = LANES // 2
    while step:
        values = builder.or_(values, shuffle(builder, values, values, [(i + step) % LANES for i in range(LANES)]))
        step //= 2
    return builder.extract_element(values, I32(0))


@emitted
def length_block(typing: Any, steps: Any, start: Any, mask: Any, lengths: Any) -> Signature:
    """length_block(steps int64[256], start, mask, lengths uint8[256]) -> all bits of the residuals, uint64.

    lengths[i] is the bits of (steps[i] - start) & mask.
    """
    return types.uint64(steps, types.uint64, types.uint64, lengths), _of_residuals(_store_lengths)


def _store_lengths(builder: Any, values: Any, target: Any, place: Any) -> None:
    """Write the bits that each of 64-bit lanes needs, a byte each."""
    signature = ir.FunctionType(values.type, [values.type, ir.IntType(1)])
    count = get_or_insert_function(builder.module, signature, f"llvm.ctlz.v{LANES}i64")
    zeros = builder.call(count, [values, ir.Constant(ir.IntType(1), 0)])
    small = builder.trunc(builder.sub(ir.Constant(values.type, [64] * LANES), zeros), vector(I8))
    address = builder.gep(target, [place])
    builder.store(small, builder.bitcast(address, small.type.as_pointer()), align=1)


@emitted
def signed_length_block(typing: Any, steps: Any, lengths: Any) -> Signature:
    """signed_length_block(steps int64[256], lengths uint8[256]) -> all bits, uint64.

    lengths[i] is the bits of steps[i] in two's complement, 0 for 0. All bits are as many as the largest length.
    """
    signature = types.uint64(steps, lengths)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source, target = (pointer(context, builder, sig.args[i], args[i], I64(0)) for i in (0, 1))
        kind = vector(I64)
        zero, bits = ir.Constant(kind, [0] * LANES), _no_bits(builder)

        def measure(place: Any) -> None:
            step = load(builder, source, place)
            size = builder.xor(step, builder.ashr(step, ir.Constant(kind, [63] * LANES)))
            present = builder.zext(builder.icmp_signed("!=", step, zero), kind)
            size = builder.or_(builder.shl(size, ir.Constant(kind, [1] * LANES)), present)
            _store_lengths(builder, size, target, place)
            _add_bits(builder, bits, size)

        _each_row(builder, measure)
        return _all_bits(builder, bits)

    return signature, codegen


@emitted
def count_above(typing: Any, lengths: Any, least: Any) -> Signature:
    """count_above(lengths uint8[256], width) -> int64: how many of 256 bytes are larger."""
    signature = types.int64(lengths, types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = pointer(context, builder, sig.args[0], args[0], I64(0))
        count = builder.ctpop(_above(builder, source, BLOCK, args[1]))
        return builder.trunc(count, I64)

    return signature, codegen


@emitted
def mask_above(typing: Any, items: Any, first: Any, least: Any) -> Signature:
    """mask_above(items uint64[], first, least) -> uint64: bit i < 64 says whether items[first + i] is larger."""
    signature = types.uint64(items, types.int64, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = pointer(context, builder, sig.args[0], args[0], args[1])
        return _above(builder, source, 64, args[2])

    return signature, codegen


def _above(builder: Any, source: Any, count: int, least: Any) -> Any:
    """An integer of ``count`` bits: which of so many unsigned items are larger than a scalar."""
    kind = ir.VectorType(source.type.pointee, count)
    items = builder.load(builder.bitcast(source, kind.as_pointer()), align=1)
    scalar = builder.insert_element(ir.Constant(kind, ir.Undefined), resized(builder, least, kind.element), I32(0))
    order = ir.Constant(ir.VectorType(I32, count), [0] * count)
    larger = builder.icmp_unsigned(">", items, builder.shuffle_vector(scalar, scalar, order))
    return builder.bitcast(larger, ir.IntType(count))


@emitted
def count_bits(typing: Any, value: Any) -> Signature:
    """count_bits(uint64) -> int64: how many bits are set."""
    signature = types.int64(types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return signature, codegen


@emitted
def lowest_bit(typing: Any, value: Any) -> Signature:
    """lowest_bit(uint64) -> int64: the number of the lowest bit that is set, 64 for 0."""
    signature = types.int64(types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return signature, codegen


@emitted
def pack_block(typing: Any, residuals: Any, width: Any, words: Any, first: Any) -> Signature:
    """pack_block(residuals uint64[256], width <= 32, words uint32[], first): the low bits of 256 residuals.

    Fills words[first : first + 8 * width], and eight words where width is 0.
    """
    signature = types.void(residuals, types.int64, words, types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = pointer(context, builder, sig.args[0], args[0], I64(0))
        target = pointer(context, builder, sig.args[2], args[2], args[3])
        ones = builder.sub(builder.shl(I64(1), args[1]), I64(1))
        mask = splat(builder, builder.trunc(ones, I32))
        word = ir.Constant(mask.type, [0] * LANES)
        for row in range(ROWS):
            values = builder.trunc(load(builder, source, I64(row * LANES)), mask.type)
            word = _pack_row(builder, builder.and_(values, mask), row, args[1], word, target)
        return context.get_dummy_value()

    return signature, codegen


def _pack_row(builder: Any, values: Any, row: int, width: Any, word: Any, target: Any) -> Any:
    """Add row ``row`` to the words being filled, and store them; return the words that the next row begins with."""
    bit = builder.mul(I64(row), width)
    place = builder.mul(builder.lshr(bit, I64(5)), I64(LANES))
    shift = builder.trunc(builder.and_(bit, I64(31)), I32)
    word = builder.or_(word, builder.shl(values, splat(builder, shift)))
    address = builder.bitcast(builder.gep(target, [place]), word.type.as_pointer())
    builder.store(word, address, align=4)
    cut = builder.lshr(values, ir.Constant(values.type, [1] * LANES))
    cut = builder.lshr(cut, splat(builder, builder.sub(I32(31), shift)))
    full = builder.icmp_unsigned(">=", builder.add(shift, builder.trunc(width, I32)), I32(32))
    return builder.select(full, cut, word)


@emitted
def bit_length(typing: Any, value: Any) -> Signature:
    """bit_length(uint64) -> int64: the bits that the value needs, 0 for 0."""
    signature = types.int64(types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        zeros = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))
        return builder.sub(I64(64), zeros)

    return signature, codegen
