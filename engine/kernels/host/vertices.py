"""Loops over vertices: what a vertex sends, what it becomes, what the globals add up to.

Work goes by spans of 4096 vertices (one summary word), each owned by one thread. Globals are summed
span by span in a fixed order, so that they do not depend on the number of threads.

First values of arrays are written by the threads of kernels, too. What is written first is first given by the system,
page by page, which takes longer than the writing and goes on in as many threads as ask. These threads are there
already: a pool of others, started for each array, takes longer than the pages where cores are many, and its stacks wait
for the same lock as they do.
"""

from __future__ import annotations

import itertools
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.atomics import lowest_bit
from penstock.engine.kernels.host.device_functions import LOW, ONE, SIX, degree_of
from penstock.engine.kernels.host.jit import compile_vertex, inline, loop_kernel, use_workers
from penstock.engine.kernels.shared_functions import make_with_sent
from penstock.engine.program.bindings import Author
from penstock.engine.state.state import fill_ranges

SPAN = np.uint64(4096)
PAGE = 1 << 21
"""Bytes of a piece: the huge pages that NumPy asks for where an array is large; no two threads wait for one of them."""
LARGE_BYTES = 1 << 25
"""An array of fewer bytes is filled sooner than the kernel is loaded."""
PATIENCE = 4
"""So many arrays of fewer bytes, and more than a page, are filled before the kernel is loaded for these too."""
WORD = 8
_SMALLER = itertools.count()


def make_send(author: Author) -> Any:
    """Kernel: sent[v] = send(...) for the active vertices (for every vertex if `whole`).

    places: where in `sent` each vertex' message is if `whole` (`grouped_sources.py`); no items: at the vertex' number.
    The field that takes the messages of a sweep is emptied.
    """
    send, in_place = author.calls["send"], author.in_place
    empty: Any = author.calls.get("empty")

    @loop_kernel(author.key, counted=True, distinct=True)
    def send_all(  # type: ignore[no-untyped-def]
        first_step, end_step, active, active_summary, whole, index, fields, scalars, sent, places, identity, base
    ):
        count, placed = np.uint64(sent.shape[0]), places.shape[0] > 0
        span = np.empty(SPAN if placed else np.uint64(0), sent.dtype)
        for over in range(first_step, end_step):
            first = np.uint64(over) * SPAN
            if whole:
                end = min(first + SPAN, count)
                to, begin = (span, first) if placed else (sent, np.uint64(0))
                for at in range(first, end):
                    v = np.uint64(at) + base
                    d = degree_of(index, v)
                    to[np.uint64(at) - begin] = send(fields, scalars, v, d, base)
                    if in_place:
                        empty(fields, v, base, identity)
                if placed:
                    for at in range(first, end):
                        sent[np.uint64(places[np.uint64(at)])] = span[np.uint64(at) - first]
                continue
            upper = active_summary[over]
            while upper != 0:
                word = (np.uint64(over) << SIX) | lowest_bit(upper)
                upper &= upper - ONE
                left = active[word]
                while left != 0:
                    at = (word << SIX) | lowest_bit(left)
                    left &= left - ONE
                    d = degree_of(index, at + base)
                    sent[at] = send(fields, scalars, at + base, d, base)

    return send_all


def make_apply(author: Author) -> Any:
    """Kernel: run `vertex` where messages arrived, reset the accumulators, mark who is active next.

    Touched vertices, active ones too where `vertex` asks `is_active`, or all vertices if `whole`.
    partial float64[spans, globals]: each span's share of the Globals of those vertices.
    `touched` is cleared, but of sweeps, which mark nothing; `following` (whose words may hold bits already) gains the
    next frontier. Of sweeps that combine messages in a field (`Author.in_place`), `incoming` is what was sent, if
    anything, in `places` as in `make_send`.
    """
    vertex, load, store = author.calls["vertex"], author.calls["load"], author.calls["store"]
    is_next, accumulate = author.calls["active"], author.calls["accumulate"]
    uses_activity, totals, everywhere = author.uses_activity, len(author.totals), author.everywhere
    resets, in_place, tells_sent = author.resets, author.in_place, author.tells_sent
    arrived: Any = author.calls.get("arrived")
    with_sent = inline(make_with_sent(tells_sent))

    @compile_vertex(author)
    def renew(fields, scalars, incoming, place, identity, was_active, v, d, base, partial, over):  # type: ignore[no-untyped-def]
        old, own = load(fields, v, base), with_sent(scalars, incoming, place)
        message = arrived(fields, v, base) if in_place else incoming[place]
        store(fields, v, base, vertex(fields, own, message, was_active, v, d, base))
        if resets:
            incoming[place] = identity
        if totals > 0:
            accumulate(partial, over, fields, old, own, v, d, base)
        return is_next(fields, old, scalars, v, d, base)

    @loop_kernel(author.key, counted=author.may_make_arrays, distinct=resets or in_place)
    def apply(  # type: ignore[no-untyped-def]
        first_step,
        end_step,
        touched,
        touched_summary,
        active,
        active_summary,
        following,
        following_summary,
        whole,
        index,
        fields,
        scalars,
        incoming,
        places,
        identity,
        base,
        partial,
    ):
        count, placed = np.uint64(incoming.shape[0]), tells_sent and places.shape[0] > 0
        for over in range(first_step, end_step):
            first = np.uint64(over) * SPAN
            if whole:
                if not everywhere:
                    touched_summary[over] = np.uint64(0)
                for word in range(first >> SIX, (min(first + SPAN, count) + LOW) >> SIX):
                    if not everywhere:
                        touched[np.uint64(word)] = np.uint64(0)
                    start = np.uint64(word) << SIX
                    chosen = np.uint64(0)
                    for at in range(start, min(start + np.uint64(64), count)):
                        v = np.uint64(at) + base
                        d = degree_of(index, v)
                        place = np.uint64(places[np.uint64(at)]) if placed else np.uint64(at)
                        if renew(fields, scalars, incoming, place, identity, True, v, d, base, partial, over):
                            chosen |= ONE << (np.uint64(at) & LOW)
                    if chosen != 0 and not everywhere:
                        following[np.uint64(word)] |= chosen
                        following_summary[over] |= ONE << (np.uint64(word) & LOW)
                continue
            upper = touched_summary[over]
            if uses_activity:
                upper |= active_summary[over]
            touched_summary[over] = np.uint64(0)
            chosen = following_summary[over]
            while upper != 0:
                bit = upper & (~upper + ONE)
                word = (np.uint64(over) << SIX) | lowest_bit(upper)
                upper &= upper - ONE
                left = touched[word]
                if uses_activity:
                    left |= active[word]
                next_word = following[word]
                while left != 0:
                    place = left & (~left + ONE)
                    v = ((word << SIX) | lowest_bit(left)) + base
                    left &= left - ONE
                    was_active = active[word] & place != 0
                    d = degree_of(index, v)
                    if renew(fields, scalars, incoming, v - base, identity, was_active, v, d, base, partial, over):
                        next_word |= place
                touched[word] = np.uint64(0)
                following[word] = next_word
                if next_word != 0:
                    chosen |= bit
            following_summary[over] = chosen

    return apply


def make_reduce(author: Author) -> Any:
    """Kernel: partial[span] = the Globals of the present values (old values being the same)."""
    load, accumulate = author.calls["load"], author.calls["accumulate"]
    with_sent, nothing = inline(make_with_sent(author.tells_sent)), (author.message.type(0),)

    @loop_kernel(author.key, counted=author.combine != "merge", distinct=True)
    def reduce(first_step, end_step, index, fields, scalars, count, base, partial):  # type: ignore[no-untyped-def]
        for over in range(first_step, end_step):
            first = np.uint64(over) * SPAN
            for at in range(first, min(first + SPAN, np.uint64(count))):
                v = np.uint64(at) + base
                d = degree_of(index, v)
                own = with_sent(scalars, nothing, 0)
                accumulate(partial, over, fields, load(fields, v, base), own, v, d, base)

    return reduce


@loop_kernel("fill", grain=1)
def fill_pieces(first_step, end_step, items, value, lead, size):  # type: ignore[no-untyped-def]
    """Write one value; lead: items in front of the first whole page, the first piece; size: items of a page."""
    for piece in range(first_step, end_step):
        first = np.uint64(0) if piece == 0 else np.uint64(lead) + np.uint64(piece - 1) * np.uint64(size)
        last = min(np.uint64(len(items)), np.uint64(lead) + np.uint64(piece) * np.uint64(size))
        for at in range(first, last):
            items[at] = value


def fill(array: NDArray[Any], value: Any, *, threads: int) -> None:
    """Write one value to every item of a contiguous array, as NumPy converts it. Raises as `use_workers`."""
    if not _by_kernel(array):
        fill_ranges(array, value, threads=threads)
        return
    word = np.empty(WORD // array.itemsize, array.dtype)  # one kernel for items of all sizes
    np.copyto(word, value, casting="unsafe")
    items = array.reshape(-1)
    rest = len(items) % len(word)
    words = items[: len(items) - rest].view(np.uint64)
    items[len(items) - rest :] = word[:rest]
    lead, size = -words.ctypes.data % PAGE // WORD, PAGE // WORD
    threads = min(threads, int(numba.config.NUMBA_NUM_THREADS))
    use_workers(threads)
    fill_pieces(threads, 1 + -(-(len(words) - lead) // size), words, word.view(np.uint64)[0], lead, size)


def _by_kernel(array: NDArray[Any]) -> bool:
    """Whether an array is large enough for the kernel, or one of many that are large enough once it is loaded."""
    if WORD % array.itemsize or array.ctypes.data % WORD or array.nbytes < PAGE:
        return False
    return array.nbytes >= LARGE_BYTES or next(_SMALLER) >= PATIENCE
