"""Which walks over stored edges carry a program's messages: a pure decision.

Messages may go with the edges, against them, or both ways (`Program.along`). Pushing with the edges and pulling against
them walk the out-adjacency, the two others the in-adjacency; so whoever stores only the out-adjacency can still do all
three, but not in the direction of his choice. Refuses nothing: what cannot be walked is not in the answer.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.engine.direction import Direction


class Walk(NamedTuple):
    """A kernel's direction, and the adjacency it walks: "out" or "in"."""

    direction: Direction
    key: str


AHEAD: dict[Direction, Walk] = {"push": Walk("push", "out"), "pull": Walk("pull", "in")}
BACK: dict[Direction, Walk] = {"push": Walk("push", "in"), "pull": Walk("pull", "out")}
SIDES = {"out": (AHEAD,), "in": (BACK,), "both": (AHEAD, BACK)}


def walks(along: str, *, directed: bool, both_stored: bool) -> dict[Direction, tuple[Walk, ...]]:
    """For every direction that an iteration may choose, the walks that together carry all its messages.

    An undirected graph holds every edge in both its rows, so there is one walk whatever `along` says. With only the
    out-adjacency stored there is one direction: that of the first walk.
    """
    if not directed:
        return {direction: (walk,) for direction, walk in AHEAD.items()}
    sides = SIDES[along]
    if both_stored:
        return {direction: tuple(side[direction] for side in sides) for direction in AHEAD}
    possible = tuple(next(walk for walk in side.values() if walk.key == "out") for side in sides)
    return {possible[0].direction: possible}
