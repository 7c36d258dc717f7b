"""Independent verifiers of the larger catalogue: what each program must answer, without Penstock.

The second half of `oracles.py`, with the same rules: imports nothing of penstock, one plain serial statement of each
answer in numpy and loops, held against networkx and scipy in test_catalogue_oracles.py. Parallel edges count each and
self-loops stay, unless a function says otherwise. Refuses speed: dense matrices, graphs of a few thousand vertices.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from support.oracles import UNREACHED, EdgeList, check_pagerank, check_sssp, shortest_distances

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
SOURCE, OTHER = 3, 18
"""Where the searches of `CASES` begin."""


def matrix(edges: EdgeList, *, weighted: bool) -> Floats:
    """Dense adjacency: entry (u, v) sums what leads from u to v; (vertices, vertices)."""
    sources, targets, weights = edges.arcs
    dense = np.zeros((edges.vertices, edges.vertices))
    np.add.at(dense, (sources, targets), 1.0 if weights is None or not weighted else weights.astype(np.float64))
    return dense


@lru_cache(maxsize=8)
def neighbor_sets(edges: EdgeList) -> list[set[int]]:
    """Distinct neighbors in either direction, without the vertex itself."""
    found: list[set[int]] = [set() for _ in range(edges.vertices)]
    for u, v in zip(edges.sources.tolist(), edges.targets.tolist(), strict=True):
        if u != v:
            found[u].add(v)
            found[v].add(u)
    return found


def levels(edges: EdgeList, sources: Sequence[int]) -> Integers:
    """Hops from the nearest source, UNREACHED where there is no path. (vertices,)"""
    offsets, neighbors, _ = edges.rows
    level = np.full(edges.vertices, UNREACHED, dtype=np.int64)
    level[list(sources)] = 0
    frontier, depth = sorted(set(sources)), 0
    while frontier:
        depth += 1
        found = set()
        for u in frontier:
            found |= {v for v in neighbors[offsets[u] : offsets[u + 1]].tolist() if level[v] == UNREACHED}
        level[list(found)] = depth
        frontier = sorted(found)
    return level


def widths(edges: EdgeList, source: int) -> list[float | None]:
    """The largest bottleneck of any path, infinity for the source, None where there is no path."""
    offsets, neighbors, weights = edges.rows
    values = [1] * len(neighbors) if weights is None else weights.tolist()
    best: list[float | None] = [None] * edges.vertices
    heap: list[tuple[float, int]] = [(-np.inf, source)]
    while heap:
        width, u = heapq.heappop(heap)
        if best[u] is None:
            best[u] = -width
            for e in range(int(offsets[u]), int(offsets[u + 1])):
                heapq.heappush(heap, (max(width, -values[e]), int(neighbors[e])))
    return best


def katz(edges: EdgeList, *, alpha: float, beta: float = 1.0, weighted: bool = False) -> Floats:
    """The solution of x = alpha A^T x + beta, scaled to an L2 norm of 1."""
    count = edges.vertices
    found = np.linalg.solve(np.eye(count) - alpha * matrix(edges, weighted=weighted).T, np.full(count, beta))
    return found / max(float(np.linalg.norm(found)), 1e-300)


def eigenvector(edges: EdgeList, *, weighted: bool = False) -> Floats:
    """The vector of norm 1 to which powers of A^T, shifted by half its norm, take the vector of ones."""
    dense = matrix(edges, weighted=weighted).T
    shift = float(np.linalg.norm(dense, 2)) / 2 if edges.vertices else 0.0
    step = dense + (shift or 1.0) * np.eye(edges.vertices)
    found = np.ones(edges.vertices)
    for _ in range(12):  # 4096 sweeps
        step = step @ step
        step /= max(float(np.abs(step).max(initial=0.0)), 1e-300)
    found = step @ found
    return found / max(float(np.linalg.norm(found)), 1e-300)


def penalized_hitting(edges: EdgeList, source: int, damping: float) -> Floats:
    """The solution of php(source) = 1, php(v) = damping sum_u php(u) w(u, v) / W(u)."""
    dense = matrix(edges, weighted=True)
    totals = dense.sum(axis=1, keepdims=True)
    step = damping * np.divide(dense, totals, out=np.zeros_like(dense), where=totals > 0).T
    step[source] = 0.0
    right = np.zeros(edges.vertices)
    right[source] = 1.0
    return np.linalg.solve(np.eye(edges.vertices) - step, right)


def adsorption(edges: EdgeList, seeds: Mapping[int, float], damping: float) -> Floats:
    """The solution of score(v) = damping sum_u score(u) w(u, v) / W(v) + (1 - damping) seed(v)."""
    dense = matrix(edges, weighted=True)
    totals = dense.sum(axis=0)
    step = damping * np.divide(dense, totals, out=np.zeros_like(dense), where=totals > 0).T
    right = np.zeros(edges.vertices)
    for vertex, strength in seeds.items():
        right[vertex] = (1 - damping) * strength
    return np.linalg.solve(np.eye(edges.vertices) - step, right)


def hits(edges: EdgeList, *, weighted: bool = False) -> tuple[Floats, Floats]:
    """Hubs and authorities, sum 1 each: 20,000 rounds of the definition from equal hubs."""
    dense = matrix(edges, weighted=weighted)
    product = dense @ dense.T
    hub = np.full(edges.vertices, 1.0)
    for _ in range(20000):
        hub = product @ hub
        hub = hub / max(hub.sum(), 1e-300)
    authority = dense.T @ hub
    return hub, authority / max(authority.sum(), 1e-300)


def degrees(edges: EdgeList) -> tuple[Integers, Integers]:
    """Out-degrees and in-degrees."""
    sources, targets, _ = edges.arcs
    return np.bincount(sources, minlength=edges.vertices), np.bincount(targets, minlength=edges.vertices)


def coreness(edges: EdgeList) -> Integers:
    """The largest k of a k-core that holds the vertex; both directions count, self-loops do not."""
    counts: list[Counter[int]] = [Counter() for _ in range(edges.vertices)]
    for u, v in zip(edges.sources.tolist(), edges.targets.tolist(), strict=True):
        if u != v:
            counts[u][v] += 1
            counts[v][u] += 1
    left = {v: sum(counts[v].values()) for v in range(edges.vertices)}
    core, k = np.zeros(edges.vertices, dtype=np.int64), 0
    while left:
        lowest = min(left, key=lambda v: left[v])
        k = max(k, left.pop(lowest))
        core[lowest] = k
        for v, edges_between in counts[lowest].items():
            if v in left:
                left[v] -= edges_between
    return core


def walk_order(vertices: int) -> list[int]:
    """Vertices by splitmix64's finalizer of their id, then by id."""
    mask = 2**64 - 1

    def mixed(x: int) -> int:
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        return x ^ (x >> 31)

    return sorted(range(vertices), key=lambda v: (mixed(v), v))


def independent_set(edges: EdgeList) -> Integers:
    """1 for the vertices that a greedy walk takes: each that has no neighbor in the set yet."""
    near, member = neighbor_sets(edges), np.zeros(edges.vertices, dtype=np.int64)
    for v in walk_order(edges.vertices):
        member[v] = not any(member[u] for u in near[v])
    return member


def check_independent_set(edges: EdgeList, member: NDArray[np.generic]) -> None:
    """No two neighbors inside, nobody outside without a neighbor inside; and the set of the greedy walk."""
    for v, near in enumerate(neighbor_sets(edges)):
        inside = [u for u in near if member[u]]
        assert not (member[v] and inside), f"{v} and {inside[0]} are neighbors, and both in the set"
        assert member[v] or inside, f"{v} could join the set"
    assert np.asarray(member).tolist() == independent_set(edges).tolist(), "another set than the walk takes"


def check_coloring(edges: EdgeList, color: NDArray[np.generic]) -> None:
    """Neighbors differ; and each vertex has the smallest color that the neighbors before it in the walk left."""
    near, given = neighbor_sets(edges), np.asarray(color).tolist()
    for v in range(edges.vertices):
        same = [u for u in near[v] if given[u] == given[v]]
        assert not same, f"{v} and its neighbor {same[0]} have the color {given[v]}"
    chosen: dict[int, int] = {}
    for v in walk_order(edges.vertices):
        taken = {chosen[u] for u in near[v] if u in chosen}
        chosen[v] = next(one for one in range(len(taken) + 1) if one not in taken)
        assert given[v] == chosen[v], f"{v} has the color {given[v]}, not {chosen[v]}"


def strong_components(edges: EdgeList) -> Integers:
    """For every vertex the smallest of its strongly connected component: Kosaraju's two searches."""
    order: list[int] = []
    seen = [False] * edges.vertices
    for root in range(edges.vertices):
        _depth_first(edges.rows, root, seen, order)
    seen, component = [False] * edges.vertices, np.zeros(edges.vertices, dtype=np.int64)
    back = edges.reversed().rows
    for root in reversed(order):
        group: list[int] = []
        _depth_first(back, root, seen, group)
        if group:
            component[group] = min(group)
    return component


def _depth_first(
    rows: tuple[Integers, Integers, NDArray[np.generic] | None], root: int, seen: list[bool], finished: list[int]
) -> None:
    """Append what `root` leads to and is not seen yet, each vertex after all it leads to."""
    offsets, neighbors, _ = rows
    stack = [] if seen[root] else [(root, iter(neighbors[offsets[root] : offsets[root + 1]].tolist()))]
    seen[root] = True
    while stack:
        vertex, rest = stack[-1]
        following = next((v for v in rest if not seen[v]), None)
        if following is None:
            finished.append(vertex)
            stack.pop()
        else:
            seen[following] = True
            stack.append((following, iter(neighbors[offsets[following] : offsets[following + 1]].tolist())))


def dependencies(edges: EdgeList, source: int) -> Floats:
    """Brandes' dependencies of one source on each vertex; parallel edges are different paths."""
    offsets, neighbors, _ = edges.rows
    level = levels(edges, [source])
    order = [v for v in np.argsort(level, kind="stable").tolist() if level[v] != UNREACHED]
    paths, found = np.zeros(edges.vertices), np.zeros(edges.vertices)
    paths[source] = 1.0
    for forward, walk in ((True, order), (False, order[::-1])):
        for u in walk:
            for v in neighbors[offsets[u] : offsets[u + 1]].tolist():
                if level[v] == level[u] + 1:
                    if forward:
                        paths[v] += paths[u]
                    else:
                        found[u] += paths[u] / paths[v] * (1 + found[v])
    found[source] = 0.0
    return found


def betweenness(edges: EdgeList) -> Floats:
    """Over all sources, divided by the (n - 1)(n - 2) ordered pairs where there are any."""
    total = sum((dependencies(edges, source) for source in range(edges.vertices)), np.zeros(edges.vertices))
    return total / max(1, (edges.vertices - 1) * (edges.vertices - 2))


def distances(edges: EdgeList, *, weighted: bool) -> Floats:
    """[u, v]: the distance from u to v by weights, or by hops; infinity where there is no path."""
    plain = edges if weighted else replace(edges, weights=None)
    rows = (shortest_distances(plain, source) for source in range(edges.vertices))
    found = [[np.inf if value is None else float(value) for value in row] for row in rows]
    return np.array(found).reshape(edges.vertices, edges.vertices)


def closeness(edges: EdgeList, pivots: Iterable[int], *, weighted: bool = False) -> Floats:
    """Share of the pivots that reach a vertex over their mean distance."""
    every = distances(edges, weighted=weighted)
    found = np.zeros(edges.vertices)
    for vertex in range(edges.vertices):
        column = every[[pivot for pivot in pivots if pivot != vertex], vertex]
        near = column[np.isfinite(column)]
        if near.sum() > 0:
            found[vertex] = len(near) / len(column) / near.mean()
    return found


def harmonic(edges: EdgeList, *, weighted: bool = False) -> Floats:
    """Sum of inverse distances from all other vertices; the distance 0 counts 0."""
    every = distances(edges, weighted=weighted)
    return np.divide(1.0, every, out=np.zeros_like(every), where=every > 0).sum(axis=0)


def spanning_forest(edges: EdgeList) -> tuple[Integers, Floats]:
    """Kruskal's forest, ties by the smaller and then the larger end: parents (-1: none) and weights (-inf: none).

    The root of a tree is its smallest vertex.
    """
    weights = np.ones(len(edges.sources)) if edges.weights is None else edges.weights
    ends = zip(weights.tolist(), edges.sources.tolist(), edges.targets.tolist(), strict=True)
    tree = list(range(edges.vertices))
    beside: list[list[tuple[int, float]]] = [[] for _ in tree]
    for weight, low, high in sorted((weight, min(u, v), max(u, v)) for weight, u, v in ends):
        if tree[low] != tree[high]:
            beside[low].append((high, weight))
            beside[high].append((low, weight))
            tree = [tree[low] if root == tree[high] else root for root in tree]
    parent, above = np.full(edges.vertices, -1), np.full(edges.vertices, -np.inf)
    seen: set[int] = set()
    for root in range(edges.vertices):
        stack = [] if root in seen else [root]
        seen |= set(stack)
        while stack:
            u = stack.pop()
            for v, weight in beside[u]:
                if v not in seen:
                    parent[v], above[v] = u, weight
                    seen.add(v)
                    stack.append(v)
    return parent, above


@lru_cache(maxsize=8)
def bridges(edges: EdgeList) -> tuple[Integers, Integers]:
    """For every vertex the other end of the bridge towards the smallest vertex of its component (-1: none), and the
    smallest vertex that is connected with it without bridges: each edge is left out to see what happens.
    """
    ends = list(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True))

    def labels(kept: Iterable[int]) -> list[int]:
        found = list(range(edges.vertices))
        for at in kept:
            u, v = (found[end] for end in ends[at])
            if u != v:
                found = [min(u, v) if label in (u, v) else label for label in found]
        return found

    whole = labels(range(len(ends)))
    count = len(set(whole))
    toward, cut = np.full(edges.vertices, -1), set()
    for at, (u, v) in enumerate(ends):
        without = labels([other for other in range(len(ends)) if other != at])
        if len(set(without)) > count:
            cut.add(at)
            far, near = (u, v) if without[v] == whole[u] else (v, u)
            toward[far] = near
    return toward, np.array(labels([at for at in range(len(ends)) if at not in cut]), np.int64)


@lru_cache(maxsize=8)
def articulation(edges: EdgeList) -> tuple[Integers, Integers, Integers]:
    """For every vertex how many biconnected components it is in; of the one towards the smallest vertex of its weak
    component the vertex nearest to that (-1: none), and the smallest other one: each vertex is left out to see what
    happens.
    """
    ends = list(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True))

    def parts(without: int) -> list[int]:
        found = list(range(edges.vertices))
        for u, v in ends:
            one, two = sorted((found[u], found[v]))
            if one != two and without not in (u, v):
                found = [one if label == two else label for label in found]
        return found

    whole, left = parts(-1), [parts(vertex) for vertex in range(edges.vertices)]
    beside = [[u for u in range(edges.vertices) if u != v and whole[u] == whole[v]] for v in range(edges.vertices)]
    blocks = np.array([len({left[v][u] for u in beside[v]}) for v in range(edges.vertices)], np.int64)
    between = [[w for w in beside[v] if w != whole[v] and left[w][v] != left[w][whole[v]]] for v in range(len(left))]
    top, component = np.full(edges.vertices, -1), np.arange(edges.vertices)
    for v in np.flatnonzero(component != whole).tolist():
        top[v] = max(between[v], key=lambda w: len(between[w]), default=whole[v])
    for v in np.flatnonzero(top >= 0).tolist():
        with_it = [u for u in beside[v] if top[u] == top[v] and left[top[v]][u] == left[top[v]][v]]
        component[v] = min([v, *with_it])
    return blocks, top, component


def eccentricities(edges: EdgeList) -> Integers:
    """The distance to the farthest vertex that some path leads to, edges leading either way."""
    both = edges if not edges.directed else replace(edges, directed=False)
    found = [levels(both, [vertex]) for vertex in range(edges.vertices)]
    return np.array([level.max() for level in found], np.int64)


def hyperball(edges: EdgeList, log2m: int, seed: int) -> tuple[Integers, Floats]:
    """Plain HyperLogLog: registers of the vertices within every distance, (t, v, m), and Ertl's estimates, (t, v)."""
    mask, steps = (1 << 64) - 1, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)

    def mixed(x: int) -> int:
        x = (x ^ x >> 30) * steps[1] & mask
        x = (x ^ x >> 27) * steps[2] & mask
        return x ^ x >> 31

    size = 1 << log2m
    balls = np.zeros((edges.vertices, size), dtype=np.int64)
    for v in range(edges.vertices):
        number = mixed((v * steps[0] + mixed((seed + steps[0]) & mask)) & mask)
        rest = number >> log2m
        balls[v, number % size] = min(48, (rest & -rest).bit_length() or 48)
    found = [balls]
    while len(found) == 1 or not np.array_equal(found[-1], found[-2]):
        balls = found[-1].copy()
        for u, v in zip(*(side.tolist() for side in edges.arcs[:2]), strict=True):
            balls[v] = np.maximum(balls[v], found[-1][u])
        found.append(balls)
    registers = np.array(found[:-1])
    share = (registers == 0).mean(axis=2)
    sigma = share + sum(share ** (2**k) * 2 ** (k - 1) for k in range(1, 40))
    sums = size * sigma + np.where(registers > 0, 0.5 ** registers.astype(float), 0.0).sum(axis=2)
    estimates = size**2 / (2 * np.log(2) * sums)
    estimates[0] = 1.0
    return registers, np.maximum.accumulate(np.where((registers == registers[0]).all(axis=2), 1.0, estimates))


def label_propagation(edges: EdgeList, rounds: int = 10) -> Integers:
    """LDBC's CDLP: the most frequent label of in- and out-neighbors, the smallest of several; own id at first."""
    back = edges.reversed().rows if edges.directed else None
    labels = list(range(edges.vertices))
    for _ in range(rounds):
        fresh = []
        for v in range(edges.vertices):
            heard: Counter[int] = Counter()
            for offsets, neighbors, _weights in [edges.rows, *([back] if back else [])]:
                heard.update(labels[u] for u in neighbors[offsets[v] : offsets[v + 1]].tolist())
            fresh.append(min(heard, key=lambda one: (-heard[one], one)) if heard else labels[v])
        labels = fresh
    return np.array(labels, dtype=np.int64)


def modularity(edges: EdgeList, groups: Integers, *, weighted: bool, resolution: float = 1.0) -> float:
    """Newman and Girvan's, by its definition on the dense matrix with directions ignored; 0 without edges."""
    dense = undirected_matrix(edges, weighted=weighted)
    strength = dense.sum(axis=0)
    if not strength.sum():
        return 0.0
    together = groups[:, None] == groups[None, :]
    return float((dense - resolution * np.outer(strength, strength) / strength.sum())[together].sum() / strength.sum())


def undirected_matrix(edges: EdgeList, *, weighted: bool) -> Floats:
    """Entry (u, v): the weights between u and v, of a loop twice; of a directed graph those of either direction."""
    dense = matrix(edges, weighted=weighted)
    return dense + dense.T if edges.directed else dense + np.diag(np.diag(dense))


def are_connected(edges: EdgeList, community: Integers, *, weighted: bool = True) -> bool:
    """Whether every community hangs together by edges of its own (of a weight above 0), directions ignored."""
    joined = undirected_matrix(edges, weighted=weighted) > 0
    for name in set(community.tolist()):
        members = np.flatnonzero(community == name)
        reached, rest = {int(members[0])}, [int(members[0])]
        while rest:
            near = set(members[joined[rest.pop(), members]].tolist()) - reached
            reached |= near
            rest += near
        if len(reached) < len(members):
            return False
    return True


def check_communities(
    edges: EdgeList, community: Integers, *, weighted: bool, resolution: float = 1.0, directed: bool = False
) -> None:
    """Communities are named by their smallest vertices, none is better joined with another, and each has an edge."""
    firsts = {int(name): int(np.flatnonzero(community == name)[0]) for name in community}
    assert all(name == first for name, first in firsts.items())
    dense = undirected_matrix(edges, weighted=weighted)
    names, number = np.unique(community, return_inverse=True)
    member = np.eye(len(names))[number]
    between, strength = member.T @ dense @ member, member.T @ dense.sum(axis=0)
    assert all(np.count_nonzero(number == at) == 1 for at in np.flatnonzero(strength == 0))
    gain = between - resolution * np.outer(strength, strength) / max(1.0, strength.sum())
    np.fill_diagonal(gain, 0.0)
    assert gain.max(initial=0.0) <= 1e-4 * strength.sum()


def triangles(edges: EdgeList) -> Integers:
    """Triangles that each vertex is in, direction ignored, parallel edges and self-loops too."""
    near = neighbor_sets(edges)
    return np.array([sum(len(near[u] & near[v]) for u in near[v]) // 2 for v in range(edges.vertices)], dtype=np.int64)


def trussness(edges: EdgeList) -> Integers:
    """The largest k of a k-truss that each vertex is in: edges of fewer than k - 2 triangles go, one by one."""
    near = [set(some) for some in neighbor_sets(edges)]
    found = np.zeros(edges.vertices, np.int64)
    k = 2
    while any(near):
        weak = [(u, v) for u in range(edges.vertices) for v in near[u] if u < v and len(near[u] & near[v]) < k - 2]
        if not weak:
            found[[v for v, some in enumerate(near) if some]] = k
            k += 1
        for u, v in weak[:1]:
            near[u].discard(v)
            near[v].discard(u)
    return found


def clustering(edges: EdgeList) -> Floats:
    """LDBC's LCC: edges from one neighbor to another over k (k - 1), k the distinct neighbors; 0 below two."""
    near = neighbor_sets(edges)
    leads: list[set[int]] = [set() for _ in range(edges.vertices)]
    for u, v in zip(*(side.tolist() for side in edges.arcs[:2]), strict=True):
        leads[u].add(v)
    found = np.zeros(edges.vertices)
    for v, around in enumerate(near):
        if len(around) > 1:
            found[v] = sum(len((leads[u] & around) - {u}) for u in around) / (len(around) * (len(around) - 1))
    return found


EPSILON = 0.0001
"""The relative difference that LDBC Graphalytics allows in PR, LCC and SSSP."""


def check_graphalytics(rule: str, got: Mapping[int, str], right: Mapping[int, str]) -> None:
    """Graphalytics' validation of an output, id -> value as text, by the rule of its algorithm.

    exact (BFS, CDLP): equal integers. equivalence (WCC): the same sets of vertices, whatever their labels. epsilon (PR,
    LCC, SSSP): within EPSILON of the reference, relatively; infinity only where the reference has it.
    """
    assert got.keys() == right.keys(), "not the same vertices"
    if rule == "equivalence":
        pairs = {(got[v], right[v]) for v in got}
        assert len(pairs) == len({one for one, _ in pairs}) == len({one for _, one in pairs}), "other sets"
        return
    for v in sorted(right):
        if rule == "exact":
            assert int(got[v]) == int(right[v]), f"{v} has {got[v]}, not {right[v]}"
        else:
            one, other = float(got[v]), float(right[v])
            near = one == other or abs(one - other) <= EPSILON * abs(other)
            assert near, f"{v} has {one}, not {other} within {EPSILON}"


def factorize(
    edges: EdgeList, first: Floats, epochs: int, *, rate: float, momentum: float, regularization: float
) -> tuple[Floats, list[float]]:
    """Gradient descent on undirected ratings, dense: vectors (vertices, rank + 1, bias last) and each epoch's RMSE.

    Every number steps by rate * gradient / (curvature + regularization), plus `momentum` of its last step.
    """
    sources, targets, weights = edges.arcs
    assert weights is not None
    known = np.zeros((edges.vertices, edges.vertices))
    ratings = np.zeros_like(known)
    known[targets, sources], ratings[targets, sources] = 1.0, weights.astype(np.float64)
    mean = float(weights.astype(np.float64).mean())
    vectors, velocity, errors = first.copy(), np.zeros_like(first), []
    for _ in range(epochs):
        factors, bias = vectors[:, :-1], vectors[:, -1]
        error = known * (ratings - mean - bias[:, None] - bias[None, :] - factors @ factors.T)
        errors.append(float(np.sqrt((error**2).sum() / known.sum())))
        gradient = np.column_stack([error @ factors, error.sum(axis=1)]) - regularization * vectors
        curvature = np.column_stack([known @ factors**2, known.sum(axis=1)]) + regularization
        velocity = momentum * velocity + rate * gradient / curvature
        vectors = vectors + velocity
    return vectors, errors


def near(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-9)


def same(got: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(right_signed(got), wanted)


def right_signed(values: Any) -> Any:
    """The mark for "not reached" as -1."""
    values = np.asarray(values)
    return np.where(values == np.iinfo(values.dtype).max, -1, values.astype(np.int64))


def check_widest(edges: EdgeList, fields: Mapping[str, Any]) -> None:
    width = fields["width"]
    none, all_of_it = (-np.inf, np.inf) if width.dtype.kind == "f" else (-1, 2**63 - 1)
    wanted = [none if one is None else all_of_it if one == np.inf else one for one in widths(edges, SOURCE)]
    assert width.tolist() == wanted


def check_distances(edges: EdgeList, fields: Mapping[str, Any]) -> None:
    assert list(fields) == [f"distance_{OTHER}", f"distance_{SOURCE}"]
    for source in (OTHER, SOURCE):
        check_sssp(edges, source, fields[f"distance_{source}"])


def check_hits(edges: EdgeList, fields: Mapping[str, Any]) -> None:
    hub, authority = hits(edges, weighted=True)
    near(fields["hub"], hub)
    near(fields["authority"], authority)


def check_closeness(edges: EdgeList, fields: Mapping[str, Any]) -> None:
    """Estimates from 3 vertices; exact in graphs that have no more."""
    drawn = np.random.default_rng(0).choice(edges.vertices, min(3, edges.vertices), replace=False)
    near(fields["closeness"], closeness(edges, drawn.tolist(), weighted=True))


def check_harmonic(edges: EdgeList, fields: Mapping[str, Any]) -> None:
    wanted = np.full(edges.vertices, -np.inf)
    wanted[[SOURCE, OTHER]] = harmonic(edges, weighted=True)[[SOURCE, OTHER]]
    assert np.allclose(fields["harmonic"], wanted, rtol=1e-9, atol=0)


def check_hyperball(edges: EdgeList, fields: Mapping[str, Any]) -> None:
    registers, sizes = hyperball(edges, 4, 7)
    grown = np.diff(sizes, axis=0)
    steps = np.arange(1, len(sizes))[:, None]
    near(fields["harmonic"], (grown / steps).sum(axis=0))
    near(fields["reachable"], np.minimum(sizes[-1], edges.vertices))
    total, others = (grown * steps).sum(axis=0), np.minimum(sizes[-1], edges.vertices) - 1
    wanted = np.divide(others**2, total, out=np.zeros(edges.vertices), where=total > 0)
    near(fields["closeness"], wanted / max(1, edges.vertices - 1))
    moved = np.diff(registers, axis=0).any(axis=2) * steps
    same(fields["farthest"], moved.max(axis=0, initial=0))


def check_degrees(edges: EdgeList, fields: Mapping[str, Any]) -> None:
    out, into = degrees(edges)
    same(fields["out_degree"], out)
    same(fields["in_degree"], into)
    same(fields["degree"], out + into if edges.directed else out)


def check_embedding(edges: EdgeList, fields: Mapping[str, Any]) -> None:
    """FastRP by dense matrices, of splitmix64's hashes."""
    mask, steps = (1 << 64) - 1, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)

    def mixed(x: int) -> int:
        x = ((x ^ x >> 30) * steps[1]) & mask
        x = ((x ^ x >> 27) * steps[2]) & mask
        return x ^ x >> 31

    part, wanted = np.zeros((edges.vertices, 5)), np.zeros((edges.vertices, 5))
    for v in range(edges.vertices):
        first = mixed((v * steps[0] + mixed((3 + steps[0]) & mask)) & mask)
        for k in range(5):
            sixth = mixed((first + (k + 1) * steps[0]) & mask) * 6 >> 64
            part[v, k] = 3**0.5 * ((sixth == 0) - (sixth == 1))
    dense = matrix(edges, weighted=True)
    both = dense + dense.T if edges.directed else dense
    totals = both.sum(axis=1, keepdims=True)
    for share in (0.5, 0.0, 2.0):
        part = np.divide(both @ part, totals, out=np.zeros_like(part), where=totals > 0)
        length = np.linalg.norm(part, axis=1, keepdims=True)
        wanted += np.divide(share * part, length, out=np.zeros_like(part), where=length > 0)
    assert np.allclose(fields["embedding"], wanted, rtol=0, atol=1e-4)


def check_strength(edges: EdgeList, fields: Mapping[str, Any]) -> None:
    dense = matrix(edges, weighted=True)
    near(fields["out_strength"], dense.sum(axis=1))
    near(fields["in_strength"], dense.sum(axis=0))
    near(fields["strength"], dense.sum(axis=1) + (dense.sum(axis=0) if edges.directed else 0))


def check_forest(edges: EdgeList, fields: Mapping[str, Any]) -> None:
    parent, weight = spanning_forest(edges)
    same(fields["parent"], parent)
    assert np.array_equal(fields["weight"], weight)


def check_bridges(edges: EdgeList, fields: Mapping[str, Any]) -> None:
    toward, component = bridges(edges)
    same(fields["bridge_to"], toward)
    same(fields["component"], component)


def check_articulation(edges: EdgeList, fields: Mapping[str, Any]) -> None:
    blocks, top, component = articulation(edges)
    same(fields["blocks"], blocks)
    same(fields["articulation"], blocks > 1)
    same(fields["top"], top)
    same(fields["component"], component)


def check_diameter(edges: EdgeList, fields: Mapping[str, Any]) -> None:
    """Bounds of every vertex, and the diameter itself."""
    wanted, low, high = eccentricities(edges), fields["at_least"], fields["at_most"]
    assert np.all(low <= wanted)
    assert np.all(wanted <= high)
    assert low.max(initial=0) == wanted.max(initial=0) == high.max(initial=0)


Case = tuple[Mapping[str, Any], Callable[[EdgeList, Mapping[str, Any]], None]]
CASES: dict[str, Case] = {
    "bfs": ({"source": [SOURCE, OTHER]}, lambda e, f: same(f["level"], levels(e, [SOURCE, OTHER]))),
    "reachability": (
        {"source": [SOURCE, OTHER]},
        lambda e, f: same(f["reached"], levels(e, [SOURCE, OTHER]) >= 0),
    ),
    "widest": ({"source": SOURCE}, check_widest),
    "distances": ({"source": [OTHER, SOURCE]}, check_distances),
    "pagerank": (
        {"damping": 0.6, "tol": 1e-12, "max_iter": 1000},
        lambda e, f: check_pagerank(e, f["rank"], damping=0.6, weighted=True),
    ),
    "katz": (
        {"alpha": 1e-4, "tol": 1e-13},
        lambda e, f: near(f["katz"], katz(e, alpha=1e-4, weighted=True)),
    ),
    "eigenvector": (
        {"tol": 1e-13},
        lambda e, f: near(f["eigenvector"], eigenvector(e, weighted=True)),
    ),
    "php": (
        {"source": SOURCE, "damping": 0.5, "tol": 1e-12},
        lambda e, f: near(f["php"], penalized_hitting(e, SOURCE, 0.5)),
    ),
    "adsorption": (
        {"source": {SOURCE: 2.0, OTHER: 1.0}, "alpha": 0.4, "tol": 1e-12},
        lambda e, f: near(f["score"], adsorption(e, {SOURCE: 2.0, OTHER: 1.0}, 0.4)),
    ),
    "hits": ({"tol": 1e-13}, check_hits),
    "degrees": ({}, check_degrees),
    "strength": ({}, check_strength),
    "coreness": ({}, lambda e, f: same(f["core"], coreness(e))),
    "kcore": ({"k": 4}, lambda e, f: same(f["member"], coreness(e) >= 4)),
    "mis": ({}, lambda e, f: check_independent_set(e, f["member"])),
    "coloring": ({}, lambda e, f: check_coloring(e, f["color"])),
    "msf": ({}, check_forest),
    "bridges": ({}, check_bridges),
    "articulation": ({}, check_articulation),
    "diameter": ({}, check_diameter),
    "scc": ({}, lambda e, f: same(f["component"], strong_components(e))),
    "betweenness": (
        {"source": [SOURCE, OTHER], "raw": True},
        lambda e, f: near(f["betweenness"], dependencies(e, SOURCE) + dependencies(e, OTHER)),
    ),
    "closeness": ({"k": 3}, check_closeness),
    "harmonic": ({"source": [SOURCE, OTHER]}, check_harmonic),
    "hyperball": ({"log2m": 4, "seed": 7}, check_hyperball),
    "fastrp": ({"dimension": 5, "steps": [0.5, 0.0, 2.0], "seed": 3}, check_embedding),
    "cdlp": ({}, lambda e, f: same(f["label"], label_propagation(e))),
    "triangles": ({}, lambda e, f: same(f["triangles"], triangles(e))),
    "trussness": ({}, lambda e, f: same(f["truss"], trussness(e))),
    "lcc": ({}, lambda e, f: near(f["lcc"], clustering(e))),
}
"""The programs: parameters for the graph `program_cases.tangle`, and what holds the fields of the answer against it."""
