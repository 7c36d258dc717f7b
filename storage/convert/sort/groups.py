"""Owns how the spill is cut into groups that are sorted at once (pure: counts in, groups out), and widening buckets.

With octaves there are 2^bits buckets to every octave of ids, for vertices in the order of falling degree: there the
first thousandth of the vertices may have a fifth of the edges, and a bucket of equal width would be too large to be
sorted beside others. Bucket b is what floating-point numbers of so many bits of mantissa would be: ids below
2^(bits + 1) have one each, those of [2^k, 2^(k+1)) share 2^bits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit, jit_part
from penstock.storage.base.thread_atomics import leading_zeros
from penstock.storage.ingest.core.source import RowPiece

LARGEST_GROUP = 1 << 20
SMALLEST_GROUP = 1 << 16


@dataclass(frozen=True, slots=True)
class BucketGroup:
    """Buckets [first, last) with their edges."""

    first: int
    last: int
    edges: int


@dataclass(frozen=True, slots=True)
class SortPlan:
    """How groups are sorted side by side: by so many threads, each of about ``group_edges`` edges where
    buckets allow it, and ``held_edges`` at most in memory at once. A larger group does not fit."""

    workers: int
    group_edges: int
    held_edges: int

    def weight(self, group: BucketGroup | RowPiece) -> int:
        """What a group counts towards ``held_edges``: a small one as half of a usual one, so that they are few."""
        return max(group.edges, self.group_edges // 2)


def sort_plan(memory_bytes: int, edge_bytes: int, threads: int) -> SortPlan:
    """Divide memory among sorting threads: as many as can have a group worth sorting.

    One group more than threads is in memory at least: the finished one that waits to be written.
    """
    edges = memory_bytes // edge_bytes
    workers = max(1, min(threads, edges // SMALLEST_GROUP - 1))
    return SortPlan(workers, max(1, min(LARGEST_GROUP, edges // (workers + 1))), edges)


def group_buckets(counts: NDArray[np.int64], limit: int, *, single: bool = False) -> list[BucketGroup]:
    """Join neighboring buckets into groups of at most ``limit`` edges (one bucket may have more).

    ``single``: never join. Groups cover every bucket in order; those at the ends may be empty.
    """
    groups: list[BucketGroup] = []
    first = 0
    edges = 0
    for bucket, count in enumerate(counts.tolist()):
        if bucket > first and (single or edges + count > limit):
            groups.append(BucketGroup(first, bucket, edges))
            first, edges = bucket, 0
        edges += count
    if len(counts):
        groups.append(BucketGroup(first, len(counts), edges))
    return [group for group in groups if group.edges]


def check_density(vertices: int, edges: int, name: str) -> None:
    """Refuse ids so sparse that an index up to the largest would be mostly empty.

    Up to 2^24 vertices (64 MiB of index) nothing is asked; beyond, at most 64 vertices an edge,
    where the index takes about 50 times the room of the edges.

    Raises:
        InputError: naming ``--renumber``.
    """
    if vertices > (1 << 24) + 64 * edges:
        raise InputError(
            f"{name}: the largest vertex id is {vertices - 1}, with {edges} edges: an index up to "
            f"it would take {format_bytes(4.1 * vertices)}; --renumber numbers the vertices that "
            "occur from 0 and keeps their ids"
        )


def octave_start(bucket: int, bits: int) -> int:
    """Return the first id of a bucket."""
    if bucket >> bits == 0:
        return bucket
    return ((bucket & ((1 << bits) - 1)) | 1 << bits) << ((bucket >> bits) - 1)


def octave_count(largest: int, bits: int) -> int:
    """Return how many buckets there are up to that of an id (-1: none)."""
    octave = max(0, largest.bit_length() - 1 - bits)
    return (octave << bits) + (largest >> octave) + 1


def most_bits(vertices: int, buckets: int) -> int | None:
    """Return the most bits with which so many vertices have at most so many buckets; None where there are none."""
    width = max(vertices - 1, 1).bit_length()
    found = [bits for bits in range(1, width) if octave_count(vertices - 1, bits) <= buckets]
    return found[-1] if found else None


def chosen_bits(vertices: int, loads_of: Callable[[int, int], int], shift: int, buckets: int) -> int | None:
    """Return the bits of an octave, or None where buckets of 2^``shift`` ids are better.

    ``loads_of(shift, bits)`` is the largest load of a bucket (bits -1: of equal width).
    """
    bits = most_bits(vertices, buckets) if vertices <= 1 << 32 else None
    return bits if bits is not None and loads_of(0, bits) < loads_of(shift, -1) else None


def largest_load(new_ids: NDArray[Any], degrees: NDArray[np.uint32], shift: int, bits: int, buckets: int) -> int:
    """Return the edges of the heaviest bucket; vertex v has ``new_ids[v]``, and all ``degrees`` (1 or 2, vertices)."""
    loads = np.zeros(buckets, np.int64)
    for some in degrees:
        add_loads(new_ids, some, shift, bits, loads)
    return int(loads.max(initial=0))


@jit_part
def bucket_of(vertex: Any, shift: int, bits: int) -> Any:
    """The bucket of an id (uint64): of 2^shift ids each where bits is -1, else of octaves."""
    if bits < 0:
        return vertex >> np.uint64(shift)
    octave = np.uint64(63 - bits) - leading_zeros(vertex | np.uint64(1) << np.uint64(bits))
    return (octave << np.uint64(bits)) + (vertex >> octave)


@jit
def add_loads(
    new_ids: NDArray[Any], degrees: NDArray[np.uint32], shift: int, bits: int, loads: NDArray[np.int64]
) -> None:
    """Add every vertex's degree to the load of its bucket."""
    for v in range(len(degrees)):
        loads[bucket_of(np.uint64(new_ids[v]), shift, bits)] += degrees[v]
