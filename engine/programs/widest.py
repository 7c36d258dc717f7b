"""Widest paths: the largest bottleneck, that is the largest smallest weight, of any path from the source.

The (max, min) semiring in the place of SSSP's (min, +); Pollack, Operations Research 1960. Weights may be negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Finite
from penstock.engine.program.program import Field, Program, Start, like
from penstock.engine.program.program_description import variant
from penstock.engine.program.vertex_ids import internal_ids
from penstock.engine.programs.search_ends import Ending, Vertices
from penstock.engine.programs.weights import counts_by_weight
from penstock.storage.format.graph import Graph

WIDEST = np.int64(2**63 - 1)
BUCKETS = 64
"""Buckets of widths between the lightest and the heaviest edge, where a search may end early."""


class WidestPath(Ending, Program):
    """`width` from `source` (original id, or several) to every vertex; an unweighted graph's edges have width 1.

    weight: whether edges count by their weights where the graph has some (False or None: each has width 1).
    int64 for integer weights, the source itself having 2^63 - 1; float64 for float weights, the source having infinity.
    parents: whether `parent` is in the answer, too: the vertex before on a widest path (a source is its own); by
    default if there is a target. target: original id, or several: the run ends when their widths are known, and the
    answer holds no vertex that is less wide than the least wide of them. cutoff: the smallest width of the answer.
    """

    width = Field(np.int64, fill=-1, unreached=-1)
    combine = "max"
    self_combining = True
    starts_anywhere = True
    by_ranges = True

    def __init__(
        self,
        source: int | Sequence[int],
        weight: bool | str | None = True,
        parents: bool | None = None,
        target: Vertices | None = None,
        cutoff: Finite | None = None,
    ) -> None:
        self.source = source
        self.needs_weights = counts_by_weight(weight)
        self.parents = parents
        self.end_at(target, cutoff)

    def form(self, graph: Graph, mode: str) -> Program:
        """Float widths for float weights; widest first where the search may end early; parents as a phase after it."""
        if type(self) is not WidestPath:
            return self
        floats = self.needs_weights and graph.weight_dtype is not None and graph.weight_dtype.kind == "f"
        kind: type[WidestPath] = WidestFirst if self.bounded else WidestPath
        kind = variant(kind, FloatWidths) if floats else kind
        search = self if kind is WidestPath else like(self, kind)
        if not self.wants_parents:
            return search
        from penstock.engine.programs.path_tree import LimitingEdges, RankedLimitingEdges, with_parents

        return with_parents(search, graph, (LimitingEdges, RankedLimitingEdges))

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Nothing narrows the way to the sources."""
        first = internal_ids(graph, self.source)
        self.watch(graph)
        width = state["width"]
        width[first] = np.inf if width.dtype.kind == "f" else WIDEST
        return Start(active=first)

    def edge(width, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge: the width by way of it."""
        return min(width, weight)

    def last(self, values: NDArray[Any]) -> Any:
        """The smallest width that the answer needs, from those of the targets; None: there is no limit yet."""
        found = values.min() if len(values) and not np.any(values == self._unreached(values.dtype)) else None
        return self.cutoff if found is None or (self.cutoff is not None and self.cutoff > found) else found

    def beyond(self, values: NDArray[Any], last: Any) -> NDArray[np.bool_]:
        """Which widths are smaller than the last one."""
        found: NDArray[np.bool_] = values < last
        return found


class FloatWidths:
    """What widest paths have otherwise over float weights."""

    width = Field(np.float64, fill=-np.inf, unreached=-np.inf)


class WidestFirst(WidestPath):
    """Widest paths of which only the widest are wanted: vertices wait until their width is due."""

    heaviest = 1.0

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """The weights say how many widths there may be."""
        low, _, self.heaviest = graph.weight_range if self.needs_weights and graph.weight_range else (1.0, 1.0, 1.0)
        self.bucket = max(float(self.heaviest - low) / BUCKETS, np.finfo(np.float64).tiny)
        return super().start(graph, state)

    def priority(width, heaviest):  # type: ignore[no-untyped-def]
        """Widest first."""
        return max(heaviest - width, 0.0)

    def horizon(self, values: NDArray[Any]) -> float:
        """As `Program.horizon`: the priority of the least wide target."""
        last = self.last(values)
        return math.inf if last is None else max(self.heaviest - float(last), 0.0)
