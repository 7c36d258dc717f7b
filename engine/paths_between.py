"""Shortest paths to a vertex: all that are shortest, or the k shortest without a vertex twice.

One search against the edges, on any device and within any budget, tells how far each vertex is from the target. Paths
are then followed from the source, along rows that are read as they are needed: along tight edges, or by Yen's algorithm
(Management Science 1971) in Lawler's form (1972), which finds no path twice. A branch of it is a search by A* (Hart,
Nilsson, Raphael 1968), to which those distances are bounds from below: leaving out vertices makes no path shorter.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Set
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.api import run
from penstock.engine.program.program_description import variant
from penstock.engine.program.vertex_ids import labels_of
from penstock.engine.programs.closeness import DistancesFrom, LevelsFrom
from penstock.engine.programs.weights import counts_by_weight
from penstock.engine.state.found_paths import FoundPath
from penstock.storage.access.vertex_lookup import internal_id
from penstock.storage.base.errors import InputError, for_python

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.storage.format.graph import Graph

Way = tuple[Any, list[int]]
"""Length and vertices (internal ids) of a path."""
KEPT_ROWS, KEPT_CHUNKS = 1 << 16, 16


@for_python
def shortest_paths(
    graph: Graph,
    source: int | str,
    target: int | str,
    *,
    k: int | None = None,
    weight: bool | str | None = True,
    **options: Any,
) -> Iterator[FoundPath]:
    """Find the shortest paths between two vertices.

    The search runs now, paths are found as they are read; of parallel edges the shortest counts.

    Parameters
    ----------
    graph : Graph
        A graph of sorted rows.
    source, target : int or str
        Ids of the input.
    k : int, optional
        How many paths at most, the shortest first, of which none has a vertex twice; by default all paths that are as
        short as the shortest.
    weight : bool, str or None
        Whether edges are as long as their weights where the graph has some, which must not be negative; else 1.
    **options
        Those of `run`, for the search: `host_memory`, `device` and others.

    Returns
    -------
    iterator of FoundPath
        `vertices`, `length` and `hops`; none where there is no path.

    Raises
    ------
    InputError
        The graph has no such vertex, its edges are a list, or a weight is negative.
    """
    if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1):
        raise InputError(f"k is {k!r}; give a whole number above 0, or leave it out for all shortest paths")
    ends = internal_id(graph, source), internal_id(graph, target)
    ways = PathsBetween(
        graph, *ends, weighted=counts_by_weight(weight) and graph.weight_range is not None, options=options
    )
    found = ways.shortest() if k is None else ways.loopless(k)
    return (FoundPath(labels_of(graph, np.array(vertices)), length) for length, vertices in found)


class PathsBetween:
    """Paths from one vertex to another (internal ids), after a search against the edges from the latter."""

    def __init__(self, graph: Graph, first: int, last: int, *, weighted: bool, options: dict[str, Any]) -> None:
        if graph.layout == "list":
            raise InputError(
                "the edges of the graph are in the order of the input; convert the graph file to sort them"
            )
        kind, field = (DistancesFrom, "distance") if weighted else (LevelsFrom, "level")
        search: Any = variant(kind, along="in")
        result = run(search(last), graph, **options)
        self._left, self._absent = result.numbers(field)
        self._rows, self._index, self._weighted = graph.out, graph.out.index(), weighted
        self._first, self._last = first, last
        self._ahead = lru_cache(KEPT_ROWS)(self._read)
        self._chunk = lru_cache(KEPT_CHUNKS)(self._read_chunk)

    @property
    def some(self) -> bool:
        """Whether there is any path."""
        return bool(self._left[self._first] != self._absent)

    def shortest(self) -> Iterator[Way]:
        """Yield all paths of the least length; of cycles of length 0 none is walked."""
        path, lengths, open_rows = [self._first], [0], [iter(self._tight(self._first))]
        on_path = {self._first}  # a path may have as many vertices as the graph
        if self._first == self._last:
            yield 0, path
        while self.some and open_rows:
            other, length = next(open_rows[-1], (None, 0))
            if other is None:
                open_rows.pop()
                on_path.remove(path.pop())
                lengths.pop()
            elif other == self._last:
                yield lengths[-1] + length, [*path, other]
            elif other not in on_path:
                path.append(other)
                on_path.add(other)
                lengths.append(lengths[-1] + length)
                open_rows.append(iter(self._tight(other)))

    def _tight(self, vertex: int) -> list[tuple[int, Any]]:
        """The next vertices on shortest paths, and how far they are."""
        ahead = () if vertex == self._last or not self.some else self._ahead(vertex)
        whole = self._left[vertex]
        return [(other, length) for other, length, left in ahead if length + left == whole]

    def loopless(self, most: float = np.inf) -> Iterator[Way]:
        """Yield paths without a vertex twice, the shortest first; so many at most, by default all."""
        begun = self._best([self._first], 0, set(), np.inf) if self.some else None
        heap = [] if begun is None else [(*begun, 0)]
        known: list[list[int]] = []
        while heap:
            length, path, branch = heapq.heappop(heap)
            known.append(path)
            yield length, path
            lengths, left = self._lengths(path), most - len(known)
            if left <= 0:
                return
            for at in range(branch, len(path) - 1):
                root = path[: at + 1]
                barred = {one[at + 1] for one in known if one[: at + 1] == root}
                bound = np.inf if len(heap) < left else heapq.nsmallest(int(left), heap)[-1][0]
                best = self._best(root, lengths[at], barred, bound)
                if best is not None:
                    heapq.heappush(heap, (*best, at))

    def _lengths(self, path: list[int]) -> list[Any]:
        """The length of a path up to each of its vertices."""
        found = [0]
        for vertex, then in pairwise(path):
            found.append(found[-1] + next(length for other, length, _ in self._ahead(vertex) if other == then))
        return found

    def _best(self, root: list[int], length: Any, barred: Set[int], bound: float) -> Way | None:
        """The shortest path that begins with these vertices, as long as that, and goes on to none that are barred.

        bound: a path that is as long as this, or longer, is not wanted.
        """
        begin = root[-1]
        heap = [(length + self._left[begin], self._left[begin], begin, length, -1)]  # of ties the nearest
        before: dict[int, int] = dict.fromkeys(root[:-1], -1)
        while heap:
            _, _, vertex, length, came = heapq.heappop(heap)
            if vertex in before:
                continue
            before[vertex] = came
            if vertex == self._last:
                way = [vertex]
                while way[-1] != begin:
                    way.append(before[way[-1]])
                return length, [*root[:-1], *reversed(way)]
            for other, step, left in self._ahead(vertex):
                if length + step + left < bound and other not in before and not (vertex == begin and other in barred):
                    heapq.heappush(heap, (length + step + left, left, other, length + step, vertex))
        return None

    def _read(self, vertex: int) -> list[tuple[int, Any, Any]]:
        """The vertices to which edges lead, and which reach the target, with the length there and what is left."""
        first, last = self._index.starts(vertex, vertex + 2).tolist()
        if first == last:
            return []
        size = self._rows.chunk_edges
        chunks = [self._chunk(number) for number in range(first // size, -(-last // size))]
        here = slice(first % size, first % size + last - first)
        others = np.concatenate([one for one, _ in chunks])[here]
        weights = np.concatenate([each for _, each in chunks])[here] if self._weighted else None
        lengths = np.ones(len(others), np.int64) if weights is None else weights
        order = np.lexsort((lengths, others))
        others, lengths = others[order], lengths[order]
        left = self._left[others]
        kept = (left != self._absent) & (np.diff(others.astype(np.int64), prepend=-1) != 0)
        return list(zip(others[kept].tolist(), lengths[kept].tolist(), left[kept].tolist(), strict=True))

    def _read_chunk(self, number: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Neighbors and weights of a chunk, decoded."""
        first = number * self._rows.chunk_edges
        last = min(first + self._rows.chunk_edges, self._rows.edges)
        return self._rows.edges_in(first, last, weights=self._weighted)
