"""Counts labels in a byte each: what a byte cannot hold is told apart, a few numbers for each label of many vertices.

Threads count different vertices in the same bytes, by atomic additions. Each first counts the labels that it met last
by itself: otherwise all would wait for the byte of the largest group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit, jit_inlined
from penstock.storage.base.thread_atomics import atomic_add

FULL = 256
"""At so many a byte begins again."""
MET = 256
"""Labels that a thread counts by itself, a power of two."""
TOLD = 1 << 12
"""Bytes that began again, of which a kernel tells at a time, and a little more."""


def count_labels(
    labels: NDArray[Any], low: int, counters: NDArray[np.uint8]
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Add labels from `low` on to their counters, as far as there are any; several threads may do so at once.

    Yields places of counters that began again, ascending, and how often each did.
    """
    places, times = np.empty(TOLD + MET + 1, np.uint64), np.empty(TOLD + MET + 1, np.int64)
    first = np.uint64(low & (2**64 - 1))  # differences wrap, so smaller labels are too large
    at = 0
    while at < len(labels):
        at, told = _count(labels, at, first, counters, places, times)
        if told:
            found, which = np.unique(places[:told], return_inverse=True)
            sums = np.zeros(len(found), np.int64)
            np.add.at(sums, which, times[:told])
            yield found, sums


@jit_inlined
def _put(
    place: Any, more: Any, counters: NDArray[np.uint8], places: NDArray[Any], times: NDArray[Any], told: int
) -> int:
    """Add to a counter; note how often it begins again, if it does."""
    if more == 0:
        return told
    again = (np.int64(atomic_add(counters, place, np.uint8(more & 255))) + more - ((more >> 8) << 8) >> 8) + (more >> 8)
    if again:
        places[told], times[told] = place, again
        return told + 1
    return told


@jit
def _count(
    labels: NDArray[Any],
    at: int,
    low: np.uint64,
    counters: NDArray[np.uint8],
    places: NDArray[np.uint64],
    times: NDArray[np.int64],
) -> tuple[int, int]:
    """Count labels from a place on until there is much to tell; return where the next are, and how much it is."""
    met, held = np.zeros(MET, np.uint64), np.zeros(MET, np.int64)
    told = 0
    while at < len(labels) and told < TOLD:
        place = np.uint64(labels[at]) - low
        at += 1
        if place >= np.uint64(len(counters)):
            continue
        slot = place & np.uint64(MET - 1)
        if met[slot] != place:
            told = _put(met[slot], held[slot], counters, places, times, told)
            met[slot], held[slot] = place, 0
        held[slot] += 1
    for last in range(MET):
        told = _put(met[last], held[last], counters, places, times, told)
    return at, told
