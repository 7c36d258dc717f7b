"""What is said of a run that ended: facts for machines, lines for people.

A field is summed up by what was reached, its extremes, its groups or flags; vertices come by rank. Each is
computed once, when it is asked for, by passes that copy no array of the vertices.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.storage.base.budget import format_bytes
from penstock.storage.results import column_statistics
from penstock.tools.base.output import counted, pairs, seconds, table
from penstock.tools.base.rank_table import rank_table

if TYPE_CHECKING:
    from penstock.engine.state.result import Result
    from penstock.storage.results.group_counts import GroupCounts
    from penstock.tools.answers.answer_options import AnswerOptions

NAMES_OF_VERTICES = ("component", "label", "parent", "bridge_to")
"""Fields whose values are vertices, so that their size says nothing."""
GROUPS = ("component", "label", "color")
"""Fields whose values say which vertices belong together: they are counted."""
FLAGS = ("member", "reached")
"""Fields that are 1 or 0: those that have 1 are counted."""


COUNTER_BYTES, LEAST_COUNTERS = 1, 1 << 20
"""Memory for counting groups, for each vertex and at least: less than the lists of vertices took while the run went."""
SPARSE_BYTES = 16
"""The same where groups have original ids for names: the budget has as much for translating them."""


@dataclass(frozen=True)
class ResultSummary:
    """A run's result with what the command line adds to it.

    listed: how many of the first vertices, or groups, will be asked for. threads: most that compute; None: every core.
    spare_bytes: of the memory budget, that nothing takes.
    """

    result: Result
    total_seconds: float = 0.0
    peak_memory_bytes: int = 0
    listed: int = 0
    threads: int | None = None
    spare_bytes: int = 0
    _known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

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
            "peak_memory_bytes": sum(self._peaks),
            **({"ranks": self._ranks()} if result.ranks else {}),
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
            *((name.replace("_", " "), _course(of)) for name, of in result.measures.items() if of),
            ("weights", "none in this graph: each edge counts as 1" if weightless else None),
            ("iterations", f"{result.iterations:,}{ended}"),
            ("time", f"{seconds(result.seconds)} (with loading {seconds(self.total_seconds)})"),
            ("read from disk", read),
            ("peak memory", format_bytes(sum(self._peaks)) + (" in all ranks" if result.ranks else "")),
            ("written", "standard output" if wanted.printed else wanted.path),
        ]
        ranks = table(*rank_table(self._ranks())) if result.ranks else []
        top = self.top(wanted)
        shown = table(list(top[0]), [[_cell(v) for v in row.values()] for row in top]) if top else []
        return [*pairs(rows, indent="  "), *(f"  {line}" for line in (*ranks, *shown))]

    @property
    def _peaks(self) -> list[int]:
        """Of every rank, the first one's until now, the most bytes of memory."""
        return [self.peak_memory_bytes, *(one.peak_memory_bytes for one in self.result.ranks[1:])]

    def _ranks(self) -> list[dict[str, Any]]:
        """What each rank did, for machines."""
        every = zip(self.result.ranks, self._peaks, strict=True)
        return [one.facts() | {"peak_memory_bytes": peak} for one, peak in every]

    def fields(self) -> dict[str, dict[str, Any]]:
        """A few numbers for each field, of the vertices that have a value."""
        if "fields" not in self._known:
            self._known["fields"] = {name: self._field(name) for name in self.result.fields}
        found: dict[str, dict[str, Any]] = self._known["fields"]
        return found

    def _field(self, name: str) -> dict[str, Any]:
        values, absent = self.result.fields[name], self.result.absent(name)
        facts: dict[str, Any] = {}
        if name in FLAGS:
            found = column_statistics.count_nonzero(values, absent, threads=self.threads)
            present, facts["count"] = found.present, found.nonzero
        elif name in NAMES_OF_VERTICES or name in GROUPS:
            present = column_statistics.count_present(values, absent, threads=self.threads)
        else:
            found = column_statistics.extremes(values, absent, threads=self.threads)
            present = found.present
            if found.least is not None:
                facts["min"], facts["max"] = found.least, found.largest
                if values.dtype.kind == "f":
                    facts["sum"] = float(column_statistics.total(values, absent, threads=self.threads))
        if name in GROUPS:
            groups = self._groups(name, self.listed)
            facts |= {f"{name}s": groups.groups, "largest": groups.largest}
        return facts if present == len(values) else {"reached": present, **facts}

    def _groups(self, name: str, top: int) -> GroupCounts:
        """Count the vertices of each group; if any have no group, without these."""
        known: GroupCounts | None = self._known.get(f"groups of {name}")
        if known is not None and len(known.top) >= min(top, known.groups):
            return known
        from penstock.storage.results.group_counts import count_groups  # only here is a kernel needed

        values, graph = self.result.fields[name], self.result.graph
        present = column_statistics.present_rows(values, self.result.absent(name))
        each = COUNTER_BYTES if graph.original is None else SPARSE_BYTES
        room = max(LEAST_COUNTERS, each * len(values)) + self.spare_bytes
        found = count_groups(values if present is None else values[present], top, room, threads=self.threads)
        self._known[f"groups of {name}"] = found
        return found

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

    def top(self, wanted: AnswerOptions) -> list[dict[str, Any]]:
        """The first vertices by a field; of components the largest. Raises InputError for a field without an order."""
        count, name = wanted.top, wanted.by or next(iter(self.result.fields))
        if count == 0 or (wanted.by is None and self.result.fields[name].ndim > 1):
            return []
        if name in GROUPS and name in self.result.fields and wanted.smallest is None:
            return [{name: label, "vertices": size} for label, size in self._groups(name, count).top[:count]]
        best: list[dict[str, Any]] = self._known.get("top", [])
        if len(best) < count:
            best = self._known["top"] = self.result.top_rows(
                count, by=wanted.by, smallest=wanted.smallest, threads=self.threads
            )
        return best[:count]


def _course(values: list[float]) -> str:
    """Numbers that a program measured: the first and the last of several."""
    if len(values) == 1:
        return f"{values[0]:.12g}" if values[0].is_integer() else f"{values[0]:.6g}"
    return f"{values[0]:.6g} at first, {values[-1]:.6g} at last"


def _cell(value: Any) -> str:
    return f"{value:.8g}" if isinstance(value, float) else "" if value is None else str(value)
