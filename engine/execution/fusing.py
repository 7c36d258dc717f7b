"""Several iterations in one launch or call: small frontiers of one process that are pushed along all edges."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TYPE_CHECKING

from penstock.engine.resources.direction import Situation, certain_push
from penstock.engine.state.fused_iterations import NO_FRONTIERS, FusedCall, FusedIterations, FusedLimits, FusedRecord
from penstock.engine.state.state import Frontier

if TYPE_CHECKING:
    from penstock.engine.execution.loop import Loop
    from penstock.engine.state.records import IterationRecord


def can_fuse(loop: Loop, frontier: Frontier) -> bool:
    """Whether one launch may run this iteration and more: one that reads all edges, of a small frontier."""
    stream, against, kernels = loop.streams["push"], loop.against.get("push"), loop.kernels
    able = loop.fuses and stream.index is loop.out and (against is None or kernels.both_ways)
    if not (able and loop.out.whole and kernels.can_fuse(frontier)):
        return False
    if against is not None:  # without in-edges all out-edges are pulled along, whatever the frontier is
        return stream.resident and against.resident and against.direction == "push"
    return stream.resident or (kernels.over_links and stream.slight(frontier))


def fuse(
    loop: Loop, frontier: Frontier, situation: Situation, selecting: float
) -> Generator[IterationRecord, None, bool]:
    """Run several iterations in one launch, where that is possible; returns whether at least one could run.

    They end where `choose` would have to be asked. selecting: when the selection of the first frontier began, which
    waits for earlier kernels.
    """
    if not can_fuse(loop, frontier):
        return False
    began, scalars, due = time.perf_counter(), loop.scalars(), loop.due
    stream = loop.streams["push"]
    edges, alpha, per_row = certain_push(situation)
    left = due.most_fused(loop.program.max_iter - loop.iteration, loop.iteration)
    bounds = FusedLimits(
        left,
        edges,
        alpha,
        loop.unexplored,
        loop.before.vertices,
        due.limit,
        due.fused_width,
        situation.unvisited,
        per_row,
    )
    done = FusedIterations(NO_FRONTIERS, due.limit)
    against, tasks = None, []
    other = loop.against.get("push")
    if other is not None:  # all its edges are in memory, and stay there
        with other.views(loop.kernels, loop.state, frontier, scalars) as views:
            found = [(view, other.index) for view in views]
        if not found:  # this frontier has no edges there; those after it may
            return False
        against = found[-1]
        tasks = [(task, other.edge_bytes) for task in other.records]
    with stream.views(loop.kernels, loop.state, frontier, scalars) as views:
        for view in views:
            done = loop.kernels.fused_iterations(view, loop.state, frontier, loop.out, scalars, bounds, against)
            view.record.predicted = None  # it was for one iteration: there is nothing to learn from several
    tasks = [*((task, stream.edge_bytes) for task in stream.records), *tasks]
    frontiers = done.frontiers
    if not len(frontiers):
        return False
    vertices, edges = frontiers.sum(axis=0).tolist()
    due.fused(edges - frontier.edges, done.limit)
    loop.unexplored -= edges
    loop.unvisited -= vertices
    loop.before = Frontier(*frontiers[-1].tolist())
    loop.iteration += len(frontiers)
    seconds = (time.perf_counter() - began) / len(frontiers)
    call = FusedCall(loop.iteration - len(frontiers), frontiers, tasks, selecting, began, seconds, loop.phase)
    if loop.collected is not None:
        loop.collected.add_call(call)
        yield FusedRecord(call, len(frontiers) - 1)
        return True
    *others, last = call.records()
    loop.settled = False
    yield from others
    loop.settled = True
    yield last
    return True
