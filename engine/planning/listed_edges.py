"""What a run over a list asks for and cannot do: a graph whose edges are in the order of the input (`Graph.layout`).

Such a graph serves programs whose messages go along single edges. Refuses, before anything is read, programs on whole
rows, options that choose rows, and ranks, which own rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.program.program import Program, needs_rows
from penstock.engine.resources.config import Config
from penstock.engine.resources.requirements_types import row_index_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.format.schema import LIST_BLOCK

if TYPE_CHECKING:
    from penstock.storage.format.graph import Graph

ROW_ROUTES = ("compaction", "blocks", "cel")
"""Routes that bring single rows."""
BLOCK_BYTES = 32
"""For each block of edges: bounds of its vertices, whether it is wanted, and what is computed on the way."""


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
