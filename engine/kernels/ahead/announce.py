"""Says, before a run, which kernels a companion (`storage/companion/process.py`) would compile for it."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from penstock.engine.kernels.ahead.choice import kind_on
from penstock.engine.program.program import needs_rows
from penstock.engine.program.program_description import describe_program, source_of
from penstock.storage.base.missing_code import are_few
from penstock.storage.companion.job_compiler import job_of, requests_of
from penstock.storage.companion.process import expect, is_new, offer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.engine.planning.requirements import RunRequirements, RunSetting
    from penstock.engine.program.program import Program
    from penstock.storage.format.graph import Graph
    from penstock.transfer.devices.device import Device

MODULES = {"host": "compile_ahead", "cuda": "compile_ahead_cuda"}
"""What does the jobs of each kind of kernels."""
MOST_PROCESSES = {"host": 5, "cuda": 8}
"""Of a job, beside the companion; the last one of a GPU's begins with those of the host that read the graph."""

MANY_EDGES = 1 << 25
"""Of a graph: with fewer, no block of a GPU keeps the sums of hot vertices."""


class KernelJob(NamedTuple):
    """What kernels depend on: the program and how it runs, dtypes of vertices and weights (None: not weighted).

    threads: of this process. capability: the GPU's, None for the cores.
    packed: whether edges may travel packed; of the cores, whether kernels decode them. hot_first: as in `CudaKernels`,
    and there are many edges. counts: whether what an iteration needs of each chunk is counted. both:
    whether messages go along two adjacencies. degrees: their dtype on disk, None in memory, or where they are few.
    resident: whether all edges are on the GPU; paged: whether rows of indexes come packed to it, page by page. phased:
    how many phases the run has, and vertices and edges of its graph; None of a run without, or where that is not known.
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
    resident: bool = False
    paged: bool = False
    phased: tuple[int, int, int] | None = None


def expect_run(program: Program, graph: Graph, kind: str, *, early: bool = True) -> bool:
    """Let a companion start while this process imports the compiler, if the program has not run before; whether so.

    early: whether it starts now, else where a kernel is missing.
    """
    with suppress(TypeError):  # which no companion could compile
        return expect(_name_of(program, graph, kind), _module(kind), early=early)
    return False


def is_new_run(program: Program, graph: Graph, kind: str) -> bool:
    """Whether the program has not run before, so that its kernels will have to be compiled; nothing is started."""
    with suppress(TypeError):
        return is_new(_name_of(program, graph, kind))
    return False


def _name_of(program: Program, graph: Graph, kind: str) -> str:
    facts = graph.vertex_dtype, graph.weight_dtype, kind, needs_rows(program)
    return f"{source_of(program)} {facts}"


def announce_run(
    asked: Sequence[RunRequirements], graph: Graph, device: Device, setting: RunSetting, decoding: bool | None, *,
    phases: int,
) -> None:  # fmt: skip
    """Announce a run's kernels: a GPU's before its edges are at hand, the cores' when it is known whether they decode.

    asked: what it asks for, or phases of each kind. decoding: whether they do, None before that is known. phases: as
    `KernelJob.phased`.
    """
    kind = kind_on(device, setting.config.kernels)
    if kind != "reference" and graph.layout == "rows" and (kind == "cuda") == (decoding is None):
        jobs = [_job(asks, graph, device, setting, bool(decoding), phases=phases) for asks in asked]
        announce(jobs, kind, setting.config.memory_bytes)


def _job(
    asks: RunRequirements, graph: Graph, device: Device, setting: RunSetting, decoding: bool, *, phases: int
) -> KernelJob:
    of_gpu = kind_on(device, setting.config.kernels) == "cuda"
    resident = of_gpu and not setting.by_windows and setting.plan(graph, asks.needs).whole
    config, degrees = setting.config, graph.out.degrees
    few = are_few(graph.vertices + graph.edges, beside=True)
    return KernelJob(
        program=asks.program,
        directions=tuple(asks.directions),
        apart=asks.apart,
        vertices=str(graph.vertex_dtype),
        weights=str(graph.weight_dtype) if asks.needs.weighted else None,
        threads=config.thread_count,
        capability=device.capability,
        packed=decoding or (of_gpu and not resident and config.packed != "never" and asks.needs.sweeps),
        hot_first=graph.hot_first and graph.edges >= MANY_EDGES,
        counts=not resident and (of_gpu or graph.out.chunks > 1),
        both=graph.directed and asks.program.along == "both",
        degrees=None if degrees is None or few else str(degrees.spec.kind),
        resident=resident,
        paged=asks.needs.device_room > 0,
        phased=(phases, graph.vertices, graph.edges) if phases else None,
    )


def reading_requests(vertices: Any, degrees: Any) -> list[dict[str, Any]]:
    """Requests, as `compile_listed` takes them, of what reads rows without weights; of these dtypes on disk.

    Not of what samples degrees, where a run weighs a push against a pull.
    """
    from penstock.storage.encoding import unpack
    from penstock.storage.format import index

    words, numbers, lengths = np.zeros(1, np.uint32), np.zeros(1, np.int64), np.zeros(1, degrees)
    return requests_of(
        [
            (unpack.unpack_values, words, lengths),
            (unpack.unpack, words, np.zeros(1, vertices)),
            (index._append_degrees, lengths, 0, 0, 0, numbers, words),
            (index._rows_of, numbers, words, 0, 0, 0, numbers, numbers),
        ]
    )


def _module(kind: str) -> str:
    return f"penstock.engine.kernels.ahead.{MODULES[kind]}"


def announce(jobs: Sequence[KernelJob], kind: str, host_memory: int) -> None:
    """Begin a run that may take so much memory: if a kernel is missing from now on, companions compile others.

    kind: of kernels, as in `choice.py`; those of a GPU that is simulated are not compiled. Nothing is compiled
    ahead for a run on one thread, nor for a program that another process could not import.
    """
    on_gpu = jobs[0].capability is not None
    if kind == "cuda" and not on_gpu:
        return
    offer(partial(_described, jobs, kind) if jobs[0].threads > 1 else None, host_memory, early=on_gpu)


def _described(jobs: Sequence[KernelJob], kind: str) -> dict[str, Any]:
    """As `described`, of several jobs, each of which has a kernel that takes long."""
    first, *others = (described(job, kind) for job in jobs)
    return {**job_of([first, *others]), "processes": first["processes"] + len(others)} if others else first


def described(job: KernelJob, kind: str) -> dict[str, Any]:
    """What companions are told of a run. Raises TypeError where another process could not import the program."""
    told = {**job._asdict(), "program": describe_program(job.program)}
    of_cores = job.capability is None
    processes = job.threads - 1 if of_cores else max(1, job.threads // 2 - 1)
    if not of_cores and job.degrees is not None:
        told["listed"] = reading_requests(job.vertices, job.degrees)
    most = MOST_PROCESSES[kind]
    return {**told, "target": [_module(kind), "compile_all"], "processes": min(most, processes)}
