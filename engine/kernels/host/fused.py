"""Many iterations in one call, on one core: for small frontiers of programs whose edges all lie in memory.

A frontier of a hundred edges costs a core a microsecond, and the Python between two kernels seventy; roads and
grids have thousands of such frontiers. Here one call stays, and does what the loop and the kernels of `launch.py` would
do, one iteration after another. No other thread is at work meanwhile, so that nothing is atomic.

    list -> send() -> edges; who gets a message is noted in the other list, once
      -> vertex() of those; who is active next stays in that list, or waits if not due
      -> none due: the limit moves, as in `Loop`, and who is due by then is taken from those that wait

Frontiers are lists, not bitmaps: to find a hundred vertices in words of 64 costs more than their
edges. What an edge leads to is brought into the cache some vertices before (`prefetch_targets`).
The lists are in the order in which vertices were reached, which no integer result depends on. Where messages are floats
that are added up they are in ascending order, so that sums are those of one thread of the loop, to the bit. Frontiers
are those of the loop, unless updates are seen at once: then what one vertex sees depends on who was before it.

Ends before a frontier that the loop might not push, or that is worth several threads; vertices taken for it are pending
again. Refuses (`fits`) programs that need the host between two iterations, or whose priorities change with more than
the vertex's own values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.host.atomics import COMBINE_ALONE, prefetch
from penstock.engine.kernels.host.device_functions import (
    LOW,
    NONE,
    ONE,
    SIX,
    degree_of,
    is_marked,
    mark_listed,
    put,
    row_start,
    take_marked,
    unmark_listed,
)
from penstock.engine.kernels.host.frontier import make_is_due, make_take_due
from penstock.engine.kernels.host.jit import JitKernel, compile_vertex, inline, kernel
from penstock.engine.kernels.interface import EdgeView, VertexArrays
from penstock.engine.program.bindings import Author
from penstock.engine.program.program import Program, arguments, author_function

if TYPE_CHECKING:
    from penstock.engine.state.fused_limits import FusedLimits

MOST_ITERATIONS = 2048
MOST_EDGES = 1 << 14
"""Of a frontier, and as many vertices: what one thread walks sooner than several wake up (`state.FUSED_LIST`)."""
AHEAD = np.uint64(8)
"""So many vertices before a vertex's turn its edges are looked up."""
MOST_WORK = 1 << 22
"""Edges of a call: some ten milliseconds, after which a signal is heard."""
PATIENCE = 32
"""So many small frontiers a program has had before a kernel is compiled or loaded: for a few more it does not pay."""


def fits(program: Program, author: Author) -> bool:
    """Whether all that changes between two iterations is the frontier, the iteration's number and the limit."""
    priority = author_function(program, "priority")
    steady = priority is None or not {"iteration", "due"} & set(arguments(priority))
    return (
        steady
        and not (author.totals or author.everywhere or author.combine in ("union", "all"))
        and type(program).done is Program.done
    )


def in_order(author: Author) -> bool:
    """Whether results depend on the order of a frontier: sums of floats do."""
    return author.combine == "sum" and author.message.kind == "f"


def make_ahead(author: Author) -> Callable[..., Any]:
    """Inlined: the scalars some iterations later, below another limit."""
    later = {"iteration": "scalars[{0}] + count", "due": "limit"}
    names = [later.get(name, "scalars[{0}]").format(k) + ", " for k, name in enumerate(author.scalars)]
    text = "def ahead(scalars, count, limit):\n    return " + (f"({''.join(names)})\n" if names else "scalars\n")
    namespace: dict[str, Any] = {}
    exec(compile(text, "<penstock adapter ahead>", "exec"), namespace)
    return inline(namespace["ahead"])


def make_note(author: Author) -> Any:
    """Inlined: append a vertex to a list unless it is marked, and mark it; returns the length of the list.

    In order: it is only marked, for `take_marked`. offsets: of the index, whose entry is read soon.
    """
    ordered = in_order(author)

    @inline
    def note(words, summary, v, base, lists, listed, number, offsets):  # type: ignore[no-untyped-def]
        at = v - base
        if ordered:
            put(words, summary, at)
            return number
        word, bit = at >> SIX, ONE << (at & LOW)
        if words[word] & bit == NONE:
            words[word] |= bit
            lists[listed + number] = v
            number += ONE
            prefetch(offsets, v)
        return number

    return note


@inline
def prefetch_targets(view, index, u, target, field, base):  # type: ignore[no-untyped-def]
    """Begin to read what two neighbors of `u` have: whether they take a message is a branch that waits for it."""
    if view.e1 == view.e0:
        return
    last = np.uint64(view.e1 - view.e0) - ONE
    first = np.uint64(row_start(index, u) - view.e0)
    for e in (min(first, last), min(first + ONE, last)):
        at = np.uint64(view.neighbors[e]) - base
        prefetch(target, at)
        prefetch(field, at)


def make_survey(both: bool) -> Any:
    """Inlined: how many edges listed vertices have, along `index` and in all; begins to read them."""

    @inline
    def survey(view, index, other, other_index, lists, listed, number):  # type: ignore[no-untyped-def]
        edges, more = np.int64(0), np.int64(0)
        for i in range(listed, listed + number):
            u = np.uint64(lists[i])
            edges += degree_of(index, u)
            prefetch(view.neighbors, np.uint64(row_start(index, u) - view.e0))
            if both:
                more += degree_of(other_index, u)
                prefetch(other.neighbors, np.uint64(row_start(other_index, u) - other.e0))
        return edges, edges + more

    return survey


def make_send_all(author: Author) -> Any:
    """Inlined: what the listed vertices send."""
    send = author.calls["send"]

    @inline
    def send_all(index, lists, listed, number, fields, scalars, arrays):  # type: ignore[no-untyped-def]
        for i in range(listed, listed + number):
            u = np.uint64(lists[i])
            arrays.sent[u - arrays.base] = send(fields, scalars, u, degree_of(index, u), arrays.base)

    return send_all


def make_relax(author: Author, weighted: bool, apart: bool) -> Any:
    """Inlined: messages along the row of `u` in one adjacency; returns how many vertices are in the list now.

    Apart: those are who has a message, marked in `arrays.touched`; else who is active next and due, marked in `active`.
    later: a vertex whose turn is soon. listed: where the list begins. out: the index that priorities know.
    """
    edge, cond, has_send = author.calls["edge"], author.calls["cond"], author.has_send
    combine, note, is_due = COMBINE_ALONE[author.combine], make_note(author), make_is_due(author)

    @inline
    def relax(  # type: ignore[no-untyped-def]
        view, index, u, later, lists, listed, number, out, marks, limit, active, fields, scalars, arrays
    ):
        sent, target, base = arrays.sent, arrays.target, arrays.base
        marked, summary = (arrays.touched, arrays.summary) if apart else active
        first, last = row_start(index, u), row_start(index, u + ONE)
        d = last - first
        prefetch_targets(view, index, np.uint64(later), target, fields[0], base)
        message = sent[u - base] if has_send else sent[0]
        for e in range(first - view.e0, last - view.e0):
            v = np.uint64(view.neighbors[np.uint64(e)])
            if cond(fields, scalars, v, np.int64(0), base):
                w = view.weights[np.uint64(e)] if weighted else np.uint8(1)
                value = target.dtype.type(edge(fields, scalars, message, u, v, w, d, base))
                if combine(target, v - base, value) and (apart or is_due(out, marks, limit, v, fields, scalars, base)):
                    number = note(marked, summary, v, base, lists, listed, number, index[1])
        return number

    return relax


def make_push(author: Author, weighted: bool, apart: bool) -> Any:
    """Inlined: `relax` for all listed vertices; here, there: where the lists begin."""
    relax = make_relax(author, weighted, apart)

    @inline
    def push(  # type: ignore[no-untyped-def]
        view, index, lists, here, there, number, found, out, marks, limit, active, fields, scalars, arrays
    ):
        end = here + number - ONE
        for i in range(here, here + number):
            found = relax(
                view, index, np.uint64(lists[i]), lists[min(i + AHEAD, end)], lists, there, found, out, marks, limit,
                active, fields, scalars, arrays,
            )  # fmt: skip
        return found

    return push


def make_renew(author: Author) -> Any:
    """Inlined: `vertex` for every listed vertex, as `vertices.make_apply`; who is active next and due stays listed."""
    vertex, load, store = author.calls["vertex"], author.calls["load"], author.calls["store"]
    is_next, has_priority, is_due = author.calls["active"], author.has_priority, make_is_due(author)
    uses_activity = author.uses_activity

    @compile_vertex(author)
    def renew(index, lists, there, number, marks, limit, active, fields, scalars, identity, arrays):  # type: ignore[no-untyped-def]
        incoming, base = arrays.target, arrays.base
        kept = there
        for i in range(there, there + number):
            v = np.uint64(lists[i])
            at = v - base
            d = degree_of(index, v)
            old = load(fields, v, base)
            was_active = uses_activity and is_marked(active, at)
            store(fields, v, base, vertex(fields, scalars, incoming[at], was_active, v, d, base))
            incoming[at] = identity
            if (is_next(fields, old, scalars, v, d, base) or (has_priority and is_marked(marks[0], at))) and is_due(
                index, marks, limit, v, fields, scalars, base
            ):
                lists[kept] = v
                kept += ONE
        return kept - there

    return renew


def make_fused_iterations(author: Author, weighted: bool, apart: bool, both: bool, key: str) -> JitKernel:
    """Kernel: iterations until a bound; apart: messages lie apart (synchronous), see `State.accumulate_apart`.

    both: messages go along the rows of two adjacencies, `against` too; else that is what nothing reads. No iteration is
    run where the first frontier has too many edges in both.

    lists: `State.lists`; the first frontier is the first `count` of `begun`, and is run whatever its size. bounds
    (see `fused_limits.py`): int64 (iterations, edges, alpha, unexplored, before, unvisited) and float64 (limit, bucket,
    per_row). marks: words and summary of who is pending, room for the bounds of their priorities (float64, one a word
    and one a span). active: words and summary. arrays: VertexArrays. readback: int64[iterations, 2], vertices and edges
    of every iteration. Returns how many, and the limit.
    """
    push, renew, take_due = make_push(author, weighted, apart), make_renew(author), make_take_due(author)
    ahead, has_priority, ordered = make_ahead(author), author.has_priority, in_order(author)
    uses_activity, has_send, send_all = apart and author.uses_activity, author.has_send, make_send_all(author)
    note, survey = make_note(author), make_survey(both)

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
        number, done, going, fresh = np.uint64(count), 0, True, True
        lists[: np.int64(number)] = begun[: np.int64(number)]
        edges, reach = survey(view, index, other, other_index, lists, here, number)
        if both and reach > most_edges:
            return done, limit
        if not uses_activity:
            unmark_listed(active[0], lists, here, number, base)
        while going:
            now = ahead(scalars, done, limit)
            if uses_activity and done > 0:
                mark_listed(active[0], lists, here, number, base)
            if has_send:
                send_all(index, lists, here, number, fields, now, arrays)
            found = NONE
            found = push(
                view, index, lists, here, there, number, found, index, marks, limit, active, fields, now, arrays
            )
            if both:
                found = push(
                    other, other_index, lists, here, there, number, found, index, marks, limit, active, fields, now,
                    arrays,
                )  # fmt: skip
            marked, summary = (arrays.touched, arrays.summary) if apart else active
            if uses_activity:
                for i in range(here, here + number):
                    found = note(marked, summary, np.uint64(lists[i]), base, lists, there, found, index[1])
            if ordered:
                found = take_marked(marked, summary, lists, there, base)
            else:
                unmark_listed(marked, lists, there, found, base)
            if apart:
                found = renew(index, lists, there, found, marks, limit, active[0], fields, now, identity, arrays)
            if uses_activity:
                unmark_listed(active[0], lists, here, number, base)
            readback[done, 0], readback[done, 1] = number, edges
            unexplored -= edges
            unvisited -= np.int64(number)
            before = np.int64(number)
            done += 1
            here, there, number = there, here, found
            while has_priority and number == NONE and going:
                number, rest = take_due(index, marks, fresh, limit, lists, here, room, fields, now, base)
                fresh = False
                if number == NONE:
                    going = rest < np.inf and bucket > 0.0
                    if going:
                        limit = max((np.floor(rest / bucket) + 1.0) * bucket, np.nextafter(rest, np.inf))
            edges, reach = survey(view, index, other, other_index, lists, here, number)
            grown = alpha > 0 and np.int64(number) > before and edges > unexplored // alpha
            pulled = per_row > 0.0 and edges > per_row * unvisited
            going = not (number == NONE or number >= room or done == most or reach > most_edges or grown or pulled)
        for i in range(here, here + number):
            put(marks[0], marks[1], np.uint64(lists[i]) - base)
        return done, limit

    return fused_iterations


def by_bucket(author: Author, apart: bool) -> bool:
    """Whether an iteration may be a whole bucket of priorities: updates are seen at once, and nothing counts rounds."""
    return author.has_priority and not (apart or author.has_send or in_order(author) or "iteration" in author.scalars)


def make_fused_buckets(author: Author, weighted: bool, both: bool, key: str) -> JitKernel:
    """Kernel: as `make_fused_iterations`, whose arguments it takes; an iteration lasts until no vertex is due.

    The frontier is a queue in `lists`; who is in it is marked in `active`. Each time that all who were in it have had
    their turn, its edges are counted. Ends too after MOST_WORK edges. This is the bucket fusion of Zhang et al. (CGO
    2020), on one core.
    """
    relax, take_due, ahead = make_relax(author, weighted, False), make_take_due(author), make_ahead(author)
    survey = make_survey(both)

    @kernel(f"{key}{both}")
    def fused_buckets(  # type: ignore[no-untyped-def]
        view, index, against, begun, count, lists, bounds, marks, active, fields, scalars, identity, arrays, readback
    ):
        view, arrays = EdgeView(*view), VertexArrays(*arrays)
        other, other_index = EdgeView(*against[0]), against[1]
        (most, most_edges, _, _, _, _), (limit, bucket, _) = bounds
        base, size, vertices = arrays.base, np.uint64(lists.shape[0]), np.int64(lists.shape[0] >> 1)
        room = np.uint64(max(1, min(vertices, most_edges)))
        tail, done, total, going, fresh = np.uint64(count), 0, np.int64(0), True, True
        lists[: np.int64(tail)] = begun[: np.int64(tail)]
        while going:
            now = ahead(scalars, done, limit)
            head, turn, edges = NONE, NONE, np.int64(0)
            while head < tail:
                if head == turn:
                    waiting = survey(view, index, other, other_index, lists, head, tail - head)[1]
                    if waiting > most_edges and (done > 0 or head > NONE or both):
                        going = False
                        break
                    turn = tail
                u = np.uint64(lists[head])
                d = degree_of(index, u)
                reach = d + degree_of(other_index, u) if both else d
                if tail + np.uint64(min(reach, vertices)) > size:
                    break
                head += ONE
                active[0][(u - base) >> SIX] &= ~(ONE << ((u - base) & LOW))
                near = lists[min(head + AHEAD, tail - ONE)]
                tail = relax(view, index, u, near, lists, NONE, tail, index, marks, limit, active, fields, now, arrays)
                if both:
                    tail = relax(
                        other, other_index, u, near, lists, NONE, tail, index, marks, limit, active, fields, now, arrays
                    )
                edges += d
            if head > NONE:
                readback[done, 0], readback[done, 1] = head, edges
                done += 1
            total += edges
            for i in range(head, tail):
                lists[i - head] = lists[i]
            tail -= head
            if tail >= room or done >= most or total >= MOST_WORK:
                going = False
            while tail == NONE and going:
                tail, rest = take_due(index, marks, fresh, limit, lists, NONE, room, fields, now, base)
                fresh = False
                mark_listed(active[0], lists, NONE, tail, base)
                if tail == NONE:
                    going = rest < np.inf and bucket > 0.0
                    if going:
                        limit = max((np.floor(rest / bucket) + 1.0) * bucket, np.nextafter(rest, np.inf))
        if done > 0:
            unmark_listed(active[0], lists, NONE, tail, base)
            for i in range(tail):
                put(marks[0], marks[1], np.uint64(lists[i]) - base)
        return done, limit

    return fused_buckets


def numbers_of(bounds: FusedLimits, iterations: int) -> tuple[tuple[np.int64, ...], tuple[np.float64, ...]]:
    """Bounds as the kernel takes them, for at most so many iterations."""
    edges = min(bounds.edges, MOST_EDGES)
    whole = iterations, edges, bounds.alpha, bounds.unexplored, bounds.before, bounds.unvisited
    return tuple(map(np.int64, whole)), tuple(map(np.float64, (bounds.limit, bounds.bucket, bounds.per_row)))
