"""What fused iterations are made of, inlined: lists of vertices, messages along their rows, new values.

An edge's two questions, whether its end takes a message and whether the message changes anything, have answers that no
branch predictor learns on a road. So `make_relax_listed` asks both without a branch: the value is written back whether
it has changed or not, and the vertex too, behind the list's end, which moves if it counts. What an edge leads to is
fetched some vertices before (`prefetch_targets`). Where there are more vertices than a cache holds (`far`), what a
vertex has that takes no message is not waited for: that takes longer than a branch that was guessed wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.atomics import CHANGES, COMBINE_ALONE, MERGE, choose, prefetch
from penstock.engine.kernels.host.device_functions import (
    LOW,
    NONE,
    ONE,
    SIX,
    degree_of,
    is_marked,
    put,
    row_start,
    take_marked,
    unmark_listed,
)
from penstock.engine.kernels.host.due import make_is_due
from penstock.engine.kernels.host.jit import compile_vertex, inline
from penstock.engine.program.bindings import Author

AHEAD = np.uint64(8)
"""So many vertices before a vertex's turn its edges are looked up."""


@inline
def next_limit(rest, bucket):  # type: ignore[no-untyped-def]
    """The limit of the bucket that holds the priority `rest`, which is below it."""
    return max((np.floor(rest / bucket) + 1.0) * bucket, np.nextafter(rest, np.inf))


def in_order(author: Author) -> bool:
    """Whether results depend on the order of a frontier: sums of floats do."""
    return author.combine == "sum" and author.message.kind == "f"


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


def make_relax_listed(author: Author, first_only: bool) -> Any:
    """Inlined: messages along the rows of lists[here : end], without a branch for each edge; returns a list's length.

    That list begins at `there`. Appended are vertices with their first message (first_only: they have messages apart,
    and no sum, so that what has none is the identity); else those that a message changes, as often as one does. It
    needs room for one vertex more. far: whether there are more vertices than a cache holds.
    """
    edge, cond, has_send, weighted = author.calls["edge"], author.calls["cond"], author.has_send, author.weighted
    changes, merge = CHANGES[author.combine], MERGE[author.combine]

    @inline
    def relax_listed(  # type: ignore[no-untyped-def]
        view, index, lists, here, end, there, found, offsets, far, identity, fields, scalars, arrays
    ):
        sent, target, base = arrays.sent, arrays.target, arrays.base
        for i in range(here, end):
            u = np.uint64(lists[i])
            later = np.uint64(lists[min(i + AHEAD, end - ONE)])
            prefetch_targets(view, index, later, target, fields[0], base)
            first, last = row_start(index, u), row_start(index, u + ONE)
            message = sent[u - base] if has_send else sent[0]
            for e in range(first - view.e0, last - view.e0):
                v = np.uint64(view.neighbors[np.uint64(e)])
                accepts = bool(cond(fields, scalars, v, np.int64(0), base))
                if far and not accepts:
                    continue
                w = view.weights[np.uint64(e)] if weighted else np.uint8(1)
                value = target.dtype.type(edge(fields, scalars, message, u, v, w, last - first, base))
                old = target[v - base]
                counts = accepts & changes(old, value)
                if far and first_only and not counts:
                    continue
                target[v - base] = choose(counts, merge(old, value), old)
                if first_only:
                    counts &= old == identity
                lists[there + found] = v
                found += np.uint64(counts)
                prefetch(offsets, v)
        return found

    return relax_listed


def make_relax(author: Author, apart: bool) -> Any:
    """Inlined: messages along the row of `u` in one adjacency; returns how many vertices are in the list now.

    Apart: those are who has a message, marked in `arrays.touched`; else who is active next and due, marked in `active`.
    later: a vertex whose turn is soon. listed: where the list begins. out: the index that priorities know.
    """
    edge, cond, has_send, weighted = author.calls["edge"], author.calls["cond"], author.has_send, author.weighted
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


def make_spread(author: Author, apart: bool, both: bool) -> Any:
    """Inlined: messages of a list along its rows; lists from `there` on who has one, or is active next; how many.

    ways: an adjacency as (view, index), and the other, read if `both`. far, identity: as `make_relax_listed` has them.
    """
    if apart and not (author.uses_activity or author.has_vectors or author.combine == "sum"):
        return _make_spread_listed(author, both)
    relax, note = make_relax(author, apart), make_note(author)
    uses_activity, ordered = apart and author.uses_activity, in_order(author)

    @inline
    def push(way, out, lists, here, there, number, found, marks, limit, active, fields, scalars, arrays):  # type: ignore[no-untyped-def]
        (view, index), end = way, here + number - ONE
        for i in range(here, here + number):
            found = relax(
                view, index, np.uint64(lists[i]), lists[min(i + AHEAD, end)], lists, there, found, out, marks, limit,
                active, fields, scalars, arrays,
            )  # fmt: skip
        return found

    @inline
    def spread(  # type: ignore[no-untyped-def]
        ways, lists, here, there, number, far, marks, limit, active, identity, fields, scalars, arrays
    ):
        out, found = ways[0][1], NONE
        found = push(ways[0], out, lists, here, there, number, found, marks, limit, active, fields, scalars, arrays)
        if both:
            found = push(ways[1], out, lists, here, there, number, found, marks, limit, active, fields, scalars, arrays)
        words, summary = (arrays.touched, arrays.summary) if apart else active
        if uses_activity:
            for i in range(here, here + number):
                found = note(words, summary, np.uint64(lists[i]), arrays.base, lists, there, found, out[1])
        if ordered:
            return take_marked(words, summary, lists, there, arrays.base)
        unmark_listed(words, lists, there, found, arrays.base)
        return found

    return spread


def _make_spread_listed(author: Author, both: bool) -> Any:
    relax = make_relax_listed(author, True)

    @inline
    def spread(  # type: ignore[no-untyped-def]
        ways, lists, here, there, number, far, marks, limit, active, identity, fields, scalars, arrays
    ):
        (view, index), end = ways[0], here + number
        offsets = index[1]
        found = relax(view, index, lists, here, end, there, NONE, offsets, far, identity, fields, scalars, arrays)
        if both:
            view, index = ways[1]
            found = relax(view, index, lists, here, end, there, found, offsets, far, identity, fields, scalars, arrays)
        return found

    return spread


def make_renew(author: Author, both: bool) -> Any:
    """Inlined: `vertex` for every listed vertex, as `vertices.make_apply`; who is active next and due stays listed.

    Returns how many, and their edges as `survey` does.
    """
    vertex, load, store = author.calls["vertex"], author.calls["load"], author.calls["store"]
    is_next, has_priority, is_due = author.calls["active"], author.has_priority, make_is_due(author)
    uses_activity, resets = author.uses_activity, author.resets

    @compile_vertex(author)
    def renew(  # type: ignore[no-untyped-def]
        view, index, other, other_index, lists, there, number, marks, limit, active, fields, scalars, identity, arrays
    ):
        incoming, base = arrays.target, arrays.base
        kept, edges, more = there, np.int64(0), np.int64(0)
        for i in range(there, there + number):
            v = np.uint64(lists[i])
            at = v - base
            first = row_start(index, v)
            d = row_start(index, v + ONE) - first
            old = load(fields, v, base)
            was_active = uses_activity and is_marked(active, at)
            store(fields, v, base, vertex(fields, scalars, incoming[at], was_active, v, d, base))
            if resets:
                incoming[at] = identity
            if (is_next(fields, old, scalars, v, d, base) or (has_priority and is_marked(marks[0], at))) and is_due(
                index, marks, limit, v, fields, scalars, base
            ):
                lists[kept] = v
                kept += ONE
                edges += d
                prefetch(view.neighbors, np.uint64(first - view.e0))
                if both:
                    more += degree_of(other_index, v)
                    prefetch(other.neighbors, np.uint64(row_start(other_index, v) - other.e0))
        return kept - there, edges, edges + more

    return renew
