"""Many iterations in one call, mostly on one core: for small frontiers of programs whose edges all lie in memory.

A frontier of a hundred edges costs a core a microsecond, and the Python between two kernels seventy; roads and
grids have thousands of such frontiers. Here one call stays, and does what the loop and the kernels of `launch.py` would
do, one iteration after another. No other thread is at work meanwhile, so that nothing is atomic; but for wide buckets.

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

A whole bucket of priorities can be one iteration, where updates are seen at once (`make_fused_buckets`): of those that
a list changed, who is due and not noted yet is the next list of the bucket; the others wait. This is the bucket fusion
of Zhang et al. (CGO 2020). Two loops over a list, of few instructions each and with no branch that cannot be predicted,
are faster than one that asks of every edge what becomes of its end. Wide buckets are shared (`bucket_drain.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.host.atomics import prefetch
from penstock.engine.kernels.host.bucket_drain import MOST_WORK, make_share_buckets
from penstock.engine.kernels.host.device_functions import (
    CACHED,
    LOW,
    NONE,
    ONE,
    SIX,
    mark_listed,
    row_start,
    unmark_listed,
)
from penstock.engine.kernels.host.due import is_steady, make_take_due, make_wait_again, wait
from penstock.engine.kernels.host.fused_steps import (
    in_order,
    make_relax_listed,
    make_renew,
    make_send_all,
    make_spread,
    make_survey,
    next_limit,
)
from penstock.engine.kernels.host.jit import JitKernel, inline, kernel
from penstock.engine.kernels.interface import EdgeView, VertexArrays
from penstock.engine.program.bindings import Author, scalars_later
from penstock.engine.program.program import Program

if TYPE_CHECKING:
    from penstock.engine.state.fused_iterations import FusedLimits

MOST_ITERATIONS = 2048
MOST_EDGES = 1 << 14
"""Of a frontier, and as many vertices: what one thread walks sooner than several wake up (`state.FUSED_LIST`)."""
SHARED = 1024
"""Vertices of a bucket from which on the next one is shared (`bucket_drain.py`)."""
LEAST_THREADS = 4
"""Threads that share one; of fewer, one alone is as fast: an edge takes longer, and a launch on busy cores a bucket."""
PATIENCE = 32
"""So many small frontiers a program has had before a kernel is compiled or loaded: for a few more it does not pay."""


def fits(program: Program, author: Author) -> bool:
    """Whether all that changes between two iterations is the frontier, the iteration's number and the limit."""
    return (
        (not author.has_priority or is_steady(program, author))
        and not (author.totals or author.everywhere or author.combine in ("union", "all"))
        and type(program).done is Program.done
    )


def make_fused_iterations(author: Author, apart: bool, both: bool) -> JitKernel:
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
        make_spread(author, apart, both),
        make_renew(author, both),
        make_take_due(author),
    )
    ahead, send_all, survey = inline(scalars_later(author)), make_send_all(author), make_survey(both)
    wait_again = make_wait_again(author)
    has_priority, has_send, uses_activity = author.has_priority, author.has_send, apart and author.uses_activity

    @kernel(f"{author.key}{apart}{both}")
    def fused_iterations(  # type: ignore[no-untyped-def]
        view, index, against, begun, count, lists, bounds, marks, active, fields, scalars, identity, arrays, readback
    ):
        view, arrays = EdgeView(*view), VertexArrays(*arrays)
        other, other_index = EdgeView(*against[0]), against[1]
        most, most_edges, alpha, unexplored, before, unvisited = bounds[0][:6]
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
        for at in range(number):  # Numba compiles a copy of a slice, and its errors, for 2 s
            lists[at] = begun[at]
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


def numbers_of(
    bounds: FusedLimits, iterations: int, threads: int
) -> tuple[tuple[np.int64, ...], tuple[np.float64, ...]]:
    """Bounds as the kernel takes them, for at most so many iterations."""
    edges = min(bounds.edges, MOST_EDGES)
    whole = iterations, edges, bounds.alpha, bounds.unexplored, bounds.before, bounds.unvisited, threads, SHARED
    return tuple(map(np.int64, whole)), tuple(map(np.float64, (bounds.limit, bounds.bucket, bounds.per_row)))


def by_bucket(author: Author, apart: bool) -> bool:
    """Whether an iteration may be a whole bucket of priorities: updates are seen at once, and nothing counts rounds."""
    at_once = author.has_priority and not (apart or author.has_send or author.has_vectors)
    return at_once and not in_order(author) and "iteration" not in author.scalars


def make_keep_due(author: Author, both: bool) -> Any:
    """Inlined: of listed vertices those that are due, each once; the others wait in the pile.

    words: a bitmap in which nothing is marked. Returns how many, and their edges as `survey` does.
    """
    priority, weighted = author.calls["priority"], author.weighted

    @inline
    def keep_due(  # type: ignore[no-untyped-def]
        view, index, other, other_index, lists, here, number, marks, limit, words, fields, scalars, base
    ):
        pending, kept = marks[0], here
        edges, more = np.int64(0), np.int64(0)
        for i in range(here, here + number):
            v = np.uint64(lists[i])
            at = v - base
            word, low = at >> SIX, at & LOW
            first = row_start(index, v)
            d = row_start(index, v + ONE) - first
            p = np.float64(priority(fields, scalars, v, d, base))
            if p >= limit:
                wait(marks, at, p)
                continue
            pending[word] &= ~(ONE << low)
            bits = words[word]
            words[word] = bits | (ONE << low)
            new = (~bits >> low) & ONE
            lists[kept] = v
            kept += new
            edges += d * np.int64(new)
            prefetch(view.neighbors, np.uint64(first - view.e0))
            if weighted:
                prefetch(view.weights, np.uint64(first - view.e0))
            if both:
                start = row_start(other_index, v)
                more += (row_start(other_index, v + ONE) - start) * np.int64(new)
                prefetch(other.neighbors, np.uint64(start - other.e0))
        unmark_listed(words, lists, here, kept - here, base)
        return kept - here, edges, edges + more

    return keep_due


def make_fused_buckets(author: Author, both: bool, shared: bool) -> JitKernel:
    """Kernel: as `make_fused_iterations`, whose arguments it takes; an iteration lasts until no vertex is due.

    Ends too before a list with too many edges, unless it is the first and goes along one adjacency, and after MOST_WORK
    edges. shared: whether wide buckets are; without, it is compiled in two thirds of the time.
    """
    relax, take_due, ahead = make_relax_listed(author, False), make_take_due(author), inline(scalars_later(author))
    survey, keep_due, wait_again = make_survey(both), make_keep_due(author, both), make_wait_again(author)
    share = make_share_buckets(author, both)

    @kernel(f"{author.key}{both}{shared}")
    def fused_buckets(  # type: ignore[no-untyped-def]
        view, index, against, begun, count, lists, bounds, marks, active, fields, scalars, identity, arrays, readback
    ):
        view, arrays = EdgeView(*view), VertexArrays(*arrays)
        other, other_index = EdgeView(*against[0]), against[1]
        (most, most_edges, _, _, _, _, threads, fewest), (limit, bucket, _) = bounds
        base, half = arrays.base, lists.shape[0] >> 1
        most_edges = min(most_edges, half - 1)  # a vertex is listed as often as it is changed
        here, there, room = NONE, np.uint64(half), np.uint64(max(1, most_edges))
        number, done, total, going = np.uint64(count), 0, np.int64(0), True
        words, offsets, far = active[0], index[1], index[1].shape[0] > CACHED
        for at in range(number):  # Numba compiles a copy of a slice, and its errors, for 2 s
            lists[at] = begun[at]
        edges, reach = survey(view, index, other, other_index, lists, here, number)
        if reach >= half or (both and reach > most_edges):
            return done, limit
        unmark_listed(words, lists, here, number, base)
        while going:
            now = ahead(scalars, done, limit)
            vertices, walked = NONE, np.int64(0)
            while number > NONE:
                if reach > most_edges and not (done == 0 and vertices == NONE):
                    going = False
                    break
                vertices += number
                walked += edges
                end, found = here + number, NONE
                found = relax(view, index, lists, here, end, there, found, offsets, far, identity, fields, now, arrays)
                if both:
                    found = relax(
                        other, other_index, lists, here, end, there, found, offsets, far, identity, fields, now,
                        arrays,
                    )  # fmt: skip
                here, there = there, here
                number, edges, reach = keep_due(
                    view, index, other, other_index, lists, here, found, marks, limit, words, fields, now, base
                )
            if vertices > NONE:
                readback[done, 0], readback[done, 1] = vertices, walked
                done += 1
            total += walked
            if done == most or total >= MOST_WORK:
                going = False
            if shared and going and bucket > 0.0 and np.int64(vertices) >= fewest:
                done, limit, total = share(
                    (threads, fewest), view, index, against, lists, marks, (limit, bucket), fields, scalars, arrays,
                    readback, (done, most), total,
                )  # fmt: skip
                going = done < most and total < MOST_WORK * threads
            while number == NONE and going:
                number, rest = take_due(index, marks, limit, lists, here, room, fields, now, base)
                edges, reach = survey(view, index, other, other_index, lists, here, number)
                if number == NONE:
                    going = rest < np.inf and bucket > 0.0
                    if going:
                        limit = next_limit(rest, bucket)
        wait_again(index, marks, lists, here, number, fields, ahead(scalars, done, limit), base)
        return done, limit

    return fused_buckets
