"""Articulation points, vertices whose loss disconnects what they connect, and biconnected components between them.

After Tarjan and Vishkin, "An efficient parallel biconnectivity algorithm" (SIAM J. Comput. 1985): two edges of a
spanning tree are in one biconnected component if they are joined by a chain of two rules. An edge besides the tree
joins the tree edges above its two ends, if neither end is above the other; and a tree edge is joined with the one above
it, if an edge leads from the subtree below out of the subtree of the vertex between them.

The tree is one of breadth-first search, where each edge besides it fits the first rule, or is parallel to a tree edge.
The second rule needs the least and the largest preorder number next to a subtree: two sweeps. For the first rule parts
are joined round by round (Boruvka's, as in `spanning_forest.py`): in a sweep every vertex learns the least name of
another part next to it. Tree edges are known by their lower ends. Direction is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program import forests
from penstock.engine.program.program import LARGEST, VERTEX, Field, Program, Start
from penstock.engine.program.vertex_ids import original_values
from penstock.engine.program.vertex_ranges import mask_of
from penstock.engine.programs.bfs import UNREACHED
from penstock.engine.programs.bridges import Grow, mark_roots, part_names
from penstock.engine.programs.spanning_forest import LeastOfEdges
from penstock.engine.programs.wcc import WCC
from penstock.storage.format.graph import Graph


class Articulation(Program):
    """`articulation`: 1 for vertices whose loss disconnects their weak component, else 0. `blocks`: of how many
    biconnected components the vertex is part (a bridge is one).

    `component`: of these the one towards the smallest vertex of the weak component, named by its smallest vertex other
    than `top`, which is the vertex of it that is nearest to that one. The smallest vertex is named by itself, and has
    no `top`. So an edge belongs to the component of its end that is not the other's `top`.
    """

    articulation = Field(np.uint8)
    blocks = Field(np.uint32)
    component = Field(VERTEX)
    top = Field(VERTEX, fill=LARGEST, unreached=LARGEST)
    parent = Field(VERTEX, fill=LARGEST, output=False)
    level = Field(np.uint32, fill=UNREACHED, output=False)
    number = Field(VERTEX, output=False)
    size = Field(VERTEX, output=False)
    least = Field(VERTEX, output=False)
    most = Field(VERTEX, output=False)
    working_bytes = 17

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """Weak components, a spanning forest, numbers next to subtrees, parts to join."""
        return (WCC(), Grow(), LeastNumber(), LargestNumber(), OtherParts()) if graph.vertices else ()

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """A forest of shortest paths; what is next to subtrees; then rounds, until no parts are left to join."""
        if graph.vertices == 0:
            return
        if first == 0:
            yield WCC()
        if first <= 1:
            mark_roots(graph, state["component"], np.empty(graph.vertices, np.int64), state["level"])
            yield Grow()
            _number(state)
        if first <= 2:
            yield LeastNumber()
        if first <= 3:
            yield LargestNumber()
            _join_chains(state)
        joined = graph.vertices
        while joined:
            yield OtherParts()
            joined = forests.join_labels(state["component"], state["least"])

    def phase_name(self, graph: Graph, number: int) -> str:
        """``joining parts, round 2``."""
        names = ("components", "forest", "least numbers", "largest numbers")
        return names[number] if number < len(names) else f"joining parts, round {number - len(names) + 1}"

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Count components at vertices; name them by their smallest vertices."""
        _count_blocks(state)
        np.greater(state["blocks"], 1, out=state["articulation"], casting="unsafe")
        return {
            "articulation": state["articulation"],
            "blocks": state["blocks"],
            "component": part_names(graph, state["component"], np.empty(graph.vertices, np.int64)),
            "top": original_values(graph, state["top"]),
        }


class LeastNumber(LeastOfEdges):
    """`least`: the least preorder number next to a vertex."""

    least = Field(VERTEX)
    number = Field(VERTEX, constant=True)
    everywhere = True

    def __init__(self) -> None:
        super().__init__(weight=False)

    def edge(number):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: the number."""
        return number


class LargestNumber(LeastNumber):
    """`most`: the largest preorder number next to a vertex."""

    least = None  # type: ignore[assignment]
    most = Field(VERTEX)
    combine = "max"


class OtherParts(LeastOfEdges):
    """`least`: the least name of another part that an edge besides the tree joins with that of the vertex."""

    least = Field(VERTEX)
    component = Field(VERTEX, constant=True)
    parent = Field(VERTEX, constant=True)

    def __init__(self) -> None:
        super().__init__(weight=False)

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Vertices take part that had such an edge in the round before; all in the first, after `_join_chains`."""
        least = state["least"]
        active = mask_of(lambda first, last: np.asarray(least[first:last] < graph.vertices), graph.vertices)
        least[:] = graph.vertices
        return Start(active=active)

    def edge(component, target_component, parent, target_parent, source, target, vertices):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: the part, to another one, except along the tree."""
        beside = component != target_component and parent != target and target_parent != source
        return component if beside else vertices


def _count_blocks(state: dict[str, NDArray[Any]]) -> None:
    """Count the components at every vertex, and set `top`; of all fields as they are after the last phase."""
    parent, level, label, top, blocks = (state[name] for name in ("parent", "level", "component", "top", "blocks"))
    if len(level):
        forests.count_parts(_by_level(state), parent, level, label, np.iinfo(top.dtype).max, top, blocks)


def _by_level(state: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """The vertices in the order of their levels."""
    level = state["level"]
    order = np.empty(len(level), state["parent"].dtype)
    forests.by_level(level, int(level.max()), order)
    return order


def _number(state: dict[str, NDArray[Any]]) -> None:
    """Compute sizes of subtrees, and preorder numbers."""
    order, size = _by_level(state), state["size"]
    size[:] = 1
    forests.add_to_parents(order, state["parent"], state["level"], size)
    forests.number_by_tree(order, state["parent"], state["level"], size, state["number"], state["most"])


def _join_chains(state: dict[str, NDArray[Any]]) -> None:
    """Join tree edges with those above them by the second rule; `component` names parts by their highest vertices."""
    order, parent, level = _by_level(state), state["parent"], state["level"]
    number, size, least, most = (state[name] for name in ("number", "size", "least", "most"))
    forests.extremes_to_parents(order, parent, level, least, most)

    def apart(first: int, last: int) -> NDArray[np.bool_]:
        """Whether no edge leads from the subtree out of that of the parent."""
        above = np.where(level[first:last] == 0, 0, parent[first:last])
        start = number[above]
        inside = (least[first:last] >= start) & (most[first:last] - start < size[above])
        return np.asarray(inside | (level[first:last] <= 1), np.bool_)

    forests.take_from_parents(order, parent, mask_of(apart, len(level)), state["component"])
    least[:] = 0  # every vertex takes part in the first round
