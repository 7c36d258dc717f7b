"""What can be checked of a list: spans of its blocks, degrees, self-loops, sides, the range of weights."""

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.encoding.edge_keys import count_ends, sources_of_keys, spans_of, targets_of_keys
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import LIST_BLOCK


@dataclass(frozen=True, slots=True)
class ListChecks:
    """Of one chunk: the block whose span is wrong, and the edge that stays on its side (-1: none); the number of
    self-loops; smallest and largest weight."""

    wrong_span: int
    same_side: int
    self_loops: int
    low: float
    high: float


class ListInspection:
    """Chunks of a list under verification; threads check them, and their degrees are added up here.

    spans: those of the file. degrees: whether to count degrees, 4 or 8 bytes a vertex and direction.
    """

    def __init__(self, graph: Graph, spans: NDArray[np.uint32], *, degrees: bool) -> None:
        self._graph, self._spans = graph, spans
        kind = np.uint32 if 2 * graph.edges < 1 << 32 else np.uint64
        count = (2 if graph.directed else 1) if degrees else 0
        self.counts = [np.zeros(graph.vertices, kind) for _ in range(count)]
        self._counting = threading.Lock()

    def look(self, chunk: int, items: tuple[NDArray[Any], ...]) -> ListChecks:
        """Check the keys of a chunk, and their weights if there are any."""
        keys, weights = items[0], items[1] if len(items) > 1 else np.zeros(1)
        sources, targets = (np.ascontiguousarray(part(keys)) for part in (sources_of_keys, targets_of_keys))
        first = chunk * self._graph.out.chunk_edges
        spans, loops = spans_of(keys, LIST_BLOCK)
        block = first // LIST_BLOCK
        wrong = np.flatnonzero((spans != self._spans[block : block + len(spans)]).any(axis=1))
        left, side = self._graph.left, np.empty(0, np.int64)
        if left is not None:
            side = np.flatnonzero((sources < left) == (targets < left))
        if self.counts:
            with self._counting:
                count_ends(sources, targets, self.counts)
        return ListChecks(
            wrong_span=block + int(wrong[0]) if len(wrong) else -1,
            same_side=first + int(side[0]) if len(side) else -1,
            self_loops=loops,
            low=float(weights.min()),
            high=float(weights.max()),
        )

    def wrong_degrees(self, direction: int, first: int, items: NDArray[Any]) -> int:
        """The first vertex from ``first`` on whose degree is not the one stored, -1 if there is none."""
        wrong = np.flatnonzero(self.counts[direction][first : first + len(items)] != items)
        return first + int(wrong[0]) if len(wrong) else -1
