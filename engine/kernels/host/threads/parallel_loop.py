"""A loop whose steps threads share: one compiled body, run on one thread or on several.

This is Numba's `prange` less its compiler passes, which take longer than all else and make a second version of every
kernel. The threads are Numba's own: `numba_parallel_for` is what its threading layers, whichever is chosen, offer to
compiled code. Every thread takes the next steps until none is left, so many at once as the caller says. What is raised
in the body is raised when all threads have ended.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.callconv import RETCODE_OK, excinfo_ptr_t
from numba.extending import intrinsic

_BYTES = cgutils.voidptr_t
_WORD = cgutils.intp_t
_ARGUMENTS, _NEXT, _STEPS, _GRAIN, _STATUS, _EXCEPTION = range(6)
"""Fields that all threads share: arguments of the body; next step, steps, steps at once; what one failed with."""
_TAKE = ir.FunctionType(ir.VoidType(), [_BYTES.as_pointer(), _WORD.as_pointer(), _WORD.as_pointer(), _BYTES])
"""What Numba's threading layers call: (arrays, counts, strides, nothing). The only array is the loop's own fields."""
_PARALLEL_FOR = ir.FunctionType(ir.VoidType(), [_BYTES] * 5 + [_WORD] * 3)


@intrinsic(prefer_literal=False)
def run_loop(typing_context: Any, body: Any, threads: Any, steps: Any, grain: Any, arguments: Any) -> Any:
    """body(first, last, *arguments) for parts of the steps [0, steps), `grain` of them each, on so many threads.

    On one thread: the caller's.
    """
    signature = types.void(body, types.intp, types.intp, types.intp, arguments)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _, threads, steps, grain, packed = values
        take, kind = _make_take(context, builder, body, arguments)
        loop = cgutils.alloca_once(builder, kind)  # once, however often the caller's loop comes here
        nothing = cgutils.get_null_value(excinfo_ptr_t)
        for field, value in enumerate((packed, _WORD(0), steps, grain, RETCODE_OK, nothing)):
            builder.store(value, _field(builder, loop, field))
        arrays, strides = _stored(builder, builder.bitcast(loop, _BYTES)), _stored(builder, _WORD(0))
        given = arrays, _stored(builder, threads), strides, _BYTES(None)
        with builder.if_else(builder.icmp_signed(">", threads, _WORD(1))) as (several, one):
            with several:
                launch = cgutils.get_or_insert_function(builder.module, _PARALLEL_FOR, "numba_parallel_for")
                pointers = [builder.bitcast(value, _BYTES) for value in (take, *given)]
                builder.call(launch, [*pointers, _WORD(0), _WORD(1), threads])
            with one:
                builder.call(take, given)
        code, exception = (builder.load(_field(builder, loop, field)) for field in (_STATUS, _EXCEPTION))
        status = context.call_conv._get_return_status(builder, code, exception)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return signature, generate


def _make_take(context: Any, builder: Any, body: Any, arguments: Any) -> tuple[Any, Any]:
    """The function that every thread runs, and the type of the loop's fields."""
    inner = body.get_call_type(context.typing_context, (types.intp, types.intp, *arguments.types), {})
    compiled = body.dispatcher.get_compile_result(inner)
    context.active_code_library.add_linking_library(compiled.library)
    packed = context.get_value_type(arguments)
    kind = ir.LiteralStructType([packed, _WORD, _WORD, _WORD, cgutils.int32_t, excinfo_ptr_t])
    take = ir.Function(builder.module, _TAKE, name=f"{compiled.fndesc.llvm_func_name}.take")
    take.linkage = "internal"
    take.attributes.add("noinline")  # it is called in two ways
    inside = ir.IRBuilder(take.append_basic_block("entry"))
    loop = inside.bitcast(inside.load(take.args[0]), kind.as_pointer())
    packed, steps, grain = (inside.load(_field(inside, loop, field)) for field in (_ARGUMENTS, _STEPS, _GRAIN))
    values = [inside.extract_value(packed, at) for at in range(len(arguments.types))]
    again, run, end = (take.append_basic_block(name) for name in ("again", "run", "end"))
    inside.branch(again)
    inside.position_at_end(again)
    first = inside.atomic_rmw("add", _field(inside, loop, _NEXT), grain, "monotonic")
    inside.cbranch(inside.icmp_signed("<", first, steps), run, end)
    inside.position_at_end(run)
    upper = inside.add(first, grain)
    last = inside.select(inside.icmp_signed("<", upper, steps), upper, steps)
    status, _ = context.call_internal_no_propagate(inside, compiled.fndesc, inner, [first, last, *values])
    with cgutils.if_unlikely(inside, status.is_error):
        inside.store(status.excinfoptr, _field(inside, loop, _EXCEPTION))
        inside.store(status.code, _field(inside, loop, _STATUS))
    inside.branch(again)
    inside.position_at_end(end)
    inside.ret_void()
    return take, kind


def _field(builder: Any, loop: Any, number: int) -> Any:
    return cgutils.gep_inbounds(builder, loop, 0, number)


def _stored(builder: Any, value: Any) -> Any:
    place = cgutils.alloca_once(builder, value.type)
    builder.store(value, place)
    return place
