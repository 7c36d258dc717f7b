"""What a companion does for a GPU: compile the kernels of a run for the types that it will have.

The kernels' own methods say which types these are: they are called on the state of a few vertices, in host memory, and
instead of launching a kernel, it is compiled, unless another process has taken it. No GPU is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from penstock.engine.kernels.ahead.stand_ins import VERTICES, calls
from penstock.engine.kernels.cuda import compiler, driver
from penstock.engine.kernels.cuda.cubin_cache import cubin_of
from penstock.engine.kernels.cuda.launch import CudaKernels
from penstock.engine.kernels.cuda.whole_rows.launch_rows import CudaRowKernels
from penstock.engine.kernels.packed.cuda_unpacker import CudaUnpacker
from penstock.engine.program.program import needs_rows
from penstock.engine.program.program_description import described_program
from penstock.engine.state.device_state import DeviceState
from penstock.storage.companion.claims import Claims
from penstock.storage.companion.job_compiler import JobCompiler, compile_listed
from penstock.transfer.devices.device import Device, UnpackRequest
from penstock.transfer.devices.emulated import EmulatedDevice


def compile_all(job: dict[str, Any], claims: Claims) -> None:
    """Compile the kernels of a job, which `announce.py` has described; several processes begin at different ones.

    The first of them says which these are.
    """
    major, minor = job["capability"]
    ours = JobCompiler(claims)

    def compile_one(function: Callable[..., Any], types: tuple[Any, ...]) -> None:
        made = partial(compiler.compile_for, function, types, (major, minor), driver.BLOCK)
        ours.compile(partial(cubin_of, function, types, (major, minor), made))

    if "listed" in job and job["number"] == job["processes"] - 1:
        compile_listed(job, claims)
    driver.compile_only((major, minor), compile_one)
    if job["number"] == 0:
        for call in _calls(described_program(job["program"]), job):
            call()
    ours.begin()
    wanted = list(_calls(described_program(job["program"]), job))
    begin = job["number"] * len(wanted) // max(1, job["processes"])
    for call in wanted[begin:] + wanted[:begin]:
        call()


def prepare() -> None:
    """Fill Numba's tables for GPUs, before jobs are done here or in processes that are forked."""
    compiler.prepare()


def _unpacking(device: Device, ids: np.dtype[Any], weights: np.dtype[Any] | None) -> Iterator[Callable[[], Any]]:
    """Decoding of packed ids, and of weights that are packed too."""
    unpacker = CudaUnpacker(device)
    kinds = [(ids, False)] if weights is None or weights.kind == "f" else [(ids, False), (weights, True)]
    for dtype, values in kinds:
        request = _request(dtype, values=values)
        yield partial(unpacker.unpack, request, None)
        yield partial(unpacker.unpack, replace(request, in_place=True), None)


def _request(dtype: np.dtype[Any], *, values: bool, summed: int = 0) -> UnpackRequest:
    """The request for one item."""
    words, starts, out = np.zeros(1, np.uint32), np.zeros(2, np.int64), np.zeros(1, dtype)
    return UnpackRequest(words, 0, starts, 0, 1, 256, 1, out, 0, 1, values, None, summed=summed)


def _calls(program: Any, job: dict[str, Any]) -> Iterator[Callable[[], Any]]:
    """What a run calls, each compiling a kernel or two."""
    dtype, weighted = np.dtype(job["vertices"]), job["weights"] is not None
    device = EmulatedDevice()
    kind = CudaRowKernels if needs_rows(program) else CudaKernels
    kernels = kind(program, dtype, weighted, device, {})
    if job["paged"]:
        yield partial(CudaUnpacker(device).unpack, _request(np.dtype(np.uint32), values=True, summed=1), None)
    state = DeviceState(program, kernels.author, (0, VERTICES), dtype, device)
    if job["packed"]:
        yield from _unpacking(device, dtype, None if job["weights"] is None else np.dtype(job["weights"]))
    yield from calls(kernels, state, program, job)
