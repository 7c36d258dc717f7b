"""An iteration in which changed rows follow their carriers (route `cel`).

    carrier t arrives -> its kernel -> whose rows has the walk passed? -> they travel beside carrier t + 1

WolfGraph's Concatenated Edge List (Zhu et al., FGCS 2020), made causal: after each carrier, what is pending, is due and
has its row in partitions that this iteration has brought already is taken, and its rows, gathered on the host, are sent
along before the next carrier's; one flush follows the last carrier. So those partitions need not travel again in the
next iteration for these vertices. An edge can be applied several times an iteration: records of route `cel` say how
many. Refuses programs that may not see their own updates: only pushes of asynchronous programs can.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.interface import ReadyRows
from penstock.engine.program.program import author_function
from penstock.storage.base.errors import InputError
from penstock.transfer.routes import cel as route
from penstock.transfer.values.rates import LINE_BYTES
from penstock.transfer.values.task import Demand

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.kernels.interface import Kernels
    from penstock.engine.program.program import Program
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.engine.state.device_state import VertexState
    from penstock.transfer.values.view import View


def check(program: Program, config: Config, *, asynchronous: bool) -> None:
    """Refuse a program, or options, with which nothing could follow its carriers. Raises InputError."""
    if config.route != route.name:
        return
    name = type(program).__name__
    way_out = "use --route auto, or a program such as sssp, widest or reachability"
    if not asynchronous:
        why = "and it runs synchronously here"
    elif author_function(program, "send") is not None:
        why = "and what it sends is computed once an iteration, by its send()"
    elif program.along == "both":
        why = "and it sends against the edges too"
    elif config.direction == "pull":
        why, way_out = "and it is to pull", "leave out --direction pull, or use --route auto"
    else:
        return
    raise InputError(f"{name} cannot run by route {config.route}, which serves asynchronous pushes, {why}; {way_out}")


def follows(stream: EdgeStream) -> bool:
    """Whether rows may follow the carriers of this stream of pushes."""
    return stream.pipeline.options.route == route.name and not stream.resident


def views(
    arrivals: Iterator[View],
    kernels: Kernels[Any],
    state: VertexState,
    stream: EdgeStream,
    due: tuple[tuple[Any, ...], float],
) -> Iterator[View]:
    """The views of a walk, with views of rows that follow; due: the program's scalars, the limit of its priorities."""
    brought = np.zeros(len(stream.directory.table), dtype=bool)
    for view in arrivals:
        yield view
        if view.record.route != route.name:
            brought[list(view.record.partitions)] = True
            _send_after(kernels, state, stream, due, brought)


def _send_after(
    kernels: Kernels[Any],
    state: VertexState,
    stream: EdgeStream,
    due: tuple[tuple[Any, ...], float],
    brought: NDArray[np.bool_],
) -> None:
    """Send the changed rows of the partitions brought so far again; the host waits for the last kernel first."""
    directory, table = stream.directory, stream.directory.table
    here = directory.staging.link.complete(directory.adjacency, stream.with_weights)
    step = table.partition_edges // stream.chunk_edges
    chunks = np.asarray(here & np.repeat(brought, step)[: len(here)], dtype=np.uint8)
    sizes = table.partition_edges, stream.chunk_edges, max(1, LINE_BYTES // stream.edge_bytes)
    where = ReadyRows(chunks, sizes, np.zeros(3 * len(table), dtype=np.int64))
    marks = kernels.select_ready(state, stream.index, *due, where)
    vertices, edges, lines = np.ascontiguousarray(where.table.reshape(-1, 3).T)
    if edges.any():
        demand = Demand(stream.key, vertices, edges, lines, edges.astype(float), None, stream.with_weights, marks=marks)
        stream.pipeline.follow(demand)
