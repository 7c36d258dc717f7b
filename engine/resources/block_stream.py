"""The stream of a list's edges: blocks of edges in the order of the input, which belong to no row (`Graph.layout`).

A block is wanted where a vertex among the bounds of its sources is active (of its targets, where messages go against
the edges): a chunk or partition without a wanted block is neither read nor copied, and kernels pass over the others.
X-Stream (Roy, Mihailovic, Zwaenepoel, SOSP 2013) reads all edges in every iteration; skipping by bounds is GridGraph's
and WolfGraph's. Refuses, before anything is read, programs on whole rows, options that choose rows, and ranks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from penstock.engine.kernels.interface import WAYS, WaysName
from penstock.engine.program.program import Program, needs_rows
from penstock.engine.resources.config import Config
from penstock.engine.resources.edge_stream import EdgeStream
from penstock.engine.resources.requirements_types import row_index_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.format.schema import LIST_BLOCK
from penstock.transfer.values.rates import LINE_BYTES
from penstock.transfer.values.task import Demand, whole_demand

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.kernels.interface import BlockKernels, Kernels
    from penstock.engine.state.device_state import VertexState
    from penstock.engine.state.state import Frontier
    from penstock.storage.format.graph import Graph

ROW_ROUTES = ("compaction", "blocks", "cel")
"""Routes that bring single rows."""
BLOCK_BYTES = 32
"""For each block of edges: bounds of its vertices, whether it is wanted, and what is computed on the way."""


@dataclass
class BlockStream(EdgeStream):
    """Edges of a list.

    index: of the degrees of the vertices that send. spans: uint32 (blocks, 4), least and greatest source, least and
    greatest target. ways: which ways messages go.
    """

    spans: NDArray[np.uint32] = field(default_factory=lambda: np.zeros((0, 4), np.uint32))
    ways: WaysName = "forward"

    @property
    def scans(self) -> bool:
        """True: wherever in the list the edges of a small frontier are, all blocks around them are read."""
        return True

    def slight(self, frontier: Frontier) -> bool:
        """No frontier is: its edges are not in rows of their own."""
        return False

    def _is_packable(self, kernels: Kernels[Any]) -> bool:
        return False

    def _demand(
        self, kernels: Kernels[Any], state: VertexState, frontier: Frontier, scalars: tuple[Any, ...]
    ) -> Demand:
        table, blocks = self.directory.table, cast("BlockKernels[Any]", kernels)
        if frontier.everything:
            blocks.choose_blocks(None)
            if self._sweep is None:
                demand = whole_demand(table, edge_bytes=self.edge_bytes, with_weights=self.with_weights)
                self._sweep = replace(demand, packable=False)
            if self.resident:
                return self._totals(frontier.vertices, table.edges, 0)
            return self._sweep
        wanted = wanted_blocks(kernels.marks(state), self.spans, self.ways)
        blocks.choose_blocks(wanted)
        if self.resident:
            return self._totals(frontier.vertices, int(np.count_nonzero(wanted)) * LIST_BLOCK, 0)
        counts = count_wanted(wanted, table.e0, table.e1)
        edges = np.minimum(counts * LIST_BLOCK, table.lengths)
        firsts = np.arange(0, table.edges, self.chunk_edges, dtype=np.int64)
        chunks = count_wanted(wanted, firsts, np.minimum(firsts + self.chunk_edges, table.edges)) > 0
        lines = -(-edges * self.edge_bytes // LINE_BYTES)
        found = chunks.astype(np.uint8)
        pending = edges.astype(np.float64)
        return Demand(self.key, counts, edges, lines, pending, found, self.with_weights, packable=False)


def wanted_blocks(words: NDArray[Any], spans: NDArray[np.uint32], ways: WaysName) -> NDArray[np.bool_]:
    """Which blocks may have an edge of an active vertex, bool (blocks,); words: the bitmap of the active vertices.

    A word of the bitmap counts as a whole, so some blocks are wanted that have none.
    """
    bits = np.uint32((8 * words.dtype.itemsize).bit_length() - 1)
    before = np.zeros(len(words) + 1, np.int64)
    np.cumsum(words != 0, out=before[1:])
    forward, reverse, _ = WAYS[ways]
    wanted = np.zeros(len(spans), np.bool_)
    for used, low in ((forward, 0), (reverse, 2)):
        if used:
            wanted |= before[(spans[:, low + 1] >> bits) + np.int64(1)] != before[spans[:, low] >> bits]
    return wanted


def count_wanted(wanted: NDArray[np.bool_], e0: NDArray[np.int64], e1: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many wanted blocks have edges among [e0, e1), int64 like these."""
    before = np.zeros(len(wanted) + 1, np.int64)
    np.cumsum(wanted, out=before[1:])
    found: NDArray[np.int64] = before[-(-e1 // LIST_BLOCK)] - before[e0 // LIST_BLOCK]
    return found


def list_bytes(graph: Graph) -> int:
    """Bytes that a run keeps of a list beside its edges: an index of degrees, and the bounds of blocks."""
    return row_index_bytes(graph.vertices) + BLOCK_BYTES * -(-graph.edges // LIST_BLOCK)


def check_listed(graph: Graph, program: Program) -> None:
    """Refuse a program that a list cannot serve. Raises InputError."""
    if needs_rows(program):
        raise InputError(f"{_name(graph)}: {type(program).__name__} works on whole rows; {_way_out(graph)}")


def check_options(graph: Graph, config: Config, ranks: int) -> None:
    """Refuse options that need rows. Raises InputError."""
    if config.direction == "pull":
        why, way_out = "pulling reads the rows of receiving vertices", "leave out --direction pull"
    elif config.route in ROW_ROUTES:
        why, way_out = f"route {config.route} brings the rows of active vertices", "use --route auto"
    elif config.tuning.local_rounds:
        why, way_out = "local rounds walk the rows of a partition again", "leave out local_rounds"
    elif config.tuning.layers:
        why, way_out = "layers are runs of rows", "leave layers out"
    elif ranks > 1:
        why, way_out = "ranks own rows", "run it in one process"
    else:
        return
    raise InputError(f"{_name(graph)}: {why}; {way_out}, or {_way_out(graph)}")


def _name(graph: Graph) -> str:
    """How messages call a list, and what it is."""
    return f"{graph.path or 'the graph'} has its edges in the order of the input"


def _way_out(graph: Graph) -> str:
    return f"sort it: penstock convert {graph.path or 'GRAPH.h5'} SORTED.h5"
