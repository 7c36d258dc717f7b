"""Owns how a run's result is summed up: what was reached, extremes, components, the top vertices.

Numbers in, words and numbers out. Refuses to compute graphs: it looks at arrays of values only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
NAMES_OF_VERTICES = ("component", "parent")
"""Fields whose values are vertices, so that their size says nothing."""


@dataclass(frozen=True)
class Answer:
    """A run's fields, (vertices,) or (vertices, k) each; which rows have a value; the best ones.

    ``best(k)`` gives pairs (vertex, value of the first field), best first.
    """

    fields: Mapping[str, Values]
    reached: Mapping[str, NDArray[np.bool_]]
    best: Callable[[int], list[tuple[int, Any]]]

    def summary(self) -> dict[str, dict[str, Any]]:
        """A few numbers for each field."""
        return {name: self._summary(name) for name in self.fields}

    def _summary(self, name: str) -> dict[str, Any]:
        values, mask = self.fields[name], self.reached[name]
        facts: dict[str, Any] = {}
        if not mask.all():
            facts["reached"] = int(mask.sum())
            values = values[mask]
        if name == "component":
            labels, sizes = np.unique(values, return_counts=True)
            facts["components"] = len(labels)
            facts["largest"] = int(sizes.max(initial=0))
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
            if "reached" in facts:
                parts.append(f"{facts['reached']:,} of {len(self.reached[name]):,} vertices")
            if "components" in facts:
                parts.append(f"{facts['components']:,}, the largest of {facts['largest']:,} vertices")
            if "max" in facts:
                parts.append(f"{facts['min']:.6g} to {facts['max']:.6g}")
            if "sum" in facts:
                parts.append(f"sum {facts['sum']:.6g}")
            if name == "parent":
                continue
            rows.append((name, ", ".join(parts)))
        return rows

    def top(self, count: int) -> list[dict[str, Any]]:
        """The best vertices by the first field; of components the largest."""
        name = next(iter(self.fields))
        values = self.fields[name]
        if name == "component":
            labels, sizes = np.unique(values, return_counts=True)
            order = np.argsort(-sizes, kind="stable")[:count]
            return [{"component": labels[i].item(), "vertices": sizes[i].item()} for i in order]
        if values.ndim > 1 or count == 0:
            return []
        return [{"vertex": vertex, name: value} for vertex, value in self.best(count)]
