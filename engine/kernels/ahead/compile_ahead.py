"""What a companion does: compile the kernels of a run for the types that it will have, those needed late first.

The kernels' own methods say which types these are: they are called on a state of a few vertices, and instead of running
a kernel, it is compiled, unless the process that waits has taken it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.ahead.stand_ins import VERTICES, calls
from penstock.engine.kernels.host.due import make_select_due
from penstock.engine.kernels.host.frontier import make_select
from penstock.engine.kernels.host.fused import PATIENCE
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.kernels.host.whole_rows.launch_rows import HostRowKernels
from penstock.engine.program.program import needs_rows
from penstock.engine.program.program_description import described_program
from penstock.engine.state.state import Frontier, State
from penstock.storage.companion import server
from penstock.storage.companion.claims import Claims
from penstock.storage.companion.job_compiler import JobCompiler


def compile_all(job: dict[str, Any], claims: Claims) -> None:
    """Compile the kernels of a job, which `announce.py` has described; the first process says which these are."""
    program, dtype = described_program(job["program"]), np.dtype(job["vertices"])
    kind, ours = HostRowKernels if needs_rows(program) else HostKernels, JobCompiler(claims)
    kernels: Any = kind(program, dtype, job["weights"] is not None, job["threads"])
    kernels.phases, vertices, edges = job["phased"] or (0, 0, 0)
    job["fused"] = kernels.phases > 0 and kernels.can_fuse(Frontier(vertices, edges, listed=True))  # from the first on

    def compile_one(kernel: Any, *arguments: Any) -> Any:
        made = kernels.kernel(kernel)
        ours.compile(lambda: made.compile_for(arguments))
        if kernel in (make_select, make_select_due):
            arguments[-2][...] = 1  # so many vertices were found: they are listed next
        return 0, 0.0  # of fused iterations: how many there were, and their limit

    kernels._call_alone, kernels._small_pushes = compile_one, PATIENCE
    if job["number"] == 0:
        _call_all(kernels, program, job)
    ours.begin()
    _call_all(kernels, program, job)


def prepare() -> None:
    """Fill Numba's tables, before jobs are done here or in processes that are forked."""
    server.prepare()


def _call_all(kernels: Any, program: Any, job: dict[str, Any]) -> None:
    for call in calls(kernels, State(program, kernels.author, 0, VERTICES, np.dtype(job["vertices"])), program, job):
        call()
