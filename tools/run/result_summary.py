"""What is said of a run that ended: facts for machines, lines for people.

A field is summed up by what was reached, its extremes, its groups or flags; vertices come by rank. Each is
computed once, when it is asked for, by passes that copy no array of the vertices.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.vertex_ids import VertexReferences, in_original_order, tie_breakers
from penstock.storage.base.budget import format_bytes
from penstock.storage.results import column_statistics
from penstock.tools.base.output import counted, pairs, rank_table, seconds, table

if TYPE_CHECKING:
    from penstock.engine.state.result import Result
    from penstock.storage.results.group_counts import GroupCounts
    from penstock.tools.run.answer_options import AnswerOptions

NAMES_OF_VERTICES = ("component", "community", "label", "parent", "bridge_to", "top")
"""Fields whose values are vertices, so that their size says nothing."""
GROUPS = {"component": "components", "community": "communities", "label": "labels", "color": "colors"}
"""Fields whose values say which vertices belong together, and several of these: they are counted."""
LEVELS = {"modularity": "modularity", "level_communities": "communities"}
"""Measures of which there is one for each of a few levels, and what they are called."""
FLAGS = ("member", "reached")
"""Fields that are 1 or 0: those that have 1 are counted."""
SHOWN_VERTICES = 24
"""Of a path, that people are shown."""

COUNTER_SHARE, LEAST_COUNTERS = 4, 1 << 20
"""How many vertices have a byte together for counting groups, and bytes at least: bitmaps took as much in the run."""


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
            "value_bytes": result.value_bytes,
            "prediction": {route: asdict(found) for route, found in result.prediction.items()},
            "peak_memory_bytes": sum(self._peaks),
            **({"ranks": self._ranks()} if result.ranks else {}),
            "fields": self.fields,
            **({"paths": self.paths} if result.program.watched else {}),
            "measures": result.measures,
        }

    def lines(self, wanted: AnswerOptions) -> list[str]:
        """For people."""
        result = self.result
        size = result.graph.file_bytes
        count = result.bytes_read
        read = format_bytes(count)
        if size and count:
            read += f" ({count / size:.2f} x the graph's {format_bytes(size)})"
        asked = getattr(result.program, "tol", None) == 0  # so many were asked for, and no convergence
        ended = "" if result.converged or asked else ", stopped before it converged"
        ended += f", {result.before:,} of them before it was resumed" if result.before else ""
        weightless = result.program.needs_weights and result.graph.weight_dtype is None
        rows: list[tuple[str, object]] = [
            *self.field_lines(),
            *(path_line(one, getattr(result.program, "cutoff", None)) for one in self.paths),
            *(_measure(name, of) for name, of in result.measures.items() if of),
            ("weights", "none in this graph: each edge counts as 1" if weightless else None),
            ("iterations", f"{result.iterations:,}{ended}"),
            ("time", f"{seconds(result.seconds)} (with loading {seconds(self.total_seconds)})"),
            ("read from disk", read),
            (
                "values in pages",
                format_bytes(result.value_bytes) + " read and written" if result.value_bytes else None,
            ),
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

    @cached_property
    def fields(self) -> dict[str, dict[str, Any]]:
        """A few numbers for each field, of the vertices that have a value."""
        return {name: self._field(name) for name in self.result.stored}

    def _field(self, name: str) -> dict[str, Any]:
        values, absent = self.result.numbers(name)
        facts: dict[str, Any] = {}
        if name in FLAGS:
            present, facts["count"] = column_statistics.count_nonzero(values, absent, threads=self.threads)
        elif name in NAMES_OF_VERTICES or name in GROUPS:
            present = column_statistics.count_present(values, absent, threads=self.threads)
        else:
            found = self.result.known.get(name)
            found = found or column_statistics.facts_of(values, absent, threads=self.threads)
            present = found.present
            if found.least is not None:
                facts["min"], facts["max"] = found.least, found.largest
                if found.total is not None:
                    facts["sum"] = float(found.total)
        if name in GROUPS:
            groups = self._groups(name, self.listed)
            facts |= {GROUPS[name]: groups.groups, "largest": groups.largest}
        return facts if present == len(values) else {"reached": present, **facts}

    def _groups(self, name: str, top: int) -> GroupCounts:
        """Count the vertices of each group; if any have no group, without these."""
        known: GroupCounts | None = self._known.get(f"groups of {name}")
        if known is not None and len(known.top) >= min(top, known.groups):
            return known
        from penstock.storage.results.group_counts import count_groups  # only here is a kernel needed

        values, absent = self.result.numbers(name)
        stored, how = self.result.stored[name], dict[str, Any](absent=absent, threads=self.threads)
        room = max(LEAST_COUNTERS, len(values) // COUNTER_SHARE) + self.spare_bytes
        if isinstance(stored, VertexReferences):
            graph = stored.graph
            how |= {"among": range(graph.vertices)}
            how |= {} if in_original_order(graph) else {"ties": tie_breakers(graph).__getitem__}
        found = count_groups(values, top, room, **how)
        if isinstance(stored, VertexReferences):
            names = graph.original_ids_of(np.array([label for label, _ in found.top], np.intp)).tolist()
            found = replace(found, top=[(name, size) for name, (_, size) in zip(names, found.top, strict=True)])
        self._known[f"groups of {name}"] = found
        return found

    @cached_property
    def paths(self) -> list[dict[str, Any]]:
        """Of every vertex at which the program was to end: how far it is, and the path to it, if parents are known."""
        return [self._path(one) for one in self.result.targets]

    def _path(self, target: int | str) -> dict[str, Any]:
        result = self.result
        name, at = next(iter(result.stored)), result.targets.index(target)
        values, absent = result.numbers(name)
        value = values[result.program.watched[at]]
        facts: dict[str, Any] = {"target": target, "reached": bool(value != absent)}
        if facts["reached"]:
            facts[name] = value.item()
            found = result.path(target) if "parent" in result.stored else None
            if found is not None:
                facts |= {"hops": found.hops, "vertices": found.vertices}
        return facts

    def field_lines(self) -> list[tuple[str, str]]:
        """The same as rows for people."""
        rows = []
        for name, facts in self.fields.items():
            if name == "parent":
                continue
            values = self.result.stored[name]
            parts = [f"{facts[key]:,} of {len(values):,} vertices" for key in ("count", "reached") if key in facts]
            if (several := GROUPS.get(name)) in facts:
                number = facts[several]
                parts.append(
                    f"{number:,} {name if number == 1 else several}, the largest of {facts['largest']:,} vertices"
                )
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
        count, name = wanted.top, wanted.by or next(iter(self.result.stored))
        if count == 0 or (wanted.by is None and self.result.stored[name].ndim > 1):
            return []
        if name in GROUPS and name in self.result.stored and wanted.smallest is None:
            return [{name: label, "vertices": size} for label, size in self._groups(name, count).top[:count]]
        best: list[dict[str, Any]] = self._known.get("top", [])
        if len(best) < count:
            best = self._known["top"] = self.result.top_rows(
                count, by=wanted.by, smallest=wanted.smallest, threads=self.threads
            )
        return best[:count]


def _measure(name: str, of: list[float]) -> tuple[str, str]:
    """A measure's row: the first and the last value, or of levels all."""
    if name in LEVELS:
        return f"{LEVELS[name]}, by level", ", ".join(f"{value:.6g}" if value % 1 else f"{value:,}" for value in of)
    name = name.replace("_", " ")
    if len(of) == 1:
        return name, f"{of[0]:.12g}" if of[0].is_integer() else f"{of[0]:.6g}"
    return name, f"{of[0]:.6g} at first, {of[-1]:.6g} at last"


def path_line(facts: dict[str, Any], cutoff: float | None) -> tuple[str, str]:
    """A row for people: the path to a vertex, as it may be shown on a line or two."""
    head = f"path to {facts['target']}"
    if not facts["reached"]:
        return head, "none" + ("" if cutoff is None else f" within the cutoff {cutoff:.6g}")
    name = next(key for key in facts if key not in ("target", "reached", "hops", "vertices"))
    text = f"{name} {_cell(facts[name])}"
    if "vertices" not in facts:
        return head, text
    shown: list[Any] = facts["vertices"]
    if len(shown) > SHOWN_VERTICES:
        left_out = len(shown) - SHOWN_VERTICES
        half = SHOWN_VERTICES // 2
        shown = [*shown[:half], f"({left_out:,} more, which --json lists)", *shown[-half:]]
    return head, f"{text}, {counted(facts['hops'], 'edge')}: {' > '.join(map(str, shown))}"


def _cell(value: Any) -> str:
    return f"{value:.8g}" if isinstance(value, float) else "" if value is None else str(value)
