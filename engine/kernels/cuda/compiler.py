"""How a kernel becomes machine code: numba-cuda makes PTX of it, and nvJitLink links that; no GPU is needed.

Four fifths of the time are Numba's Python, which types and lowers a kernel and every function that it calls, each in
some twenty passes. In processes that only compile, `prepare` leaves out those that change nothing in functions of
numbers and arrays, and lets what a call means be looked up once for arguments of some types: a third less to compile
(`decisions/compiling.md`).
"""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Callable
from functools import cache
from types import CodeType, SimpleNamespace
from typing import Any

from numba import cuda, types
from penstock.engine.kernels.cuda.cubin_cache import AT_ONCE

LEFT_OUT = {"nopython_rewrites", "inline_overloads"}
"""Passes for expressions of whole arrays, and for functions of Numba's own that are inlined before LLVM may do it."""
CLOSURES = "inline_closure_likes"
"""The pass for functions that are defined in another."""

_log = logging.getLogger("penstock.engine.kernels.cuda.compiler")


def compile_for(
    function: Callable[..., Any], argument_types: tuple[Any, ...], capability: tuple[int, int], block: int
) -> bytes:
    """Compile a kernel of blocks of so many threads; return its entry's name, a zero byte, and its machine code."""
    at_once = function.__dict__.get(AT_ONCE)
    bounds = None if at_once is None else (block, at_once)
    collects = gc.isenabled()
    gc.disable()  # as for the host's kernels (`storage/base/kernel_cache.py`)
    try:
        made = cuda.compile_ptx(function, argument_types, device=False, cc=capability, launch_bounds=bounds)
    finally:
        if collects:
            gc.enable()
    text = str(made[0])
    name = re.search(r"\.visible \.entry ([^(\s]+)", text)
    assert name is not None, "PTX of a kernel has an entry"
    return name.group(1).encode() + b"\0" + _linked(text.encode(), capability)


def _linked(ptx: bytes, capability: tuple[int, int]) -> bytes:
    """The machine code of PTX; where nvJitLink is not here or refuses it, PTX, of which the driver makes it."""
    try:
        from cuda.bindings import nvjitlink

        handle = nvjitlink.create(1, [f"-arch=sm_{capability[0]}{capability[1]}"])
        try:
            nvjitlink.add_data(handle, nvjitlink.InputType.PTX, ptx, len(ptx), "kernel")
            nvjitlink.complete(handle)
            code = bytearray(nvjitlink.get_linked_cubin_size(handle))
            nvjitlink.get_linked_cubin(handle, code)
        finally:
            nvjitlink.destroy(handle)
    except Exception as error:  # nvJitLinkError is one directly
        _log.info("kernels are kept as PTX, the driver compiles it at each machine's first run: %s", error)
        return ptx
    return bytes(code)


def use_capability(capability: tuple[int, int]) -> None:
    """Let Numba compile device functions for this, where it would ask the device at hand; there need be none."""
    from numba.cuda import dispatcher

    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)


@cache
def prepare() -> None:
    """Fill Numba's tables for GPUs, and shorten what it does for each function of this process, from now on.

    For processes that do nothing but compile for us: what else would be compiled for a GPU would be shortened, too.
    """
    from numba.cuda.compiler import CUDACompiler
    from numba.cuda.descriptor import cuda_target

    CUDACompiler.define_pipelines = _shortened(CUDACompiler.define_pipelines)
    calls = cuda_target.typing_context
    calls.resolve_function_type = _remembered(calls.resolve_function_type)
    calls.refresh()
    cuda_target.target_context.refresh()


def _shortened(define: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    def define_pipelines(compiler: Any) -> list[Any]:
        nested = any(isinstance(constant, CodeType) for constant in compiler.state.func_id.code.co_consts)
        out = LEFT_OUT if nested else {*LEFT_OUT, CLOSURES}
        managers = define(compiler)
        for manager in managers:
            manager.passes = [(kind, text) for kind, text in manager.passes if kind._name not in out]
            manager.finalize()
        return managers

    return define_pipelines


def _remembered(resolve: Callable[..., Any]) -> Callable[..., Any]:
    """Look the signature of a call of Numba's own functions up once: it tries up to a dozen templates, some twice."""
    known: dict[tuple[Any, ...], Any] = {}

    def resolve_function_type(function: Any, arguments: tuple[Any, ...], named: Any) -> Any:
        if named or isinstance(function, str | types.Dispatcher):  # "static_getitem", of numbers that are no types
            return resolve(function, arguments, named)
        key = (function, *arguments)
        found = known.get(key)
        if found is None:
            found = known[key] = resolve(function, arguments, named)
        return found

    return resolve_function_type
