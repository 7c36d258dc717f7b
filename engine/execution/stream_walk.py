"""One walk over the edges that a stream brings: the kernels that each view meets, and which rows are read.

    rows kept by the last pull, or row prefixes on the device -> views of the frontier's rows, or of unsettled vertices
        -> push (-> again; -> rows that follow their carriers) or pull

Owns which rows are read in place of the frontier's (`unsettled`), and whether a pull is expected to read little.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from penstock.engine.execution import cel
from penstock.transfer.routes.cel import name as cel_name
from penstock.transfer.values.task import Demand, TaskRecord

if TYPE_CHECKING:
    from penstock.engine.execution.run_parts import RunParts
    from penstock.engine.execution.windows import AtHand
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.engine.state.records import IterationRecord
    from penstock.engine.state.state import Frontier

MANY = 32
"""A frontier of fewer edges than this part of the graph's is pushed without a look at what unsettled vertices have."""
FIRST, AGAIN = 1, 4
"""How many edges of the frontier an edge of unsettled vertices must replace: the first time, and after that."""


def unsettled(run: RunParts, frontier: Frontier, scalars: tuple[Any, ...]) -> Demand | None:
    """The rows to read in place of the frontier's: those of vertices that may still change, if they are shorter."""
    if frontier.everything or frontier.edges * MANY <= run.graph.edges:
        return None
    rows = run.streams["push"].unsettled(run.kernels, run.state, scalars)
    edges = float("inf") if rows is None else int(rows.active_edges.sum())
    if float(run.gathered(edges).sum()) * (AGAIN if run.relaxed else FIRST) >= frontier.edges:
        return None
    run.relaxed = True
    return rows


def walk(
    run: RunParts, stream: EdgeStream, frontier: Frontier, record: IterationRecord, scalars: tuple[Any, ...],
    rows: Demand | None, at_hand: AtHand,
) -> None:  # fmt: skip
    """Run the kernels over the edges that the stream brings; rows: those to be relaxed both ways, if any."""
    if rows is not None:
        _relax(run, stream, frontier, scalars, rows)
    elif stream.direction == "push" and (kept_rows := run.state.compacted) is not None:
        began = time.perf_counter()
        for view in at_hand(iter(kept_rows.views)):
            run.kernels.push(view, run.state, frontier, stream.index, scalars)
        _note_resident(stream, frontier, record, began)
        return
    elif stream.direction == "push":
        _push(run, stream, frontier, scalars, at_hand)
    elif (kept := run.state.unmatched) is None:
        _pull(run, stream, frontier, record, scalars, at_hand)
    elif kept.complete:
        began = time.perf_counter()
        run.kernels.pull_unmatched(run.state, run.out, scalars)
        _note_resident(stream, frontier, record, began)
        return
    else:
        kept.begin()
        _pull(run, stream, frontier, record, scalars, at_hand)
        kept.end()
    record.tasks.extend(stream.pipeline.records)
    record.plan_seconds += stream.plan_seconds


def _note_resident(stream: EdgeStream, frontier: Frontier, record: IterationRecord, began: float) -> None:
    """Note that a frontier's edges were in memory, in rows kept before."""
    seconds = time.perf_counter() - began
    record.tasks.append(TaskRecord("resident", stream.key, (), frontier.edges, kernel_seconds=seconds))


def _push(run: RunParts, stream: EdgeStream, frontier: Frontier, scalars: tuple[Any, ...], at_hand: AtHand) -> None:
    kernels, state, index = run.kernels, run.state, stream.index
    cel.begin(run, stream, frontier)
    followed = TaskRecord(cel_name, stream.key, ())
    with stream.views(kernels, state, frontier, scalars) as arrivals:
        for view in at_hand(arrivals):
            began, rounds = time.perf_counter(), cel.rounds(run, stream, view)
            if rounds:
                kernels.unmark_sent(view, state, frontier, index)
            kernels.push(view, state, frontier, index, scalars)
            if rounds:
                due = run.due.limit, rounds
                kernels.push_resend(view, state, frontier, index, scalars, due, followed)
            view.record.kernel_seconds += time.perf_counter() - began
    if stream.carries:
        stream.pipeline.records.append(followed)


def _pull(
    run: RunParts, stream: EdgeStream, frontier: Frontier, record: IterationRecord, scalars: tuple[Any, ...],
    at_hand: AtHand,
) -> None:  # fmt: skip
    """Pull; first along neighbors kept on the device, if there are any: the walk skips them, and what matched."""
    kernels, state, indices = run.kernels, run.state, (stream.index, run.out)
    if (heads := stream.heads) is not None:
        record.filling.extend(stream.fill_heads(kernels, state))
        kernels.pull(heads.view(stream.key), state, frontier, (heads.index, run.out), scalars)
        kernels.record_matched(state)
    behind, skip = stream.few_behind(run.situation, frontier), 0 if heads is None else heads.each
    with stream.views(kernels, state, frontier, scalars, behind=behind) as arrivals:
        for view in at_hand(arrivals):
            began = time.perf_counter()
            kernels.pull(view, state, frontier, indices, scalars, skip)
            view.record.kernel_seconds += time.perf_counter() - began
            if behind is not None:
                view.record.predicted = None  # the guess was of what all rows have, not of this view
                stream.expected = view.record, behind.requests


def _relax(run: RunParts, stream: EdgeStream, frontier: Frontier, scalars: tuple[Any, ...], rows: Demand) -> None:
    kernels, state = run.kernels, run.state
    with stream.views(kernels, state, frontier, scalars, rows=rows) as arrivals:
        for view in arrivals:
            began = time.perf_counter()
            kernels.relax_unsettled(view, state, stream.index, scalars)
            view.record.kernel_seconds += time.perf_counter() - began
