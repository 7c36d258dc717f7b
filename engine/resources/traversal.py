"""Which walks over stored edges carry a program's messages: a pure decision.

Messages may go with the edges, against them, or both ways (`Program.along`). Pushing with the edges and pulling against
them walk the out-adjacency, the two others the in-adjacency; so a graph that stores only the out-adjacency serves all
three, but each in one direction only. A list, whose edges are in the order of the input, is pushed along in one walk
that goes the ways of the program. Refuses nothing: what cannot be walked is not in the answer.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.engine.kernels.edge_ways import WaysName, ways_along
from penstock.engine.resources.direction import Direction
from penstock.transfer.values.task import Direction as AdjacencyDirection


class Traversal(NamedTuple):
    """A kernel's direction, and the adjacency it walks: "out" or "in". ways: of a list; None where edges are rows."""

    direction: Direction
    key: AdjacencyDirection
    ways: WaysName | None = None


FORWARD: dict[Direction, Traversal] = {"push": Traversal("push", "out"), "pull": Traversal("pull", "in")}
REVERSE: dict[Direction, Traversal] = {"push": Traversal("push", "in"), "pull": Traversal("pull", "out")}
TRAVERSALS = {"out": (FORWARD,), "in": (REVERSE,), "both": (FORWARD, REVERSE)}


def traversals(
    along: str, *, directed: bool, both_stored: bool, listed: bool = False
) -> dict[Direction, tuple[Traversal, ...]]:
    """For every direction that an iteration may choose, the walks that together carry all its messages.

    An undirected graph stores every edge in both its rows, so there is one walk for every `along`. With only the
    out-adjacency stored there is one direction: that of the first walk. listed: whether edges are in no rows.
    """
    if listed:
        return {"push": (Traversal("push", "out", ways_along(along, directed=directed)),)}
    if not directed:
        return {direction: (walk,) for direction, walk in FORWARD.items()}
    sides = TRAVERSALS[along]
    if both_stored:
        return {direction: tuple(side[direction] for side in sides) for direction in FORWARD}
    possible = tuple(next(walk for walk in side.values() if walk.key == "out") for side in sides)
    return {possible[0].direction: possible}
