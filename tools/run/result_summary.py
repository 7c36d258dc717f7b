"""What is said of a run that ended: facts for machines, lines for people.

A field is summed up by what was reached, its extremes, its groups or flags; vertices come by rank.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.storage.base.budget import format_bytes
from penstock.tools.base.output import counted, pairs, seconds, table

if TYPE_CHECKING:
    from penstock.engine.state.result import Result
    from penstock.tools.run.run_options import AnswerOptions

NAMES_OF_VERTICES = ("component", "label", "parent")
"""Fields whose values are vertices, so that their size says nothing."""
GROUPS = ("component", "label", "color")
"""Fields whose values say which vertices belong together: they are counted."""
FLAGS = ("member", "reached")
"""Fields that are 1 or 0: those that have 1 are counted."""


@dataclass(frozen=True)
class ResultSummary:
    """A run's result with what the command line adds to it."""

    result: Result
    total_seconds: float = 0.0
    peak_memory_bytes: int = 0

    def facts(self) -> dict[str, Any]:
        """For machines."""
        result, graph = self.result, self.result.graph
        return {
            "graph": graph.path,
            "weighted": result.weighted,
            "vertices": graph.vertices,
            "edges": graph.edges,
            "graph_bytes": graph.file_bytes,
            "seconds": result.seconds,
            "total_seconds": self.total_seconds,
            "iterations": result.iterations,
            "iterations_before": result.before,
            "converged": result.converged,
            "bytes_read": result.bytes_read,
            "prediction": {route: asdict(found) for route, found in result.prediction.items()},
            "peak_memory_bytes": self.peak_memory_bytes,
            "fields": self.fields(),
            "measures": result.measures,
        }

    def lines(self, wanted: AnswerOptions) -> list[str]:
        """For people."""
        result = self.result
        size = result.graph.file_bytes
        read = format_bytes(result.bytes_read)
        if size and result.bytes_read:
            read += f" ({result.bytes_read / size:.2f} x the graph's {format_bytes(size)})"
        counted = getattr(result.program, "tol", None) == 0  # so many were asked for, and no convergence
        ended = "" if result.converged or counted else ", stopped before it converged"
        ended += f", {result.before:,} of them before it was resumed" if result.before else ""
        weightless = result.program.needs_weights and result.graph.weight_dtype is None
        rows: list[tuple[str, object]] = [
            *self.field_lines(),
            *((name, f"{of[0]:.6g} at first, {of[-1]:.6g} at last") for name, of in result.measures.items() if of),
            ("weights", "none in this graph: each edge counts as 1" if weightless else None),
            ("iterations", f"{result.iterations:,}{ended}"),
            ("time", f"{seconds(result.seconds)} (with loading {seconds(self.total_seconds)})"),
            ("read from disk", read),
            ("peak memory", format_bytes(self.peak_memory_bytes)),
            ("written", wanted.path),
        ]
        top = self.top(wanted.top)
        shown = table(list(top[0]), [[_cell(v) for v in row.values()] for row in top]) if top else []
        return [*pairs(rows, indent="  "), *(f"  {line}" for line in shown)]

    def fields(self) -> dict[str, dict[str, Any]]:
        """A few numbers for each field, of the vertices that have a value."""
        return {name: self._field(name) for name in self.result.fields}

    def _field(self, name: str) -> dict[str, Any]:
        values, mask = self.result.fields[name], self.result.reached(name)
        facts: dict[str, Any] = {}
        if not mask.all():
            facts["reached"] = int(mask.sum())
            values = values[mask]
        if name in GROUPS:
            labels, sizes = np.unique(values, return_counts=True)
            facts[f"{name}s"] = len(labels)
            facts["largest"] = int(sizes.max(initial=0))
        elif name in FLAGS:
            facts["count"] = int(np.count_nonzero(values))
        elif name not in NAMES_OF_VERTICES and values.size:
            facts["min"], facts["max"] = values.min(), values.max()
            if values.dtype.kind == "f":
                facts["sum"] = float(values.sum())
        return facts

    def field_lines(self) -> list[tuple[str, str]]:
        """The same as rows for people."""
        rows = []
        for name, facts in self.fields().items():
            if name == "parent":
                continue
            values = self.result.fields[name]
            parts = [f"{facts[key]:,} of {len(values):,} vertices" for key in ("count", "reached") if key in facts]
            if f"{name}s" in facts:
                parts.append(f"{counted(facts[f'{name}s'], name)}, the largest of {facts['largest']:,} vertices")
            if values.ndim > 1:
                parts.append(f"{values[0].size if len(values) else 0} numbers a vertex")
            if "max" in facts:
                parts.append(f"{facts['min']:.6g} to {facts['max']:.6g}")
            if "sum" in facts and values.ndim == 1:
                parts.append(f"sum {facts['sum']:.6g}")
            rows.append((name, ", ".join(parts)))
        return rows

    def top(self, count: int) -> list[dict[str, Any]]:
        """The best vertices by the first field; of components the largest."""
        name, values = next(iter(self.result.fields.items()))
        if name in GROUPS:
            labels, sizes = np.unique(values, return_counts=True)
            order = np.argsort(-sizes, kind="stable")[:count]
            largest = zip(labels[order].tolist(), sizes[order].tolist(), strict=True)
            return [{name: label, "vertices": size} for label, size in largest]
        if values.ndim > 1 or count == 0:
            return []
        return [{"vertex": vertex, name: value} for vertex, value in self.result.top(count)]


def _cell(value: Any) -> str:
    return f"{value:.8g}" if isinstance(value, float) else str(value)
