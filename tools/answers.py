"""Owns how a run's result is summed up: what was reached, extremes, components, the top vertices.

Numbers in, words and numbers out. Refuses to compute graphs: it looks at arrays of values only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.tools.output import counted

Values = NDArray[Any]
NAMES_OF_VERTICES = ("component", "label", "parent")
"""Fields whose values are vertices, so that their size says nothing."""
GROUPS = ("component", "label", "color")
"""Fields whose values say who belongs together: they are counted."""
FLAGS = ("member", "reached")
"""Fields that are 1 or 0: those that have 1 are counted."""


@dataclass(frozen=True)
class Answer:
    """A run's fields, (vertices,) or (vertices, k) each; which rows have a value; the best ones.

    ``best(k)`` gives pairs (vertex, value of the first field), best first.
    """

    fields: Mapping[str, Values]
    reached: Mapping[str, NDArray[np.bool_]]
    best: Callable[[int], list[tuple[int | str, Any]]]

    def summary(self) -> dict[str, dict[str, Any]]:
        """A few numbers for each field."""
        return {name: self._summary(name) for name in self.fields}

    def _summary(self, name: str) -> dict[str, Any]:
        values, mask = self.fields[name], self.reached[name]
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

    def lines(self) -> list[tuple[str, str]]:
        """The summary as rows for people."""
        rows = []
        for name, facts in self.summary().items():
            parts = []
            if "count" in facts:
                parts.append(f"{facts['count']:,} of {len(self.reached[name]):,} vertices")
            if "reached" in facts:
                parts.append(f"{facts['reached']:,} of {len(self.reached[name]):,} vertices")
            if f"{name}s" in facts:
                many = facts[f"{name}s"]
                parts.append(f"{counted(many, name)}, the largest of {facts['largest']:,} vertices")
            if self.fields[name].ndim > 1:
                parts.append(f"{self.fields[name][0].size if len(self.fields[name]) else 0} numbers a vertex")
            if "max" in facts:
                parts.append(f"{facts['min']:.6g} to {facts['max']:.6g}")
            if "sum" in facts and self.fields[name].ndim == 1:
                parts.append(f"sum {facts['sum']:.6g}")
            if name == "parent":
                continue
            rows.append((name, ", ".join(parts)))
        return rows

    def top(self, count: int) -> list[dict[str, Any]]:
        """The best vertices by the first field; of components the largest."""
        name = next(iter(self.fields))
        values = self.fields[name]
        if name in GROUPS:
            labels, sizes = np.unique(values, return_counts=True)
            order = np.argsort(-sizes, kind="stable")[:count]
            largest = zip(labels[order].tolist(), sizes[order].tolist(), strict=True)
            return [{name: label, "vertices": size} for label, size in largest]
        if values.ndim > 1 or count == 0:
            return []
        return [{"vertex": vertex, name: value} for vertex, value in self.best(count)]
