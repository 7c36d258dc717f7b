"""Closeness and harmonic centrality: how near a vertex is to those that reach it.

Both are defined by the distances *to* a vertex, as networkx has them. Of given vertices they are exact: one search
against the edges for each. Of all vertices they come from searches along the edges, from every vertex or from a
sample of them (Eppstein and Wang, "Fast Approximation of Centrality", J. Graph Algorithms Appl. 2004): each search
tells every vertex one of its distances. A sample's answer has its standard error beside it.

Closeness is scaled by the share of vertices that reach the vertex (Wasserman and Faust 1994), so that small components
do not seem central. Harmonic centrality: Marchiori and Latora, Physica A 2000.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count, PositiveCount
from penstock.engine.program.program import LARGEST, Field, Program, Start, like, weighted
from penstock.engine.program.program_description import variant
from penstock.engine.program.vertex_ranges import each_range, over_ranges
from penstock.engine.programs.bfs import UNREACHED, BFSLevels
from penstock.engine.programs.shared_searches import DEEPEST, SharedLevels, SharedSums, Together, shared
from penstock.engine.programs.sources import check_one_choice, chosen_sources, source_bytes, source_count
from penstock.engine.programs.sssp import FARTHEST, FloatSSSP
from penstock.engine.programs.weights import counts_by_weight
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph

ESTIMATED = 1 << 12
"""Vertices whose answers are estimated together, in some twenty arrays."""
Values = NDArray[np.float64]
State = dict[str, NDArray[Any]]


class Sample(NamedTuple):
    """What searches told some vertices, arrays of shape (n,): how many searches, how many of them came, and sums.

    total, squares: of what each distance counts, and of its square. population: all vertices but the one at hand.
    """

    searches: Values
    reached: Values
    total: Values
    squares: Values
    population: int


class Distances(Together, Program, ABC):
    """What both have in common: the searches, and the sums of distances. Its answer is called like the program.

    At the end `total` holds the answer, and `squares` the error.
    """

    error = Field(np.float64, unreached=-np.inf, kept=False)
    total = Field(np.float64, output=False)
    squares = Field(np.float64, output=False)
    reached = Field(np.uint32, output=False)
    level = Field(np.uint32, output=False)
    tolerance = 1e-9
    by_ranges = True
    searched = "level"
    answer = ""

    def __init__(
        self,
        source: int | Sequence[int] | None = None,
        k: PositiveCount | None = None,
        seed: Count = 0,
        weight: bool | str | None = True,
    ) -> None:
        check_one_choice(self.answer, source, k)
        self.source, self.k, self.seed, self.needs_weights = source, k, seed, counts_by_weight(weight)

    @abstractmethod
    def counted(self, distances: Values) -> Values:
        """What distances above 0 count, each."""

    @abstractmethod
    def exactly(self, reached: int, total: float, vertices: int) -> float:
        """The answer for one vertex: of `vertices` so many others reach it, over so much in total."""

    @abstractmethod
    def estimated(self, sample: Sample) -> tuple[Values, Values]:
        """The answers for some vertices, and the variances of one search's contribution, from a sample."""

    def form(self, graph: Graph, mode: str) -> Program:
        """By hops, or by weights. Raises InputError for huge weights."""
        self.working_bytes = source_bytes(graph, self.source, self.k)
        if not weighted(self, graph):
            self.look_at(graph)
            return self
        if isinstance(self, ByWeights):
            return self
        most = float(graph.weight_range[2]) if graph.weight_range else 0.0
        if most * graph.vertices >= FARTHEST:
            raise InputError(
                f"{self.answer}: weights up to {most:.3g} may add up to more than {FARTHEST:.3g}, the largest float64; "
                "scale the weights and convert the graph again, or count each edge as 1 (--no-weight)"
            )
        return like(self, variant(type(self), ByWeights))

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """One search of each kind."""
        count = self._count(graph)
        if not graph.vertices or not count:
            return ()
        return (self._searches([0]), self._search(0)) if self.shares(count) else (self._search(0),)

    def phases(self, graph: Graph, state: State, first: int = 0) -> Iterator[Program]:
        """Searches from, or to, many vertices at once, or one after another."""
        sources = chosen_sources(graph, self.source, self.k, self.seed)
        if self.source is not None and first == 0:
            state["total"][:] = -np.inf  # others have no answer
        for number, a, b in self.turns(len(sources), first):
            if b - a > 1:
                search = self._searches(sources[a:b].tolist())
                yield search
                if isinstance(search, SharedLevels):
                    self._note(search, state["total"], (number + 1, a))
                continue
            vertex = int(sources[a])
            yield self._search(vertex)
            if self.source is not None:
                state["total"][vertex] = self._exact(state[self.searched])
            else:
                self._add(state, vertex)
            if self.shares(len(sources)):
                self.note_levels(number, state[self.searched])
        if self.source is None:
            self._estimate(state, sources)

    def phase_name(self, graph: Graph, number: int) -> str:
        """``source 3 of 7``, ``sources 1 to 64 of 128``."""
        return self.turn_name(number, self._count(graph))

    def phase_count(self, graph: Graph) -> int:
        """As many as there are batches, or sources."""
        return self.turn_count(self._count(graph))

    def _count(self, graph: Graph) -> int:
        return source_count(graph, self.source, self.k)

    def finish(self, graph: Graph, state: State) -> State:
        """The answer, with its error where it comes from a sample."""
        sampled = self.k is not None and self.k < graph.vertices
        return {self.answer: state["total"], **({"error": state["squares"]} if sampled else {})}

    def _search(self, vertex: int) -> Program:
        return variant(LevelsFrom, along="out" if self.source is None else "in")(vertex)

    def _searches(self, vertices: Sequence[int]) -> SharedLevels | SharedSums:
        """Searches by hops: from these vertices, which add up what each is told, or to them, for their levels."""
        found: SharedLevels | SharedSums
        if self.source is None:
            found = shared(SharedSums, self.together)(vertices, inverse=bool(self.counted(np.array([2.0]))[0] < 1))
        else:
            found = shared(SharedLevels, self.together, "in")(vertices)
        return found

    def _note(self, search: SharedLevels, answer: Values, again: tuple[int, int]) -> None:
        """Write the answers of the vertices that these searches came to; too deep: `again` says where to go on."""
        if search.too_deep:
            self.apart = again
        else:
            counts = self._counts(np.arange(DEEPEST + 1, dtype=np.float64))

            def sums(first: int, last: int) -> Values:
                found = np.zeros((2, len(search.sources)))
                for _, _, levels in search.levels(first, last):
                    found += np.count_nonzero(levels, axis=0), counts[levels].sum(axis=0)
                return found

            reached, total = np.sum(list(over_ranges(sums, len(answer))), axis=0)
            for vertex, *one in zip(search.sources, reached.tolist(), total.tolist(), strict=True):
                answer[vertex] = self.exactly(int(one[0]), one[1], len(answer))
        search.forget()

    def _parts(self, distances: NDArray[Any], first: int, last: int) -> tuple[NDArray[np.bool_], Values]:
        """Which vertices of a range have a distance, and what each counts; those without count 0."""
        part = distances[first:last]
        here = np.isfinite(part) if part.dtype.kind == "f" else part != UNREACHED
        counts = np.zeros(len(part))
        counts[here] = self._counts(part[here].astype(np.float64))
        return here, counts

    def _counts(self, distances: Values) -> Values:
        """As `counted`; the distance 0 counts 0."""
        counts = np.zeros(len(distances))
        above = distances > 0
        counts[above] = self.counted(distances[above])
        return counts

    def _exact(self, distances: NDArray[Any]) -> float:
        """The answer for the vertex that these are the distances to."""

        def sums(first: int, last: int) -> tuple[int, float]:
            here, counts = self._parts(distances, first, last)
            return int(np.count_nonzero(here)), float(counts.sum())

        found = list(over_ranges(sums, len(distances)))
        return self.exactly(sum(one[0] for one in found) - 1, sum(one[1] for one in found), len(distances))

    def _add(self, state: State, source: int) -> None:
        """Add what a search tells each vertex; the source is told nothing."""
        distances, total, squares, reached = (state[name] for name in (self.searched, "total", "squares", "reached"))

        def add(first: int, last: int) -> None:
            here, counts = self._parts(distances, first, last)
            for values, more in ((total, counts), (squares, counts * counts), (reached, here)):
                values[first:last] = values[first:last] + more

        each_range(add, len(distances))
        reached[source] -= 1

    def _estimate(self, state: State, sources: NDArray[Any]) -> None:
        """Put the answers in the place of the sums, and their errors in that of the squares."""
        vertices = len(state["total"])
        drawn, names = np.zeros(vertices, dtype=bool), ("reached", "total", "squares")
        drawn[sources] = True

        def fill(first: int, last: int) -> None:
            searches = len(sources) - drawn[first:last].astype(np.float64)
            reached, total, squares = (state[name][first:last] for name in names)
            sample = Sample(searches, reached.astype(np.float64), total, squares, vertices - 1)
            with np.errstate(divide="ignore", invalid="ignore"):
                values, variances = self.estimated(sample)
                missed = 1.0 - searches / max(1, vertices - 1)
                spread = np.sqrt(np.maximum(variances, 0.0) / (searches - 1) * missed)
            state["total"][first:last] = np.where(reached > 0, values, 0.0)
            state["squares"][first:last] = np.where((searches > 1) & (reached > 0), spread, -np.inf)

        each_range(fill, vertices, size=ESTIMATED)


class Closeness(Distances):
    """`closeness` (float64): vertices that reach this one by their mean distance, and by their share of all.

    source: original id or ids whose closeness is wanted, exactly; others have none. k: estimate that of all vertices
    from so many, drawn with `seed`; then `error` is one standard error. Without both: exact, of all. wf_improved:
    False leaves out the share of all (networkx' name). weight: whether edges count by their weights where the graph has
    some (False or None: each counts 1, networkx' default).
    """

    closeness = Field(np.float64, unreached=-np.inf, kept=False)
    answer = "closeness"

    def __init__(
        self,
        source: int | Sequence[int] | None = None,
        k: PositiveCount | None = None,
        seed: Count = 0,
        wf_improved: bool = True,
        weight: bool | str | None = True,
    ) -> None:
        super().__init__(source, k, seed, weight)
        self.wf_improved = wf_improved

    def counted(self, distances: Values) -> Values:
        """Each distance."""
        return distances

    def exactly(self, reached: int, total: float, vertices: int) -> float:
        """By the definition."""
        if total == 0:
            return 0.0
        return reached / total * (reached / (vertices - 1) if self.wf_improved else 1.0)

    def estimated(self, sample: Sample) -> tuple[Values, Values]:
        """The same with means of the sample; its variance by first derivatives (the delta method)."""
        power = 2 if self.wf_improved else 1
        share, mean = sample.reached / sample.searches, sample.total / sample.searches
        values = np.where(mean > 0, sample.reached / sample.total * (share if self.wf_improved else 1.0), 0.0)
        by_share, by_mean = power * share ** (power - 1) / mean, -values / mean
        variances = (
            by_share**2 * (share - share**2)
            + by_mean**2 * (sample.squares / sample.searches - mean**2)
            + 2 * by_share * by_mean * (mean - share * mean)
        )
        return values, np.where(mean > 0, variances, 0.0)


class Harmonic(Distances):
    """`harmonic` (float64): the sum of the inverse distances from all vertices that reach this one.

    source: original id or ids whose value is wanted, exactly; others have none. k: estimate that of all vertices from
    so many, drawn with `seed`; then `error` is one standard error. Without both: exact, of all. normalized: divide by
    the number of other vertices. weight: whether edges count by their weights where the graph has some (False or None:
    each counts 1, networkx' default).
    """

    harmonic = Field(np.float64, unreached=-np.inf, kept=False)
    answer = "harmonic"

    def __init__(
        self,
        source: int | Sequence[int] | None = None,
        k: PositiveCount | None = None,
        seed: Count = 0,
        normalized: bool = False,
        weight: bool | str | None = True,
    ) -> None:
        super().__init__(source, k, seed, weight)
        self.normalized = normalized

    def counted(self, distances: Values) -> Values:
        """Each inverse."""
        return 1.0 / distances

    def exactly(self, reached: int, total: float, vertices: int) -> float:
        """By the definition."""
        return total / max(1, vertices - 1) if self.normalized else total

    def estimated(self, sample: Sample) -> tuple[Values, Values]:
        """The mean of the sample, for all."""
        scale = 1.0 if self.normalized else float(sample.population)
        mean = sample.total / sample.searches
        return scale * mean, scale**2 * (sample.squares / sample.searches - mean**2)


class ByWeights(Distances):
    """What programs over distances have otherwise where edges count by their weights."""

    level = None  # type: ignore[assignment]
    together = 1
    distance = Field(np.float64, output=False)
    searched = "distance"

    def _search(self, vertex: int) -> Program:
        return variant(DistancesFrom, along="out" if self.source is None else "in")(vertex)


class LevelsFrom(BFSLevels):
    """Hops from one vertex (internal id), or against the edges (`along`) to it."""

    by_ranges = True

    def start(self, graph: Graph, state: State) -> Start:
        """Nobody is reached but the source."""
        state["level"][:] = UNREACHED
        state["level"][self.source] = 0
        return Start(active=np.array([self.source]))


class DistancesFrom(FloatSSSP):
    """Distances from one vertex (internal id), or to it as `LevelsFrom`, as float64 whatever the weights."""

    distance = Field(np.float64, fill=LARGEST, unreached=LARGEST)
    by_ranges = True

    def start(self, graph: Graph, state: State) -> Start:
        """Nobody is reached but the source."""
        state["distance"][:] = np.inf
        return super().start(graph, state)

    def first(self, graph: Graph) -> NDArray[Any]:
        """The source."""
        return np.array([self.source])
