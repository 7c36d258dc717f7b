"""Several iterations in one launch or call: small frontiers of one process that are pushed along all edges."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from penstock.engine.resources.direction import Situation, certain_push
from penstock.engine.state.fused_iterations import NO_FRONTIERS, FusedCall, FusedLimits, FusedRecord
from penstock.engine.state.state import Frontier

if TYPE_CHECKING:
    from penstock.engine.execution.run_parts import RunParts
    from penstock.engine.state.records import IterationRecord


def can_fuse(run: RunParts, frontier: Frontier) -> bool:
    """Whether one launch may run this iteration and more: one that reads all edges, of a small frontier."""
    stream, against, kernels = run.streams["push"], run.against.get("push"), run.kernels
    able = run.fuses and stream.index is run.out and (against is None or kernels.both_ways)
    if not (able and run.out.whole and kernels.can_fuse(frontier)):
        return False
    if against is not None:  # without in-edges all out-edges are pulled along, whatever the frontier is
        return stream.resident and against.resident and against.direction == "push"
    return stream.resident or stream.in_one_view or (kernels.over_links and stream.slight(frontier))


def fuse(
    run: RunParts, frontier: Frontier, situation: Situation, scalars: tuple[Any, ...], selecting: float
) -> Generator[IterationRecord, None, bool]:
    """Run several iterations in one launch, where that is possible; returns whether at least one could run.

    They end where `choose` would have to be asked. selecting: when the selection of the first frontier began, which
    waits for earlier kernels.
    """
    if not can_fuse(run, frontier):
        return False
    began, due = time.perf_counter(), run.due
    stream = run.streams["push"]
    edges, alpha, per_row = certain_push(situation)
    left = due.most_fused(run.program.max_iter - run.iteration, run.iteration)
    bounds = FusedLimits(
        left,
        edges,
        alpha,
        run.unexplored,
        run.before.vertices,
        due.limit,
        due.fused_width,
        situation.unvisited,
        per_row,
    )
    frontiers, limit = NO_FRONTIERS, due.limit
    against, tasks = None, []
    other = run.against.get("push")
    if other is not None:  # all its edges are in memory, and stay there
        with other.views(run.kernels, run.state, frontier, scalars) as views:
            found = [(view, other.index) for view in views]
        if not found:  # this frontier has no edges there; those after it may
            return False
        against = found[-1]
        tasks = [(task, other.edge_bytes) for task in other.records]
    with stream.views(run.kernels, run.state, frontier, scalars) as views:
        for view in views:
            if view.e1 - view.e0 < stream.index.edges:
                continue
            work = view, run.state, frontier, run.out, scalars, bounds, against
            frontiers, limit = run.kernels.fused_iterations(*work)
            view.record.predicted = None  # it was for one iteration: there is nothing to learn from several
    tasks = [*((task, stream.edge_bytes) for task in stream.records), *tasks]
    if not len(frontiers):
        return False
    vertices, edges = frontiers.sum(axis=0).tolist()
    due.fused(edges - frontier.edges, limit)
    run.unexplored -= edges
    run.unvisited -= vertices
    run.before = Frontier(*frontiers[-1].tolist())
    run.iteration += len(frontiers)
    seconds = (time.perf_counter() - began) / len(frontiers)
    call = FusedCall(run.iteration - len(frontiers), frontiers, tasks, selecting, began, seconds, run.phase)
    if run.collected is not None:
        run.collected.add_call(call)
        yield FusedRecord(call, len(frontiers) - 1)
        return True
    *others, last = call.records()
    run.settled = False
    yield from others
    run.settled = True
    yield last
    return True
