"""Levels of `louvain` and `leiden` whose rows fit in memory, run on cores: the phases of a level, with no session.

`local_moves.py` and `refinement.py` say what a phase computes, and the loops of `communities.py` compute it, of those
rows alone that a sweep looks at. Levels on which a session would take longer to begin than to run take milliseconds so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.jit import use_workers
from penstock.engine.kernels.host.whole_rows import communities as kernels
from penstock.engine.program.program import Program
from penstock.engine.programs.local_moves import (
    CommunityLevel,
    GainSweep,
    LeavingStrengths,
    LocalMoves,
    Moved,
    Strengths,
)
from penstock.engine.programs.modular_gain import Search
from penstock.engine.programs.refinement import Refinement
from penstock.engine.state.state import fields_for
from penstock.storage.base.threads import pooled_map
from penstock.storage.companion.job_compiler import listed_job
from penstock.storage.companion.process import offer
from penstock.storage.convert.contract import Grouping
from penstock.storage.format.graph import Adjacency, Graph

SMALL = 1 << 14
"""Edges up to which one thread is faster than several that are woken."""
VERTEX_BYTES = 96
"""Memory for a vertex: row starts, fields of a level, its group, and of each group the members and bounds."""
DIRECTED_BYTES = 40
"""The same for balances where gains follow directions, and their sums, of this level and the next."""
EDGE_BYTES = 36
"""Memory for an edge beside its ids and amount: the first rows stay, and while rows are contracted there are more."""
Rows = tuple[NDArray[np.int64], NDArray[Any], NDArray[np.int64]]
"""Where rows begin, neighbors, whole amounts; no amounts: each is 1."""


class RowsInMemory:
    """A graph, and its rows with the neighbors of both directions.

    loop: how often a self-loop counts whose amount is in them once.
    """

    def __init__(self, graph: Graph, rows: Rows, loop: int, threads: int) -> None:
        self.graph, self._rows, self._loop, self._threads = graph, rows, loop, threads
        self._loops, self._leaving = np.zeros(graph.vertices, np.int64), np.empty(0, np.int64)
        longest = int(np.diff(rows[0]).max(initial=0))
        self._slots = threads if len(rows[1]) > SMALL else 1
        self._sums = np.zeros((self._slots, graph.vertices + 1), np.int64)
        self._seen = np.empty((self._slots, longest + 1), graph.vertex_dtype)

    @staticmethod
    def bytes_for(graph: Graph, search: Search, threads: int) -> int:
        """Bytes that all levels of a graph take."""
        edges = sum(one.edges for one in graph.adjacencies)
        ids = graph.vertex_dtype.itemsize
        vertex = VERTEX_BYTES + (DIRECTED_BYTES if search.directed else 0) + threads * (8 + ids)
        return edges * (2 * ids + 2 * 8 + EDGE_BYTES) + graph.vertices * vertex

    @classmethod
    def of(cls, graph: Graph, search: Search, threads: int) -> RowsInMemory:
        """Read a graph in rows. Raises RunError where it cannot be read."""
        use_workers(threads)
        amounts = Grouping(np.empty(0, np.int64), 0, search.scale).whole if search.by_weight else None
        rows = _read(graph.out, amounts, threads)
        if not graph.directed:
            return cls(graph, rows, 2, threads)
        assert graph.into is not None, "programs along both directions need both"
        others = _read(graph.into, amounts, threads)
        leaving = np.empty(graph.vertices if search.directed else 0, np.int64)
        kernels.sum_rows(threads, len(leaving), rows, 1, leaving, np.empty_like(leaving))
        offsets = rows[0] + others[0]
        joined = np.empty(int(offsets[-1]), rows[1].dtype), np.empty(len(rows[2]) + len(others[2]), np.int64)
        kernels.join_rows(threads, graph.vertices, rows, others, offsets, joined)
        found = cls(graph, (offsets, *joined), 1, threads)
        found._leaving = leaving
        return found

    def contracted(self, grouping: Grouping) -> RowsInMemory:
        """The rows of the graph of groups, as `contract` makes it, from rows whose amounts are already whole."""
        groups, (offsets, neighbors, _) = grouping.groups, self._rows
        dtype = np.dtype(np.uint32 if groups <= 1 << 32 else np.uint64)
        begins, bounds = np.zeros(groups + 1, np.int64), np.zeros(groups + 1, np.int64)
        members = np.empty(np.count_nonzero(grouping.group < groups), neighbors.dtype)
        kernels.list_members(grouping.group, groups, offsets, begins, members, bounds)
        made = np.empty(int(bounds[-1]), dtype), np.empty(int(bounds[-1]), np.int64)
        counts, seen = np.empty(groups, np.int64), np.empty((self._slots, groups + 1), dtype)
        parts = grouping.group, begins, members, bounds
        self._shared(
            kernels.contract_rows, self._slots, self._rows, self._loop, parts, (self._sums, seen), made, counts
        )
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        kept = np.empty(int(starts[-1]), dtype), np.empty(int(starts[-1]), np.int64)
        kernels.copy_rows_together(self._slots, groups, bounds, starts, made, kept)
        graph = Graph.from_arrays(starts, *kept, directed=False)
        return RowsInMemory(graph, (starts, *kept), 2, self._threads)

    def run(self, program: CommunityLevel) -> dict[str, NDArray[Any]]:
        """The answer of a level."""
        state = fields_for(program, self.graph.vertices, self.graph.vertex_dtype)
        for phase in program.phases(self.graph, state):
            self._run(phase, state)
        return program.finish(self.graph, state)

    def _run(self, phase: Program, state: dict[str, NDArray[Any]]) -> None:
        """What a session would do."""
        if isinstance(phase, Strengths):
            vertices = self.graph.vertices
            kernels.sum_rows(self._slots, vertices, self._rows, self._loop, state["strength"], self._loops)
        elif isinstance(phase, LeavingStrengths):
            state["balance"][:] = self._leaving
        elif isinstance(phase, Moved):
            moved = phase.moved.astype(state["community"].dtype)
            changes = np.zeros(self._threads_for(moved), np.int64)
            values = tuple(state[name] for name in ("community", "before", "due"))
            self._shared(kernels.mark_neighbors, len(changes), moved, self._rows, *values, changes)
            state["change"][0] = phase.told + changes.sum()
        elif isinstance(phase, LocalMoves):
            listed, found = self._look(phase, state, kernels.best_groups, (state["community"],))
            state["community"][listed] = found
            state["change"][0] = self._loops[listed].sum()
        else:
            assert isinstance(phase, Refinement), "a level has five kinds of phases"
            values = tuple(state[name] for name in ("part", "community", "joinable"))
            listed, found = self._look(phase, state, kernels.best_parts, values)
            state["part"][listed] = found

    def _look(
        self, phase: GainSweep, state: dict[str, NDArray[Any]], kernel: Callable[..., Any], values: tuple[Any, ...]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The vertices that are chosen, and the group that each joins."""
        listed, none = np.flatnonzero(state["chosen"]).astype(values[0].dtype), np.empty(0, np.int64)
        values = *values, tuple(state.get(name, none) for name in ("strength", "total", "balance", "balances"))
        found, gains = np.empty_like(listed), (np.int64(phase.fine), phase.rate)
        threads = self._threads_for(listed)
        self._shared(kernel, threads, listed, self._rows, values, gains, (self._sums, self._seen), found)
        return listed, found

    def _threads_for(self, listed: NDArray[Any]) -> int:
        """How many threads rows of these vertices are worth."""
        if self._slots == 1:
            return 1
        begins = self._rows[0]
        return 1 if int((begins[listed + 1] - begins[listed]).sum()) <= SMALL else self._slots

    @staticmethod
    def _shared(kernel: Callable[..., Any], threads: int, *arguments: Any) -> None:
        """Run a kernel of which each thread takes a few vertices at a time."""
        kernel(threads, threads, np.zeros(1, np.int64), *arguments)


def compile_ahead(graph: Graph, threads: int, memory_bytes: int) -> None:
    """Let a second process compile what contracts rows, once a kernel is missing: sorting takes long to compile."""

    def describe() -> dict[str, Any]:
        ids, numbers, table = np.zeros(1, graph.vertex_dtype), np.zeros(1, np.int64), np.zeros((1, 1), np.int64)
        rows, made, seen = (numbers, ids, numbers), (ids, numbers), np.zeros((1, 1), ids.dtype)
        parts = ids, numbers, ids, numbers
        return listed_job(
            [
                (kernels.contract_rows, 1, 1, 1, (numbers, rows, 0, parts, (table, seen), made, numbers)),
                (kernels.copy_rows_together, 1, 1, 1, (numbers, numbers, made, made)),
                (kernels.list_members, ids, 1, numbers, numbers, ids, numbers),
            ]
        )

    offer(describe if threads > 1 else None, memory_bytes)


def _read(adjacency: Adjacency, amounts: Callable[[NDArray[Any]], NDArray[np.int64]] | None, threads: int) -> Rows:
    """An adjacency's rows; amounts: makes those of weights, None: each edge counts 1."""
    edges, chunk = adjacency.edges, adjacency.chunk_edges
    starts = adjacency.index(threads).starts(0, adjacency.vertices + 1)
    weights = np.empty(0 if amounts is None else edges, np.int64)
    if adjacency.arrays is not None and amounts is None:
        return starts, adjacency.arrays[0], weights
    neighbors = np.empty(edges, adjacency.neighbor_dtype)

    def take(number: int) -> None:
        here = slice(number * chunk, min(edges, (number + 1) * chunk))
        neighbors[here], given = adjacency.edges_in(here.start, here.stop)
        if amounts is not None:
            assert given is not None, "edges count by weights that there are"
            weights[here] = amounts(given)

    for _ in pooled_map(take, range(-(-edges // chunk)), threads, "penstock-read-rows"):
        pass
    return starts, neighbors, weights
