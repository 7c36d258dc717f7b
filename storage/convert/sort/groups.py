"""Owns how the spill is cut into groups that are sorted at once. Pure: counts in, groups out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError
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
