"""Owns the measuring of `penstock bench routes`: which run follows which, and what each left behind.

Rows are visited there and back (first to last, then last to first), so that a machine that drifts favours none. Each
visit is a session of its own, closed before the next, with one run that is not timed: kernels compile, edges load.
Every answer, timed or not, must agree with the first one of the first row that runs. Seconds are the run's own, from
the first values to the last kernel. Refuses to print or to draw.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from penstock.engine.session import Session
from penstock.storage.errors import InputError, RunError
from penstock.tools.routes import Case, Configuration, difference
from penstock.transfer.feedback import Accuracy, accuracy

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program import Program
    from penstock.engine.result import Result
    from penstock.engine.trace import IterationRecord
    from penstock.storage.graph import Graph
    from penstock.transfer.task import TaskRecord


@dataclass(frozen=True)
class Trial:
    """One timed run of a case: means over its sources; trace: the iterations from the first source (`traced`).

    prediction: by route, how well the seconds of its tasks were foretold, over all sources.
    """

    seconds: float
    bytes_link: float
    bytes_disk: float
    iterations: float
    trace: list[dict[str, Any]]
    prediction: dict[str, Accuracy] = field(default_factory=dict)

    @property
    def shares(self) -> dict[str, float]:
        """Share of all partitions that came by each route, in order of first use; sums to 1."""
        counts: dict[str, int] = {}
        for iteration in self.trace:
            for route, count in brought(iteration).items():
                counts[route] = counts.get(route, 0) + count
        total = sum(counts.values())
        return {route: count / total for route, count in counts.items() if total}


@dataclass
class Row:
    """A configuration's trials, or why there are none; failed: it ran and went wrong."""

    configuration: Configuration
    problem: str | None = None
    failed: bool = False
    trials: list[Trial] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The configuration's name."""
        return self.configuration.name

    @property
    def seconds(self) -> float | None:
        """Median seconds of the trials; None if it has none, or one went wrong."""
        return median(trial.seconds for trial in self.trials) if self.trials and not self.failed else None

    @property
    def typical(self) -> Trial | None:
        """The trial of median duration (the faster one of an even number); None where `seconds` is."""
        if self.seconds is None:
            return None
        return sorted(self.trials, key=lambda trial: trial.seconds)[(len(self.trials) - 1) // 2]


@dataclass(frozen=True)
class Outcome:
    """Every row of one case. edge_bytes: of the graph, as it reads them; edge_memory: bytes a device may hold of them.

    link_rate: measured bytes per second of a copy, None where there is no link. reached: share of the vertices that the
    answer from the first source reaches.
    """

    case: Case
    rows: list[Row]
    edge_bytes: int
    edge_memory: int | None
    link_rate: float | None
    reached: float

    def moved(self, row: Row) -> float | None:
        """Bytes over the link as a multiple of the edges' bytes: the quantity of HyTGraph's Table VI."""
        trial = row.typical
        return None if trial is None or not self.edge_bytes else trial.bytes_link / self.edge_bytes

    def of_link(self, row: Row) -> float | None:
        """The rate over the link, as a share of the measured rate."""
        trial = row.typical
        if trial is None or self.link_rate is None or not row.seconds:
            return None
        return trial.bytes_link / (row.seconds * self.link_rate)

    @property
    def best_single(self) -> Row | None:
        """The fastest row that forces one route, but for `resident`, which needs a device that holds everything."""
        ran = [row for row in self.rows if row.configuration.single and row.seconds and row.name != "resident"]
        return min(ran, key=lambda row: row.seconds or 0.0, default=None)

    @property
    def auto(self) -> Row | None:
        """The row of `auto` with all its parts, if it ran."""
        return next((row for row in self.rows if row.name == "auto" and row.seconds), None)

    @property
    def auto_over_best(self) -> float | None:
        """Seconds of auto over those of the best single route."""
        auto, best = self.auto, self.best_single
        if auto is None or best is None or auto.seconds is None or not best.seconds:
            return None
        return auto.seconds / best.seconds


@dataclass(frozen=True)
class Effort:
    """repeat: timed runs of each row. visits: over how many sessions they are spread. patience: seconds of one run."""

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
    effort: Effort,
    update: Callable[[str], None] = lambda doing: None,
) -> tuple[list[Row], float]:
    """Run every configuration that can run; return its rows, and the share of the vertices reached.

    options: of every session, besides the case's and the configuration's own. Raises InputError where no row can run.
    """
    rows = [Row(configuration, configuration.unable) for configuration in compared]
    expected = _Expected()
    for visit in range(effort.visits):
        for row in rows if visit % 2 == 0 else reversed(rows):
            if row.problem is None and effort.runs(visit):
                update(f"{case.name}: {row.name}")
                opened = partial(Session, graph, **{**options, **case.options, **row.configuration.options})
                _visit(row, case, opened, expected, effort, effort.runs(visit))
    if not any(row.trials or row.failed for row in rows):
        told = next((row.problem for row in reversed(rows) if row.configuration.unable is None), None)
        raise InputError(f"{case.name}: no row can run: {told or 'this device has nothing to compare'}")
    return rows, expected.reached


class _TooLongError(Exception):
    """A run took longer than it may."""


def _visit(row: Row, case: Case, opened: Callable[[], Session], expected: _Expected, effort: Effort, runs: int) -> None:
    """Open a session, warm it up, time `runs` runs; what goes wrong becomes the row's problem."""
    try:
        with opened() as session:
            for number in range(runs + 1):
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
    seconds = link = disk = iterations = 0.0
    trace: list[dict[str, Any]] = []
    tasks: list[TaskRecord] = []
    for number, make in enumerate(case.makers):
        result = _run(session, make(), patience)
        wrong = expected.check(number, result, case.apart)
        if wrong:
            row.problem, row.failed = f"wrong answer: {wrong}", True
        seconds += result.seconds
        link += sum(task.bytes_link for record in result.records for task in record.tasks)
        disk += result.bytes_read
        iterations += result.iterations
        tasks += [task for record in result.records for task in record.tasks]
        trace = trace or [trace_of(record) for record in result.records]
    runs = len(case.makers)
    return Trial(seconds / runs, link / runs, disk / runs, iterations / runs, trace, accuracy(tasks))


def _run(session: Session, program: Program, patience: float) -> Result:
    """Run a program to its end, which must come within `patience` seconds. Raises _TooLongError otherwise."""
    steps = session.steps(program)
    until = time.perf_counter() + patience
    while True:
        try:
            record = next(steps)
        except StopIteration as end:
            return cast("Result", end.value)
        if time.perf_counter() > until:
            steps.close()
            raise _TooLongError(f"gave up in iteration {record.number} after {patience:g} s; --patience waits longer")


def trace_of(record: IterationRecord) -> dict[str, Any]:
    """An iteration as plain values: its frontier, and what came by each route; partitions: those with active edges."""
    routes: dict[str, dict[str, int]] = {}
    for task in record.tasks:
        came = routes.setdefault(task.route, {"tasks": 0, "partitions": 0, "edges": 0, "lines": 0, "bytes_link": 0})
        came["tasks"] += 1
        came["partitions"] += task.wanted
        came["edges"] += task.edges
        came["lines"] += task.lines
        came["bytes_link"] += task.bytes_link
    return {
        "iteration": record.number,
        "direction": record.direction,
        "frontier_vertices": record.vertices,
        "frontier_edges": record.edges,
        "seconds": record.seconds,
        "bytes_disk": record.bytes_disk,
        "routes": routes,
    }


def brought(iteration: Mapping[str, Any]) -> dict[str, int]:
    """Partitions by route, of one iteration of a trace; its tasks, where what they read is not cut into partitions.

    An iteration with edges to walk for which nothing came at all found them resident (the heads of rows): one.
    """
    routes = iteration["routes"]
    if not routes and iteration["frontier_edges"]:
        return {"resident": 1}
    unit = "partitions" if any(came["partitions"] for came in routes.values()) else "tasks"
    return {route: came[unit] for route, came in routes.items()}
