"""A whole bucket of priorities as one iteration, on one core: fused iterations where updates are seen at once.

    list -> edges; who was changed is noted behind the list, as often as it was
      -> of those, who is due and not noted yet is the next list of the bucket; the others wait
      -> none left: the limit moves, as in `fused.py`

This is the bucket fusion of Zhang et al. (CGO 2020). Two loops over a list, of few instructions each and with no branch
that cannot be predicted, are faster than one that asks of every edge what becomes of its end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.host.atomics import prefetch
from penstock.engine.kernels.host.device_functions import CACHED, LOW, NONE, ONE, SIX, row_start, unmark_listed
from penstock.engine.kernels.host.due import make_take_due, make_wait_again, wait
from penstock.engine.kernels.host.fused_steps import in_order, make_ahead, make_relax_listed, make_survey, next_limit
from penstock.engine.kernels.host.jit import JitKernel, inline, kernel
from penstock.engine.kernels.interface import EdgeView, VertexArrays
from penstock.engine.program.bindings import Author

MOST_WORK = 1 << 22
"""Edges of a call: some ten milliseconds, after which a signal is heard."""


def by_bucket(author: Author, apart: bool) -> bool:
    """Whether an iteration may be a whole bucket of priorities: updates are seen at once, and nothing counts rounds."""
    at_once = author.has_priority and not (apart or author.has_send or author.has_vectors)
    return at_once and not in_order(author) and "iteration" not in author.scalars


def make_keep_due(author: Author, weighted: bool, both: bool) -> Any:
    """Inlined: of listed vertices those that are due, each once; the others wait in the pile.

    words: a bitmap in which nothing is marked. Returns how many, and their edges as `survey` does.
    """
    priority = author.calls["priority"]

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


def make_fused_buckets(author: Author, weighted: bool, both: bool, key: str) -> JitKernel:
    """Kernel: as `make_fused_iterations`, whose arguments it takes; an iteration lasts until no vertex is due.

    Ends too before a list with too many edges, unless it is the first and goes along one adjacency, and after MOST_WORK
    edges.
    """
    relax, take_due, ahead = make_relax_listed(author, weighted, False), make_take_due(author), make_ahead(author)
    survey, keep_due, wait_again = make_survey(both), make_keep_due(author, weighted, both), make_wait_again(author)

    @kernel(f"{key}{both}")
    def fused_buckets(  # type: ignore[no-untyped-def]
        view, index, against, begun, count, lists, bounds, marks, active, fields, scalars, identity, arrays, readback
    ):
        view, arrays = EdgeView(*view), VertexArrays(*arrays)
        other, other_index = EdgeView(*against[0]), against[1]
        (most, most_edges, _, _, _, _), (limit, bucket, _) = bounds
        base, half = arrays.base, lists.shape[0] >> 1
        most_edges = min(most_edges, half - 1)  # a vertex is listed as often as it is changed
        here, there, room = NONE, np.uint64(half), np.uint64(max(1, most_edges))
        number, done, total, going = np.uint64(count), 0, np.int64(0), True
        words, offsets, far = active[0], index[1], index[1].shape[0] > CACHED
        lists[: np.int64(number)] = begun[: np.int64(number)]
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
