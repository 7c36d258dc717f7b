"""First runs on small graphs: the plain definition of the kernels answers before a compiler would have made them.

Its answers are those of compiled kernels, to the bit, for the programs that it takes. Owns which these are, and for how
long it is tried: all runs of a program share some CPU time of the process. What takes longer is compiled, and begins
anew.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.program import needs_rows
from penstock.storage.base.errors import BudgetError
from penstock.storage.base.missing_code import are_few

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from penstock.engine.program.program import Program
    from penstock.engine.state.records import IterationRecord
    from penstock.engine.state.result import Result
    from penstock.storage.format.graph import Graph

SECONDS = 2.0
"""CPU time of all runs of a program that does not say how far it is: compiling it takes two to ten seconds."""
FORESEEN = 4.0
"""The same of a program whose sweeps or phases say when it will have ended: as long as this seems enough."""
LATE = 0.1
"""After so much of it what compiles is begun, which takes half a second: most runs end before."""
SWEEPS = 20
"""Of a program whose vertices all send in each iteration so many are expected, and so many phases of one that does not
count them: these are awaited only after SECONDS."""
FEWER = 16
"""Floats that threads add up, whole rows and graphs of a program's own are left to Python where so many times fewer
items are: the order of sums is then one thread's, and one iteration is not long."""
_spent: Counter[type[Program]] = Counter()


def is_tried(program: Program, graph: Graph) -> bool:
    """Whether a program whose kernels are not compiled may be done sooner without: one of ours, on few edges."""
    kind = type(program)
    ours = kind.__module__.startswith("penstock.engine.programs.")
    by_edges = not (program.tolerance or needs_rows(program) or program.other_graph_bytes)
    items = graph.vertices + graph.edges if by_edges else FEWER * max(graph.vertices, graph.edges)
    return ours and graph.edges > 0 and are_few(items) and _spent[kind] < SECONDS


def result_of(
    steps: Generator[IterationRecord, None, Result], program: Program, late: Callable[[], Any]
) -> tuple[list[IterationRecord], Result] | None:
    """All records of a run, and its result; None where it takes too long. late: is called where it may soon have."""
    began, kind = time.thread_time(), type(program)
    records: list[IterationRecord] = []
    first, is_late = 0.0, False
    sweeps = program.max_iter if getattr(program, "tol", None) == 0 else SWEEPS  # which then end at nothing else
    try:
        while True:
            with np.errstate(all="ignore"):  # compiled kernels tell of no overflow either
                record = next(steps)
            records.append(record)
            spent, phase, share = time.thread_time() - began, record.phase, 0.0
            if spent > LATE and not is_late:
                is_late = True
                late()
            if len(records) == 1:  # which imports and loads, too
                first = spent
            elif program.everywhere:
                share = min(1.0, record.number / sweeps)
            elif phase is not None and (phase.count or spent > SECONDS):
                share = min(1.0, (phase.number + 1) / (phase.count or SWEEPS))
            expected, most = (first + (spent - first) / share, FORESEEN) if share else (spent, SECONDS)
            if expected > most - _spent[kind]:
                steps.close()
                return None
    except StopIteration as end:
        return records, end.value
    except BudgetError:  # of the plain definition, which takes other memory
        return None
    finally:
        _spent[kind] += time.thread_time() - began  # type: ignore[assignment]
