"""Triangles, and how near the neighbors of a vertex come to knowing each other all.

LCC follows the LDBC Graphalytics specification: N(v) are the distinct neighbors of v, in either direction, without v;
its coefficient is the number of edges from one of N(v) to another, divided by |N(v)| (|N(v)| - 1); 0 where |N(v)| < 2.
In an undirected graph every edge counts both ways, which makes it networkx's clustering. Parallel edges count once,
self-loops not at all.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.program.program import Field, Program


class Triangles(Program):
    """`triangles` (int64): how many triangles a vertex is in; edge direction is ignored."""

    triangles = Field(np.int64)
    combine = "sum"
    along = "both"

    def corner():  # type: ignore[no-untyped-def,misc]
        """What each corner of a triangle gets."""
        return 1

    def vertex(incoming):  # type: ignore[no-untyped-def]
        """The count."""
        return incoming


class LCC(Program):
    """`lcc` (float64): the local clustering coefficient, by edge direction where the graph has it."""

    lcc = Field(np.float64)
    neighbors = Field(np.int64, constant=True, output=False)
    combine = "sum"
    message = np.int64
    along = "both"

    def corner(opposite):  # type: ignore[no-untyped-def]
        """What each corner of a triangle gets: the edges between its two other corners."""
        return opposite

    def vertex(incoming, neighbors):  # type: ignore[no-untyped-def]
        """Edges among the neighbors, of those that could be."""
        return incoming / (neighbors * (neighbors - 1.0)) if neighbors > 1 else 0.0


class CountPairs(Program):
    """`linked` (int64): ordered pairs of neighbors that are neighbors; `neighbors` (int64): distinct ones."""

    linked = Field(np.int64)
    neighbors = Field(np.int64, constant=True)
    combine = "sum"
    along = "both"

    def corner(opposite):  # type: ignore[no-untyped-def]
        """What each corner of a triangle gets: the edge between its two other corners, once each way."""
        return opposite

    def vertex(incoming):  # type: ignore[no-untyped-def]
        """The count."""
        return incoming
