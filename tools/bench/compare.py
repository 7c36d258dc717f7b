"""The comparison: every system, every query, medians, and answers that agree.

A system that gives another answer than the first one is shown as wrong rather than as fast.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from penstock.engine.session import Session
from penstock.engine.state.result import Result
from penstock.storage.base.budget import default_host_memory
from penstock.storage.convert.convert import convert
from penstock.storage.convert.from_arrays import from_edges
from penstock.storage.convert.in_memory import EdgeArrays
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.edge_list_writer import write_edges
from penstock.storage.ingest.open_source import open_source
from penstock.storage.ingest.synthetic import SyntheticSource
from penstock.tools.base.output import table
from penstock.tools.bench.queries import FROM_TEXT, QUERIES, SWEPT, Agree, Query
from penstock.tools.bench.system import Implementation, SimpleEdges, System, TextSystem, Values

READY = "text to ready"
Update = Callable[[str], None]


@dataclass(frozen=True)
class Timing:
    """How queries are timed: `repeat` times after a first run that is not timed, by a clock in seconds.

    patience: if the first run takes longer, its time is used, and it is not repeated.
    """

    repeat: int
    patience: float = math.inf
    clock: Callable[[], float] = time.perf_counter


@dataclass
class Comparison:
    """Median seconds by query and system; which (query, system) gave another answer than the first, or none and why."""

    edges: SimpleEdges
    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    wrong: set[tuple[str, str]] = field(default_factory=set)
    failed: dict[tuple[str, str], str] = field(default_factory=dict)
    answers: dict[str, Values] = field(default_factory=dict)

    def check(self, query: str, system: str, answer: Values, agree: Agree) -> None:
        """Compare with the first system's answer, or keep it if this is the first."""
        expected = self.answers.setdefault(query, answer)
        if len(expected) != len(answer) or not agree(self.edges, expected, answer):
            self.wrong.add((query, system))

    def measure(self, system: System, names: Mapping[str, str], timing: Timing, update: Update, *, first: bool) -> None:
        """Run the queries that a system has; names: of the queries, by their names in the table.

        The errors of the first system, Penstock, are errors; another's are noted.
        """
        known = system.queries(self.edges)
        for name, query in names.items():
            if query not in known:
                continue
            update(f"{system.name}: {name}")
            try:
                seconds, answer = _median(known[query], timing)
            except Exception as error:
                if first:
                    raise
                self.failed[name, system.name] = f"{type(error).__name__}: {error}"
            else:
                self.check(name, system.name, answer, (QUERIES | SWEPT)[query].agree)
                self.seconds.setdefault(name, {})[system.name] = seconds
        system.close()
        gc.collect()

    def lines(self, systems: Sequence[str], names: Sequence[str]) -> list[str]:
        """A table: a row for each query, a column for each system, and the best peer over Penstock; then the errors."""
        first, *others = systems
        rows = []
        for name in names:
            times = self.seconds.get(name, {})
            peers = [times[system] for system in others if system in times]
            ratio = f"{min(peers) / times[first]:.2f} x" if peers and first in times else "-"
            rows.append([name, *(self._cell(name, system) for system in systems), ratio])
        failed = [f"{system} failed at {name}: {why}" for (name, system), why in self.failed.items()]
        return [*table(["seconds", *systems, "best peer / penstock"], rows), *failed]

    def _cell(self, name: str, system: str) -> str:
        seconds = self.seconds.get(name, {}).get(system)
        if seconds is None:
            return "failed" if (name, system) in self.failed else "-"
        return f"{seconds:.3f}" + (" wrong" if (name, system) in self.wrong else "")


def compare_on(
    edges: SimpleEdges, systems: Sequence[System], names: Sequence[str], timing: Timing, update: Update
) -> Comparison:
    """Run queries on every system that has them, one system after another."""
    found = Comparison(edges)
    for system in systems:
        system.take(edges)
        found.measure(system, dict(zip(names, names, strict=True)), timing, update, first=system is systems[0])
    return found


def compare_from_text(
    source: SyntheticSource, folder: Path, systems: Sequence[TextSystem], timing: Timing, update: Update
) -> Comparison:
    """Let every system read a generated, weighted graph without parallel edges as text, and run FROM_TEXT on it."""
    edges, text, weighted = write_text(source, folder)
    found = Comparison(edges)
    for system in systems:
        update(f"{system.name}: {READY}")
        began = timing.clock()
        system.read(text, edges.vertices)
        found.seconds.setdefault(READY, {})[system.name] = timing.clock() - began
        system.read_weights(weighted)
        found.measure(system, FROM_TEXT, timing, update, first=system is systems[0])
    return found


def write_text(source: SyntheticSource, folder: Path) -> tuple[SimpleEdges, Path, Path]:
    """The edges of a generated, weighted graph, of parallel ones the first, in memory and in text files.

    Self-loops stay. Returns the edges, the text without weights and that with them.
    """
    batch = source.batch(0, source.edges)
    assert batch.weights is not None
    keys = batch.sources.astype(np.uint64) * np.uint64(source.known_vertices) + batch.targets
    kept = np.sort(np.unique(keys, return_index=True)[1])
    sources, targets, weights = batch.sources[kept], batch.targets[kept], batch.weights[kept]
    text, weighted = folder / "graph.txt", folder / "graph.wel"
    for path, values in ((weighted, weights), (text, None)):
        write_edges(EdgeArrays((sources, targets), values, source.known_vertices, undirected=False), path)
    edges = SimpleEdges(sources, targets, weights, source.known_vertices, directed=True, starts=[int(sources[0])])
    return edges, text, weighted


def _median(query: Implementation, timing: Timing) -> tuple[float, Values]:
    """Median seconds of a query, and its answer."""
    run, answer_of = query
    first, result = _timed(run, timing.clock)
    answer = answer_of(result)
    del result
    if first > timing.patience:
        return first, answer
    return median(_timed(run, timing.clock)[0] for _ in range(timing.repeat)), answer


def _timed(run: Callable[[], Any], clock: Callable[[], float]) -> tuple[float, Any]:
    gc.collect()
    began = clock()
    result = run()
    return clock() - began, result


class Penstock:
    """Penstock with its edges in memory, weights narrow; options: of its sessions."""

    name = "penstock"

    def __init__(self, **options: Any) -> None:
        self._options = options

    def take(self, edges: SimpleEdges) -> None:
        """Make a graph in memory; the weights are whole numbers where they can be."""
        largest = int(min(edges.weights.max(initial=0), 2**32 - 1))
        narrow = edges.weights.astype(np.min_scalar_type(largest))
        weights = narrow if np.array_equal(narrow, edges.weights) else edges.weights
        made = from_edges(edges.sources, edges.targets, weights, vertices=edges.vertices, undirected=not edges.directed)
        self._plain = self._weighted = Session(made, **self._options)

    def read(self, text: Path, vertices: int) -> None:
        """Convert with both directions, and open; the file lies beside the text."""
        self._vertices = vertices
        self._plain = self._converted(text, weighted=False)

    def read_weights(self, text: Path) -> None:
        """Convert the weighted list, too."""
        self._weighted = self._converted(text, weighted=True)

    def _converted(self, text: Path, *, weighted: bool) -> Session:
        memory = default_host_memory()
        source = open_source([text], None, IngestOptions(host_memory=memory, weights=weighted))
        source.known_vertices = self._vertices  # type: ignore[misc]  # a list of edges does not say
        path = text.with_suffix(".weighted.h5" if weighted else ".h5")
        convert(source, path, ConvertOptions(direction="both", host_memory=memory, force=True))
        return Session(Graph.open(path), host_memory=memory, **self._options)

    def queries(self, edges: SimpleEdges) -> dict[str, Implementation]:
        """All of them."""

        def program(name: str, query: Query) -> Implementation:
            session = self._weighted if name == "sssp" else self._plain
            return lambda: session.run(query.program(name, edges)), partial(_values, field=query.field)

        found = {name: program(name, query) for name, query in QUERIES.items()}
        return found | {name: program("pagerank", query) for name, query in SWEPT.items()}

    def close(self) -> None:
        """End the sessions."""
        for session in {self._plain, self._weighted}:
            session.close()


def _values(result: Result, field: str) -> Values:
    """A field's values as float64, infinity where there is none."""
    return np.where(result.reached(field), result.fields[field].astype(np.float64), np.inf)
