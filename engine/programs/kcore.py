"""Cores: what is left when vertices of too few neighbors are taken away, again and again.

Peeling in the order of the degrees that are left (Matula and Beck, J. ACM 1983), all vertices of a level at once (ParK:
Dasari, Desh, Zubair, IEEE Big Data 2014). Edge direction is ignored: a vertex has the neighbors it points to and those
that point to it, a mutual pair counting twice, as in networkx. Parallel edges count each; self-loops count nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count
from penstock.engine.program.program import Field, Program, Start
from penstock.storage.format.graph import Graph


class Coreness(Program):
    """`core` (int64): the largest k for which the vertex is in the k-core."""

    core = Field(np.int64, fill=-1)
    left = Field(np.int64, output=False)
    combine = "sum"
    along = "both"
    counts_edges = True
    starts_anywhere = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Count the neighbors of every vertex in the first iteration; then peel."""
        self.bucket = 1.0
        return Start(everything=True)

    def edge(source, target):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: one neighbor counted (first iteration), one taken away (later)."""
        return 1 if source != target else 0

    def cond(core):  # type: ignore[no-untyped-def]
        """Only vertices that are still there take part."""
        return core < 0

    def vertex(core, left, incoming, is_active, iteration, due):  # type: ignore[no-untyped-def]
        """Its core once it goes; how many neighbors are left."""
        if iteration == 0:
            return core, incoming
        return (np.int64(due) - 1 if is_active and core < 0 else core), left - incoming

    def active(iteration):  # type: ignore[no-untyped-def]
        """After the first iteration every vertex is pending until `priority` makes it due."""
        return iteration == 0

    def priority(left):  # type: ignore[no-untyped-def]
        """Fewest neighbors first."""
        return left


class KCore(Program):
    """`member` (uint32): 1 for the vertices of the k-core, else 0."""

    member = Field(np.uint32, fill=1)
    left = Field(np.int64, output=False)
    combine = "sum"
    message = np.int64
    along = "both"
    counts_edges = True

    def __init__(self, k: Count) -> None:
        self.k = k

    def edge(source, target):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: one neighbor counted (first iteration), one taken away (later)."""
        return 1 if source != target else 0

    def cond(member):  # type: ignore[no-untyped-def]
        """Only vertices that are still there take part."""
        return member != 0

    def vertex(member, left, incoming, iteration, k):  # type: ignore[no-untyped-def]
        """Whether it stays; how many neighbors are left."""
        rest = incoming if iteration == 0 else left - incoming
        return (1 if member != 0 and rest >= k else 0), rest

    def active(member, old_member):  # type: ignore[no-untyped-def]
        """A vertex that is removed sends a message to its neighbors."""
        return member != old_member
