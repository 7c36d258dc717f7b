"""Kernels that put messages in the order of falling degree classes; `state/grouped_sources.py` says why.

A class is the number of bits of a degree. Threads count the classes of ranges of vertices, then give places, range by
range, so that the order of ids is kept. Whether it pays is found out on a sample of the edges, with a model of a core's
second-level cache: how many messages are not in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.host.atomics import prefetch
from penstock.engine.kernels.host.device_functions import ONE, degree_of
from penstock.engine.kernels.host.jit import loop_kernel
from penstock.storage.base.slot_pool import aligned_empty

if TYPE_CHECKING:
    from penstock.engine.state.grouped_sources import GroupedSources

CLASSES = 64
RANGE = np.int64(1 << 16)
BLOCK = np.int64(1 << 16)
AHEAD = np.int64(256)
WINDOWS, WINDOW = 8, np.int64(1 << 18)
LINES = np.uint64(1 << 14)
"""Of the modelled cache, direct-mapped: 1 MiB."""
LINE_MESSAGES = np.uint64(3)
"""Messages of a line, as a shift: eight of 8 bytes."""
GAIN = 0.9
"""It pays where at most this part of the messages that were not in the cache are still not."""


def _make_kernels(key: str) -> tuple[Any, ...]:
    @loop_kernel(key, grain=1)
    def walk_classes(first_step, end_step, index, vertices, counts, places):  # type: ignore[no-untyped-def]
        placing = places.shape[0] > 0
        for number in range(first_step, end_step):
            first = number * RANGE
            for v in range(first, min(first + RANGE, vertices)):
                degree, bits = degree_of(index, np.uint64(v)), 0
                while degree > 0:
                    degree >>= 1
                    bits += 1
                if placing:
                    places[v] = counts[number, bits]
                counts[number, bits] += 1

    @loop_kernel(key, grain=1)
    def invert(first_step, end_step, places, ids):  # type: ignore[no-untyped-def]
        for number in range(first_step, end_step):
            first = number * RANGE
            for v in range(first, min(first + RANGE, np.int64(places.shape[0]))):
                ids[np.uint64(places[np.uint64(v)])] = v

    @loop_kernel(key, grain=1)
    def translate(first_step, end_step, neighbors, places):  # type: ignore[no-untyped-def]
        end = np.int64(neighbors.shape[0]) - np.int64(1)
        for number in range(first_step, end_step):
            first = number * BLOCK
            for e in range(first, min(first + BLOCK, end + np.int64(1))):
                prefetch(places, np.uint64(neighbors[np.uint64(min(e + AHEAD, end))]))
                neighbors[np.uint64(e)] = places[np.uint64(neighbors[np.uint64(e)])]

    @loop_kernel(key, grain=1)
    def count_misses(first_step, end_step, neighbors, places, tags, misses):  # type: ignore[no-untyped-def]
        edges, windows = np.int64(neighbors.shape[0]), np.int64(misses.shape[0])
        for number in range(first_step, end_step):
            first = (edges - min(edges, WINDOW)) * number // max(np.int64(1), windows - np.int64(1))
            for e in range(first, min(first + WINDOW, edges)):
                u = np.uint64(neighbors[np.uint64(e)])
                for at, place in enumerate((u, np.uint64(places[u]))):
                    line = (place >> LINE_MESSAGES) + ONE
                    if tags[number, at, line & (LINES - ONE)] != line:
                        tags[number, at, line & (LINES - ONE)] = line
                        misses[number, at] += 1

    @loop_kernel(key, grain=1)
    def move_messages(first_step, end_step, places, messages, room, identity):  # type: ignore[no-untyped-def]
        for number in range(first_step, end_step):
            first = number * RANGE
            for v in range(first, min(first + RANGE, np.int64(places.shape[0]))):
                messages[np.uint64(places[np.uint64(v)])] = room[np.uint64(v)]
                room[np.uint64(v)] = identity

    return walk_classes, invert, translate, count_misses, move_messages


_WALK_CLASSES, _INVERT, _TRANSLATE, _COUNT_MISSES, _MOVE_MESSAGES = _make_kernels("group_sources")


def group(groups: GroupedSources, edges: Any, span: tuple[int, int], index: Any, vertices: int, threads: int) -> None:
    """Write places over the ids of a span of the edges, or note that it does not pay.

    index: of the senders, as kernels take it. Only ids are read before it is known to pay.
    """
    neighbors = edges[slice(*span)]
    if groups.places is None:
        places = _places(index, vertices, neighbors.dtype, threads)
        tags = np.zeros((WINDOWS, 2, int(LINES)), dtype=np.uint64)
        misses = np.zeros((WINDOWS, 2), dtype=np.int64)
        _COUNT_MISSES(min(threads, WINDOWS), WINDOWS, neighbors, places, tags, misses)
        now, grouped = misses.sum(axis=0)
        groups.pays = bool(grouped <= GAIN * now)
        if not groups.pays:
            return
        groups.places = places
    _place(groups, edges, span, threads)


def widen(groups: GroupedSources, edges: Any, span: tuple[int, int], threads: int) -> None:
    """Let a span of the edges hold places, of which a part does already; what is not among them keeps its places too.

    If no edge of the span does, the others get their ids back.
    """
    (first, last), (placed_first, placed_last) = span, groups.span
    if last <= placed_first or placed_last <= first:
        ungroup(groups, threads)
        _place(groups, edges, span, threads)
        return
    for part in (first, placed_first), (placed_last, last):
        if part[0] < part[1]:
            _place(groups, edges, part, threads)
    groups.span = min(first, placed_first), max(last, placed_last)
    groups.neighbors = edges[slice(*groups.span)]


def _place(groups: GroupedSources, edges: Any, span: tuple[int, int], threads: int) -> None:
    groups.mixed = True
    _translate(edges[slice(*span)], groups.places, threads)
    groups.neighbors, groups.span, groups.mixed = edges[slice(*span)], span, False


def move(groups: GroupedSources, messages: Any, room: Any, identity: Any, threads: int) -> None:
    """Put messages, which are at their vertices' numbers, in their places; room: accumulators, all of them empty."""
    room[:] = messages
    steps = -(-len(messages) // int(RANGE))
    _MOVE_MESSAGES(min(threads, steps), steps, groups.places, messages, room, identity)


def ungroup(groups: GroupedSources, threads: int) -> None:
    """Write the ids back."""
    if groups.neighbors is None:
        return
    places = groups.places
    assert places is not None
    ids = aligned_empty(len(places), places.dtype)
    steps = -(-len(places) // int(RANGE))
    _INVERT(min(threads, steps), steps, places, ids)
    groups.mixed = True
    _translate(groups.neighbors, ids, threads)
    groups.neighbors, groups.mixed = None, False


def _places(index: Any, vertices: int, dtype: Any, threads: int) -> Any:
    """The place of every vertex: the highest class first, and in a class range by range."""
    ranges = -(-vertices // int(RANGE))
    counts, places = np.zeros((ranges, CLASSES), dtype=np.int64), aligned_empty(vertices, dtype)
    _WALK_CLASSES(min(threads, ranges), ranges, index, vertices, counts, places[:0])
    falling = counts[:, ::-1].T.ravel()
    following = np.ascontiguousarray((np.cumsum(falling) - falling).reshape(CLASSES, ranges)[::-1].T)
    _WALK_CLASSES(min(threads, ranges), ranges, index, vertices, following, places)
    return places


def _translate(neighbors: Any, names: Any, threads: int) -> None:
    """Write names[id] over every id."""
    blocks = -(-len(neighbors) // int(BLOCK))
    _TRANSLATE(min(threads, blocks), blocks, neighbors, names)
