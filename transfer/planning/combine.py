"""Which neighboring partitions travel as one task.

Owns that rule, as a pure function. Task combination is HyTGraph's (section V), whose printed loop
drops partitions; here every wanted partition is in exactly one group (property-tested). Refuses
to join what is not stored in one array: partitions join only where their places follow one
another, or where all pass through one slab of `k` partitions.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NOWHERE = -1


class PartitionGroup(NamedTuple):
    """Partitions of one route that travel together; they are the wanted ones [first, last) and what is between them."""

    route: str
    partitions: tuple[int, ...]
    first: int
    last: int


@dataclass(frozen=True)
class Rules:
    """What partitions may share.

    k: filter partitions of one slab. unbounded: routes whose partitions join without limit, and over unwanted ones
    between them: a device behind a link reads resident partitions, and those in host memory, in one launch.
    host_places: given where the host does not hold every edge: what is read in place joins only if it is stored in one
    run there, what is compacted only if it is kept there. words, capacity: what each wanted partition takes of a slab
    when compacted, and what a slab holds. unpacked: whether what is resident is packed, and so passes through a slab.
    """

    k: int = 1
    unbounded: Collection[str] = ()
    host_places: Ints | None = None
    words: Ints | None = None
    capacity: int = 0
    unpacked: bool = False


def combine(
    numbers: Sequence[int] | Ints,
    routes: Sequence[str] | NDArray[np.str_],
    places: Ints,
    partition_edges: int,
    rules: Rules,
) -> list[PartitionGroup]:
    """Return the groups of the wanted partitions `numbers`, ascending.

    `routes` names the route of each of `numbers`; `places` is the arena position of every partition of the
    adjacency, -1 for none. Filter partitions join up to `k`. Resident partitions do so too while others must
    be fetched (the pipeline puts them between arrivals); where all are resident they join without limit, and
    reach over unwanted ones between them that lie in the same run. Compacted ones join while a slab holds them.
    Others stay alone, but for what `rules` say.
    """
    wanted, names = np.asarray(numbers, dtype=np.int64), np.asarray(routes)
    if not len(wanted):
        return []
    runs = _runs(places, partition_edges)[wanted]
    freely = _freely(wanted, names, runs, partition_edges, rules)
    counted = _counted(wanted, names, runs)
    packed = _pairs(names, "compaction") & (rules.words is not None)
    if rules.host_places is not None:
        kept = rules.host_places[wanted] != NOWHERE
        packed &= kept[1:] & kept[:-1]
    groups: list[PartitionGroup] = []
    breaks = np.flatnonzero(~(freely | counted | packed)) + 1
    for first, last in itertools.pairwise((0, *breaks.tolist(), len(wanted))):
        links = slice(first, last - 1)
        parts: Iterable[tuple[int, int]]
        if last - first == 1 or freely[links].all():
            parts = ((first, last),)
        elif packed[links].any():
            parts = _by_capacity(first, last, rules)
        else:
            parts = ((at, min(at + rules.k, last)) for at in range(first, last, rules.k))
        name = str(names[first])
        groups += [PartitionGroup(name, tuple(range(int(wanted[a]), int(wanted[b - 1]) + 1)), a, b) for a, b in parts]
    return groups


def _pairs(names: NDArray[np.str_], kind: str) -> Bools:
    """Whether each wanted partition but the first goes by route `kind`, and so does the one before it."""
    found = names == kind
    return np.asarray(found[1:] & found[:-1])


def _freely(wanted: Ints, names: NDArray[np.str_], runs: Ints, step: int, rules: Rules) -> Bools:
    """Whether each joins the one before it however many there are, and reaches over what is between."""
    in_one_run = (runs[1:] == runs[:-1]) & (runs[1:] != NOWHERE)
    at_rest = bool(np.all(names == "resident"))
    free = not rules.unpacked and (at_rest or "resident" in rules.unbounded)
    joined = _pairs(names, "resident") & in_one_run & free
    if "zero-copy" in rules.unbounded:
        in_place = _pairs(names, "zero-copy")
        if rules.host_places is not None:
            there = _runs(rules.host_places, step)[wanted]
            in_place &= (there[1:] == there[:-1]) & (there[1:] != NOWHERE)
        joined |= in_place
    return np.asarray(joined)


def _counted(wanted: Ints, names: NDArray[np.str_], runs: Ints) -> Bools:
    """Whether each may join its neighbor as one of `k`: what is resident only where it has a place."""
    neighbors = (np.diff(wanted) == 1) & (runs[1:] == runs[:-1])
    nowhere = (runs[1:] == NOWHERE) & (names[1:] == "resident")
    alike = _pairs(names, "resident") | _pairs(names, "filter") | _pairs(names, "blocks")
    return np.asarray(alike & neighbors & ~nowhere)


def _by_capacity(first: int, last: int, rules: Rules) -> Iterator[tuple[int, int]]:
    """Cut [first, last) where a slab is full; one that exceeds a slab by itself stays alone."""
    assert rules.words is not None
    total = np.r_[0, np.cumsum(rules.words[first:last])]
    at = 0
    while at < last - first:
        until = int(np.searchsorted(total, total[at] + rules.capacity, side="right")) - 1
        until = max(at + 1, until)
        yield first + at, first + until
        at = until


def _runs(places: Ints, partition_edges: int) -> Ints:
    """Number the runs of partitions that follow one another in the arena; -1 where there is no place."""
    breaks = np.ones(len(places), dtype=np.int64)
    breaks[1:] = np.diff(places) != partition_edges
    return np.where(places < 0, NOWHERE, np.cumsum(breaks))
