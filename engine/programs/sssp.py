"""Shortest paths from a source, or from the nearest of several, over non-negative weights.

Relaxes by buckets of distance, nearest first, in the manner of delta-stepping (Meyer and Sanders, J. Algorithms
2003) with near and far sets (Davidson et al., IPDPS 2014): a vertex waits until the bucket that holds its distance is
due, which avoids most relaxations that a shorter path would undo.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.earlier_answer import ANSWER_BYTES, Answer, improved
from penstock.engine.program.parameters import NonNegative, Width
from penstock.engine.program.program import LARGEST, Field, Program, Start, like
from penstock.engine.program.vertex_ids import internal_ids
from penstock.engine.program.vertex_ranges import is_any, over_ranges
from penstock.engine.programs.search_ends import Ending, Vertices
from penstock.engine.programs.weights import counts_by_weight
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.format.graph import Graph

CEILING = np.uint32(2**32 - 2)
FARTHEST = float(np.finfo(np.float64).max)


class SSSP(Ending, Program):
    """Distances from `source` (original id, or several); an unweighted graph counts edges.

    delta: width of a bucket; by default the run chooses each (`execution/priorities.py`), within bounds from the
    weights and the mean degree. weight: whether edges count by their weights where the graph has some (False or None:
    each counts 1). Integer weights give uint32 distances (uint64 where those do not suffice), float weights float64.
    parents: whether `parent` is in the answer, too: the vertex before on a shortest path (a source is its own), of
    several the one with the smallest id; by default, if there is a target, only of vertices on shortest paths to it.
    target: original id, or several: the run ends when their distances are known, and the answer holds no vertex that is
    farther than the farthest of them. cutoff: the largest distance of the answer. earlier: an answer in HDF5 of a run
    before edges were added, whose distances are improved by these alone.
    """

    distance = Field(np.uint32, fill=LARGEST, unreached=LARGEST)
    combine = "min"
    self_combining = True
    non_negative_weights = True
    starts_anywhere = True
    by_ranges = True
    lightest = 0.0
    earlier: Answer = None

    def __init__(
        self,
        source: int | Sequence[int],
        delta: Width | None = None,
        weight: bool | str | None = True,
        parents: bool | None = None,
        target: Vertices | None = None,
        cutoff: NonNegative | None = None,
        earlier: Answer = None,
    ) -> None:
        self.source = source
        if earlier is not None:
            self.earlier, self.starts_anywhere, self.working_bytes = str(earlier), False, ANSWER_BYTES
        self.delta = delta
        self.needs_weights = counts_by_weight(weight)
        self.parents = parents
        self.end_at(target, cutoff)

    def form(self, graph: Graph, mode: str) -> Program:
        """Float distances for float weights; those that could outgrow all floats are held below.

        With parents, which no second run of wider numbers replaces, uint64 distances wherever uint32 might not do.
        """
        if type(self) is not SSSP:
            return self
        kind = self.kind_on(graph, once=self.wants_parents)
        search = self if kind is SSSP else like(self, kind)
        if not self.wants_parents:
            return search
        from penstock.engine.programs.path_tree import RankedTightEdges, TightEdges, with_parents

        return with_parents(search, graph, (TightEdges, RankedTightEdges))

    def kind_on(self, graph: Graph, *, once: bool) -> type[SSSP]:
        """The class whose numbers hold the distances; once: where no second run of wider ones can replace it."""
        weight = graph.weight_dtype if self.needs_weights else None
        if weight is not None and weight.kind == "f":
            most = float(graph.weight_range[2]) if graph.weight_range else 0.0
            return FloatSSSP if most * max(1, graph.vertices) < FARTHEST else HugeSSSP
        return WideSSSP if once and self._may_be_too_far(graph) else SSSP

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """The sources are at distance 0."""
        first = self.first(graph)
        self.watch(graph)
        state["distance"][first] = 0
        usual = default_delta(graph) if self.needs_weights else 1.0
        self.bucket = self.delta if self.delta is not None else usual
        self.narrowest_bucket = narrowest_delta(graph) if self.needs_weights and self.delta is None else 0.0
        self.lightest = lightest_weight(graph) if self.needs_weights else 1.0
        return Start(active=first if self.earlier is None else improved(self, graph, state["distance"], first))

    def first(self, graph: Graph) -> NDArray[Any]:
        """Internal ids of the sources."""
        return internal_ids(graph, self.source)

    def edge(distance, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge: the distance by way of it."""
        return min(distance + weight, CEILING)

    def priority(distance):  # type: ignore[no-untyped-def]
        """Nearest first."""
        return distance

    def unsettled(distance, settled, lightest):  # type: ignore[no-untyped-def]
        """Farther than by the lightest edge from the nearest vertex that is active."""
        return distance > settled + lightest

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """64-bit distances, where a path might be too long for 32 bits."""
        return [like(self, WideSSSP)] if self._may_be_too_far(graph) else []

    def instead(self, state: dict[str, NDArray[Any]]) -> Program | None:
        """64-bit distances, where 32 bits were not enough."""
        distance = state["distance"]
        return like(self, WideSSSP) if is_any(distance, CEILING) else None

    def _may_be_too_far(self, graph: Graph) -> bool:
        """Whether a path might be too long for 32 bits."""
        heaviest = graph.weight_range[2] if self.needs_weights and graph.weight_range is not None else 1.0
        return bool(heaviest * graph.vertices >= CEILING)


class WideSSSP(SSSP):
    """SSSP with uint64 distances."""

    distance = Field(np.uint64, fill=LARGEST, unreached=LARGEST)
    by_ranges = True

    def edge(distance, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge: the distance by way of it."""
        return distance + weight

    def unsettled(distance, settled):  # type: ignore[no-untyped-def]
        """As far as the nearest vertex that is active, or farther; the lightest edge is less than sums may be off."""
        return distance >= settled

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """Nothing is wider."""
        return ()

    def instead(self, state: dict[str, NDArray[Any]]) -> Program | None:
        """Nothing is wider."""
        return None


class FloatSSSP(WideSSSP):
    """SSSP with float64 distances."""

    distance = Field(np.float64, fill=LARGEST, unreached=LARGEST)
    tolerance = 1e-9


class HugeSSSP(FloatSSSP):
    """FloatSSSP for weights whose sums may be larger than any float64, which would read as not reached."""

    by_ranges = True

    def edge(distance, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge: the distance by way of it, or the largest number there is."""
        return distance + weight if distance <= FARTHEST - weight else FARTHEST

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The distances. Raises InputError where one is larger than any number."""
        found = super().finish(graph, state)
        distance = state["distance"]
        far = sum(over_ranges(lambda a, b: int(np.count_nonzero(distance[a:b] == FARTHEST)), len(distance)))
        if far:
            raise InputError(
                f"{far:,} vertices are farther than {FARTHEST:.3g} from the source, the largest float64; scale the "
                "weights and convert the graph again"
            )
        return found


def default_delta(graph: Graph) -> float:
    """A bucket's width: the mean weight times a factor that falls with the mean degree.

    Wide buckets on road-like graphs (few edges a vertex, long paths), narrow ones on dense graphs.
    """
    if graph.weight_range is None:
        return 1.0
    low, mean, high = graph.weight_range
    if not np.isfinite(high):
        raise RunError(f"{graph.path}: the largest weight is {high}; SSSP needs finite weights")
    degree = max(1.0, graph.edges / max(1, graph.vertices))
    return max(float(mean) * max(1.0, 32.0 / degree), float(low), np.finfo(np.float64).tiny)


def narrowest_delta(graph: Graph) -> float:
    """The narrowest bucket: one that no edge leads back into, or a 32nd of the mean weight if wider; 0: none."""
    if graph.weight_range is None:
        return 0.0
    low, mean, _ = graph.weight_range
    return max(float(low), float(mean) / 32.0)


def lightest_weight(graph: Graph) -> float:
    """The lightest edge; 1 where no edge has a weight."""
    return 1.0 if graph.weight_range is None else float(graph.weight_range[0])
