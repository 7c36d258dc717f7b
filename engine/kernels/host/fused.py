"""Many iterations in one call, on one core: for small frontiers of programs whose edges all lie in memory.

A frontier of a hundred edges costs a core a microsecond, and the Python between two kernels seventy; roads and
grids have thousands of such frontiers. Here one call stays, and does what the loop and the kernels of `launch.py` would
do, one iteration after another. No other thread is at work meanwhile, so that nothing is atomic.

    list -> send() -> edges; who gets a message is noted in the other list, once
      -> vertex() of those; who is active next stays in that list, or waits if not due
      -> none due: the limit moves, as in `Loop`, and who is due by then is taken from those that wait

Frontiers are lists, not bitmaps: to find a hundred vertices in words of 64 costs more than their edges.
The lists are in the order in which vertices were reached, which no integer result depends on. Where messages are floats
that are added up they are in ascending order, so that sums are those of one thread of the loop, to the bit. Frontiers
are those of the loop, unless updates are seen at once: then what one vertex sees depends on who was before it.

Ends before a frontier that the loop might not push, or that is worth several threads; vertices taken for it are pending
again. Refuses (`fits`) programs that need the host between two iterations, or whose priorities change with more than
the vertex's own values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.kernels.host.device_functions import (
    CACHED,
    NONE,
    mark_listed,
    unmark_listed,
)
from penstock.engine.kernels.host.due import is_steady, make_take_due, make_wait_again
from penstock.engine.kernels.host.fused_steps import (
    make_ahead,
    make_renew,
    make_send_all,
    make_spread,
    make_survey,
    next_limit,
)
from penstock.engine.kernels.host.jit import JitKernel, kernel
from penstock.engine.kernels.interface import EdgeView, VertexArrays
from penstock.engine.program.bindings import Author
from penstock.engine.program.program import Program

if TYPE_CHECKING:
    from penstock.engine.state.fused_iterations import FusedLimits

MOST_ITERATIONS = 2048
MOST_EDGES = 1 << 14
"""Of a frontier, and as many vertices: what one thread walks sooner than several wake up (`state.FUSED_LIST`)."""
PATIENCE = 32
"""So many small frontiers a program has had before a kernel is compiled or loaded: for a few more it does not pay."""


def fits(program: Program, author: Author) -> bool:
    """Whether all that changes between two iterations is the frontier, the iteration's number and the limit."""
    return (
        (not author.has_priority or is_steady(program, author))
        and not (author.totals or author.everywhere or author.combine in ("union", "all"))
        and type(program).done is Program.done
    )


def make_fused_iterations(author: Author, weighted: bool, apart: bool, both: bool, key: str) -> JitKernel:
    """Kernel: iterations until a bound; apart: messages lie apart (synchronous), see `State.accumulate_apart`.

    both: messages go along the rows of two adjacencies, `against` too; else that is what nothing reads. No iteration is
    run where the first frontier has too many edges in both.

    lists: `State.lists`; the first frontier is the first `count` of `begun`, and is run whatever its size. bounds
    (see `FusedLimits`): int64 (iterations, edges, alpha, unexplored, before, unvisited) and float64 (limit, bucket,
    per_row). marks: of who is pending the words, a bit for each word, and the bounds of their priorities (float64, one
    a word and one a span); with priorities, all have been looked at (`due.py`). active: words and summary. arrays:
    VertexArrays. readback: int64[iterations, 2], vertices and edges
    of every iteration. Returns how many, and the limit.
    """
    spread, renew, take_due = (
        make_spread(author, weighted, apart, both),
        make_renew(author, both),
        make_take_due(author),
    )
    ahead, send_all, survey = make_ahead(author), make_send_all(author), make_survey(both)
    wait_again = make_wait_again(author)
    has_priority, has_send, uses_activity = author.has_priority, author.has_send, apart and author.uses_activity

    @kernel(f"{key}{apart}{both}")
    def fused_iterations(  # type: ignore[no-untyped-def]
        view, index, against, begun, count, lists, bounds, marks, active, fields, scalars, identity, arrays, readback
    ):
        view, arrays = EdgeView(*view), VertexArrays(*arrays)
        other, other_index = EdgeView(*against[0]), against[1]
        most, most_edges, alpha, unexplored, before, unvisited = bounds[0]
        limit, bucket, per_row = bounds[1]
        base = arrays.base
        here, there, room = (
            NONE,
            np.uint64(lists.shape[0] >> 1),
            np.uint64(max(1, min(lists.shape[0] >> 1, most_edges))),
        )
        number, done, going = np.uint64(count), 0, True
        ways, far = ((view, index), (other, other_index)), index[1].shape[0] > CACHED
        words = active[0]
        lists[: np.int64(number)] = begun[: np.int64(number)]
        edges, reach = survey(view, index, other, other_index, lists, here, number)
        if both and reach > most_edges:
            return done, limit
        if not uses_activity:
            unmark_listed(words, lists, here, number, base)
        while going:
            now = ahead(scalars, done, limit)
            if uses_activity and done > 0:
                mark_listed(words, lists, here, number, base)
            if has_send:
                send_all(index, lists, here, number, fields, now, arrays)
            found = spread(ways, lists, here, there, number, far, marks, limit, active, identity, fields, now, arrays)
            following, beyond = np.int64(0), np.int64(0)
            if apart:
                found, following, beyond = renew(
                    view, index, other, other_index, lists, there, found, marks, limit, words, fields, now,
                    identity, arrays,
                )  # fmt: skip
            if uses_activity:
                unmark_listed(words, lists, here, number, base)
            readback[done, 0], readback[done, 1] = number, edges
            unexplored -= edges
            unvisited -= np.int64(number)
            before = np.int64(number)
            done += 1
            here, there, number, edges, reach = there, here, found, following, beyond
            if not apart:
                edges, reach = survey(view, index, other, other_index, lists, here, number)
            while has_priority and number == NONE and going:
                number, rest = take_due(index, marks, limit, lists, here, room, fields, now, base)
                edges, reach = survey(view, index, other, other_index, lists, here, number)
                if number == NONE:
                    going = rest < np.inf and bucket > 0.0
                    if going:
                        limit = next_limit(rest, bucket)
            grown = alpha > 0 and np.int64(number) > before and edges > unexplored // alpha
            pulled = per_row > 0.0 and edges > per_row * unvisited
            going = not (number == NONE or number >= room or done == most or reach > most_edges or grown or pulled)
        wait_again(index, marks, lists, here, number, fields, ahead(scalars, done, limit), base)
        return done, limit

    return fused_iterations


def numbers_of(bounds: FusedLimits, iterations: int) -> tuple[tuple[np.int64, ...], tuple[np.float64, ...]]:
    """Bounds as the kernel takes them, for at most so many iterations."""
    edges = min(bounds.edges, MOST_EDGES)
    whole = iterations, edges, bounds.alpha, bounds.unexplored, bounds.before, bounds.unvisited
    return tuple(map(np.int64, whole)), tuple(map(np.float64, (bounds.limit, bounds.bucket, bounds.per_row)))
