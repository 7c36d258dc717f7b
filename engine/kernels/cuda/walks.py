"""Kernels that advance random walkers along the rows that a GPU reads, a thread for each walker.

Steps are chosen by `../walk_steps.py`, as on the cores, and written where they belong in the walks: those of a walk
are side by side, so that the lines that many threads write at once stay in the second-level cache until they are full.
Walks of a batch stay on the device until all have ended.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda.device_functions import all_threads, global_thread, tell_sum
from penstock.engine.kernels.cuda.driver import cuda, device, kernel, rounded_product
from penstock.engine.kernels.walk_steps import compile_steps

_STEPS = compile_steps(device, product=rounded_product)
none_of, source_of, propose, take = _STEPS.none_of, _STEPS.source_of, _STEPS.propose, _STEPS.take
mark_row = _STEPS.mark_row


@kernel
def begin_walks(walkers, walks):  # type: ignore[no-untyped-def]
    """Kernel: let every walker be at its source, with no step made, and write that as the first vertex of its walk."""
    i = global_thread()
    while i < len(walkers.at):
        source = walkers.at.dtype.type(source_of(walkers, i))
        walkers.at[i] = source
        walkers.step[i] = np.uint32(0)
        if len(walkers.previous):
            walkers.previous[i] = none_of(walkers.previous)
            walkers.candidate[i] = none_of(walkers.candidate)
            walkers.trial[i] = np.uint32(0)
        walks[i, 0] = source
        i += all_threads()


@kernel
def advance_walkers(walkers, window, rule, first, last, walks):  # type: ignore[no-untyped-def]
    """Kernel: advance the walkers in rows first .. last - 1 (uint64), or kept ones, until they need a row not here."""
    i = global_thread()
    while i < len(walkers.at):
        v = np.uint64(walkers.at[i])
        going = (first <= v and v < last) or v < window.kept_rows
        while going:
            going = take(walkers, window, rule, walks, i, i, propose(walkers, window, rule, i))
        i += all_threads()


@kernel
def end_walks(walkers, walks, steps):  # type: ignore[no-untyped-def]
    """Kernel: write none behind the last vertex of walks that have ended before their length; steps[0] += all steps."""
    box = cuda.shared.array(1, np.int64)
    count = np.int64(0)
    i = global_thread()
    while i < len(walkers.at):
        made = np.int64(walkers.step[i])
        for step in range(made + np.int64(1), walks.shape[1]):
            walks[i, step] = none_of(walks)
        count += made
        i += all_threads()
    tell_sum(box, count, steps)


@kernel
def mark_chunks(walkers, window, wanted, going):  # type: ignore[no-untyped-def]
    """Kernel: mark the chunks of the rows that walkers need next, as `mark_row` does; going[0] += walks that go on."""
    box = cuda.shared.array(1, np.int64)
    count = np.int64(0)
    i = global_thread()
    while i < len(walkers.at):
        if mark_row(walkers, window, wanted, i):
            count += np.int64(1)
        i += all_threads()
    tell_sum(box, count, going)
