"""Says, before a run, which kernels a companion (`storage/companion/process.py`) would compile for it."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from penstock.engine.program.json_values import to_json_value
from penstock.storage.companion.process import offer


class KernelJob(NamedTuple):
    """What kernels depend on: the program and how it runs, dtypes of vertices and weights (None: not weighted)."""

    program: Any
    directions: tuple[str, ...]
    apart: bool
    vertices: str
    weights: str | None
    threads: int


def announce(job: KernelJob, host_memory: int) -> None:
    """Begin a run that may take so much memory: if a kernel is missing from now on, a companion compiles others.

    A program of the user's own is compiled by this process alone, and so is any on one thread.
    """
    kind = type(job.program)
    known = (
        kind.__module__.startswith("penstock.") and getattr(sys.modules[kind.__module__], kind.__name__, None) is kind
    )

    def describe() -> dict[str, Any]:
        attributes = {name: to_json_value(value) for name, value in vars(job.program).items()}
        told = {**job._asdict(), "program": [kind.__module__, kind.__name__, attributes]}
        return {**told, "target": ["penstock.engine.kernels.ahead.compile_ahead", "compile_all"]}

    if known and job.threads > 1:
        offer(describe, host_memory)
