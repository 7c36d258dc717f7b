"""Bridges, edges whose loss disconnects what they connect, and the parts that they connect.

By random sums over a spanning forest, after Pritchard and Thurimella, "Fast computation of small cuts via cycle space
sampling" (ACM Trans. Algorithms 2011): every edge gets a random number, positive at one end and negative at the other.
Added up over a subtree, edges inside cancel; if what is left is the number of the edge to the parent, no other edge
leaves the subtree. Edges that are no bridges pass this by chance once in 2^31, so that the answer is checked: if all
edges that passed are bridges, then no other edge connects the parts between them, and one sweep counts that. If some
are not, the sums are made anew with other numbers. So the answer is exact, whatever the seed.

Direction is ignored, and two parallel edges are no bridges, as no edge from a vertex to itself is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program import forests
from penstock.engine.program.parameters import Count
from penstock.engine.program.program import LARGEST, VERTEX, Field, Program, Start
from penstock.engine.program.vertex_ids import (
    VertexReferences,
    in_original_order,
    original_order,
    original_values,
    smallest_members,
)
from penstock.engine.program.vertex_ranges import each_range, mask_of, over_ranges
from penstock.engine.programs.bfs import UNREACHED, ByParents
from penstock.engine.programs.wcc import WCC
from penstock.engine.programs.weights import Sums
from penstock.storage.format.graph import Graph

WORD = 2**31 - 1
"""Largest random number of a vertex: the product of two of them is an int64."""
TURN = 0x2545F491
"""An odd factor below 2^31 (of xorshift64*, Vigna, ACM Trans. Math. Softw. 2016), which mixes what was folded."""


class Bridges(Program):
    """`bridge_to`: the other end of the vertex's bridge towards the smallest vertex of its weak component, if there is
    one, so that each bridge is in one row. `component`: the part without bridges (2-edge-connected) of the vertex,
    named by its smallest vertex. seed: of the random numbers; it does not change the answer.
    """

    bridge_to = Field(VERTEX, fill=LARGEST, unreached=LARGEST)
    component = Field(VERTEX)
    parent = Field(VERTEX, fill=LARGEST, output=False)
    level = Field(np.uint32, fill=UNREACHED, output=False)
    word = Field(np.int64, output=False)
    total = Field(np.int64, output=False)
    working_bytes = 17

    def __init__(self, seed: Count = 0) -> None:
        self.seed = seed

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """Weak components, a spanning forest, sums, the check."""
        return (WCC(), Grow(), EdgeSums(1), Leaving()) if graph.vertices else ()

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """A forest of shortest paths; then sums and their check, until that is passed."""
        if graph.vertices == 0:
            return
        if first == 0:
            yield WCC()
        if first <= 1:
            mark_roots(graph, state["component"], state["total"], state["level"])
            yield Grow()
        for number in count(max(2, first)):
            if number % 2 == 0:
                _draw(state["word"], self.seed + number)
                yield EdgeSums(_mask(graph))
                _cut(state, _mask(graph))
            else:
                yield Leaving()
                if _none_besides(state):
                    return

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Name parts by their smallest vertices, and other ends of bridges, by original ids."""
        return {
            "bridge_to": original_values(graph, state["bridge_to"]),
            "component": part_names(graph, state["component"], state["total"]),
        }


class Grow(ByParents):
    """Levels and parents from the vertices on level 0, edges either way."""

    level = Field(np.uint32)
    parent = Field(VERTEX)
    combine = "min"
    message = VERTEX
    along = "both"

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """From the roots."""
        level = state["level"]
        return Start(active=mask_of(lambda first, last: np.asarray(level[first:last] == 0), graph.vertices))


class EdgeSums(Sums):
    """`total`: the numbers of a vertex's edges, those to larger vertices less those to smaller ones.

    mask: of the bits of a number; their sum over all edges is an int64.
    """

    total = Field(np.int64)
    word = Field(np.int64, constant=True)
    accumulator = "total"
    along = "both"

    def __init__(self, mask: int) -> None:
        super().__init__(weight=False)
        self.mask = mask

    def edge(word, target_word, source, target, mask):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: its number, as `edge_numbers` has it."""
        if source == target:
            return 0
        product = word * target_word
        folded = (product >> 31) ^ (product & WORD)
        mixed = folded * TURN
        number = ((mixed >> 31) ^ mixed) & mask
        return number if target < source else -number


class Leaving(Sums):
    """`total`: how many of a vertex's edges lead to other parts."""

    total = Field(np.int64)
    component = Field(VERTEX, constant=True)
    accumulator = "total"
    along = "both"

    def __init__(self) -> None:
        super().__init__(weight=False)

    def edge(component, target_component):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: one that leads elsewhere."""
        return 1 if component != target_component else 0


def edge_numbers(word: NDArray[np.int64], other: NDArray[np.int64], mask: int) -> NDArray[np.int64]:
    """The numbers of edges between vertices of these words, at their smaller ends."""
    product = word * other
    mixed = ((product >> 31) ^ (product & WORD)) * TURN
    numbers: NDArray[np.int64] = ((mixed >> 31) ^ mixed) & mask
    return numbers


def _mask(graph: Graph) -> int:
    """Bits of the numbers: 31, or as many as leave room for the sum over all edges."""
    return (1 << min(31, 62 - graph.edges.bit_length())) - 1


def _draw(word: NDArray[np.int64], seed: int) -> None:
    """Give every vertex a random number from 1 on (Philox, from which any range can be drawn by itself)."""

    def draw(first: int, last: int) -> None:
        numbers = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, first]))
        word[first:last] = numbers.integers(1, WORD, last - first, endpoint=True)

    each_range(draw, len(word))


def mark_roots(graph: Graph, component: NDArray[Any], roots: NDArray[np.int64], level: NDArray[Any]) -> None:
    """Put the smallest vertex of each weak component on level 0; roots: to compute in."""
    roots[:] = -1
    visits = np.empty(0, np.intp) if in_original_order(graph) else original_order(graph)
    forests.first_members(visits, component, roots)
    level[roots[roots >= 0]] = 0


def part_names(graph: Graph, label: NDArray[Any], first: NDArray[np.int64]) -> NDArray[Any] | VertexReferences:
    """Of every vertex the name of its part, the smallest original id in it; label: changed. first: to compute in."""
    first[:] = -1
    forests.first_members(np.empty(0, label.dtype), label, first)
    each_range(lambda a, b: np.copyto(label[a:b], first[label[a:b]], casting="unsafe"), graph.vertices)
    return smallest_members(graph, label)


def _cut(state: dict[str, NDArray[Any]], mask: int) -> None:
    """Cut the forest where the sums say that an edge is a bridge; label the parts by their highest vertices."""
    level, parent, total, word = (state[name] for name in ("level", "parent", "total", "word"))
    order = np.empty(len(level), parent.dtype)
    forests.by_level(level, int(level.max()), order)
    forests.add_to_parents(order, parent, level, total)
    none = np.iinfo(parent.dtype).max
    bridge = state["bridge_to"]

    def alone(first: int, last: int) -> NDArray[np.bool_]:
        """Whether the edge to the parent is the only one that leaves the subtree; of roots True."""
        root = level[first:last] == 0
        above = np.where(root, 0, parent[first:last])
        numbers = edge_numbers(word[first:last], word[above], mask)
        numbers[above < np.arange(first, last)] *= -1
        passed = np.asarray((total[first:last] == numbers) & ~root, np.bool_)
        bridge[first:last] = np.where(passed, parent[first:last], none)
        joined: NDArray[np.bool_] = passed | root
        return joined

    forests.take_from_parents(order, parent, mask_of(alone, len(level)), state["component"])


def _none_besides(state: dict[str, NDArray[Any]]) -> bool:
    """Whether as many edges lead to other parts as were cut: each counts at both ends."""
    total, bridge = state["total"], state["bridge_to"]
    none = np.iinfo(bridge.dtype).max
    leaving = sum(over_ranges(lambda a, b: int(total[a:b].sum()), len(total)))
    cut = sum(over_ranges(lambda a, b: int(np.count_nonzero(bridge[a:b] != none)), len(bridge)))
    return leaving == 2 * cut
