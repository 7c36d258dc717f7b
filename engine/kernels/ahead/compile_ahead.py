"""What a companion does: compile the kernels of a run for the types that it will have, those needed late first.

The kernels' own methods say which types these are: they are called on a state of a few vertices, and instead of running
a kernel, it is compiled, unless the process that waits has taken it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.program.bindings import scalar_values
from penstock.engine.program.json_values import from_json_value
from penstock.engine.state.frontier import Frontier
from penstock.engine.state.state import State
from penstock.storage.companion.process import Claims
from penstock.storage.format.index import WIDEST_SHIFT, Index
from penstock.transfer.values.task import TaskRecord
from penstock.transfer.values.view import View

VERTICES = 4096


class AheadKernels(HostKernels):
    """Kernels that are compiled where they would run."""

    def __init__(self, claims: Claims, program: Any, vertex_dtype: Any, weighted: bool, threads: int) -> None:
        super().__init__(program, vertex_dtype, weighted, threads)
        self._claims = claims

    def _call_alone(self, name: str, *arguments: Any) -> Any:
        made = self._make(name)
        if self._claims.take(made.name):
            try:
                made.compile_for(arguments)
            finally:
                self._claims.end(made.name)
        if name == "select":
            arguments[-2][...] = 1  # so many vertices were found: they are listed next


def compile_all(job: dict[str, Any], claims: Claims) -> None:
    """Compile the kernels of a job, which `announce.py` has described."""
    module, name, attributes = job["program"]
    kind = getattr(importlib.import_module(module), name)
    program = kind.__new__(kind)
    vars(program).update({name: from_json_value(value) for name, value in attributes.items()})
    dtype, weighted = np.dtype(job["vertices"]), job["weights"] is not None
    kernels = AheadKernels(claims, program, dtype, weighted, job["threads"])
    weights = np.zeros(1, job["weights"]) if weighted else None
    view = View(0, 1, 0, VERTICES, np.zeros(1, dtype), weights, TaskRecord("resident", "out", (0,)))
    for call in _calls(kernels, program, view, job):
        call()


def _calls(kernels: AheadKernels, program: Any, view: View, job: dict[str, Any]) -> Iterator[Callable[[], Any]]:
    """What a run calls, those kernels first that it needs late."""
    author, index = kernels.author, Index(np.zeros(2, np.int64), np.zeros(VERTICES + 1, np.uint32), WIDEST_SHIFT)
    state = State(program, author, 0, VERTICES, view.neighbors.dtype)
    if program.combine == "union":
        yield lambda: kernels.link_rows(view, state, index, 1, np.uint64(0), True)
        yield lambda: kernels.link_first_neighbors(view, state, index, 1)
        yield lambda: kernels.compress(state)
        return
    if job["apart"]:
        state.accumulate_apart()
    facts = {"iteration": 0, "vertices": VERTICES, "due": np.inf, **dict.fromkeys(author.totals, 0.0)}
    scalars = scalar_values(program, author, facts)
    state.work[:2] = 0, 1
    listed, many, sizes = Frontier(1, 1, listed=True), Frontier(1, 1, listed=False), (1, 1, 1)
    table, chunks = np.zeros(3, np.int64), np.zeros(1, np.uint8)
    if job["apart"]:
        yield lambda: kernels.apply(state, many, index, scalars)
    if "push" in job["directions"] and not program.everywhere:
        yield lambda: kernels.push(view, state, listed, index, scalars)
    if "pull" in job["directions"]:
        yield lambda: kernels.pull(view, state, many, (index, index), scalars)
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
