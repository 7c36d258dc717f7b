"""A maximal independent set: no two neighbors in it, and every other vertex has a neighbor in it.

Luby's algorithm (SIAM J. Comput. 1986) with priorities fixed beforehand by a hash of the original ids: a vertex
that precedes all neighbors that are still undecided joins. The result is the set that a greedy walk in that order finds
(Blelloch, Fineman, Shun, SPAA 2012), however it was run. Edge direction and self-loops are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import VERTEX, Field, Program, Start
from penstock.engine.program.shuffle import SHUFFLE_BYTES, fill_hashes, shuffle
from penstock.storage.format.graph import Graph

UNDECIDED, INSIDE, OUTSIDE = 2, 1, 0
LAST = 2**64 - 1
"""The largest hash."""


class MaximalIndependentSet(Program):
    """`member` (uint32): 1 for the vertices of the set, else 0."""

    member = Field(np.uint32, fill=UNDECIDED)
    rank = Field(VERTEX, constant=True, output=False)
    combine = "min"
    message = VERTEX
    along = "both"
    working_bytes = SHUFFLE_BYTES
    by_ranges = True

    def lighter(self, graph: Graph) -> Program | None:
        """By hashes, whose vertices may be in a file without an order of all in memory."""
        return SetByHashes()

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Nobody is decided. Ranks begin at 1: what members say comes before them all."""
        shuffle(graph, state["rank"], first=1)
        return Start(everything=True)

    def send(member, rank):  # type: ignore[no-untyped-def]
        """A new member sends 0, an undecided vertex its rank."""
        return 0 if member == INSIDE else rank

    def edge(sent, source, target, rank):  # type: ignore[no-untyped-def]
        """The message along an edge, either way; along a self-loop the largest value, which has no effect."""
        return sent if source != target else rank + 1

    def cond(member):  # type: ignore[no-untyped-def]
        """Only the undecided take part."""
        return member == UNDECIDED

    def vertex(member, rank, incoming, is_active):  # type: ignore[no-untyped-def]
        """Out beside a member; in before all undecided neighbors."""
        if member != UNDECIDED:
            return member
        if incoming == 0:
            return OUTSIDE
        return INSIDE if rank < incoming else UNDECIDED

    def active(member, old_member):  # type: ignore[no-untyped-def]
        """The undecided, and new members once."""
        return member == UNDECIDED or (member == INSIDE and old_member == UNDECIDED)


class SetByHashes(MaximalIndependentSet):
    """The same by hashes in the place of ranks. The least one is 0, as what members say: its vertex is one at once."""

    rank = Field(np.uint64, constant=True, output=False)
    message = np.uint64  # type: ignore[assignment]
    working_bytes = 0
    by_ranges = True
    in_pages = True

    def lighter(self, graph: Graph) -> None:
        """There is none."""

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Nobody is decided."""
        fill_hashes(graph, state["rank"])
        return Start(everything=True)

    def send(member, rank):  # type: ignore[no-untyped-def]
        """A new member sends 0, an undecided vertex its hash."""
        return np.uint64(0) if member == INSIDE else rank

    def edge(sent, source, target):  # type: ignore[no-untyped-def]
        """The message along an edge, either way; along a self-loop the largest value, which has no effect."""
        return sent if source != target else np.uint64(LAST)

    def vertex(member, rank, incoming, is_active):  # type: ignore[no-untyped-def]
        """Out beside a member; in before all undecided neighbors, whose hashes are others: the last may be its own."""
        if member != UNDECIDED:
            return member
        if incoming == np.uint64(0):
            return OUTSIDE
        return INSIDE if rank <= incoming else UNDECIDED
