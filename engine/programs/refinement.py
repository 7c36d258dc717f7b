"""Parts of communities, which are connected: the refinement of the Leiden algorithm (Traag et al., Sci. Rep. 2019).

Vertices, alone at first, join parts of the same community that they have an edge to. As in GVE-Leiden (Sahu, 2023) a
vertex joins the part of largest gain, not a random one. A part is connected: only vertices that are still alone join
another, by an edge, and no part that is joined in the same sweep may move, which a hash of the vertices decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import VERTEX, Field, Program
from penstock.engine.program.vertex_ranges import each_range, over_ranges
from penstock.engine.programs.local_moves import CommunityLevel, GainSweep, each_total, move, renumber
from penstock.engine.programs.modular_gain import Search, turn_of

if TYPE_CHECKING:
    from penstock.storage.format.graph import Graph

MOST_SWEEPS = 16
"""Sweeps of a refinement, one for each bit of a hash."""
FEW, SMALL = 1024, 1 << 14
"""A refinement of more than SMALL vertices ends when two sweeps move at most one vertex in FEW, each."""


class Refinement(GainSweep):
    """One sweep in which chosen vertices, which are alone, join parts of their communities that stay.

    joinable: for part c in place c, 1 if vertices may join it in this sweep. total: likewise, its members' strengths.
    """

    part = Field(VERTEX)
    joinable = Field(np.uint8, constant=True)
    community = Field(VERTEX, constant=True)
    strength = Field(np.int64, constant=True)
    total = Field(np.int64, constant=True)
    chosen = Field(np.uint8, constant=True)

    def edge(part, community, target_community, source, target, weight, vertices, shift, scale):  # type: ignore[no-untyped-def]
        """Along an edge, either way: the part above the weight; from elsewhere a number that none has."""
        if source == target or community != target_community:
            return np.int64(vertices) << shift
        return (np.int64(part) << shift) | np.int64(weight * scale + 0.5)

    def vertex(  # type: ignore[no-untyped-def]
        part, strength, incoming, every_total, every_joinable, vertices, shift, mask, fine, rate
    ):
        """The part of largest gain that is joinable, if this vertex is chosen."""
        best, gain = np.int64(part), np.int64(0)
        incoming.sort()
        at = 0
        while at < len(incoming):
            other, amount = incoming[at] >> shift, np.int64(0)
            while at < len(incoming) and incoming[at] >> shift == other:
                amount += incoming[at] & mask
                at += 1
            if amount > 0 and other != vertices and every_joinable[other] != 0:
                found = (amount << fine) - np.int64(rate * strength * every_total[other])
                if found > gain:
                    best, gain = other, found
        return best


class DirectedRefinement(Refinement):
    """The same by direction."""

    balance = Field(np.int64, constant=True)
    balances = Field(np.int64, constant=True)

    def vertex(  # type: ignore[no-untyped-def]
        part,
        strength,
        balance,
        incoming,
        every_total,
        every_balances,
        every_joinable,
        vertices,
        shift,
        mask,
        fine,
        rate,
    ):
        """The part of largest gain that is joinable, if this vertex is chosen."""
        best, gain = np.int64(part), np.int64(0)
        incoming.sort()
        at = 0
        while at < len(incoming):
            other, amount = incoming[at] >> shift, np.int64(0)
            while at < len(incoming) and incoming[at] >> shift == other:
                amount += incoming[at] & mask
                at += 1
            if amount > 0 and other != vertices and every_joinable[other] != 0:
                less = np.int64(rate * strength * every_total[other])
                found = (amount << fine) - less + np.int64(rate * balance * every_balances[other])
                if found > gain:
                    best, gain = other, found
        return best


class RefinedLevel(CommunityLevel):
    """Moves, then parts: `part` has their numbers, as `community` has those of communities. parts: how many."""

    part = Field(VERTEX)
    joined = Field(np.uint8, output=False)
    joinable = Field(np.uint8, output=False)

    def may_run(self, graph: Graph) -> list[Program]:
        """The phases, one of each kind."""
        return [*super().may_run(graph), self._refinement(replace(self.search, resolution=1.0), graph, 1)]

    def _refinement(self, search: Search, graph: Graph, whole: int) -> Refinement:
        return (DirectedRefinement if search.directed else Refinement)(search, graph, whole)

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Strengths, sweeps of moves, sweeps of a refinement."""
        yield from super().phases(graph, state)
        part, before, joined = (state[name] for name in ("part", "before", "joined"))
        part[:] = before[:] = state["rank"]
        joined[:] = 0
        each_total(state, part)
        side, few = np.empty(graph.vertices, np.uint16), 0
        turn_of(np.arange(graph.vertices, dtype=part.dtype), self.search.salt(-1), 1 << MOST_SWEEPS, side)
        for number in range(MOST_SWEEPS if self.whole else 0):
            if not self._choose(state, side, number):
                continue
            yield self._refinement(self.search, graph, self.whole)
            moved = 0
            for vertices in move(part, before, state):
                joined[part[vertices]] = 1
                before[vertices] = part[vertices]
                moved += len(vertices)
            few = few + 1 if moved * FEW <= graph.vertices and graph.vertices > SMALL else 0
            if few == 2:
                break

    def _choose(self, state: dict[str, NDArray[Any]], side: NDArray[np.uint16], number: int) -> bool:
        """Which vertices may move, and which parts may be joined: those of several, and alone ones that may not move.

        A part is joinable if it is joined, or by a bit of a hash of its number, which is the rank of its first vertex.
        Two hashes differ in some bit, so that of any two vertices one may join the other in some sweep.
        """
        part, joined, rank, chosen, joinable = (
            state[name] for name in ("part", "joined", "rank", "chosen", "joinable")
        )

        def choose(first: int, last: int) -> bool:
            here = slice(first, last)
            alone = (part[here] == rank[here]) & (joined[rank[here]] == 0) & (state["strength"][here] > 0)
            chosen[here] = alone & ((side[rank[here]] >> number) & 1 == 1)
            return bool(chosen[here].any())

        found = any(list(over_ranges(choose, len(part))))

        def admit(first: int, last: int) -> None:
            joinable[first:last] = ((side[first:last] >> number) & 1 == 0) | (joined[first:last] != 0)

        each_range(admit, len(part))
        return found

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Number communities and parts in the order of their ids."""
        found = super().finish(graph, state)
        self.parts = renumber(state["part"], state["strength"])
        return found | {"part": state["part"]}
