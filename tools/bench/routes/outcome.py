"""What `penstock bench routes` found: the trials of a row, the rows of a program, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from penstock.tools.bench.routes.matrix import HYBRID, Case, Configuration
from penstock.transfer.calibration.prediction_error import Accuracy
from penstock.transfer.routes import cel


@dataclass(frozen=True)
class Trial:
    """One timed run of a case: means over its sources; trace: the iterations from the first source (`traced`).

    prediction: by route, how well the seconds of its tasks were foretold, over all sources. link_by_route: bytes over
    the link by route. edges: edges walked, those walked again included.
    """

    seconds: float
    bytes_link: float
    bytes_disk: float
    iterations: float
    trace: list[dict[str, Any]]
    prediction: dict[str, Accuracy] = field(default_factory=dict)
    link_by_route: dict[str, float] = field(default_factory=dict)
    edges: float = 0.0

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

    def passes(self, row: Row) -> float | None:
        """How often all edges were copied whole: bytes of filter, as a multiple of the edges' bytes."""
        return self._share(row, "filter")

    def followed(self, row: Row) -> float | None:
        """Bytes of rows that followed their carriers (CEL), as a multiple of the edges' bytes."""
        return self._share(row, cel.name)

    def _share(self, row: Row, route: str) -> float | None:
        trial = row.typical
        if trial is None or not self.edge_bytes:
            return None
        return trial.link_by_route.get(route, 0.0) / self.edge_bytes

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
