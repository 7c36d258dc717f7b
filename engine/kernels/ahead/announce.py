"""Says, before a run, which kernels a companion (`storage/companion/process.py`) would compile for it."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from penstock.engine.program.json_values import to_json_value
from penstock.storage.companion.process import offer

MOST_PROCESSES = 4
"""Beside this one, for a GPU: its kernels take longer to compile, and machines with one have many cores."""


class KernelJob(NamedTuple):
    """What kernels depend on: the program and how it runs, dtypes of vertices and weights (None: not weighted).

    threads: of this process. capability: the GPU's, None for the cores.
    packed: whether edges may travel packed; of the cores, whether kernels decode them.
    """

    program: Any
    directions: tuple[str, ...]
    apart: bool
    vertices: str
    weights: str | None
    threads: int
    capability: tuple[int, int] | None = None
    packed: bool = False


def announce(job: KernelJob, host_memory: int) -> None:
    """Begin a run that may take so much memory: if a kernel is missing from now on, companions compile others.

    A program of the user's own is compiled by this process alone, and so is any on one thread.
    """
    kind = type(job.program)
    known = (
        kind.__module__.startswith("penstock.") and getattr(sys.modules[kind.__module__], kind.__name__, None) is kind
    )

    def describe() -> dict[str, Any]:
        attributes = {name: to_json_value(value) for name, value in vars(job.program).items()}
        told = {**job._asdict(), "program": [kind.__module__, kind.__name__, attributes]}
        of_cores = job.capability is None
        processes = 1 if of_cores else max(1, min(MOST_PROCESSES, job.threads // 2 - 1))
        module = f"penstock.engine.kernels.ahead.{'compile_ahead' if of_cores else 'compile_ahead_cuda'}"
        return {**told, "target": [module, "compile_all"], "processes": processes}

    if known and job.threads > 1:
        offer(describe, host_memory)
