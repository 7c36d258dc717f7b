"""Greedy coloring: neighbors get different colors, each vertex the smallest that the neighbors before it left.

The order is a hash of the original ids; a vertex waits for neighbors that come before it, then colors itself, many
at once (Jones and Plassmann, SIAM J. Sci. Comput. 1993). So the result is that of a serial greedy walk in this order,
however it was run. Colors are tried in windows of 63, one phase each; a vertex that finds a window full goes on to the
next. Edge direction and self-loops are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program import LARGEST, VERTEX, Field, Program, Start
from penstock.engine.vertices import shuffled
from penstock.storage.graph import Graph

NONE = np.uint32(2**32 - 1)
WINDOW = 63
WAITING = np.uint64(1 << 63)
"""The bit by which a vertex says that it has no color yet; the others stand for colors of the window."""
ONE = np.uint64(1)


class Coloring(Program):
    """`color` (uint32), from 0."""

    color = Field(np.uint32, fill=LARGEST)
    rank = Field(VERTEX, output=False)

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Iterator[Program]:
        """Window by window, until everybody has a color."""
        state["rank"][:] = shuffled(graph)
        first = 0
        while bool(np.any(state["color"] == NONE)):
            yield ColorWindow(first)
            first += WINDOW


class ColorWindow(Program):
    """Give colors first .. first + 62 to those without one; whoever finds them all taken stays without.

    used (uint64): bits of the colors that earlier neighbors have. waits: whether one of them may still take one.
    """

    used = Field(np.uint64)
    color = Field(np.uint32, fill=LARGEST)
    waits = Field(np.uint32, fill=1)
    rank = Field(VERTEX, constant=True)
    combine = "or"
    along = "both"

    def __init__(self, first: int) -> None:
        self.first = first

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Those without a color act; those with one of this window's have none yet."""
        without = state["color"] == NONE
        state["waits"][:] = without
        return Start(active=np.flatnonzero(without))

    def send(color, waits, first):  # type: ignore[no-untyped-def]
        """That it still waits, or the color it has just taken; nothing once it has found the window full."""
        if waits != 0:
            return WAITING
        return ONE << np.uint64(color - first) if color != NONE else np.uint64(0)

    def edge(sent, rank, target_rank):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: only those behind listen."""
        return sent if rank < target_rank else np.uint64(0)

    def wants(waits):  # type: ignore[no-untyped-def]
        """Only those who wait take part."""
        return waits != 0

    def vertex(used, color, waits, incoming, is_active, first):  # type: ignore[no-untyped-def]
        """Colors seen; the smallest free one, once nobody before it waits."""
        seen = np.uint64(used) | (np.uint64(incoming) & ~WAITING)
        if waits == 0 or np.uint64(incoming) & WAITING != 0:
            return seen, color, waits
        chosen = 0
        while chosen < WINDOW and (seen >> np.uint64(chosen)) & ONE != 0:
            chosen += 1
        return seen, (np.uint32(first + chosen) if chosen < WINDOW else color), np.uint32(0)

    def active(waits, old_waits):  # type: ignore[no-untyped-def]
        """Whoever waits, and once more whoever has just decided."""
        return waits != 0 or old_waits != 0
