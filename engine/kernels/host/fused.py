"""Many iterations in one call, on one core: for small frontiers of programs whose edges all lie in memory.

A frontier of a few hundred edges costs a core some microseconds, and the Python between two kernels seventy; roads and
grids have thousands of such frontiers. Here one call stays, and does in the same order what the loop and the kernels of
`launch.py` would do, one iteration after another: the same records, and sums to the bit as one thread adds them up.
Nobody else is at work meanwhile, so that nothing is atomic.

    list (ascending) -> send() -> edges; who gets a message is touched, or pending where updates are seen at once
      -> vertex() of touched vertices; those active next are pending
      -> vertices that are pending and due move from the bitmap to the list; none due: the limit moves, as in `Loop`

Programs with a priority may have many pending vertices that are not due for long, so every word of the bitmap, and
every span of 64 words, has a lower bound of its vertices' priorities: what cannot be due is passed over. That is the
far pile of Davidson et al. (IPDPS 2014), kept in place. Ends before a frontier that the loop might not push, or that is
worth several threads; vertices taken for it are pending again. Refuses (`fits`) programs that need the host
between two iterations, or whose priorities change with more than the vertex's own values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.host.atomics import COMBINE_ALONE, lowest_bit
from penstock.engine.kernels.host.device_functions import LOW, ONE, SIX, degree_of, is_marked, row_start
from penstock.engine.kernels.host.jit import JitKernel, compile_vertex, inline, kernel
from penstock.engine.kernels.interface import EdgeView, VertexArrays
from penstock.engine.program.bindings import Author
from penstock.engine.program.program import Program, arguments, author_function

if TYPE_CHECKING:
    from penstock.engine.state.fused_limits import FusedLimits

MOST_ITERATIONS = 1024
MOST_EDGES = 1 << 14
"""Of a frontier, and as many vertices: what one thread walks sooner than several wake up."""
PATIENCE = 32
"""So many small frontiers a program has had before: to compile or to load a kernel for a few more does not pay."""
NONE = np.uint64(0)


def fits(program: Program, author: Author) -> bool:
    """Whether all that changes between two iterations is the frontier, the iteration's number and the limit."""
    priority = author_function(program, "priority")
    steady = priority is None or not {"iteration", "due"} & set(arguments(priority))
    return (
        steady
        and not (author.totals or author.everywhere or author.combine in ("union", "all"))
        and type(program).done is Program.done
    )


def make_ahead(author: Author) -> Callable[..., Any]:
    """Inlined: the scalars some iterations later, below another limit."""
    later = {"iteration": "scalars[{0}] + count", "due": "limit"}
    names = [later.get(name, "scalars[{0}]").format(k) + ", " for k, name in enumerate(author.scalars)]
    text = "def ahead(scalars, count, limit):\n    return " + (f"({''.join(names)})\n" if names else "scalars\n")
    namespace: dict[str, Any] = {}
    exec(compile(text, "<penstock adapter ahead>", "exec"), namespace)
    return inline(namespace["ahead"])


@inline
def put(words, summary, v):  # type: ignore[no-untyped-def]
    """Set the bit of `v` (uint64, less base)."""
    word = v >> SIX
    words[word] |= ONE << (v & LOW)
    summary[word >> SIX] |= ONE << (word & LOW)


def make_wait(author: Author) -> Any:
    """Inlined: make a vertex pending, and keep the lower bounds of its word and of its span."""
    priority, has_priority = author.calls["priority"], author.has_priority

    @inline
    def wait(index, marks, v, fields, scalars, base):  # type: ignore[no-untyped-def]
        pending, summary, word_lows, span_lows = marks
        at = v - base
        if has_priority:
            d = degree_of(index, v)
            p = np.float64(priority(fields, scalars, v, d, base))
            if np.isnan(p):
                p = np.float64(-np.inf)
            word, over = at >> SIX, at >> (SIX + SIX)
            if pending[word] == NONE or p < word_lows[word]:
                word_lows[word] = p
            if summary[over] == NONE or p < span_lows[over]:
                span_lows[over] = p
        put(pending, summary, at)

    return wait


def make_push(author: Author, weighted: bool, apart: bool) -> Any:
    """Inlined: what the listed vertices send, and their edges, in ascending order."""
    edge, cond, send = author.calls["edge"], author.calls["cond"], author.calls["send"]
    combine, has_send, wait = COMBINE_ALONE[author.combine], author.has_send, make_wait(author)

    @inline
    def push(view, index, listed, number, marks, fields, scalars, arrays):  # type: ignore[no-untyped-def]
        sent, target, base = arrays.sent, arrays.target, arrays.base
        vertices, work = listed
        if has_send:
            for i in range(number):
                u = np.uint64(vertices[i])
                sent[u - base] = send(fields, scalars, u, work[i + 1] - work[i], base)
        for i in range(number):
            u = np.uint64(vertices[i])
            d = work[i + 1] - work[i]
            message = sent[u - base] if has_send else sent[0]
            first = row_start(index, u) - view.e0
            for e in range(first, first + d):
                v = np.uint64(view.neighbors[np.uint64(e)])
                if cond(fields, scalars, v, np.int64(0), base):
                    w = view.weights[np.uint64(e)] if weighted else np.uint8(1)
                    value = target.dtype.type(edge(fields, scalars, message, u, v, w, d, base))
                    if combine(target, v - base, value):
                        if apart:
                            put(arrays.touched, arrays.summary, v - base)
                        else:
                            wait(index, marks, v, fields, scalars, base)

    return push


def make_renew(author: Author) -> Any:
    """Inlined: `vertex` for every touched vertex, as `vertices.make_apply`; those active next are pending."""
    vertex, load, store = author.calls["vertex"], author.calls["load"], author.calls["store"]
    is_next, has_priority = author.calls["active"], author.has_priority
    uses_activity, wait = author.uses_activity, make_wait(author)

    @compile_vertex(author)
    def renew(index, marks, active, fields, scalars, identity, arrays):  # type: ignore[no-untyped-def]
        incoming, touched, summary, base = arrays.target, arrays.touched, arrays.summary, arrays.base
        for over in range(summary.shape[0]):
            upper = summary[over]
            summary[over] = NONE
            if uses_activity:
                upper |= active[1][over]
                active[1][over] = NONE
            while upper != NONE:
                word = (np.uint64(over) << SIX) | lowest_bit(upper)
                upper &= upper - ONE
                was_active = active[0][word]
                left = touched[word]
                touched[word] = NONE
                if uses_activity:
                    left |= was_active
                    active[0][word] = NONE
                while left != NONE:
                    bit = left & (~left + ONE)
                    at = (word << SIX) | lowest_bit(left)
                    left &= left - ONE
                    v = at + base
                    d = degree_of(index, v)
                    old = load(fields, v, base)
                    new = vertex(fields, scalars, incoming[at], was_active & bit != NONE, v, d, base)
                    store(fields, v, base, new)
                    incoming[at] = identity
                    active_next = is_next(fields, old, scalars, v, d, base)
                    if active_next or (has_priority and is_marked(marks[0], at)):
                        wait(index, marks, v, fields, scalars, base)

    return renew


def make_select_due(author: Author) -> Any:
    """Inlined: move vertices that are pending and due from the bitmap to the list, ascending, while it has room.

    fresh: nothing is known of the bounds yet. Returns how many, and the lowest bound of the rest.
    """
    priority, has_priority = author.calls["priority"], author.has_priority

    @inline
    def select_due(index, marks, fresh, limit, listed, room, fields, scalars, base):  # type: ignore[no-untyped-def]
        pending, summary, word_lows, span_lows = marks
        vertices, work = listed
        number, edges, rest = np.int64(0), np.int64(0), np.inf
        for over in range(summary.shape[0]):
            upper = summary[over]
            if upper == NONE:
                continue
            if has_priority and not fresh and span_lows[over] >= limit:
                rest = min(rest, span_lows[over])
                continue
            kept, span_low = upper, np.inf
            while upper != NONE:
                bit = upper & (~upper + ONE)
                word = (np.uint64(over) << SIX) | lowest_bit(upper)
                upper &= upper - ONE
                if has_priority and not fresh and word_lows[word] >= limit:
                    span_low = min(span_low, word_lows[word])
                    continue
                left, stays, low = pending[word], NONE, np.inf
                while left != NONE:
                    one = left & (~left + ONE)
                    v = ((word << SIX) | lowest_bit(left)) + base
                    left &= left - ONE
                    d = degree_of(index, v)
                    if has_priority:
                        p = np.float64(priority(fields, scalars, v, d, base))
                        if p >= limit:
                            stays |= one
                            low = min(low, p)
                            continue
                    if number == room:
                        stays |= one
                        continue
                    vertices[number] = v
                    work[number] = edges
                    number += 1
                    edges += d
                pending[word] = stays
                if stays == NONE:
                    kept &= ~bit
                if has_priority:
                    word_lows[word] = low
                    span_low = min(span_low, low)
            summary[over] = kept
            if has_priority:
                span_lows[over] = span_low
                rest = min(rest, span_low)
        work[number] = edges
        return number, rest

    return select_due


def make_fused_iterations(author: Author, weighted: bool, apart: bool, key: str) -> JitKernel:
    """Kernel: iterations until a bound; apart: messages lie apart (synchronous), see `State.accumulate_apart`.

    listed: (vertices, work) of the first frontier, `number` of them, which is run whatever its size; then of those that
    follow. bounds (see `fused_limits.py`): int64 (iterations, edges, alpha, unexplored, before, unvisited) and float64
    (limit, bucket, per_row). marks: words and summary of who is pending, room for the bounds of their priorities
    (float64, one a word and one a span). active: words and summary. arrays: VertexArrays. readback:
    int64[iterations, 2], vertices and edges of every iteration. Returns how many, and the limit.
    """
    push, renew, select_due = make_push(author, weighted, apart), make_renew(author), make_select_due(author)
    ahead = make_ahead(author)
    uses_activity = author.uses_activity

    @kernel(f"{key}{apart}")
    def fused_iterations(  # type: ignore[no-untyped-def]
        view, index, listed, number, bounds, marks, active, fields, scalars, identity, arrays, readback
    ):
        view, arrays = EdgeView(*view), VertexArrays(*arrays)
        most, most_edges, alpha, unexplored, before, unvisited = bounds[0]
        limit, bucket, per_row = bounds[1]
        vertices, work = listed
        room = max(1, min(vertices.shape[0], most_edges))
        done = 0
        going = fresh = True
        while going:
            now = ahead(scalars, done, limit)
            if number > 0:
                if uses_activity and done > 0:
                    for i in range(number):
                        put(active[0], active[1], np.uint64(vertices[i]) - arrays.base)
                push(view, index, listed, number, marks, fields, now, arrays)
                if apart:
                    renew(index, marks, active, fields, now, identity, arrays)
                readback[done, 0], readback[done, 1] = number, work[number]
                unexplored -= work[number]
                unvisited -= number
                before = number
                done += 1
            number, rest = select_due(index, marks, fresh, limit, listed, room, fields, now, arrays.base)
            fresh = False
            if number > 0:
                edges = work[number]
                grown = alpha > 0 and number > before and edges > unexplored // alpha
                pulled = per_row > 0.0 and edges > per_row * unvisited
                going = not (number == room or done == most or edges > most_edges or grown or pulled)
            else:
                going = rest < np.inf and bucket > 0.0
                if going:
                    limit = max((np.floor(rest / bucket) + 1.0) * bucket, np.nextafter(rest, np.inf))
        for i in range(number):
            put(marks[0], marks[1], np.uint64(vertices[i]) - arrays.base)
        return done, limit

    return fused_iterations


def numbers_of(bounds: FusedLimits, iterations: int) -> tuple[tuple[np.int64, ...], tuple[np.float64, ...]]:
    """Bounds as the kernel takes them, for at most so many iterations."""
    edges = min(bounds.edges, MOST_EDGES)
    whole = iterations, edges, bounds.alpha, bounds.unexplored, bounds.before, bounds.unvisited
    return tuple(map(np.int64, whole)), tuple(map(np.float64, (bounds.limit, bounds.bucket, bounds.per_row)))
