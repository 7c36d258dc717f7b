"""Owns what is said of a run that ended: facts for machines, lines for people.

Refuses to run anything.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from penstock.storage.base.budget import format_bytes, peak_resident_bytes
from penstock.tools.answers import Answer
from penstock.tools.execution import Wanted
from penstock.tools.output import pairs, seconds, table

if TYPE_CHECKING:
    from penstock.engine.state.result import Result


@dataclass(frozen=True)
class Outcome:
    """A run's result with what the command line adds to it."""

    result: Result
    answer: Answer
    total_seconds: float
    peak_memory_bytes: int

    def facts(self) -> dict[str, Any]:
        """For machines."""
        graph = self.result.graph
        return {
            "graph": graph.path,
            "weighted": self.result.weighted,
            "vertices": graph.vertices,
            "edges": graph.edges,
            "graph_bytes": graph.file_bytes,
            "seconds": self.result.seconds,
            "total_seconds": self.total_seconds,
            "iterations": self.result.iterations,
            "iterations_before": self.result.before,
            "converged": self.result.converged,
            "bytes_read": self.result.bytes_read,
            "prediction": {route: asdict(found) for route, found in self.result.prediction.items()},
            "peak_memory_bytes": self.peak_memory_bytes,
            "fields": self.answer.summary(),
            "measures": self.result.measures,
        }

    def lines(self, wanted: Wanted) -> list[str]:
        """For people."""
        result = self.result
        size = result.graph.file_bytes
        read = format_bytes(result.bytes_read)
        if size and result.bytes_read:
            read += f" ({result.bytes_read / size:.2f} x the graph's {format_bytes(size)})"
        counted = getattr(result.program, "tol", None) == 0  # so many were asked for, and no convergence
        ended = "" if result.converged or counted else ", stopped before it converged"
        ended += f", {result.before:,} of them before it was resumed" if result.before else ""
        rows: list[tuple[str, object]] = [
            *self.answer.lines(),
            *((name, f"{of[0]:.6g} at first, {of[-1]:.6g} at last") for name, of in result.measures.items() if of),
            ("weights", _weightless(result)),
            ("iterations", f"{result.iterations:,}{ended}"),
            ("time", f"{seconds(result.seconds)} (with loading {seconds(self.total_seconds)})"),
            ("read from disk", read),
            ("peak memory", format_bytes(self.peak_memory_bytes)),
            ("written", wanted.path),
        ]
        top = self.answer.top(wanted.top)
        shown = table(list(top[0]), [[_cell(v) for v in row.values()] for row in top]) if top else []
        return [*pairs(rows, indent="  "), *(f"  {line}" for line in shown)]


def _weightless(result: Result) -> str | None:
    """That a program which counts by weights found none; None otherwise."""
    wanting = result.program.needs_weights and result.graph.weight_dtype is None
    return "none in this graph: each edge counts as 1" if wanting else None


def outcome_of(result: Result, total_seconds: float) -> Outcome:
    """A result, ready to be spoken of."""
    answer = Answer(result.fields, {name: result.reached(name) for name in result.fields}, result.top)
    return Outcome(result, answer, total_seconds, peak_resident_bytes())


def _cell(value: Any) -> str:
    return f"{value:.8g}" if isinstance(value, float) else str(value)
