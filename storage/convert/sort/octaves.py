"""Buckets that widen with the ids: 2^bits of them to every octave of ids, for vertices in the order of falling degree.

There the first thousandth of the vertices may have a fifth of the edges, and a bucket of equal width would be too large
to be sorted beside others. Bucket b is what floating-point numbers of so many bits of mantissa would be: ids below
2^(bits + 1) have one each, those of [2^k, 2^(k+1)) share 2^bits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit, jit_part
from penstock.storage.base.thread_atomics import leading_zeros


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
