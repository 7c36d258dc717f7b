"""Owns the comparison: every system, every task, the same text, medians, and answers that agree.

A system that gives another answer than Penstock is shown as wrong rather than as fast. Refuses to
know the systems: `peers` does.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from penstock.storage.edges import EdgeBatch
from penstock.storage.export import write_edges
from penstock.storage.ingest.synthetic import SyntheticSource
from penstock.tools.output import table
from penstock.tools.peers import RANK, RANK_SWEEPS, TASKS, TOLERANCE, WCC, System, Values

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

    def batches(self, size: int = 1 << 18) -> Iterator[EdgeBatch]:
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


@dataclass
class Comparison:
    """Median seconds by task and system; which (task, system) gave another answer than the first."""

    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    wrong: set[tuple[str, str]] = field(default_factory=set)
    answers: dict[str, Values] = field(default_factory=dict)

    def note(self, task: str, system: str, seconds: float) -> None:
        """Add a figure."""
        self.seconds.setdefault(task, {})[system] = seconds

    def check(self, task: str, system: str, answer: Values) -> None:
        """Compare with the first system's answer, or keep it if this is the first."""
        if task not in self.answers:
            self.answers[task] = answer
        elif not agree(task, self.answers[task], answer):
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
            result = task.run()
            found.check(name, system.name, task.answer(result))
            del result
            times = [_timed(task.run) for _ in range(repeat)]
            found.note(name, system.name, median(times))
        system.close()
        gc.collect()
    return found


def _timed(run: Callable[[], Any]) -> float:
    gc.collect()
    began = time.perf_counter()
    result = run()
    took = time.perf_counter() - began
    del result
    return took


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


def first_members(labels: Values) -> Values:
    """Name every component by the first vertex in it, int64 of the shape of ``labels``."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(first[inverse])


def lines(found: Comparison, systems: Sequence[str]) -> list[str]:
    """A table: a row for each task, a column for each system, and the best peer over Penstock."""
    first, *others = systems
    rows = []
    for task in (READY, *TASKS):
        times = found.seconds.get(task, {})
        cells = [_cell(found, task, system) for system in systems]
        peers = [times[name] for name in others if name in times]
        ratio = f"{min(peers) / times[first]:.2f} x" if peers and first in times else "-"
        rows.append([task, *cells, ratio])
    return table(["seconds", *systems, "best peer / penstock"], rows)


def _cell(found: Comparison, task: str, system: str) -> str:
    seconds = found.seconds.get(task, {}).get(system)
    if seconds is None:
        return "-"
    return f"{seconds:.3f}" + (" wrong" if (task, system) in found.wrong else "")
