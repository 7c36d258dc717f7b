"""Local moves of vertices between communities: one level of Louvain and Leiden, in sweeps that all devices do alike.

A vertex v with the strength k_v (the sum of its edges' weights, a self-loop twice) gains by joining community c

    k_{v,c} - resolution * k_v * K_c / 2m,

where k_{v,c} sums the weights from v to c, K_c the strengths of c's members without v, and 2m all strengths (Blondel
et al., J. Stat. Mech. 2008; resolution: Reichardt, Bornholdt, Phys. Rev. E 2006). A sweep looks at some vertices and
moves each to the community of largest gain, of several to the least id. So that neighbors do not swap places for ever,
a hash of the vertex decides in which of a few sweeps, a round, it has its turn (vertices in sets that move one after
another: Lu, Halappanavar, Kalyanaraman, Parallel Computing 2015). After the first round only neighbors of vertices that
have moved since are due (Ozaki, Tezuka, Inaba, IJCEE 2016; Traag et al., Sci. Rep. 2019): moves tell them, and what
weights within communities grow by, which is why no sweep reads all edges to know the modularity.
All moves of a sweep follow the communities as they were before it: the answer does not depend on the order in which
rows are read. Weights are whole numbers (`fixed_point`) and gains are compared as whole numbers, so that every device
finds the same.

By direction (Leicht, Newman, Phys. Rev. Lett. 2008), with b_v what leaves v less what enters, and B_c the sum of them,
the term is k_v * K_c - b_v * B_c: half of it is the strength that leaves v times what enters c, and the other way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import VERTEX, Field, Program, Start, weighted
from penstock.engine.program.vertex_ids import fill_ranks
from penstock.engine.program.vertex_ranges import ROWS, each_range, over_ranges
from penstock.engine.programs.modular_gain import (
    MOST_TURNS,
    Search,
    fine_bits,
    id_bits,
    modularity,
    squares,
    turn_of,
    turns,
)
from penstock.engine.programs.weights import Sums
from penstock.storage.base.errors import InputError

if TYPE_CHECKING:
    from penstock.storage.format.graph import Graph


class Strengths(Sums):
    """`strength`: the sum of the weights of a vertex's edges, a self-loop counted twice."""

    strength = Field(np.int64)
    accumulator = "strength"
    along = "both"

    def __init__(self, search: Search, graph: Graph) -> None:
        self.needs_weights, self.scale = search.by_weight, search.scale
        self.loop = 1 if graph.directed else 2

    def edge(source, target, weight, scale, loop):  # type: ignore[no-untyped-def]
        """Along an edge, either way: its weight; a self-loop of an undirected graph comes once."""
        amount = np.int64(weight * scale + 0.5)
        return amount * loop if source == target else amount


class LeavingStrengths(Sums):
    """`balance`: the sum of the weights of a vertex's out-edges."""

    balance = Field(np.int64)
    accumulator = "balance"
    along = "in"

    def __init__(self, search: Search) -> None:
        self.needs_weights, self.scale = search.by_weight, search.scale

    def edge(weight, scale):  # type: ignore[no-untyped-def]
        """Against an edge: its weight."""
        return np.int64(weight * scale + 0.5)


class GainSweep(Program):
    """One sweep in which all messages to a vertex, a group above a weight, tell what it gains by joining each group.

    chosen: 1 for the vertices that the sweep looks at.
    """

    combine = "all"
    message = np.int64
    along = "both"
    everywhere = True
    chosen_by = "chosen"
    max_iter = 1

    def __init__(self, search: Search, graph: Graph, whole: int) -> None:
        self.needs_weights, self.scale = search.by_weight, search.scale
        self.shift = 63 - id_bits(graph.vertices)
        self.mask = (1 << self.shift) - 1
        self.fine = fine_bits(search.resolution, whole)
        self.rate = search.resolution / max(1, whole) * 2.0**self.fine


class LocalMoves(GainSweep):
    """One sweep of moves; `change`: the weight of the self-loops of vertices that it looks at.

    total: of community c in place c, the sum of its members' strengths.
    """

    community = Field(VERTEX)
    change = Field(np.int64)
    strength = Field(np.int64, constant=True)
    total = Field(np.int64, constant=True)
    chosen = Field(np.uint8, constant=True)

    def __init__(self, search: Search, graph: Graph, whole: int) -> None:
        super().__init__(search, graph, whole)
        self.loop = 1 if graph.directed else 2

    def edge(community, source, target, weight, vertices, shift, scale, loop):  # type: ignore[no-untyped-def]
        """Along an edge, either way: the community above the weight; along a self-loop a number that none has."""
        amount = np.int64(weight * scale + 0.5)
        if source == target:
            return (np.int64(vertices) << shift) | (amount * loop)
        return (np.int64(community) << shift) | amount

    def vertex(  # type: ignore[no-untyped-def]
        community, strength, incoming, every_total, vertices, shift, mask, fine, rate
    ):
        """The community of largest gain; and the weight of self-loops."""
        own, best = np.int64(community), np.int64(community)
        mine, loops, gain = np.int64(0), np.int64(0), np.int64(0)
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
        return best, loops


class DirectedMoves(LocalMoves):
    """The same by direction; balances: of community c in place c, the sum of its members' balances."""

    balance = Field(np.int64, constant=True)
    balances = Field(np.int64, constant=True)

    def vertex(  # type: ignore[no-untyped-def]
        community, strength, balance, incoming, every_total, every_balances, vertices, shift, mask, fine, rate
    ):
        """The community of largest gain; and the weight of self-loops."""
        own, best = np.int64(community), np.int64(community)
        mine, loops, gain = np.int64(0), np.int64(0), np.int64(0)
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
                less = np.int64(rate * strength * every_total[other])
                found = (amount << fine) - less + np.int64(rate * balance * every_balances[other])
                if best == own or found > gain:
                    best, gain = other, found
        less = np.int64(rate * strength * (every_total[own] - strength))
        if gain <= (mine << fine) - less + np.int64(rate * balance * (every_balances[own] - balance)):
            best = own
        return best, loops


class Moved(Program):
    """Vertices that moved tell their neighbors: these are due, and weights within communities have grown by `change`.

    Where both ends of an edge moved, each tells the other, else one tells the change twice. A message is the change
    above four times the weight, so that it is above 0 and none is lost in a sum: what comes to no change at all would
    be no message. told: four times the strengths of those that moved, by which `change` is too large in all.
    """

    due = Field(np.uint8)
    change = Field(np.int64)
    community = Field(VERTEX, constant=True)
    before = Field(VERTEX, constant=True)
    combine = "sum"
    message = np.int64
    along = "both"
    max_iter = 1

    def __init__(self, search: Search, graph: Graph, vertices: NDArray[np.int64], told: int) -> None:
        self.needs_weights, self.scale = search.by_weight, search.scale
        self.loop = 1 if graph.directed else 2
        self.moved, self.told = vertices, told

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Those that moved."""
        return Start(active=self.moved)

    def edge(  # type: ignore[no-untyped-def]
        community, before, target_community, target_before, source, target, weight, scale, loop
    ):
        """Along an edge, either way: its weight, if both ends are now in one community; less it, if they were."""
        amount = np.int64(weight * scale + 0.5)
        if source == target:
            return 4 * amount * loop
        change = amount if target_community != target_before else 2 * amount
        if (community == target_community) == (before == target_before):
            change = np.int64(0)
        return 4 * amount + (change if community == target_community else -change)

    def vertex(due, incoming):  # type: ignore[no-untyped-def]
        """Due, unless by edges without weight alone; and the change."""
        return (1 if incoming != 0 else due), incoming


@dataclass(frozen=True)
class Beginning:
    """With which communities a level begins, and the weights within them, from both ends; None: each vertex is alone.

    balance: of vertices that are groups of others, by direction.
    """

    community: NDArray[Any] | None = None
    inner: int | None = None
    balance: NDArray[np.int64] | None = None


ALONE = Beginning()
"""Each vertex is."""


class CommunityLevel(Program):
    """Moves until they gain little: the communities of largest modularity that were seen after a round.

    community: numbers of them, from 0, and for vertices without edges `vertices`. start: what it begins with. groups:
    how many. parts: into how many vertices the graph is contracted. modularity, inner: of the communities. vertices:
    that have edges. whole: 2m.
    """

    community = Field(VERTEX)
    before = Field(VERTEX, output=False)
    change = Field(np.int64, output=False)
    strength = Field(np.int64, output=False)
    total = Field(np.int64, output=False)
    rank = Field(VERTEX, output=False)
    due = Field(np.uint8, output=False)
    chosen = Field(np.uint8, output=False)

    def __init__(self, search: Search, start: Beginning = ALONE) -> None:
        self.search, self.start_from = search, start
        self.working_bytes = 24
        self.groups = self.parts = self.vertices = self.whole = self.inner = 0
        self.modularity = math.nan

    def may_run(self, graph: Graph) -> list[Program]:
        """The phases, one of each kind."""
        search = replace(self.search, resolution=1.0)  # whether it is too large is known with the strengths
        more = [LeavingStrengths(search)] if search.directed and graph.directed else []
        moved = Moved(search, graph, np.empty(0, np.int64), 0)
        return [Strengths(search, graph), *more, self._moves(search, graph, 1), moved]

    def _moves(self, search: Search, graph: Graph, whole: int) -> LocalMoves:
        return (DirectedMoves if search.directed else LocalMoves)(search, graph, whole)

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Strengths, then sweeps."""
        community, strength, rank = (state[name] for name in ("community", "strength", "rank"))
        fill_ranks(graph, rank)
        start, self.start_from = self.start_from, ALONE
        community[:] = rank if start.community is None else start.community
        yield Strengths(self.search, graph)
        if self.search.directed and graph.directed:
            yield LeavingStrengths(self.search)
            state["balance"] *= 2
            state["balance"] -= strength
        elif self.search.directed:
            state["balance"][:] = start.balance
        each_total(state, community)
        self.whole = int(strength.sum())
        self._check(graph)
        if self.whole:
            yield from self._rounds(graph, state, start.inner)

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

    def _rounds(self, graph: Graph, state: dict[str, NDArray[Any]], inner: int | None) -> Iterator[Program]:
        """Rounds of sweeps until one gains no more than `tol`. inner: weights within communities, None: self-loops.

        As long as no round has gained, because vertices that moved in one sweep were too many, the last one is undone
        and the next has twice as many sweeps. So a level that ends as it began is one in which no move gains.
        """
        community, due, strength = (state[name] for name in ("community", "due", "strength"))
        search, count = self.search, turns(graph.edges)
        best, square, loops = community.copy(), each_square(state), 0
        due[:] = strength > 0
        changed, moved, begun = 0, False, math.nan
        for number in range(max(1, -(-search.sweeps // count))):
            for sweep in self._round(graph, state, (number, count)):
                yield sweep
                if isinstance(sweep, Moved):
                    changed, moved = changed + int(state["change"].sum()) - sweep.told, True
                elif number == 0 and inner is None:
                    loops += int(state["change"].sum())
            if number == 0:
                self.inner = loops if inner is None else inner
                self.modularity = reached = begun = modularity(self.inner, square, self.whole, search.resolution)
                changed += self.inner
            found = modularity(changed, each_square(state), self.whole, search.resolution)
            if found > self.modularity:
                self.modularity, self.inner = found, changed
                best[:] = community
            if self.modularity > begun or not moved:
                if self.modularity - reached <= search.tol or not due.any():
                    break
                reached = self.modularity
            elif count == MOST_TURNS:
                break
            else:
                count, changed, moved = 2 * count, self.inner, False
                community[:] = best
                each_total(state, community)
                due[:] = strength > 0
        community[:] = best

    def _round(
        self, graph: Graph, state: dict[str, NDArray[Any]], number: tuple[int, int]
    ) -> Iterator[LocalMoves | Moved]:
        """Sweeps in which every vertex that is due has its turn once. number: of the round, and how many sweeps."""
        community, before, due, chosen, change = (
            state[name] for name in ("community", "before", "due", "chosen", "change")
        )
        rounds, count = number
        turn = np.empty(graph.vertices, np.uint8)
        turn_of(state["rank"], self.search.salt(rounds), count, turn)
        before[:] = community
        for at in range(count):

            def choose(first: int, last: int, at: int = at) -> bool:
                part = slice(first, last)
                np.multiply(due[part], turn[part] == at, out=chosen[part])
                due[part] -= chosen[part]
                return bool(chosen[part].any())

            if not any(list(over_ranges(choose, graph.vertices))):
                continue
            change[:] = 0
            yield self._moves(self.search, graph, self.whole)
            if self.search.sweeps == 0:
                community[:] = before
                continue
            moved = np.concatenate(list(move(community, before, state)))
            if len(moved):
                change[:] = 0
                yield Moved(self.search, graph, moved, 4 * int(state["strength"][moved].sum()))
                before[moved] = community[moved]

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Number the communities in the order of their ids."""
        community, strength = state["community"], state["strength"]
        self.groups = self.parts = renumber(community, strength)
        self.vertices = int(np.count_nonzero(strength))
        return {"community": community} | {name: state[name] for name in ("balance",) if name in state}


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


class ByDirection:
    """What levels have besides where gains follow directions."""

    balance = Field(np.int64)
    balances = Field(np.int64, output=False)


def _summed(state: dict[str, NDArray[Any]]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Numbers of vertices, and where the sums of every group's are kept."""
    names = [("strength", "total"), *([("balance", "balances")] if "balances" in state else [])]
    return [(state[values], state[sums]) for values, sums in names]


def each_total(state: dict[str, NDArray[Any]], group: NDArray[Any]) -> None:
    """Set `total` to the sum of strengths of every group, and by direction `balances` to that of balances."""
    for values, sums in _summed(state):
        sums[:] = 0
        for first in range(0, len(group), ROWS):
            last = min(first + ROWS, len(group))
            np.add.at(sums, group[first:last], values[first:last])


def each_square(state: dict[str, NDArray[Any]]) -> int:
    """The sum of squares that modularity takes."""
    return squares(state["total"]) - (squares(state["balances"]) if "balances" in state else 0)


def move(group: NDArray[Any], before: NDArray[Any], state: dict[str, NDArray[Any]]) -> Iterator[NDArray[np.int64]]:
    """Bring the totals of groups up to date; yield the vertices that have moved."""

    def moved(first: int, last: int) -> NDArray[np.int64]:
        return first + np.flatnonzero(group[first:last] != before[first:last])

    for vertices in over_ranges(moved, len(group)):
        for values, sums in _summed(state):
            np.subtract.at(sums, before[vertices], values[vertices])
            np.add.at(sums, group[vertices], values[vertices])
        yield vertices
