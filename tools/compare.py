"""Owns the comparison: every system, every task, the same text, medians, and answers that agree.

A system that gives another answer than Penstock is shown as wrong rather than as fast. Refuses to
know the systems: `peers` and `peer_programs` do.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.ingest.edge_list_writer import write_edges
from penstock.storage.ingest.synthetic import SyntheticSource
from penstock.tools.output import table
from penstock.tools.peers import RANK, RANK_SWEEPS, TASKS, TOLERANCE, WCC, ProgramSystem, System, Task, Values

READY = "text to ready"
LOOSE = 4 * TOLERANCE / 0.15
"""How far two rankings may be apart in L1 if each stopped at a change of TOLERANCE."""


@dataclass(frozen=True)
class Material:
    """The same graph for all, without parallel edges: text, text with weights, size, a source."""

    text: Path
    weighted_text: Path
    vertices: int
    edges: int
    source: int


@dataclass(frozen=True)
class Distinct:
    """A generated graph's edges, each pair of ends once, in the generator's order; a source."""

    edges: EdgeBatch
    known_vertices: int
    name: str = "distinct"
    total_bytes: int | None = None
    bytes_done: int = 0
    undirected: bool = False

    @staticmethod
    def of(source: SyntheticSource) -> Distinct:
        """Keep the first of parallel edges (holds the whole graph in memory)."""
        batch = source.batch(0, source.edges)
        keys = batch.sources.astype(np.uint64) * np.uint64(source.known_vertices) + batch.targets
        kept = np.unique(keys, return_index=True)[1]
        kept.sort()
        weights = None if batch.weights is None else batch.weights[kept]
        edges = EdgeBatch(batch.sources[kept], batch.targets[kept], weights)
        return Distinct(edges, source.known_vertices)

    def batches(self, size: int = 1 << 18) -> Generator[EdgeBatch]:
        """Yield the edges."""
        weights = self.edges.weights
        for first in range(0, len(self.edges), size):
            part = slice(first, first + size)
            yield EdgeBatch(
                self.edges.sources[part],
                self.edges.targets[part],
                None if weights is None else weights[part],
            )


def prepare(source: SyntheticSource, folder: Path) -> Material:
    """Write a generated, weighted graph as text without and with weights."""
    distinct = Distinct.of(source)
    material = Material(
        text=folder / "graph.txt",
        weighted_text=folder / "graph.wel",
        vertices=source.known_vertices,
        edges=len(distinct.edges),
        source=int(distinct.edges.sources[0]),
    )
    write_edges(distinct, material.weighted_text)
    ends = EdgeBatch(distinct.edges.sources, distinct.edges.targets)
    write_edges(replace(distinct, edges=ends), material.text)
    return material


def agree(task: str, mine: Values, other: Values) -> bool:
    """Whether two systems' answers to a task are the same, as far as they must be."""
    if len(mine) != len(other):
        return False
    if task == WCC:
        return bool(np.array_equal(first_members(mine), first_members(other)))
    if task in (RANK, RANK_SWEEPS):
        apart = float(np.abs(mine / mine.sum() - other / other.sum()).sum())
        return apart <= (LOOSE if task == RANK else TOLERANCE)
    return bool(np.array_equal(mine, other))


@dataclass(frozen=True)
class Effort:
    """How tasks are timed: `repeat` times after a first one that is not timed, by a clock in seconds.

    patience: of a first run that takes longer its time stands, and it is not repeated.
    """

    repeat: int
    patience: float = math.inf
    clock: Callable[[], float] = time.perf_counter


@dataclass
class Comparison:
    """Median seconds by task and system; which (task, system) gave another answer than the first, or none, and why.

    agree: whether two answers to a task are the same.
    """

    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    wrong: set[tuple[str, str]] = field(default_factory=set)
    failed: dict[tuple[str, str], str] = field(default_factory=dict)
    answers: dict[str, Values] = field(default_factory=dict)
    agree: Callable[[str, Values, Values], bool] = agree

    def note(self, task: str, system: str, seconds: float) -> None:
        """Add a figure."""
        self.seconds.setdefault(task, {})[system] = seconds

    def check(self, task: str, system: str, answer: Values) -> None:
        """Compare with the first system's answer, or keep it if this is the first."""
        if task not in self.answers:
            self.answers[task] = answer
        elif not self.agree(task, self.answers[task], answer):
            self.wrong.add((task, system))


def compare(
    systems: Sequence[System],
    material: Material,
    repeat: int,
    update: Callable[[str], None] = lambda doing: None,
) -> Comparison:
    """Run every task of every system ``repeat`` times; the first system's answers are the measure."""
    found = Comparison()
    for system in systems:
        update(f"{system.name}: {READY}")
        began = time.perf_counter()
        system.load(material.text, material.vertices)
        found.note(READY, system.name, time.perf_counter() - began)
        system.load_weights(material.weighted_text)
        for name, task in system.tasks(material.source).items():
            update(f"{system.name}: {name}")
            _measure(found, (name, system.name), task, Effort(repeat))
        system.close()
        gc.collect()
    return found


def compare_programs(
    found: Comparison,
    makers: Sequence[Callable[[], ProgramSystem]],
    names: Sequence[str],
    effort: Effort,
    update: Callable[[str], None] = lambda doing: None,
) -> list[str]:
    """Run the programs `names` on every system that has them, the systems one after another; returns their names.

    The first system is Penstock, whose errors are errors; another's are noted.
    """
    systems: list[str] = []
    for make in makers:
        system = make()
        tasks: Mapping[str, Task] = system.programs()
        for name in (name for name in names if name in tasks):
            update(f"{system.name}: {name}")
            try:
                _measure(found, (name, system.name), tasks[name], effort)
            except Exception as error:
                if not systems:
                    raise
                found.failed[name, system.name] = f"{type(error).__name__}: {error}"
        systems.append(system.name)
        system.close()
        gc.collect()
    return systems


def _measure(found: Comparison, what: tuple[str, str], task: Task, effort: Effort) -> None:
    """Run a task once for its answer, then for its time."""
    first, result = _timed(task.run, effort.clock)
    found.check(*what, task.answer(result))
    del result
    times = [first] if first > effort.patience else [_timed(task.run, effort.clock)[0] for _ in range(effort.repeat)]
    found.note(*what, median(times))


def _timed(run: Callable[[], Any], clock: Callable[[], float]) -> tuple[float, Any]:
    gc.collect()
    began = clock()
    result = run()
    return clock() - began, result


def first_members(labels: Values) -> Values:
    """Name every component by the first vertex in it, int64 of the shape of ``labels``."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first[inverse])


def lines(found: Comparison, systems: Sequence[str], tasks: Sequence[str] = (READY, *TASKS)) -> list[str]:
    """A table: a row for each task, a column for each system, and the best peer over Penstock."""
    first, *others = systems
    rows = []
    for task in tasks:
        times = found.seconds.get(task, {})
        cells = [_cell(found, task, system) for system in systems]
        peers = [times[name] for name in others if name in times]
        ratio = f"{min(peers) / times[first]:.2f} x" if peers and first in times else "-"
        rows.append([task, *cells, ratio])
    return table(["seconds", *systems, "best peer / penstock"], rows)


def _cell(found: Comparison, task: str, system: str) -> str:
    seconds = found.seconds.get(task, {}).get(system)
    if seconds is None:
        return "failed" if (task, system) in found.failed else "-"
    return f"{seconds:.3f}" + (" wrong" if (task, system) in found.wrong else "")
