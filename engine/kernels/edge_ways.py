"""Which ways messages go along the edges of a list (`Graph.layout`), where each edge is stored once, as it was given.

A pure decision. Blocks of edges can be walked from either end, so one pass over them serves every program.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

HALF, LOWER = np.uint64(32), np.uint64(0xFFFFFFFF)
"""Of a key, source << 32 | target: the bits of an end, and the target's."""
WaysName = Literal["forward", "reverse", "both", "undirected"]


class Ways(NamedTuple):
    """forward, reverse: from sources to targets, and back. loops_once: an edge from a vertex to itself goes one way."""

    forward: bool
    reverse: bool
    loops_once: bool


WAYS: dict[WaysName, Ways] = {
    "forward": Ways(forward=True, reverse=False, loops_once=False),
    "reverse": Ways(forward=False, reverse=True, loops_once=False),
    "both": Ways(forward=True, reverse=True, loops_once=False),
    "undirected": Ways(forward=True, reverse=True, loops_once=True),
}
ALONG: dict[str, WaysName] = {"out": "forward", "in": "reverse", "both": "both"}


def ways_along(along: str, *, directed: bool) -> WaysName:
    """Return the ways of a program with this `along`. An undirected edge is in the rows of both ends, a loop once."""
    return ALONG[along] if directed else "undirected"
