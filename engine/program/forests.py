"""What programs do with spanning forests between two sweeps: in one thread, one visit a vertex, on arrays of the host.

A forest is an array of parents; a root has the largest value of the dtype. Sums over subtrees and labels of parts walk
the vertices by level, which a counting sort gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.storage.base.jit import jit_later, jit_part


@jit_later
def by_level(level: Any, deepest: int, order: Any) -> None:
    """Write the vertices that have a level up to `deepest` in the order of their levels."""
    starts = np.zeros(deepest + 2, np.int64)
    for v in range(len(level)):
        starts[level[v] + 1] += 1
    for depth in range(deepest + 1):
        starts[depth + 1] += starts[depth]
    for v in range(len(level)):
        order[starts[level[v]]] = v
        starts[level[v]] += 1


@jit_later
def add_to_parents(order: Any, parent: Any, level: Any, total: Any) -> None:
    """Turn numbers of vertices into sums over subtrees: from the deepest level up each is added to its parent's."""
    for place in range(len(order) - 1, -1, -1):
        v = order[place]
        if level[v] > 0:
            total[parent[v]] += total[v]


@jit_later
def number_by_tree(order: Any, parent: Any, level: Any, size: Any, number: Any, following: Any) -> None:
    """Number the vertices in preorder, so that a subtree has consecutive numbers.

    size: of every subtree. following: to compute in, the number of the next child.
    """
    root = 0
    for place in range(len(order)):
        v = order[place]
        if level[v] == 0:
            number[v] = root
            root += size[v]
        else:
            number[v] = following[parent[v]]
            following[parent[v]] += size[v]
        following[v] = number[v] + 1


@jit_later
def extremes_to_parents(order: Any, parent: Any, level: Any, least: Any, most: Any) -> None:
    """Turn numbers of vertices into the least and the largest of each subtree."""
    for place in range(len(order) - 1, -1, -1):
        v = order[place]
        if level[v] > 0:
            least[parent[v]] = min(least[parent[v]], least[v])
            most[parent[v]] = max(most[parent[v]], most[v])


@jit_later
def take_from_parents(order: Any, parent: Any, cut: Any, label: Any) -> None:
    """Label the parts into which cuts divide a forest: a cut vertex, or a root, by itself, others as their parent.

    cut: bool, whether the edge to the parent is cut; of roots it is true.
    """
    for place in range(len(order)):
        v = order[place]
        label[v] = v if cut[v] else label[parent[v]]


@jit_later
def first_members(visits: Any, label: Any, first: Any) -> None:
    """Set `first[label]` to the first vertex of every label, vertices being visited in this order ((0,): as they are).

    first: integers (vertices,), all negative at the start.
    """
    for place in range(len(label)):
        v = visits[place] if len(visits) else place
        if first[label[v]] < 0:
            first[label[v]] = v


@jit_later
def least_of_components(component: Any, best: Any, least: Any) -> None:
    """Set `best` of every vertex to the least of its component; least: float64 (vertices,), infinite at the start."""
    for v in range(len(component)):
        least[component[v]] = min(least[component[v]], best[v])
    for v in range(len(component)):
        best[v] = least[component[v]]


@jit_part
def component_root(component: Any, v: Any) -> Any:
    """The root of a vertex's component, where trees are being joined; halves the path to it (van Leeuwen)."""
    while component[v] != v:
        component[v] = component[component[v]]
        v = np.int64(component[v])
    return v


@jit_part
def turn_around(parent: Any, weight: Any, v: Any, none: Any) -> None:
    """Make a vertex the root of its tree: turn the edges of its path to the root around."""
    above, carried = np.uint64(none), -np.inf
    while True:
        following, between = np.uint64(parent[v]), weight[v]
        parent[v], weight[v] = above, carried
        if following == np.uint64(none):
            return
        above, carried = np.uint64(v), between
        v = np.int64(following)


@jit_later
def join_trees(
    keys: Any, vertex_of: Any, best: Any, component: Any, size: Any, none: Any, parent: Any, weight: Any
) -> int:
    """Join the trees along the edges that components chose; return how many components are left that chose one.

    keys: uint64 (vertices,), of every vertex the least lower << 32 | higher rank of an edge of least weight that leaves
    its component, or the largest value. vertex_of: the vertex of each rank ((0,): itself). best: the least weight of
    the vertex's component, infinite where nothing leaves it. size: of the tree of a root. none: the parent of a root.
    The smaller tree is turned around, so that a vertex is turned around as often as its tree doubles at most.
    """
    nothing = np.uint64(0xFFFFFFFFFFFFFFFF)
    for v in range(len(component)):  # keys of roots become those of components
        root = np.int64(component[v])
        if root != v:
            keys[root] = min(keys[root], keys[v])
            keys[v] = nothing
    for v in range(len(component)):
        if keys[v] == nothing:
            continue
        low, high = np.int64(keys[v] >> np.uint64(32)), np.int64(keys[v] & np.uint64(0xFFFFFFFF))
        if len(vertex_of):
            low, high = np.int64(vertex_of[low]), np.int64(vertex_of[high])
        one, other = component_root(component, low), component_root(component, high)
        if one == other:  # both sides chose this edge
            continue
        if size[one] > size[other]:
            low, high, one, other = high, low, other, one
        turn_around(parent, weight, low, none)
        parent[low], weight[low] = high, best[v]
        component[one] = other
        size[other] += size[one]
    left = 0
    for v in range(len(component)):
        component[v] = component_root(component, np.int64(v))
        if component[v] == v and best[v] != np.inf:
            left += 1
    return left


@jit_later
def join_labels(label: Any, other: Any) -> int:
    """Join the part of every vertex with the part that `other` names, if that is a vertex; return how many joined.

    label: of every vertex the name of its part, which is a vertex of it; it is so afterwards, too.
    """
    joined = 0
    for v in range(len(label)):
        if other[v] < len(label):
            one, two = component_root(label, np.int64(v)), component_root(label, np.int64(other[v]))
            label[max(one, two)] = min(one, two)
            joined += one != two
    for v in range(len(label)):
        label[v] = component_root(label, np.int64(v))
    return joined


@jit_later
def count_parts(order: Any, parent: Any, level: Any, label: Any, none: Any, top: Any, parts: Any) -> None:
    """Count at each vertex the parts of tree edges; set `top` to the highest vertex of the part of the edge upwards.

    label: of the part of the edge to the parent. none: the top of a root. parts: 0 at the start.
    """
    for v in range(len(top)):
        top[v] = none
    for place in range(len(order)):
        v = order[place]
        if level[v] == 0:
            continue
        parts[v] += 1
        if top[label[v]] == none:
            top[label[v]] = parent[v]
            parts[parent[v]] += 1
    for v in range(len(top)):
        top[v] = top[label[v]]


@jit_later
def root_at(roots: Any, none: Any, parent: Any, weight: Any) -> None:
    """Make `roots[label]` the root of its tree, for every label; roots: negative where there is none."""
    for label in range(len(roots)):
        if roots[label] >= 0:
            turn_around(parent, weight, np.int64(roots[label]), none)
