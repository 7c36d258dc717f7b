"""Communities of large modularity that are connected: the Leiden algorithm (Traag, Waltman, van Eck, Sci. Rep. 2019).

As Louvain, but communities are refined before the graph is contracted: their vertices, alone at first, join parts of
the same community that they have an edge to, and the parts become the vertices of the smaller graph, which begins with
the communities. As in GVE-Leiden (Sahu, 2023) a vertex joins the part of largest gain, not a random one. A part is
connected: only vertices that are still alone join another, by an edge, and no part that is joined in the same sweep may
move, which a hash of the vertices decides. In the end every community is one part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import VERTEX, Field, Global, Program
from penstock.engine.programs.local_moves import MIXER, CommunityLevel, GainSweep, each_total, move, renumber
from penstock.engine.programs.louvain import Louvain
from penstock.engine.programs.modular_gain import Search

if TYPE_CHECKING:
    from penstock.storage.format.graph import Graph

MOST_SWEEPS = 16
FEW = 1024
"""A refinement ends when two sweeps move at most one vertex in so many, each."""


class Refinement(GainSweep):
    """One sweep in which vertices that are alone join parts of their communities. joined: 1 for parts of several.

    total: of part c in place c, its members' strengths together. rank: of a vertex by its original id; its first part.
    """

    part = Field(VERTEX)
    joined = Field(np.uint8, constant=True)
    community = Field(VERTEX, constant=True)
    strength = Field(np.int64, constant=True)
    total = Field(np.int64, constant=True)
    rank = Field(VERTEX, constant=True)

    def __init__(self, search: Search, graph: Graph, number: int, whole: int) -> None:
        super().__init__(search, graph, whole)
        self.salt = search.salt(-1 - number)

    def edge(part, community, target_community, source, target, weight, vertices, shift, scale):  # type: ignore[no-untyped-def]
        """Along an edge, either way: the part above the weight; from elsewhere a number that none has."""
        if source == target or community != target_community:
            return np.int64(vertices) << shift
        return (np.int64(part) << shift) | np.int64(weight * scale + 0.5)

    def vertex(  # type: ignore[no-untyped-def]
        part, strength, rank, incoming, every_total, every_joined, vertices, shift, mask, fine, rate, salt
    ):
        """The part of largest gain that stays in this sweep, if this vertex is alone and it is its turn."""
        best, gain = np.int64(part), np.int64(0)
        x = (np.int64(rank) ^ salt) & 0xFFFFFFFF
        x = (((x >> 16) ^ x) * MIXER) & 0xFFFFFFFF
        x = (((x >> 16) ^ x) * MIXER) & 0xFFFFFFFF
        if (x >> 16) & 1 == 0 or part != rank or every_joined[part] != 0:
            return best
        incoming.sort()
        at = 0
        while at < len(incoming):
            other, amount = incoming[at] >> shift, np.int64(0)
            while at < len(incoming) and incoming[at] >> shift == other:
                amount += incoming[at] & mask
                at += 1
            if amount > 0 and other != vertices:
                y = (other ^ salt) & 0xFFFFFFFF
                y = (((y >> 16) ^ y) * MIXER) & 0xFFFFFFFF
                y = (((y >> 16) ^ y) * MIXER) & 0xFFFFFFFF
                found = (amount << fine) - np.int64(rate * strength * every_total[other])
                if found > gain and ((y >> 16) & 1 == 0 or every_joined[other] != 0):
                    best, gain = other, found
        return best

    @Global(np.float64)
    def moves(part, old_part):  # type: ignore[no-untyped-def]
        """How many vertices moved."""
        return 1.0 if part != old_part else 0.0

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """After one sweep; keep what it found."""
        self.moved = int(totals["moves"])
        return True


class RefinedLevel(CommunityLevel):
    """Moves, then parts: `part` has their numbers, as `community` has those of communities. parts: how many."""

    part = Field(VERTEX)
    joined = Field(np.uint8, output=False)

    def may_run(self, graph: Graph) -> list[Program]:
        """The phases, one of each kind."""
        return [*super().may_run(graph), Refinement(replace(self.search, resolution=1.0), graph, 0, 1)]

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Strengths, sweeps of moves, sweeps of a refinement."""
        yield from super().phases(graph, state)
        part, joined, total = state["part"], state["joined"], state["total"]
        part[:] = state["rank"]
        joined[:] = 0
        each_total(total, part, state["strength"])
        before, few = part.copy(), 0
        for number in range(MOST_SWEEPS if self.whole else 0):
            sweep = Refinement(self.search, graph, number, self.whole)
            before[:] = part
            yield sweep
            for vertices in move(part, before, state["strength"], total):
                joined[part[vertices]] = 1
            few = few + 1 if sweep.moved * FEW <= graph.vertices else 0
            if few == 2:
                break

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Number communities and parts in the order of their ids."""
        found = super().finish(graph, state)
        self.parts = renumber(state["part"], state["strength"])
        return found | {"part": state["part"]}


class Leiden(Louvain):
    """`community`, connected, named by its smallest vertex. Parameters and measures: those of Louvain."""

    def level(self, search: Search, start: NDArray[Any] | None) -> CommunityLevel:
        """Moves and a refinement."""
        return RefinedLevel(search, start)
