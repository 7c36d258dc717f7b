"""How many vertices each label has: the number of labels, the largest groups.

Where nearly every vertex has its own number as its label, or that of one large group, others are sorted. Else labels
that are nearly as dense as vertices are counted in a byte each, a pass over all labels for as many bytes as there is
room for; others range by range, in classes of a hash, so that each class fits. So none takes more memory than it is
given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.threads import map_rows
from penstock.storage.results.column_statistics import (
    Keys,
    count_nonzero,
    each_part,
    facts_of,
    first_rows,
    present_values,
)

SMALL = 1 << 20
"""Labels that are sorted in one go: that takes less time than loading a kernel, and a few MiB."""
DENSE = 4
"""Numbers between the least and the largest label for each vertex, up to which each has a counter."""
SORTED_BYTES = 64
"""For each label of a class: with its count, its place in their order, and copies."""
COUNTED = 1 << 20
"""Labels that a thread counts at a time."""
COMPARED = 1 << 16
"""Counters that are compared together, so that copies stay small."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
"""Fibonacci hashing (Knuth, TAOCP 3, section 6.4)."""

Part = tuple[int, list[tuple[Any, int]]]
"""Of some of the labels: how many are distinct; label and vertices of their largest groups."""
Counted = tuple[NDArray[Any], NDArray[np.int64]]
"""Distinct labels, and a number for each."""


Ties = Callable[[Any], NDArray[Any]]
"""Gives by label, of consecutive labels (a slice) or of some, a number."""


@dataclass(frozen=True)
class GroupCounts:
    """How many distinct labels there are, and how many vertices the largest group has.

    top: labels and vertices of the largest groups, of equal ones the smaller label first.
    """

    groups: int
    largest: int
    top: list[tuple[Any, int]]


def count_groups(
    labels: NDArray[Any],
    top: int,
    room_bytes: int,
    *,
    absent: Any = None,
    threads: int | None = None,
    ties: Ties | None = None,
    among: range | None = None,
) -> GroupCounts:
    """Count the vertices of every label.

    Parameters
    ----------
    labels : ndarray of integers or strings, (vertices,)
        The label of every vertex.
    top : int
        How many of the largest groups to name.
    room_bytes : int
        Memory that counters may take; strings are sorted whatever it is.
    absent : int or str, optional
        What stands for no label.
    threads : int, optional
        Most threads; default: every core.
    ties : Ties, optional
        By label, which are numbers from 0, what orders equally large groups; default: the label itself.
    among : range, optional
        Which numbers all labels are but `absent`, so that they need not be looked for.
    """
    if len(labels) <= SMALL or labels.dtype.kind not in "iu":
        return _joined([_largest(*np.unique(present_values(labels, absent), return_counts=True), top, ties)], top, ties)
    part = None if absent is not None else _mostly_alone(labels, room_bytes, top, threads, ties)
    if part is not None:
        return _joined([part], top, ties)
    with labels.lent() if hasattr(labels, "lent") else nullcontext(0) as more:
        room_bytes += more
        if among is None:
            found = facts_of(labels, absent, threads=threads)
            if found.least is None:
                return GroupCounts(0, 0, [])
            among = range(int(found.least), int(found.largest) + 1)
        if among.stop - among.start <= DENSE * len(labels):
            return _joined(_dense(labels, absent, among, room_bytes, top, threads, ties), top, ties)
        return _joined(_scattered(labels, absent, room_bytes, top, threads, ties), top, ties)


def _mostly_alone(labels: Any, room_bytes: int, top: int, threads: int | None, ties: Ties | None) -> Part | None:
    """Count labels of which nearly each is its vertex's own number, or that of one large group; None of others.

    Nor where groups of one vertex are among the largest.
    """
    begin = labels[:COMPARED]
    others = begin[begin != np.arange(len(begin))]
    names, sizes = np.unique(others, return_counts=True)
    large = names[sizes.argmax()] if len(names) else begin[0]
    own = np.zeros(-(-len(labels) // 8), np.uint8)  # a bit of each vertex: whether its label is its own number
    most, found = room_bytes // SORTED_BYTES, [0]

    def look(some: NDArray[Any], first: int) -> tuple[int, NDArray[Any]]:
        if found[0] > most:
            return -1, some[:0]
        alone = some == np.arange(first, first + len(some), dtype=np.min_scalar_type(first + len(some)))
        own[first // 8 : -(-(first + len(some)) // 8)] = np.packbits(alone, bitorder="little")
        rest = some[~alone]
        few = rest[rest != large]
        found[0] += len(few)
        return len(rest) - len(few), few

    parts = each_part(look, labels, threads)
    if sum(len(few) for _, few in parts) > most or min(count for count, _ in parts) < 0:  # threads may add at once
        return None
    names, sizes = np.unique(np.concatenate([few for _, few in parts]), return_counts=True)
    if members := sum(count for count, _ in parts):
        at = int(np.searchsorted(names, large))
        names, sizes = np.insert(names, at, large), np.insert(sizes, at, members)
    inside = np.flatnonzero((names >= 0) & (names < len(labels)))
    places = names[inside].astype(np.int64)
    named = own[places >> 3] >> (places & 7) & 1  # whether the vertex whose number this is has it, too
    sizes[inside] += named
    count, best = _largest(names, sizes, top, ties)
    alone = sum(each_part(lambda some, _: int(np.bitwise_count(some).sum()), own, threads)) - int(named.sum())
    enough = len(best) >= max(top, 1) and best[-1][1] > 1
    return (count + alone, best) if enough or not alone else None


def _joined(parts: Iterable[Part], top: int, ties: Ties | None) -> GroupCounts:
    """Join parts that have no label in common."""
    groups = 0
    largest: list[tuple[Any, int]] = []
    for count, some in parts:
        groups += count
        both = [*largest, *some]
        labels = [label for label, _ in both]
        second = labels if ties is None else ties(np.array(labels, np.intp)).tolist()
        order = sorted(range(len(both)), key=lambda at: (-both[at][1], second[at]))
        largest = [both[at] for at in order[: max(top, 1)]]
    return GroupCounts(groups, largest[0][1] if largest else 0, largest[:top])


def _largest(names: NDArray[Any], sizes: NDArray[Any], top: int, ties: Ties | None) -> Part:
    """The part of these labels, which ascend; as many vertices have each of them."""
    places = _first_by_size(sizes, top, None if ties is None else lambda first, last: ties(names[first:last]))
    return len(names), list(zip(names[places].tolist(), sizes[places].tolist(), strict=True))


def _first_by_size(
    sizes: NDArray[Any], top: int, ties: Callable[[int, int], NDArray[Any]] | None, threads: int | None = 1
) -> NDArray[np.intp]:
    """Where the largest sizes are, the largest first, of equal ones the first, or the one of the least of ties."""

    def keys_of(first: int, last: int) -> Keys:
        places = np.arange(first, last)
        return ~sizes[first:last], places if ties is None else ties(first, last), places

    return first_rows(keys_of, len(sizes), max(top, 1), threads=threads, size=COMPARED)[2]


def _dense(
    labels: NDArray[Any],
    absent: Any,
    among: range,
    room_bytes: int,
    top: int,
    threads: int | None,
    ties: Ties | None,
) -> Iterator[Part]:
    """Count labels among some numbers, block by block of these, with all threads: the large groups, and the others."""
    from penstock.storage.results.label_counters import FULL, count_labels  # imports Numba

    size = max(1 << 16, room_bytes)
    for first in among[::size]:
        block = among[first - among.start :][:size]
        counters = np.zeros(len(block), np.uint8)

        def count(begin: int, end: int, first: int = first, counters: NDArray[Any] = counters) -> list[Counted]:
            return list(count_labels(labels[begin:end], first, counters))

        parts = [part for some in map_rows(count, len(labels), threads=threads, size=COUNTED) for part in some]
        large, times = _summed(parts) if parts else (np.empty(0, np.int64), np.empty(0, np.int64))
        if absent is not None and absent in block:
            others = large != int(absent) - first
            large, times, counters[int(absent) - first] = large[others], times[others], 0
        sizes = FULL * times + counters[large]
        counters[large] = 0
        names = (large.astype(np.uint64) + np.uint64(first & (2**64 - 1))).astype(labels.dtype)
        yield _largest(names, sizes, top, ties)
        _, small = count_nonzero(counters, threads=threads)
        few = range(0) if len(large) >= max(top, 1) else _first_by_size(counters, top, _ties_from(first, ties), threads)
        yield small, [(first + int(place), int(counters[place])) for place in few if counters[place]]


def _ties_from(first: int, ties: Ties | None) -> Callable[[int, int], NDArray[Any]] | None:
    """The ties of ranges of labels that are counted from one on."""
    return None if ties is None else lambda begin, end: ties(slice(first + begin, first + end))


def _scattered(
    labels: NDArray[Any], absent: Any, room_bytes: int, top: int, threads: int | None, ties: Ties | None
) -> Iterator[Part]:
    """Count labels that may lie far apart, one class of a hash after another."""
    classes = max(1, -(-len(labels) * SORTED_BYTES // max(1, room_bytes)))

    for number in range(classes):

        def count(first: int, last: int, number: int = number) -> Counted:
            some = present_values(labels[first:last], absent)
            if classes > 1:
                mixed = (some.astype(np.uint64) * _MIX) >> np.uint64(32)
                some = some[mixed % np.uint64(classes) == number]
            names, sizes = np.unique(some, return_counts=True)
            return names, sizes.astype(np.int64)

        yield _largest(*_summed(list(map_rows(count, len(labels), threads=threads))), top, ties)


def _summed(parts: list[Counted]) -> Counted:
    """Distinct labels, ascending, and the sums of their counts in all parts."""
    names, sizes = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(names, kind="stable")
    names, sizes = names[order], sizes[order]
    firsts = np.flatnonzero(np.concatenate([[True], names[1:] != names[:-1]])) if len(names) else order
    return names[firsts], np.add.reduceat(sizes, firsts) if len(firsts) else sizes
