"""Says, before a run, which kernels a companion (`storage/companion/process.py`) would compile for it."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.engine.program.program_description import describe_program
from penstock.storage.companion.process import offer
from penstock.storage.read.compile_ahead import reading_requests

MOST_PROCESSES = 5
"""Of a job, beside the companion; the last one of a GPU's begins with those of the host that read the graph."""

MANY_EDGES = 1 << 25
"""Of a graph: with fewer, no block of a GPU keeps the sums of hot vertices."""


class KernelJob(NamedTuple):
    """What kernels depend on: the program and how it runs, dtypes of vertices and weights (None: not weighted).

    threads: of this process. capability: the GPU's, None for the cores.
    packed: whether edges may travel packed; of the cores, whether kernels decode them. hot_first: as in `CudaKernels`,
    and there are many edges. counts: whether what an iteration needs of each chunk is counted. both:
    whether messages go along two adjacencies. degrees: their dtype on disk, None in memory.
    """

    program: Any
    directions: tuple[str, ...]
    apart: bool
    vertices: str
    weights: str | None
    threads: int
    capability: tuple[int, int] | None = None
    packed: bool = False
    hot_first: bool = False
    counts: bool = True
    both: bool = False
    degrees: str | None = None


def announce(job: KernelJob, kind: str, host_memory: int) -> None:
    """Begin a run that may take so much memory: if a kernel is missing from now on, companions compile others.

    kind: of kernels, as in `choice.py`; those of a GPU are compiled for the one that is used now. Nothing is compiled
    ahead for a run on one thread, nor for a program that another process could not import.
    """
    if kind == "cuda":
        from penstock.engine.kernels.cuda import driver

        if driver.SIMULATED:
            return
        job = job._replace(capability=driver.capability())

    def describe() -> dict[str, Any]:
        told = {**job._asdict(), "program": describe_program(job.program)}
        of_cores = job.capability is None
        processes = job.threads - 1 if of_cores else max(1, job.threads // 2 - 1)
        if not of_cores and job.degrees is not None:
            told["listed"] = reading_requests(job.vertices, job.degrees)
        module = f"penstock.engine.kernels.ahead.{'compile_ahead' if of_cores else 'compile_ahead_cuda'}"
        return {**told, "target": [module, "compile_all"], "processes": min(MOST_PROCESSES, processes)}

    offer(describe if job.threads > 1 else None, host_memory)
