"""Loops over vertices on a GPU that run the author's functions: send, apply, reduce; and the Globals' sums.

Owns how a Global is added up: a thread's share stays in its registers, a block's threads meet in shared memory, and one
block folds what the blocks found, all in an order that does not change from run to run. A share in device memory, read
and written at every vertex, made `apply` four times slower (1.81 ms for R-MAT 25 on an H200). A sweep over all vertices
also prepares what the next one sends, while rank and degree are at hand. Refuses nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.device_functions import (
    BIT,
    FIVE,
    LOW,
    NONE,
    all_threads,
    are_dense,
    degree_of,
    global_thread,
    lowest_bit,
    mark,
)
from penstock.engine.kernels.cuda.driver import BLOCK, DeviceKernel, cuda, device, kernel
from penstock.engine.kernels.shared_functions import make_with_sent
from penstock.engine.program.bindings import Author, define
from penstock.engine.program.program import Program, arguments, author_function

ROW = np.int64(0)
"""Of a thread's own shares, which `accumulate` takes for a table."""
SUM, LEAST, MOST = 0, 1, 2


@device
def merged(kind, a, b):  # type: ignore[no-untyped-def]
    """Two shares of a Global as one; what is no number stays so."""
    if kind == SUM:
        return a + b
    if kind == LEAST:
        return a if a < b or a != a else b
    return a if a > b or a != a else b


def starts_of(author: Author) -> tuple[float, ...]:
    """What changes nothing in each Global; one number at least, for Numba types no empty tuples."""
    return tuple(float(value) for value in author.partial_start) or (0.0,)


def kinds_of(author: Author) -> tuple[int, ...]:
    """How each Global is combined, as its start tells."""
    return tuple(SUM if start == 0 else LEAST if start > 0 else MOST for start in starts_of(author))


def make_tell(author: Author) -> Any:
    """Device function: shares[block, :] = what a block's threads have found; all of them call it.

    mine float64[1, globals]: of the thread. room float64[BLOCK]: shared.
    """
    kinds, totals = kinds_of(author), len(author.totals)

    @device
    def tell(mine, room, shares):  # type: ignore[no-untyped-def]
        thread = cuda.threadIdx.x
        for column in range(totals):
            cuda.syncthreads()
            room[thread] = mine[0, column]
            half = BLOCK // 2
            while half > 0:
                cuda.syncthreads()
                if thread < half:
                    room[thread] = merged(kinds[column], room[thread], room[thread + half])
                half //= 2
            if thread == 0:
                shares[cuda.blockIdx.x, column] = room[0]

    return tell


def make_fold(author: Author) -> DeviceKernel:
    """Kernel of one block: readback float64[1, globals] = what all rows of shares float64[rows, globals] come to."""
    kinds, starts, totals = kinds_of(author), starts_of(author), len(author.totals)
    columns, tell = len(starts), make_tell(author)

    @kernel
    def fold(shares, readback):  # type: ignore[no-untyped-def]
        room = cuda.shared.array(BLOCK, np.float64)
        mine = cuda.local.array((1, columns), np.float64)
        for column in range(totals):
            mine[0, column] = starts[column]
        row = np.uint64(cuda.threadIdx.x)
        while row < np.uint64(shares.shape[0]):
            for column in range(totals):
                mine[0, column] = merged(kinds[column], mine[0, column], shares[row, column])
            row += np.uint64(BLOCK)
        tell(mine, room, readback)

    return fold


def make_send(author: Author) -> DeviceKernel:
    """Kernel: sent[v] = send(...) for the active vertices (for every vertex if `whole`)."""
    send = author.calls["send"]

    @kernel
    def send_all(active, whole, index, fields, scalars, sent, base):  # type: ignore[no-untyped-def]
        at = np.uint64(global_thread())
        step = np.uint64(all_threads())
        if whole:
            while at < np.uint64(sent.shape[0]):
                d = degree_of(index, at + base)
                sent[at] = send(fields, scalars, at + base, d, base)
                at += step
            return
        while at < np.uint64(active.shape[0]):
            left = active[at]
            while left != NONE:
                v = (at << FIVE) | lowest_bit(left)
                left = np.uint32(left & np.uint32(left - BIT))
                d = degree_of(index, v + base)
                sent[v] = send(fields, scalars, v + base, d, base)
            at += step

    return send_all


def steady(program: Program, author: Author) -> tuple[int, ...] | None:
    """Which scalars `send` reads, where it may run before an iteration begins; None where it may not.

    It may where every vertex always sends, and what is sent depends on nothing that a new iteration brings.
    """
    send = author_function(program, "send")
    if send is None or not author.everywhere:
        return None
    names = arguments(send)
    if {"iteration", "due", *author.totals}.intersection(names):
        return None
    return tuple(at for at, name in enumerate(author.scalars) if name in names)


def make_renew(author: Author) -> Any:
    """Device function: run `vertex` on one vertex; whether it is active next.

    All that it reads it reads before it writes: a compiler cannot know that one does not change the other.
    """
    vertex, load, store = author.calls["vertex"], author.calls["load"], author.calls["store"]
    is_next, accumulate, totals = author.calls["active"], author.calls["accumulate"], len(author.totals)
    resets = author.resets

    @device
    def renew(fields, scalars, incoming, identity, was_active, v, d, base, partial, row):  # type: ignore[no-untyped-def]
        old = load(fields, v, base)
        new = vertex(fields, scalars, incoming[v - base], was_active, v, d, base)
        if resets:
            incoming[v - base] = identity
        store(fields, v, base, new)
        if totals > 0:
            accumulate(partial, row, fields, old, scalars, v, d, base)
        return is_next(fields, old, scalars, v, d, base)

    return renew


def make_renew_all(author: Author, changing: tuple[bool, ...] | None, ahead: bool) -> Any:
    """Device function: as `make_renew`'s if `wanted`; if `ahead` also what is sent next; changing: see `make_apply`."""
    if changing is not None:
        return make_renew_here(author, changing, ahead)
    renew, send, with_sent = make_renew(author), author.calls["send"], device(make_with_sent(author.tells_sent))

    @device
    def renew_all(fields, scalars, incoming, identity, was_active, v, d, base, partial, sent, wanted):  # type: ignore[no-untyped-def]
        if not wanted:
            return False
        own = with_sent(scalars, sent, v - base)
        active_next = renew(fields, own, incoming, identity, was_active, v, d, base, partial, ROW)
        if ahead:
            sent[v - base] = send(fields, scalars, v, d, base)
        return active_next

    return renew_all


def make_renew_here(author: Author, changing: tuple[bool, ...], ahead: bool) -> Any:
    """Device function: the same where all fields are numbers, on copies of the vertex's fields.

    A compiler keeps these in registers; reading a field that has just been written takes longer than all the rest
    (Chebyshev's apply on an H200: 1.55 ms, where PageRank's, which does not, takes 0.48).
    """
    count = range(len(changing))
    names = "fields, scalars, incoming, identity, was_active, v, d, base, partial, sent, wanted"
    lines = [f"def renew_here({names}):", "    at = v - base"]
    for i in count:
        lines += [f"    here{i} = cuda.local.array(1, fields[{i}].dtype)", f"    here{i}[0] = fields[{i}][at]"]
    lines += [
        f"    here = ({''.join(f'here{i}, ' for i in count)})",
        "    old, message, own = load(here, v, v), incoming[at], with_sent(scalars, sent, at)",
        "    if wanted:",
        "        store(here, v, v, vertex(here, own, message, was_active, v, d, v))",
        *(["    incoming[at] = identity if wanted else message"] if author.resets else []),
        *(f"    fields[{i}][at] = here{i}[0]" for i in count if changing[i]),
        *(["    if wanted:", "        accumulate(partial, row, here, old, own, v, d, v)"] if author.totals else []),
        *(["    sent[at] = send(here, scalars, v, d, v)"] if ahead else []),
        "    return wanted and is_next(here, old, scalars, v, d, v)",
    ]
    namespace: dict[str, Any] = {**author.calls, "is_next": author.calls["active"], "cuda": cuda, "row": ROW}
    namespace["with_sent"] = device(make_with_sent(author.tells_sent))
    return device(define("renew_here", "\n".join(lines) + "\n", namespace))


def make_renew_marked(author: Author, changing: tuple[bool, ...] | None) -> Any:
    """Device function: run `vertex` on the marked vertices of a block's words; all its threads call it."""
    renew, uses_activity = make_renew_all(author, changing, False), author.uses_activity

    @device
    def renew_marked(piece, touched, active, following, index, fields, scalars, messages, base, mine):  # type: ignore[no-untyped-def]
        marked = cuda.shared.array(BLOCK, np.uint32)
        chosen = cuda.shared.array(BLOCK, np.uint32)
        incoming, identity = messages
        thread = np.uint64(cuda.threadIdx.x)
        at = piece + thread
        left = NONE
        if at < np.uint64(touched.shape[0]):
            left = touched[at]
            if left != NONE:
                touched[at] = NONE
            if uses_activity:
                left = np.uint32(left | active[at])
        marked[thread], chosen[thread] = left, NONE
        if are_dense(left):
            spot = thread
            while spot < np.uint64(32 * BLOCK):
                word, bit = spot >> FIVE, np.uint32(BIT << np.uint32(spot & LOW))
                if (piece << FIVE) + spot < np.uint64(incoming.shape[0]):
                    v, was = (piece << FIVE) + spot + base, active[piece + word] & bit != NONE
                    d, wanted = degree_of(index, v), marked[word] & bit != NONE
                    if renew(fields, scalars, incoming, identity, was, v, d, base, mine, incoming, wanted):
                        cuda.atomic.or_(chosen, word, bit)
                spot += np.uint64(BLOCK)
            cuda.syncthreads()
        else:
            while left != NONE:
                bit = np.uint32(left & (~left + BIT))
                v, was = ((at << FIVE) | lowest_bit(left)) + base, active[at] & bit != NONE
                left = np.uint32(left ^ bit)
                d = degree_of(index, v)
                if renew(fields, scalars, incoming, identity, was, v, d, base, mine, incoming, True):
                    chosen[thread] |= bit
        if chosen[thread] != NONE:
            following[at] = np.uint32(following[at] | chosen[thread])

    return renew_marked


def make_apply(author: Author, changing: tuple[bool, ...] | None, ahead: bool) -> DeviceKernel:
    """Kernel: run `vertex` where messages arrived (on all vertices if `whole`), as the host's `apply`.

    changing: for every field whether `vertex` changes it, None where a field is a vector. ahead: whether a whole one
    also does what `send` would do next. shares float64[blocks, globals]: every block's share of the Globals.
    """
    renew_all, renew_marked = make_renew_all(author, changing, ahead), make_renew_marked(author, changing)
    tell, everywhere = make_tell(author), author.everywhere
    starts, totals = starts_of(author), len(author.totals)
    columns = len(starts)

    @kernel
    def apply(  # type: ignore[no-untyped-def]
        touched, active, following, whole, index, fields, scalars, incoming, identity, base, sent, shares
    ):
        room = cuda.shared.array(BLOCK, np.float64)
        mine = cuda.local.array((1, columns), np.float64)
        for column in range(totals):
            mine[0, column] = starts[column]
        at = np.uint64(global_thread())
        step = np.uint64(all_threads())
        if whole:
            while at < np.uint64(incoming.shape[0]):
                v = at + base
                d = degree_of(index, v)
                active_next = renew_all(fields, scalars, incoming, identity, True, v, d, base, mine, sent, True)
                if active_next and not everywhere:
                    mark(following, at)
                at += step
        else:
            piece = np.uint64(cuda.blockIdx.x) * np.uint64(BLOCK)
            while piece < np.uint64(touched.shape[0]):
                renew_marked(
                    piece, touched, active, following, index, fields, scalars, (incoming, identity), base, mine
                )
                piece += np.uint64(cuda.gridDim.x) * np.uint64(BLOCK)
        tell(mine, room, shares)

    return apply


def make_reduce(author: Author) -> DeviceKernel:
    """Kernel: shares[block, :] = that block's share of the Globals of the present values."""
    load, accumulate, tell = author.calls["load"], author.calls["accumulate"], make_tell(author)
    starts, totals = starts_of(author), len(author.totals)
    with_sent, nothing = device(make_with_sent(author.tells_sent)), (author.message.type(0),)
    columns = len(starts)

    @kernel
    def reduce(index, fields, scalars, count, base, shares):  # type: ignore[no-untyped-def]
        room = cuda.shared.array(BLOCK, np.float64)
        mine = cuda.local.array((1, columns), np.float64)
        for column in range(totals):
            mine[0, column] = starts[column]
        at = np.uint64(global_thread())
        while at < count:
            v = at + base
            d = degree_of(index, v)
            own = with_sent(scalars, nothing, 0)
            accumulate(mine, ROW, fields, load(fields, v, base), own, v, d, base)
            at += np.uint64(all_threads())
        tell(mine, room, shares)

    return reduce
