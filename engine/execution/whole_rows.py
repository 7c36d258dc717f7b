"""A run whose combiner is `all`: all messages to a vertex together, in blocks of whole rows that fit a buffer.

    block of rows -> pull its edges into the buffer -> `vertex` on each row -> ... -> new values take effect -> done?

Partitions cut rows anywhere; the buffer puts them together again, so that graphs larger than memory need no more of it
than the longest row. Every vertex is active in every iteration.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.program import fields_of, message_dtype, resolve_dtype
from penstock.engine.state.records import IterationRecord
from penstock.engine.state.row_blocks import RowBlock, block_capacity, blocks, offset_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.execution.loop import Loop
    from penstock.engine.program.program import Program
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.storage.format.graph import Graph
    from penstock.storage.format.index import Index
    from penstock.transfer.values.view import View

CHOSEN_BYTES = 9
"""Bytes for each vertex where a program chooses rows: its flag, copied from a device, and its number."""
Visit = Callable[["View", int], None]


def run_whole_rows(loop: Loop, messages: int) -> Iterator[IterationRecord]:
    """Run until the program is done or its max_iter is reached. messages: of a block (`message_capacity`)."""
    if loop.totals_declared and loop.iteration == 0:
        loop.reduce()
    buffer, following = _room(loop, messages)
    try:
        while not loop.finished and loop.iteration < loop.program.max_iter:
            began = time.perf_counter()
            record = activate_all(loop)
            _apply_blocks(loop, buffer, following, record)
            loop.compare("pull", loop.everyone, record, time.perf_counter() - began - record.exchange_seconds)
            record.totals = dict(loop.totals)
            record.seconds = time.perf_counter() - began
            loop.end_iteration(record.number)
            yield record
    finally:
        loop.kernels.close()


def activate_all(loop: Loop) -> IterationRecord:
    """The record of a sweep over all edges, to be filled."""
    return IterationRecord(loop.iteration, "pull", loop.graph.vertices, loop.graph.edges)


def edge_streams_of(loop: Loop) -> tuple[EdgeStream, ...]:
    """The streams of the run's walks, over all partitions: a rank asks for its own rows, block by block."""
    return tuple(replace(stream, mine=None, owned=None) for stream in loop.walks("pull"))


def owned_blocks(loop: Loop, indexes: Sequence[Index], capacity: int, span: tuple[int, int]) -> Iterator[RowBlock]:
    """The blocks of whole rows, cut as for all rows, as far as they are in `span`."""
    for block in blocks(indexes, capacity, loop.state.block_rows):
        part = RowBlock(max(block.first, span[0]), min(block.last, span[1]), block.indexes)
        if part.first < part.last:
            yield part


def visit_views(
    loop: Loop, streams: tuple[EdgeStream, ...], block: RowBlock, record: IterationRecord, see: Visit,
    chosen: NDArray[np.int64] | None = None,
) -> None:  # fmt: skip
    """Call see(view, number of the walk) with views that together hold the edges of a block.

    chosen: the rows of the block that are needed, ascending; None: every one.
    """
    whole = loop.everyone
    loop.kernels.use()
    for walk, stream in enumerate(streams):
        only = None
        if not stream.resident:
            table, (first, last) = stream.directory.table, block.edges(walk)
            only = (table.e0 < last) & (table.e1 > first)
            if chosen is not None:  # a partition has the rows [v0, v1)
                only &= np.searchsorted(chosen, table.v0) < np.searchsorted(chosen, table.v1)
        with stream.views(loop.kernels, loop.state, whole, (), only) as views:
            for view in views:
                began = time.perf_counter()
                see(view, walk)
                view.record.kernel_seconds += time.perf_counter() - began
        record.tasks.extend(stream.records)


def _room(loop: Loop, messages: int) -> tuple[Any, dict[str, Any]]:
    """What a run with the combiner `all` needs beside its state, where the kernels compute, not filled.

    That is room for the messages of a block and, by name, for the new values of each field that changes.
    """
    state = loop.state
    capacity = block_capacity([stream.index for stream in edge_streams_of(loop)], messages)
    ours = {name: state.fields[name] for name, spec in fields_of(loop.program).items() if not spec.constant}
    following = {name: state.empty(array.size, array.dtype).reshape(array.shape) for name, array in ours.items()}
    return state.empty(capacity, loop.author.message), following


def _apply_blocks(loop: Loop, buffer: Any, following: dict[str, Any], record: IterationRecord) -> None:
    """One iteration of a program that keeps all messages (`all`)."""
    kernels, state, scalars = loop.row_kernels, loop.state, loop.scalars()
    streams = edge_streams_of(loop)
    targets = tuple(following.get(name, values) for name, values in state.fields.items())
    kernels.use()
    kernels.clear_partial(state)
    rows = _chosen_rows(loop, following)
    for block in owned_blocks(loop, [stream.index for stream in streams], len(buffer), loop.owned_vertices):

        def collect(view: View, walk: int, block: RowBlock = block) -> None:
            kernels.collect(view, state, block, walk, loop.out, scalars, buffer)

        chosen = None
        if rows is not None:
            chosen = rows[slice(*np.searchsorted(rows, (block.first, block.last)))]
            if not len(chosen):
                continue
        visit_views(loop, streams, block, record, collect, chosen)
        kernels.apply_rows(state, targets, block, loop.out, scalars, buffer)
    following.update(state.swap(following))
    loop.share_rows([state.fields[name] for name in following], record)
    loop.total_own(record)


def _chosen_rows(loop: Loop, following: dict[str, Any]) -> NDArray[np.int64] | None:
    """The rows that the program chooses (`chosen_by`), None: all. The others' values are put into `following`."""
    name, state = loop.program.chosen_by, loop.state
    if not name:
        return None
    for field, values in following.items():
        values[...] = state.fields[field]
    rows: NDArray[np.int64] = np.flatnonzero(state.to_host(state.fields[name]))
    rows += state.first
    return rows


def row_bytes(program: Program, graph: Graph, messages: int) -> int:
    """Bytes that a program with the combiner `all` takes beyond its state: the buffer, and the fields' new values.

    A GPU also notes where long rows lie, in a 32nd of a byte for each message.
    """
    stored = [graph.into or graph.out]
    if graph.directed and program.along == "both":
        stored.append(graph.out)
    buffer = block_capacity([adjacency.index() for adjacency in stored], messages)
    total = buffer * message_dtype(program, graph.vertex_dtype).itemsize + buffer // 32 + offset_bytes(graph.vertices)
    if program.chosen_by:
        total += CHOSEN_BYTES * graph.vertices
    for spec in fields_of(program).values():
        if not spec.constant:
            total += resolve_dtype(spec.dtype, graph.vertex_dtype).itemsize * graph.vertices
    return total
