"""The measurement of `penstock bench routes`: in which order rows run, and what was found.

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
from statistics import median
from typing import TYPE_CHECKING, Any

from penstock.engine.session import Session
from penstock.storage.base.errors import InputError, RunError
from penstock.tools.bench.routes.matrix import HYBRID, Case, Configuration, difference
from penstock.tools.run.checkpointing import Followed
from penstock.transfer.calibration.prediction_error import Accuracy, accuracy
from penstock.transfer.routes import cel

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.engine.state.records import IterationRecord
    from penstock.engine.state.result import Result
    from penstock.storage.format.graph import Graph
    from penstock.transfer.values.task import TaskRecord


@dataclass(frozen=True)
class Trial:
    """One timed run of a case: means over its sources; trace: the iterations from the first source (`traced`).

    prediction: by route, how well the seconds of its tasks were foretold, over all sources. link_by_route: bytes over
    the link by route. edges: edges walked, those walked again included, of which `followed` followed a carrier (cel).
    """

    seconds: float
    bytes_link: float
    bytes_disk: float
    iterations: float
    trace: list[dict[str, Any]]
    prediction: dict[str, Accuracy] = field(default_factory=dict)
    link_by_route: dict[str, float] = field(default_factory=dict)
    edges: float = 0.0
    followed: float = 0.0

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

    def brought_by(self, row: Row, route: str) -> float | None:
        """Bytes of a route, as a multiple of the edges' bytes: of filter, how often all edges were copied whole."""
        trial = row.typical
        if trial is None or not self.edge_bytes:
            return None
        return trial.link_by_route.get(route, 0.0) / self.edge_bytes

    def followed(self, row: Row) -> float | None:
        """The share of the edges walked that followed a carrier."""
        trial = row.typical
        return None if trial is None or not trial.edges else trial.followed / trial.edges

    @property
    def steps(self) -> dict[str, float]:
        """How many times as fast as HyTGraph's hybrid each step of the ablation is, in order; empty without it."""
        ran = {row.name.strip(): row.seconds for row in self.rows if row.seconds}
        first = ran.get(HYBRID)
        ladder = [row.name.strip() for row in self.rows if row.name.startswith("  +")]
        return {name: first / ran[name] for name in ladder if first and name in ran}

    @property
    def stuck(self) -> str | None:
        """Why there are no figures at all; None where a row ran, or went wrong."""
        if any(row.trials or row.failed for row in self.rows):
            return None
        told = next((row.problem for row in reversed(self.rows) if row.configuration.unable is None), None)
        return f"{self.case.name}: no row can run: {told or 'this device has nothing to compare'}"

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


def brought(iteration: Mapping[str, Any]) -> dict[str, int]:
    """Partitions by route, of one iteration of a trace; its tasks, where what they read is not cut into partitions.

    An iteration with edges to walk for which nothing came at all found them resident (the heads of rows): one.
    """
    routes = iteration["routes"]
    if not routes and iteration["frontier_edges"]:
        return {"resident": 1}
    unit = "partitions" if any(came["partitions"] for came in routes.values()) else "tasks"
    return {route: came[unit] for route, came in routes.items()}


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
    except InputError as error:
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
    link, followers = sum(task.bytes_link for task in tasks), [task for task in tasks if task.route == cel.name]
    means = seconds / runs, link / runs, disk / runs, iterations / runs
    edges, followed = (sum(task.edges for task in some) / runs for some in (tasks, followers))
    return Trial(*means, trace, accuracy(tasks), by_route, edges, followed)


def _run(session: Session, program: Program, patience: float) -> Result:
    """Run a program to its end, which must come within `patience` seconds. Raises InputError otherwise."""
    steps = session.steps(program)
    until = time.perf_counter() + patience
    followed = Followed(steps)
    for record in followed:
        if time.perf_counter() > until:
            steps.close()
            raise InputError(f"gave up in iteration {record.number} after {patience:g} s; --patience waits longer")
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
