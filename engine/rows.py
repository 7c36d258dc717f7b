"""The story of a run on whole rows: all messages to a vertex together, in blocks of rows that a buffer has room for.

    block of rows -> pull its edges into the buffer -> `vertex` on each row -> ... -> new values take effect -> done?

Partitions cut rows anywhere; the buffer puts them together again, so that graphs larger than memory need no more of it
than the longest row. Every vertex is active in every iteration. Also the walk of programs whose messages are vectors,
which only differ in being added up as they come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.block import Block, blocks, room
from penstock.engine.frontier import Frontier
from penstock.engine.program import fields_of, message_dtype, resolve_dtype
from penstock.engine.trace import IterationRecord

if TYPE_CHECKING:
    from penstock.engine.lane import Lane
    from penstock.engine.loop import Loop
    from penstock.engine.program import Program
    from penstock.storage.graph import Graph
    from penstock.transfer.view import View

Visit = Callable[["View", int], None]


def sweep(loop: Loop) -> Iterator[IterationRecord]:
    """Run until the program is done or its max_iter is reached."""
    if loop.totals_declared:
        loop.reduce()
    work = _add_vectors if loop.program.message_shape else _apply_blocks
    while loop.iteration < loop.program.max_iter:
        began = time.perf_counter()
        record = everyone(loop)
        work(loop, record)
        record.totals = dict(loop.totals)
        record.seconds = time.perf_counter() - began
        loop.iteration += 1
        yield record
        if loop.program.done(record.number, loop.totals):
            loop.converged = True
            return


def everyone(loop: Loop) -> IterationRecord:
    """The record of a sweep over all edges, to be filled."""
    return IterationRecord(loop.iteration, "pull", loop.graph.vertices, loop.graph.edges)


def lanes_of(loop: Loop) -> tuple[Lane, ...]:
    """The lanes of the run's walks, over all partitions: whole rows stay on the first device."""
    worker = loop.workers[0]
    found = [worker.lanes["pull"], *([worker.against["pull"]] if worker.against else [])]
    return tuple(replace(lane, mine=None) for lane in found)


def visit(loop: Loop, lanes: tuple[Lane, ...], block: Block | None, record: IterationRecord, see: Visit) -> None:
    """Call see(view, number of the walk) with views that together hold the edges of a block (None: of all rows)."""
    worker = loop.workers[0]
    whole = Frontier(loop.graph.vertices, loop.graph.edges, everything=True)
    worker.kernels.use()
    for walk, lane in enumerate(lanes):
        only = None
        if block is not None and not lane.resident:
            table, (first, last) = lane.pipeline.table(lane.key), block.edges(walk)
            only = (table.e0 < last) & (table.e1 > first)
        for view in lane.views(worker.kernels, worker.state, whole, (), only):
            began = time.perf_counter()
            see(view, walk)
            view.record.kernel_seconds += time.perf_counter() - began
        record.tasks.extend(lane.records)


def _apply_blocks(loop: Loop, record: IterationRecord) -> None:
    """One iteration of a program that keeps all messages (`all`)."""
    kernels, state, scalars = loop.workers[0].kernels, loop.workers[0].state, loop.scalars()
    lanes = lanes_of(loop)
    indexes = [lane.index for lane in lanes]
    buffer = np.empty(room(indexes), dtype=loop.author.message)
    names = [name for name, spec in fields_of(loop.program).items() if not spec.constant]
    following = {name: state.fields[name].copy() for name in names}
    targets = tuple(following.get(name, values) for name, values in state.fields.items())
    kernels.clear_partial(state)
    for block in blocks(indexes, len(buffer)):

        def collect(view: View, walk: int, block: Block = block) -> None:
            kernels.collect(view, state, block, walk, loop.out, scalars, buffer)

        visit(loop, lanes, block, record, collect)
        kernels.apply_rows(state, targets, block, loop.out, scalars, buffer)
    state.take(following)
    loop.total()


def _add_vectors(loop: Loop, record: IterationRecord) -> None:
    """One iteration of a program whose messages are vectors."""
    kernels, state, scalars = loop.workers[0].kernels, loop.workers[0].state, loop.scalars()
    lanes = lanes_of(loop)
    whole = Frontier(loop.graph.vertices, loop.graph.edges, everything=True)

    def add(view: View, walk: int) -> None:
        kernels.pull_vectors(view, state, (lanes[walk].index, loop.out), scalars)

    visit(loop, lanes, None, record, add)
    kernels.apply(state, whole, loop.out, scalars)
    loop.total()


def row_bytes(program: Program, graph: Graph) -> int:
    """Bytes that a program with the combiner `all` takes beyond its state: the buffer, and the fields' new values."""
    stored = [graph.into or graph.out]
    if graph.directed and program.along == "both":
        stored.append(graph.out)
    total = room([adjacency.index() for adjacency in stored]) * message_dtype(program, graph.vertex_dtype).itemsize
    for spec in fields_of(program).values():
        if not spec.constant:
            total += resolve_dtype(spec.dtype, graph.vertex_dtype).itemsize * graph.vertices
    return total
