"""Kernels that advance random walkers along the rows that a GPU reads, a thread for each, and sample neighborhoods.

Steps are chosen by `../walk_steps.py`, as on the cores, and written where they belong in the walks: those of a walk
are side by side, so that the lines that many threads write at once stay in the second-level cache until they are full.
Walks of a batch stay on the device until all have ended.

Samples are made hop by hop: a thread for each node draws its edges, one for each edge finds the place of its neighbor.
Nodes are numbered in the order in which they are found, as on the cores: `places` has of every vertex the least place
that it was offered, so that the edge that found it first is known, and running sums over such edges number new nodes.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda.device_functions import (
    ONE,
    all_threads,
    atomic_min,
    global_thread,
    row_start,
    tell_sum,
)
from penstock.engine.kernels.cuda.driver import cuda, device, kernel, rounded_product
from penstock.engine.kernels.walk_steps import compile_steps

_STEPS = compile_steps(device, product=rounded_product)
none_of, source_of, propose, take = _STEPS.none_of, _STEPS.source_of, _STEPS.propose, _STEPS.take
mark_row, drawn_edge = _STEPS.mark_row, _STEPS.drawn_edge
NOWHERE = np.int32(0x7FFFFFFF)
"""The place of a vertex that is no node."""


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


@kernel
def begin_hop(nodes, first, index, fanout, replace, places, counts):  # type: ignore[no-untyped-def]
    """Kernel: note the places of nodes from `first` on, and count the edges to be drawn of each: counts[i - first]."""
    i = first + global_thread()
    while i < len(nodes):
        v = np.uint64(nodes[i])
        atomic_min(places, v, np.int32(i))
        degree = row_start(index, v + ONE) - row_start(index, v)
        if fanout >= 0 and degree > 0 and (replace or degree > fanout):
            degree = fanout
        counts[i - first] = degree
        i += all_threads()


@kernel
def draw_edges(nodes, first, index, kept, rest, ends, key, replace, places, edges, cols, found):  # type: ignore[no-untyped-def]
    """Kernel: draw edges of the nodes from `first` on, and offer their neighbors the places behind all nodes.

    kept: neighbors of the first edges, rest: of the others, in host memory. ends: where those drawn of each node end.
    edges, cols, found: int64, of each edge its number, the place of the node and the neighbor.
    """
    i = first + global_thread()
    while i < len(nodes):
        v = np.uint64(nodes[i])
        low = np.int64(0)
        if i > first:
            low = ends[i - first - 1]
        row = row_start(index, v), row_start(index, v + ONE), ends[i - first] - low
        for k in range(row[2]):
            edge = drawn_edge(key, v, row, k, replace, edges, low)
            edges[low + k] = edge
            cols[low + k] = i
        for k in range(low, low + row[2]):
            edge = edges[k]
            x = np.uint64(kept[edge] if edge < len(kept) else rest[edge - len(kept)])
            found[k] = np.int64(x)
            atomic_min(places, x, np.int32(len(nodes) + k))
        i += all_threads()


@kernel
def mark_first(found, nodes, places, marks):  # type: ignore[no-untyped-def]
    """Kernel: marks[k] is 1 where edge `k` is the first that found its neighbor, which is no node yet; else 0."""
    k = global_thread()
    while k < len(found):
        marks[k] = np.int64(places[np.uint64(found[k])] == len(nodes) + k)
        k += all_threads()


@kernel
def number_found(found, nodes, places, ranks, further, rows):  # type: ignore[no-untyped-def]
    """Kernel: write of each edge the place of its neighbor to `rows`, and the new nodes; ranks: sums of marks."""
    k = global_thread()
    while k < len(found):
        at = np.int64(places[np.uint64(found[k])]) - len(nodes)
        if at == k:
            further[ranks[k] - 1] = found[k]
        rows[k] = at + len(nodes)
        if at >= 0:
            rows[k] = ranks[at] - 1 + len(nodes)
        k += all_threads()


@kernel
def forget_places(nodes, places):  # type: ignore[no-untyped-def]
    """Kernel: let no vertex be a node."""
    i = global_thread()
    while i < len(nodes):
        places[np.uint64(nodes[i])] = NOWHERE
        i += all_threads()
