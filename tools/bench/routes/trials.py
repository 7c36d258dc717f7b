"""The measurement of `penstock bench routes`: in which order rows run, and what each trial records.

Rows are visited there and back (first to last, then last to first), so that a machine that drifts favours none. Each
visit is a session of its own, closed before the next, with one run that is not timed: kernels compile, edges load.
Every answer, timed or not, must agree with the first one of the first row that runs. Seconds are the run's own, from
the first values to the last kernel.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.engine.session import Session
from penstock.storage.base.errors import InputError, RunError
from penstock.tools.bench.routes.matrix import Case, Configuration, difference
from penstock.tools.bench.routes.outcome import Row, Trial
from penstock.tools.run.checkpointing import Followed
from penstock.transfer.calibration.prediction_error import accuracy

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.engine.state.records import IterationRecord
    from penstock.engine.state.result import Result
    from penstock.storage.format.graph import Graph
    from penstock.transfer.values.task import TaskRecord


@dataclass(frozen=True)
class TrialPlan:
    """repeat: timed runs of each row. visits: over how many sessions they are spread.

    patience: seconds of one run, and those of a session after which nothing more is repeated in it.
    """

    repeat: int = 5
    visits: int = 2
    patience: float = 60.0

    def runs(self, visit: int) -> int:
        """Timed runs of a visit, counted from 0; the first ones take what is left over."""
        return self.repeat // self.visits + (visit < self.repeat % self.visits)


@dataclass
class _Expected:
    """The first answers, by source, and the share of the vertices that the first one reaches."""

    answers: list[Mapping[str, NDArray[Any]]] = field(default_factory=list)
    reached: float = 0.0

    def check(self, number: int, result: Result, apart: float | None) -> str | None:
        """How the answer from source `number` is wrong; kept, if it is the first."""
        if number < len(self.answers):
            return difference(result, self.answers[number], apart)
        self.answers.append(result.fields)
        if number == 0 and result.graph.vertices:
            self.reached = float(result.reached(next(iter(result.fields))).mean())
        return None


def measure(
    case: Case,
    graph: Graph,
    compared: Sequence[Configuration],
    options: Mapping[str, Any],
    effort: TrialPlan,
    update: Callable[[str], None] = lambda doing: None,
) -> tuple[list[Row], float]:
    """Run every configuration that can run; return its rows, and the share of the vertices reached.

    options: of every session, besides the case's and the configuration's own. What cannot run, or went wrong, is told
    by its row.
    """
    rows = [Row(configuration, configuration.unable) for configuration in compared]
    expected = _Expected()
    for visit in range(effort.visits):
        for row in rows if visit % 2 == 0 else reversed(rows):
            if row.problem is None and effort.runs(visit):
                update(f"{case.name}: {row.name}")
                given = (options, case.options, row.configuration.options)
                tuning = {name: value for each in given for name, value in each.get("tuning", {}).items()}
                opened = partial(Session, graph, **{**given[0], **given[1], **given[2], "tuning": tuning})
                _visit(row, case, opened, expected, effort, effort.runs(visit))
    return rows, expected.reached


class _TooLongError(Exception):
    """A run took longer than it may."""


def _visit(
    row: Row, case: Case, opened: Callable[[], Session], expected: _Expected, effort: TrialPlan, runs: int
) -> None:
    """Open a session, warm it up, time `runs` runs; what goes wrong becomes the row's problem."""
    try:
        until = time.perf_counter() + effort.patience
        with opened() as session:
            for number in range(runs + 1):
                if number > 1 and time.perf_counter() > until:
                    return
                trial = _trial(session, row, case, expected, effort.patience)
                if row.failed:
                    return
                if number:
                    row.trials.append(trial)
    except (InputError, _TooLongError) as error:
        row.problem = str(error)
    except RunError as error:
        row.problem, row.failed = str(error), True
    except Exception as error:  # a defect in one way must not cost the figures of the others: it is told, and exits 1
        row.problem, row.failed = f"{type(error).__name__}: {error}", True
    finally:
        gc.collect()


def _trial(session: Session, row: Row, case: Case, expected: _Expected, patience: float) -> Trial:
    """Run the case once from every source."""
    seconds = disk = iterations = 0.0
    trace: list[dict[str, Any]] = []
    tasks: list[TaskRecord] = []
    for number, make in enumerate(case.makers):
        result = _run(session, make(), patience)
        wrong = expected.check(number, result, case.apart)
        if wrong:
            row.problem, row.failed = f"wrong answer: {wrong}", True
        seconds += result.seconds
        disk += result.bytes_read
        iterations += result.iterations
        tasks += [task for record in result.records for task in record.tasks]
        trace = trace or [trace_of(record) for record in result.records]
    runs = len(case.makers)
    by_route: dict[str, float] = {}
    for task in tasks:
        by_route[task.route] = by_route.get(task.route, 0.0) + task.bytes_link / runs
    link = sum(task.bytes_link for task in tasks)
    means = seconds / runs, link / runs, disk / runs, iterations / runs
    return Trial(*means, trace, accuracy(tasks), by_route, sum(task.edges for task in tasks) / runs)


def _run(session: Session, program: Program, patience: float) -> Result:
    """Run a program to its end, which must come within `patience` seconds. Raises _TooLongError otherwise."""
    steps = session.steps(program)
    until = time.perf_counter() + patience
    followed = Followed(steps)
    for record in followed:
        if time.perf_counter() > until:
            steps.close()
            raise _TooLongError(f"gave up in iteration {record.number} after {patience:g} s; --patience waits longer")
    return followed.result


def trace_of(record: IterationRecord) -> dict[str, Any]:
    """An iteration as plain values: its frontier, and what came by each route; partitions: those with active edges."""
    return {
        "iteration": record.number,
        "direction": record.direction,
        "frontier_vertices": record.vertices,
        "frontier_edges": record.edges,
        "seconds": record.seconds,
        "bytes_disk": record.bytes_disk,
        "routes": record.by_route(),
    }
