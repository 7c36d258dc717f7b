"""A run whose combiner is `union`: linking trees instead of sending messages.

With the edges at hand: link the first two neighbors of every vertex, compress, find the largest tree, link only what
is outside it, compress. Where most edges have to come from elsewhere they are linked in one pass, as they arrive;
unless what is here already leads to so many of the vertices whose rows are not that a large tree will hold most of
these: then it is linked first, and the rows of its vertices need not come (`_reach`). The edges of a list, which has no
rows, are linked in one pass. Kernels and the idea's source are
in `kernels/host/union_find.py`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.resources.packed_edges import AT_HAND
from penstock.engine.state.frontier import Frontier
from penstock.engine.state.records import IterationRecord
from penstock.transfer.staging.unpacked import sample_neighbors

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.execution.loop import Loop
    from penstock.engine.execution.worker import Worker
    from penstock.engine.ranks.communicator import Communicator, DeviceCommunicator
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.transfer.values.view import View

SAMPLED = 2
LARGE = 0.2  # share of the vertices that the largest tree must hold for its rows to be worth leaving out
REACH = (
    0.5  # edges at hand for each vertex whose row is not, above which that vertex is likely to be in their largest tree
)
SAMPLES = 16, 256  # partitions, and consecutive edges of each, that are looked at to learn where edges lead
NO_COMPONENT = np.uint64(2**64 - 1)


def link_components(loop: Loop) -> Iterator[IterationRecord]:
    """Link every edge of the graph; at the end each vertex points to the smallest id of its component.

    A run that goes on from a checkpoint keeps the trees and links again: which edges were linked depends on what was in
    memory then, and linking twice changes nothing.
    """
    if loop.finished:
        return
    resident = all(worker.streams["push"].resident for worker in loop.workers)
    resident = bool(loop.gathered(resident).all()) and loop.graph.layout == "rows"
    done_each, largest = 0, NO_COMPONENT
    if resident:

        def link_first(worker: Worker, view: View) -> None:
            worker.kernels.link_first_neighbors(view, worker.state, worker.streams["push"].index, SAMPLED)

        yield _pass(loop, link_first)
        largest = np.uint64(loop.workers[0].kernels.largest_tree(loop.workers[0].state)[0])
        done_each = SAMPLED
    symmetric = not loop.graph.directed and loop.graph.layout == "rows"
    if not resident and symmetric and len(loop.workers) == 1:
        here = _at_hand(loop)
        if here is not None:
            yield from _link_from(loop, here)
            return

    def link(worker: Worker, view: View) -> None:
        index = worker.streams["push"].index
        worker.kernels.link_rows(view, worker.state, index, done_each, largest, symmetric)

    yield _last(loop, _pass(loop, link))


def _last(loop: Loop, record: IterationRecord) -> IterationRecord:
    """Note that nothing is left to link."""
    loop.converged = loop.finished = True
    return record


def _link_from(loop: Loop, here: NDArray[np.bool_]) -> Iterator[IterationRecord]:
    """Link what is here; then, of the other partitions, only the rows of vertices outside the largest tree.

    An edge is stored in both its rows, so an edge that was not read yet and joins two trees is in a row outside the
    largest one.
    """
    worker = loop.workers[0]
    kernels, state = worker.kernels, worker.state

    def link(worker: Worker, view: View) -> None:
        kernels.link_rows(view, state, worker.streams["push"].index, 0, NO_COMPONENT, True)

    yield _pass(loop, link, only=here)
    root, share = kernels.largest_tree(state)
    if share < LARGE:
        yield _last(loop, _pass(loop, link, only=~here))
        return
    largest = np.uint64(root)
    kernels.mark_outside(state, loop.out, largest)
    frontier = kernels.select(state, loop.out, (), math.inf)

    def link_outside(worker: Worker, view: View) -> None:
        kernels.link_listed(view, state, frontier, worker.streams["push"].index, largest)

    if not frontier.empty:
        yield _last(loop, _pass(loop, link_outside, only=~here, frontier=frontier))
    loop.converged = True


def _at_hand(loop: Loop) -> NDArray[np.bool_] | None:
    """Which partitions to link first, bool (partitions,); None where that does not pay in some rank."""
    worker = loop.workers[0]
    stream = worker.streams["push"]
    own = (0, loop.graph.vertices) if worker.ownership is None else worker.ownership.vertices
    table = stream.directory.table
    mine = (table.v0 < own[1]) & (table.v1 > own[0])
    here = stream.here & mine
    if loop.gathered(here.sum() / max(1, mine.sum())).min() < AT_HAND:
        return None
    found = loop.gathered(_reached_share(stream, here, own))
    return here if found.min() * len(found) >= REACH else None


def _reached_share(stream: EdgeStream, here: NDArray[np.bool_], own: tuple[int, int]) -> float:
    """Edges at hand that lead to vertices whose rows are not, for each of these vertices; from a sample of the edges.

    Where edges lead anywhere that is many; on a grid, whose rows lead to their neighbors, it is none, and nothing of
    what is still to come could be left out. here: bool (partitions,), one at least, not all of them. own: the rows that
    count; those of other ranks lead to them as ours do.
    """
    table, (bases, offsets, shift) = stream.directory.table, stream.index.arrays()
    several, edges = SAMPLES
    numbers = np.flatnonzero(here)
    found = []
    for number in numbers[np.linspace(0, len(numbers) - 1, min(several, len(numbers))).astype(np.int64)].tolist():
        found.append(sample_neighbors(stream.directory, number, edges).astype(np.int64))
    targets = np.concatenate(found)
    starts = bases[targets >> int(shift)] + offsets[targets]
    away = ~here[np.minimum(starts // table.partition_edges, len(here) - 1)]
    away &= (targets >= own[0]) & (targets < own[1])
    absent = own[1] - own[0] - int((table.v1 - table.v0)[here].sum())
    return float(away.mean() * table.lengths[here].sum() / max(1, absent))


def _pass(
    loop: Loop,
    link: Callable[[Worker, View], Any],
    *,
    only: NDArray[np.bool_] | None = None,
    frontier: Frontier | None = None,
) -> IterationRecord:
    """Every device links the edges that its stream brings; then all forests are joined and compressed.

    only: which partitions to bring. frontier: whose rows are wanted, None for all.
    """
    began = time.perf_counter()
    count = loop.graph.vertices
    if frontier is None:
        frontier = Frontier(count, loop.graph.edges, everything=True)
    record = IterationRecord(loop.iteration, "push", frontier.vertices, frontier.edges)
    for worker in loop.workers:
        worker.kernels.use()
        stream = worker.streams["push"]
        with stream.views(worker.kernels, worker.state, frontier, (), only) as views:
            for number, view in enumerate(views, start=1):
                started = time.perf_counter()
                link(worker, view)
                if not stream.resident and number & (number - 1) == 0:
                    # After views 1, 2, 4, 8 ...: flat trees make the links of the next views short.
                    worker.kernels.compress(worker.state)
                view.record.kernel_seconds += time.perf_counter() - started
        record.tasks.extend(stream.records)
    first = loop.workers[0]
    for other in loop.workers[1:]:
        first.kernels.join_forests(first.state, other.state)
    if loop.array_ranks is not None:
        with loop.exchanging(record):
            _join_ranks(loop, loop.array_ranks)
    first.kernels.compress(first.state)
    for other in loop.workers[1:]:
        other.state.arrays[0][:] = first.state.arrays[0]
    record.seconds = time.perf_counter() - began
    loop.iteration += 1
    return record


def _join_ranks(loop: Loop, ranks: Communicator | DeviceCommunicator) -> None:
    """Join the forests of all ranks in each of them.

    A forest is joined after the next one has been broadcast, so that no rank waits until another has joined.
    """
    kernels, state = loop.workers[0].kernels, loop.workers[0].state
    name, ours = next(iter(state.fields.items()))
    others = [copy(state), copy(state)]
    for other in others:
        other.fields = dict(state.fields)
        other.swap({name: state.empty(len(ours), ours.dtype)})
    for rank in range(ranks.size + 1):
        if rank < ranks.size:
            ranks.broadcast(ours if rank == ranks.rank else others[rank % 2].fields[name], rank)
        if rank and rank - 1 != ranks.rank:
            kernels.join_forests(state, others[(rank - 1) % 2])
