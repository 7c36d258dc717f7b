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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import VERTEX, Field, Global, Program, weighted
from penstock.engine.program.vertex_ids import fill_ranks
from penstock.engine.program.vertex_ranges import each_range, over_ranges
from penstock.engine.programs.weights import Sums
from penstock.storage.base.errors import InputError

if TYPE_CHECKING:
    from penstock.storage.format.graph import Graph

LARGEST_GAIN = 61
"""Bits of a gain: as whole numbers, gains differ by less than an int64 holds."""
FINEST = 20
"""Bits of a gain behind the binary point, at most."""
EXACT = 50
"""Bits of 2m, at most, so that float64 counts it exactly."""
TURNS = ((1 << 14, 8), (1 << 20, 4), (math.inf, 2))
"""For graphs of fewer edges: in how many sweeps every vertex may move once."""
MIXER = 0x45D9F3B
"""Factor of a hash of 32 bits (as used by Thomas Mueller), whose products an int64 holds."""


@dataclass(frozen=True)
class Search:
    """How communities are looked for.

    resolution: above 1 for more and smaller communities. seed: of the hash. tol: a round of sweeps that
    raises modularity by no more ends a level. sweeps: most of a level. by_weight: whether edges count by their weights.
    scale: what weights are multiplied by. level: number of the level, from 0.
    """

    resolution: float
    seed: int
    tol: float
    sweeps: int
    by_weight: bool
    scale: float = 1.0
    level: int = 0

    def salt(self, number: int) -> int:
        """What distinguishes the hash of a round of sweeps."""
        return ((self.seed * 1_000_003 + self.level) * 1_000_003 + number * 40_503) & 0xFFFFFFFF


def fixed_point(graph: Graph, *, by_weight: bool) -> float:
    """A power of two by which weights are multiplied before they are rounded, so that sums of them are exact.

    1 for whole weights; others are rounded to 2m / 2^49 or, of more than 2^13 vertices, to less exact numbers: a
    message holds a community and a sum. Raises InputError for weights that are negative.
    """
    if not by_weight or graph.weight_range is None:
        return 1.0
    least, mean, _ = graph.weight_range
    if least < 0:
        raise InputError(
            f"the graph has the weight {least:g}, and modularity has no meaning for negative weights; run it with "
            "--no-weight, or leave such edges out"
        )
    bits = min(EXACT, 63 - _id_bits(graph.vertices)) - 1
    total = 2.0 * max(mean, 0.0) * graph.edges
    assert graph.weight_dtype is not None
    if total == 0 or (graph.weight_dtype.kind == "u" and total < 2.0**bits):
        return 1.0
    return 2.0 ** math.floor(bits - math.log2(total))


def _id_bits(vertices: int) -> int:
    """Bits of a community in a message, and of a number that is none."""
    return max(1, vertices.bit_length())


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


class LocalMoves(Program):
    """One sweep of moves; `inside`: the weights from a vertex to its community, as it was before the sweep.

    total: of community c in place c, the sum of its members' strengths. rank: of a vertex by its original id.
    """

    community = Field(VERTEX)
    inside = Field(np.int64)
    strength = Field(np.int64, constant=True)
    total = Field(np.int64, constant=True)
    rank = Field(VERTEX, constant=True)
    combine = "all"
    message = np.int64
    along = "both"
    everywhere = True
    max_iter = 1

    def __init__(self, search: Search, graph: Graph, number: int, whole: int) -> None:
        self.needs_weights, self.scale = search.by_weight, search.scale
        self.loop = 1 if graph.directed else 2
        self.shift = 63 - _id_bits(graph.vertices)
        self.mask = (1 << self.shift) - 1
        self.fine = fine_bits(search.resolution, whole)
        self.rate = search.resolution / max(1, whole) * 2.0**self.fine
        self.turns = turns(graph.edges)
        self.salt, self.turn = search.salt(number // self.turns), number % self.turns
        self.inner = self.moved = 0

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
        incoming.sort()
        own, best = np.int64(community), np.int64(community)
        mine, loops, gain = np.int64(0), np.int64(0), np.int64(0)
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
        x = (np.int64(rank) ^ salt) & 0xFFFFFFFF
        x = (((x >> 16) ^ x) * MIXER) & 0xFFFFFFFF
        x = (((x >> 16) ^ x) * MIXER) & 0xFFFFFFFF
        stays = (mine << fine) - np.int64(rate * strength * (every_total[own] - strength))
        if (x >> 16) % turns != turn or gain <= stays:
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


def turns(edges: int) -> int:
    """In how many sweeps every vertex may move once: more of them where few vertices could all follow each other."""
    return next(count for most, count in TURNS if edges < most)


def fine_bits(resolution: float, whole: int) -> int:
    """Bits of gains behind the binary point. Raises InputError for a resolution too large to compare gains."""
    bits = min(FINEST, LARGEST_GAIN - math.ceil(math.log2(max(1.0, resolution) * max(2, whole))))
    if bits < 0:
        raise InputError(
            f"resolution {resolution:g} is too large for edges whose weights sum to {whole // 2}; give less than "
            f"{2.0**LARGEST_GAIN / max(2, whole):.3g}"
        )
    return bits


class CommunityLevel(Program):
    """Moves until they gain little: the communities of largest modularity that were seen.

    community: numbers of them, from 0, and for vertices without edges `vertices`. groups: how many. modularity: theirs.
    first: that of vertices alone. whole: 2m. moved_any: whether a vertex has left its own.
    """

    community = Field(VERTEX)
    strength = Field(np.int64, output=False)
    total = Field(np.int64, output=False)
    rank = Field(VERTEX, output=False)

    def __init__(self, search: Search) -> None:
        self.search = search
        self.working_bytes = 12
        self.groups = self.vertices = self.whole = 0
        self.modularity = self.first = math.nan

    def may_run(self, graph: Graph) -> list[Program]:
        """The phases, one of each kind."""
        search = replace(self.search, resolution=1.0)  # whether it is too large is known with the strengths
        return [Strengths(search, graph), LocalMoves(search, graph, 0, 1)]

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Strengths, then sweeps."""
        community, strength, rank = (state[name] for name in ("community", "strength", "rank"))
        fill_ranks(graph, rank)
        community[:] = rank
        yield Strengths(self.search, graph)
        state["total"][rank] = strength
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
        bits = 63 - _id_bits(graph.vertices)
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
                self.first = self.modularity = reached = found
            elif found > self.modularity:
                self.modularity = found
                best[:] = before
            if number and number % sweep.turns == 0:
                if self.modularity - reached <= self.search.tol:
                    break
                reached = self.modularity
            _move(community, before, state["strength"], total)
        community[:] = best

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Number the communities in the order of their ids."""
        community, strength = state["community"], state["strength"]
        number = np.zeros(graph.vertices, community.dtype)
        number[community[strength > 0]] = 1
        self.groups = int(np.count_nonzero(number))
        self.vertices = int(np.count_nonzero(strength))
        np.cumsum(number, out=number)

        def rename(first: int, last: int) -> None:
            part = community[first:last]
            part[:] = np.where(strength[first:last] > 0, number[part] - 1, graph.vertices)

        each_range(rename, graph.vertices)
        return {"community": community}


def _move(community: NDArray[Any], before: NDArray[Any], strength: NDArray[np.int64], total: NDArray[np.int64]) -> None:
    """Bring the totals of communities up to date."""

    def moved(first: int, last: int) -> NDArray[np.int64]:
        return first + np.flatnonzero(community[first:last] != before[first:last])

    for vertices in over_ranges(moved, len(community)):
        np.subtract.at(total, before[vertices], strength[vertices])
        np.add.at(total, community[vertices], strength[vertices])


def modularity(inner: int, total: NDArray[np.int64], whole: int, resolution: float) -> float:
    """inner / 2m - resolution * sum of (K_c / 2m)^2, in which sums are exact (whole, 2m, is below 2^53).

    Newman, Girvan, Phys. Rev. E 2004.
    """
    half = (1 << 27) - 1

    def squares(first: int, last: int) -> int:
        high, low = total[first:last] >> 27, total[first:last] & half
        small = low * low
        return (
            (int((high * high).sum()) << 54)
            + (int((high * low).sum()) << 28)
            + (int((small >> 27).sum()) << 27)
            + int((small & half).sum())
        )

    square = sum(over_ranges(squares, len(total)))
    return inner / whole - resolution * (square / whole**2)
