"""Local moves of vertices between communities: one level of Louvain and Leiden, in sweeps that all devices do alike.

A vertex v with the strength k_v (the sum of its edges' weights, a self-loop twice) gains by joining community c

    k_{v,c} - resolution * k_v * K_c / 2m,

where k_{v,c} sums the weights from v to c, K_c the strengths of c's members without v, and 2m all strengths (Blondel
et al., J. Stat. Mech. 2008; resolution: Reichardt, Bornholdt, Phys. Rev. E 2006). A sweep looks at every vertex and
moves it to the community of largest gain, of several to the least id. So that neighbors do not swap places for ever, a
hash of the vertex decides in which of a few sweeps it may move (vertices in sets that move one after another: Lu,
Halappanavar, Kalyanaraman, Parallel Computing 2015). All moves of a sweep
follow the communities as they were before it: the answer does not depend on the order in which rows are read. Weights
are whole numbers (`fixed_point`) and gains are compared as whole numbers, so that every device finds the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import VERTEX, Field, Global, Program, weighted
from penstock.engine.program.vertex_ids import fill_ranks
from penstock.engine.program.vertex_ranges import ROWS, each_range, over_ranges
from penstock.engine.programs.modular_gain import Search, fine_bits, id_bits, modularity, turns
from penstock.engine.programs.weights import Sums
from penstock.storage.base.errors import InputError

if TYPE_CHECKING:
    from penstock.storage.format.graph import Graph

MIXER = 0x45D9F3B
"""Factor of a hash of 32 bits (as used by Thomas Mueller), whose products an int64 holds."""


class Strengths(Sums):
    """`strength`: the sum of the weights of a vertex's edges, a self-loop counted twice."""

    strength = Field(np.int64)
    along = "both"

    def __init__(self, search: Search, graph: Graph) -> None:
        self.needs_weights, self.scale = search.by_weight, search.scale
        self.loop = 1 if graph.directed else 2

    def edge(source, target, weight, scale, loop):  # type: ignore[no-untyped-def]
        """Along an edge, either way: its weight; a self-loop of an undirected graph comes once."""
        amount = np.int64(weight * scale + 0.5)
        return amount * loop if source == target else amount


class GainSweep(Program):
    """One sweep in which all messages to a vertex, a group above a weight, tell what it gains by joining each group."""

    combine = "all"
    message = np.int64
    along = "both"
    everywhere = True
    max_iter = 1

    def __init__(self, search: Search, graph: Graph, whole: int) -> None:
        self.needs_weights, self.scale = search.by_weight, search.scale
        self.shift = 63 - id_bits(graph.vertices)
        self.mask = (1 << self.shift) - 1
        self.fine = fine_bits(search.resolution, whole)
        self.rate = search.resolution / max(1, whole) * 2.0**self.fine
        self.moved = 0


class LocalMoves(GainSweep):
    """One sweep of moves; `inside`: the weights from a vertex to its community, as it was before the sweep.

    total: of community c in place c, the sum of its members' strengths. rank: of a vertex by its original id.
    """

    community = Field(VERTEX)
    inside = Field(np.int64)
    strength = Field(np.int64, constant=True)
    total = Field(np.int64, constant=True)
    rank = Field(VERTEX, constant=True)

    def __init__(self, search: Search, graph: Graph, number: int, whole: int) -> None:
        super().__init__(search, graph, whole)
        self.loop = 1 if graph.directed else 2
        self.turns = turns(graph.edges)
        self.salt, self.turn = search.salt(number // self.turns), number % self.turns
        self.inner = 0

    def edge(community, source, target, weight, vertices, shift, scale, loop):  # type: ignore[no-untyped-def]
        """Along an edge, either way: the community above the weight; along a self-loop a number that none has."""
        amount = np.int64(weight * scale + 0.5)
        if source == target:
            return (np.int64(vertices) << shift) | (amount * loop)
        return (np.int64(community) << shift) | amount

    def vertex(  # type: ignore[no-untyped-def]
        community, strength, incoming, every_total, rank, vertices, shift, mask, fine, rate, salt, turn, turns
    ):
        """The community of largest gain, if it is this vertex's turn; and the weight inside its own."""
        own, best = np.int64(community), np.int64(community)
        mine, loops, gain = np.int64(0), np.int64(0), np.int64(0)
        x = (np.int64(rank) ^ salt) & 0xFFFFFFFF
        x = (((x >> 16) ^ x) * MIXER) & 0xFFFFFFFF
        x = (((x >> 16) ^ x) * MIXER) & 0xFFFFFFFF
        if (x >> 16) % turns != turn:  # needs no order: sorting takes longest
            for at in range(len(incoming)):
                other = incoming[at] >> shift
                if other == own:
                    mine += incoming[at] & mask
                elif other == vertices:
                    loops += incoming[at] & mask
            return best, mine + loops
        incoming.sort()
        at = 0
        while at < len(incoming):
            other, amount = incoming[at] >> shift, np.int64(0)
            while at < len(incoming) and incoming[at] >> shift == other:
                amount += incoming[at] & mask
                at += 1
            if other == own:
                mine = amount
            elif other == vertices:
                loops = amount
            elif amount > 0:
                found = (amount << fine) - np.int64(rate * strength * every_total[other])
                if best == own or found > gain:
                    best, gain = other, found
        if gain <= (mine << fine) - np.int64(rate * strength * (every_total[own] - strength)):
            best = own
        return best, mine + loops

    @Global(np.float64)
    def inner_weight(inside):  # type: ignore[no-untyped-def]
        """The weights inside communities, from both ends: whole numbers below 2^53, whose sum is exact."""
        return inside

    @Global(np.float64)
    def moves(community, old_community):  # type: ignore[no-untyped-def]
        """How many vertices moved."""
        return 1.0 if community != old_community else 0.0

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """After one sweep; keep what it found."""
        self.inner, self.moved = int(totals["inner_weight"]), int(totals["moves"])
        return True


class CommunityLevel(Program):
    """Moves until they gain little: the communities of largest modularity that were seen.

    community: numbers of them, from 0, and for vertices without edges `vertices`. start: communities at first; None:
    each vertex is alone. groups: how many. parts: into how many vertices the graph is contracted.
    modularity: of the communities. vertices: that have edges. whole: 2m.
    """

    community = Field(VERTEX)
    strength = Field(np.int64, output=False)
    total = Field(np.int64, output=False)
    rank = Field(VERTEX, output=False)

    def __init__(self, search: Search, start: NDArray[Any] | None = None) -> None:
        self.search, self.start_from = search, start
        self.working_bytes = 12
        self.groups = self.parts = self.vertices = self.whole = 0
        self.modularity = math.nan

    def may_run(self, graph: Graph) -> list[Program]:
        """The phases, one of each kind."""
        search = replace(self.search, resolution=1.0)  # whether it is too large is known with the strengths
        return [Strengths(search, graph), LocalMoves(search, graph, 0, 1)]

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Strengths, then sweeps."""
        community, strength, rank = (state[name] for name in ("community", "strength", "rank"))
        fill_ranks(graph, rank)
        community[:] = rank if self.start_from is None else self.start_from
        self.start_from = None
        yield Strengths(self.search, graph)
        each_total(state["total"], community, strength)
        self.whole = int(strength.sum())
        self._check(graph)
        if self.whole:
            yield from self._sweeps(graph, state)

    def phase_name(self, graph: Graph, number: int) -> str:
        """``sweep 3``."""
        return f"sweep {number:,}" if number else "strengths"

    def _check(self, graph: Graph) -> None:
        """Refuse weights of which a message cannot hold the largest."""
        most = 1.0 if not weighted(self, graph) or graph.weight_range is None else graph.weight_range[2]
        bits = 63 - id_bits(graph.vertices)
        if 2 * most * self.search.scale >= 2.0**bits:
            raise InputError(
                f"a weight of {most:g} among {graph.vertices} vertices is too large: a community and a weight share 63 "
                "bits; scale the weights down"
            )

    def _sweeps(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Iterator[Program]:
        """Rounds of sweeps, in which every vertex may move once, until a round gains no more than `tol`."""
        community, total = state["community"], state["total"]
        best, before, reached = community.copy(), community.copy(), -math.inf
        for number in range(self.search.sweeps + 1):
            sweep = LocalMoves(self.search, graph, number, self.whole)
            before[:] = community
            yield sweep
            found = modularity(sweep.inner, total, self.whole, self.search.resolution)
            if number == 0:
                self.modularity = reached = found
            elif found > self.modularity:
                self.modularity = found
                best[:] = before
            if number and number % sweep.turns == 0:
                if self.modularity - reached <= self.search.tol:
                    break
                reached = self.modularity
            for _ in move(community, before, state["strength"], total):
                pass
        community[:] = best

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Number the communities in the order of their ids."""
        community, strength = state["community"], state["strength"]
        self.groups = self.parts = renumber(community, strength)
        self.vertices = int(np.count_nonzero(strength))
        return {"community": community}


def renumber(group: NDArray[Any], strength: NDArray[np.int64]) -> int:
    """Number groups from 0 in the order of their ids; vertices without edges get `vertices`. Return how many."""
    number = np.zeros(len(group), group.dtype)

    def mark(first: int, last: int) -> None:
        number[group[first:last][strength[first:last] > 0]] = 1

    each_range(mark, len(group))
    groups = int(np.count_nonzero(number))
    np.cumsum(number, out=number)

    def rename(first: int, last: int) -> None:
        part = group[first:last]
        part[:] = np.where(strength[first:last] > 0, number[part] - 1, len(group))

    each_range(rename, len(group))
    return groups


def each_total(total: NDArray[np.int64], group: NDArray[Any], strength: NDArray[np.int64]) -> None:
    """Set `total` to the sum of strengths of every group."""
    total[:] = 0
    for first in range(0, len(group), ROWS):
        last = min(first + ROWS, len(group))
        np.add.at(total, group[first:last], strength[first:last])


def move(
    group: NDArray[Any], before: NDArray[Any], strength: NDArray[np.int64], total: NDArray[np.int64]
) -> Iterator[NDArray[np.int64]]:
    """Bring the totals of groups up to date; yield the vertices that have moved."""

    def moved(first: int, last: int) -> NDArray[np.int64]:
        return first + np.flatnonzero(group[first:last] != before[first:last])

    for vertices in over_ranges(moved, len(group)):
        np.subtract.at(total, before[vertices], strength[vertices])
        np.add.at(total, group[vertices], strength[vertices])
        yield vertices
