"""What a companion does: compile the kernels of a run for the types that it will have, those needed late first.

The kernels' own methods say which types these are: they are called on a state of a few vertices, and instead of running
a kernel, it is compiled, unless the process that waits has taken it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from penstock.engine.kernels.ahead.stand_ins import VERTICES, packed_view_of, row_index, scalars_of, view_of
from penstock.engine.kernels.host.due import make_select_due
from penstock.engine.kernels.host.frontier import make_select
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.program.program_description import described_program
from penstock.engine.state.state import Frontier, State
from penstock.storage.companion.claims import Claims
from penstock.transfer.values.view import View


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
    for call in _calls(kernels, program, view_of(job, "resident"), job):
        call()
    claims.plan(kernels.planned or ())
    kernels.planned = None
    for call in _calls(kernels, program, view_of(job, "resident"), job):
        call()


def _calls(kernels: AheadKernels, program: Any, view: View, job: dict[str, Any]) -> Iterator[Callable[[], Any]]:
    """What a run calls, those kernels first that it needs late."""
    author, index = kernels.author, row_index()
    state = State(program, author, 0, VERTICES, view.neighbors.dtype)
    if program.combine == "union":
        yield lambda: kernels.link_rows(view, state, index, 1, np.uint64(0), True)
        yield lambda: kernels.link_first_neighbors(view, state, index, 1)
        yield lambda: kernels.compress(state)
        return
    if job["apart"]:
        state.accumulate_apart()
    scalars = scalars_of(program, author)
    state.work[:2] = 0, 1
    listed, many = Frontier(1, 1, listed=True), Frontier(1, 1, everything=program.everywhere)
    sizes = 1, 1, 1
    table, chunks = np.zeros(3, np.int64), np.zeros(1, np.uint8)
    if job["apart"]:
        yield lambda: kernels.apply(state, many, index, scalars)
    if "push" in job["directions"] and not program.everywhere:
        yield lambda: kernels.push(view, state, listed, index, scalars)
    pulled = packed_view_of() if job["packed"] else view
    if "pull" in job["directions"]:
        yield lambda: kernels.pull(pulled, state, many, (index, index), scalars)
    if "pull" in job["directions"] and program.visits_once:
        state.keep_unmatched(1 << 20)
        yield lambda: kernels.pull_unmatched(state, index, scalars)
    if "push" in job["directions"]:
        yield lambda: kernels.push(view, state, many, index, scalars)
    yield lambda: kernels.send(state, many, index, scalars)
    if author.totals:
        yield lambda: kernels.reduce(state, index, scalars)
    if not program.everywhere:
        yield lambda: kernels.select(state, index, scalars, np.inf)
    if "pull" in job["directions"] and not program.everywhere:
        yield lambda: kernels.count_cond(state, index, scalars, sizes, table, chunks)
    if "push" in job["directions"] and not program.everywhere:
        yield lambda: kernels.count_active(state, index, sizes, table, chunks)
