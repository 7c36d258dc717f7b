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
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.program.program_description import described_program
from penstock.engine.state.state import State
from penstock.storage.companion.claims import Claims


class AheadKernels(HostKernels):
    """Kernels that are compiled where they would run."""

    def __init__(self, claims: Claims, program: Any, vertex_dtype: Any, weighted: bool, threads: int) -> None:
        super().__init__(program, vertex_dtype, weighted, threads)
        self._claims = claims
        self.planned: set[str] | None = set()
        """The kernels that were called, none of which was compiled; None: they are compiled from now on."""

    def _call_alone(self, kernel: Any, *arguments: Any) -> Any:
        made = self.kernel(kernel)
        if self.planned is not None:
            self.planned.add(made.name)
        elif self._claims.take(made.name):
            try:
                made.compile_for(arguments)
            finally:
                self._claims.end(made.name)
        if kernel in (make_select, make_select_due):
            arguments[-2][...] = 1  # so many vertices were found: they are listed next


def compile_all(job: dict[str, Any], claims: Claims) -> None:
    """Compile the kernels of a job, which `announce.py` has described, once it is said which these are."""
    program, dtype = described_program(job["program"]), np.dtype(job["vertices"])
    kernels = AheadKernels(claims, program, dtype, job["weights"] is not None, job["threads"])
    _call_all(kernels, program, job)
    claims.plan(kernels.planned or ())
    kernels.planned = None
    _call_all(kernels, program, job)


def _call_all(kernels: AheadKernels, program: Any, job: dict[str, Any]) -> None:
    for call in calls(kernels, State(program, kernels.author, 0, VERTICES, np.dtype(job["vertices"])), program, job):
        call()
