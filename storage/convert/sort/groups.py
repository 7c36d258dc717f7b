"""How a budget is divided among the stages of a conversion, and a spill into buckets and groups (numbers in and out).

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
from penstock.storage.ingest.core.source import IngestOptions, RowPiece

LARGEST_GROUP = 1 << 20
SMALLEST_GROUP = 1 << 16
LARGEST_RUN = 1 << 20
WRITER_LEAST_BYTES = 26 << 20
WRITER_CHUNK_BYTES = 3 << 19
WRITER_MOST_BYTES = 3 << 20
SORTED_EDGE_MOST_BYTES = 64
BOOKKEEPING_BYTES = 12 << 20
LEAST_EDGE_BYTES = 8
SORTED_EDGE_BYTES = 24
BUCKETS_PER_GROUP = 2
LEAST_BUCKETS = 512
MOST_BUCKETS = 4096
EDGELESS_SHARE = 16
"""One part in so many of the budget may be taken for a bit of every vertex that tells whether it has an edge."""


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


@dataclass(frozen=True, slots=True)
class Shares:
    """The budget's parts, each of which may be held while its stage lasts; every conversion's are made by `shares`.

    spill_bytes, sort_bytes, id_bytes, table_bytes: the spill in memory, sorting, maps of ids, tables of runs.
    seen_bytes: the bitmap of the ids that occur, half of which is set apart; edgeless_bytes: that of the vertices with
    an edge. counting_bytes: degrees that are counted, or edges of paths, before there is a writer. name_run_bytes: a
    run of names, several of which are in memory while one is sorted; name_bytes: a block of them in order.
    state_bytes: what an order needs of vertices. run_edges, group_edges: edges of a run, and of a group that is sorted
    at once. encoders: threads.
    """

    spill_bytes: int
    sort_bytes: int
    id_bytes: int
    table_bytes: int
    seen_bytes: int
    edgeless_bytes: int
    counting_bytes: int
    name_run_bytes: int
    name_bytes: int
    state_bytes: int
    run_edges: int
    group_edges: int
    encoders: int


def shares(memory_bytes: int, workers: int, *, maps: bool) -> Shares:
    """Divide a budget; ``maps``: ids are mapped, which needs memory all the way.

    The writer gets a quarter, of a small budget what it needs at least, never more than its
    encoders can use. Of the rest two fifths are the sorter's, as far as its threads can use them.
    While reading, the parser and the packer have a quarter each at most; the packer works on runs
    of at most 2^20 edges (16 bytes each, twice). The spill keeps what is left in both phases.
    """
    most = WRITER_MOST_BYTES * (3 * workers + 10)
    writer = min(max(memory_bytes // 4, WRITER_LEAST_BYTES), memory_bytes // 2, most)
    run_edges = min(LARGEST_RUN, max(4096, memory_bytes // 4 // (workers + 2) // 32))
    rest = memory_bytes - writer
    sort = min(rest * 2 // 5, (workers + 1) * LARGEST_GROUP * SORTED_EDGE_MOST_BYTES)
    ingest = IngestOptions(host_memory=memory_bytes, threads=workers)
    parser = ingest.block_bytes * (10 * workers + 8)
    reading = parser + run_edges * 32 * (workers + 2)
    seen = memory_bytes // 8
    apart = BOOKKEEPING_BYTES + (memory_bytes // 8 if maps else seen // 2)
    return Shares(
        spill_bytes=max(0, min(rest - sort, memory_bytes - reading) - apart),
        sort_bytes=sort,
        id_bytes=memory_bytes // 4,
        table_bytes=memory_bytes // 16,
        seen_bytes=seen,
        edgeless_bytes=memory_bytes // EDGELESS_SHARE,
        counting_bytes=memory_bytes // 4,
        name_run_bytes=memory_bytes // 32,
        name_bytes=memory_bytes // 8,
        state_bytes=memory_bytes // 2,
        run_edges=run_edges,
        group_edges=sort_plan(sort, SORTED_EDGE_BYTES, workers).group_edges,
        encoders=max(1, min(workers, (writer // WRITER_CHUNK_BYTES - 10) // 3)),
    )


def bucket_count(input_bytes: int | None, share: Shares, copies: int) -> int:
    """How many buckets a run has: a power of two, several per group that is sorted at once (a bucket cannot be
    divided without another pass), as far as the runs' tables (4 bytes a bucket) stay in their share."""
    edges = copies * (input_bytes or 0) // LEAST_EDGE_BYTES
    runs = edges // share.run_edges + 1
    wanted = 1 << (-(-BUCKETS_PER_GROUP * edges // share.group_edges) - 1).bit_length()
    allowed = share.table_bytes // 4 // runs
    buckets = max(LEAST_BUCKETS, min(wanted, allowed, MOST_BUCKETS))
    return 1 << (buckets.bit_length() - 1)


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
