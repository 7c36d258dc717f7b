"""Owns the compiled sort: keys by radix, parallel edges by weight, and what rows come to.

Least-significant-digit radix sort, stable, one pass per digit of up to 11 bits, passes whose digit
is the same everywhere skipped; weights travel along as bits. No Python lock is held, so groups are
sorted side by side in threads.
"""

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit, jit_part

Keys = NDArray[np.uint64]
DIGIT_BITS = 11
SMALL = 24

FIRST, SUM, MIN, MAX = 0, 1, 2, 3
RULES = {"first": FIRST, "sum": SUM, "min": MIN, "max": MAX}


def digits(low: int, high: int) -> list[tuple[int, int]]:
    """Cut bits [low, high) into even digits (shift, bits), least significant first."""
    count = -(-(high - low) // DIGIT_BITS)
    edges = [low + (high - low) * i // max(count, 1) for i in range(count + 1)]
    return [(start, end - start) for start, end in itertools.pairwise(edges)]


def sort_keys(
    keys: Keys, weights: NDArray[Any], parts: list[tuple[int, int]], spare: Keys | None = None
) -> tuple[Keys, NDArray[Any]]:
    """Sort keys by the digits ``parts``, stably; uint32 or uint64 ``weights`` (or none) along.

    The arrays given are used as buffers, ``spare`` (as long as keys; None: a new one) too; the sorted ones are
    returned.
    """
    if len(keys) < 2 or not parts:
        return keys, weights
    shifts = np.array([shift for shift, _ in parts], np.uint64)
    masks = np.array([(1 << bits) - 1 for _, bits in parts], np.uint64)
    counts = np.zeros((len(parts), int(masks.max()) + 1), np.int64)
    count_digits(keys, shifts, masks, counts)
    spare = np.empty_like(keys) if spare is None else spare
    spare_weights = np.empty_like(weights)
    for number in range(len(parts)):
        row = counts[number]
        if row[(int(keys[0]) >> int(shifts[number])) & int(masks[number])] == len(keys):
            continue
        slots = np.zeros(len(row), np.int64)
        np.cumsum(row[:-1], out=slots[1:])
        digit = (shifts[number], masks[number])
        move_digit(keys, weights, digit, slots, spare, spare_weights)
        keys, spare = spare, keys
        weights, spare_weights = spare_weights, weights
    return keys, weights


@jit
def count_digits(keys: Keys, shifts: Keys, masks: Keys, counts: NDArray[np.int64]) -> None:
    """Count every digit of every key: ``counts[digit number, digit]``. A pass for each takes half as long as one."""
    for part in range(len(shifts)):
        shift, mask, found = shifts[part], masks[part], counts[part]
        for i in range(len(keys)):
            found[(keys[i] >> shift) & mask] += 1


@jit
def move_digit(
    keys: Keys,
    weights: NDArray[Any],
    digit: tuple[Any, Any],
    slots: NDArray[np.int64],
    sorted_keys: Keys,
    sorted_weights: NDArray[Any],
) -> None:
    """One stable pass by one digit (shift, mask); ``slots`` holds where each of its values begins
    and is advanced."""
    shift, mask = digit
    weighted = len(weights) > 0
    for i in range(len(keys)):
        key = keys[i]
        value = (key >> shift) & mask
        slot = np.uint64(slots[value])  # unsigned: numba looks at the sign of others
        slots[value] = slot + np.uint64(1)
        sorted_keys[slot] = key
        if weighted:
            sorted_weights[slot] = weights[i]


@jit_part
def _sort_long(weights: NDArray[Any], start: int, stop: int) -> None:
    """Sort [start, stop) as a heap: `np.sort`, and the copy of a slice, would take Numba 3 s to compile."""
    first, last = (stop - start) // 2, stop - start
    while last > 1:
        if first > 0:
            first -= 1
            weight = weights[start + first]
        else:
            last -= 1
            weight = weights[start + last]
            weights[start + last] = weights[start]
        at, below = first, 2 * first + 1
        while below < last:
            if below + 1 < last and weights[start + below] < weights[start + below + 1]:
                below += 1
            if weights[start + below] <= weight:
                break
            weights[start + at] = weights[start + below]
            at, below = below, 2 * below + 1
        weights[start + at] = weight


@jit
def sort_ties(keys: Keys, weights: NDArray[Any]) -> None:
    """Sort the weights of equal keys, ascending."""
    end = len(keys)
    start = 0
    while start < end:
        stop = start + 1
        while stop < end and keys[stop] == keys[start]:
            stop += 1
        if stop - start > SMALL:
            _sort_long(weights, start, stop)
        else:
            for i in range(start + 1, stop):
                weight = weights[i]
                j = i - 1
                while j >= start and weights[j] > weight:
                    weights[j + 1] = weights[j]
                    j -= 1
                weights[j + 1] = weight
        start = stop


@jit
def join_ties(keys: Keys, weights: NDArray[Any], rule: int) -> int:
    """Keep one of equal keys, its weight as ``rule`` says; return how many are left in front."""
    if len(keys) == 0:
        return 0
    weighted = len(weights) > 0
    kept = 0
    for i in range(1, len(keys)):
        if keys[i] != keys[kept]:
            kept += 1
            keys[kept] = keys[i]
            if weighted:
                weights[kept] = weights[i]
        elif weighted:
            if rule == SUM:
                weights[kept] += weights[i]
            elif rule == MIN:
                weights[kept] = min(weights[kept], weights[i])
            elif rule == MAX:
                weights[kept] = max(weights[kept], weights[i])
    return kept + 1


@jit
def split_keys(keys: Keys, target_bits: int, neighbors: NDArray[Any], degrees: NDArray[np.uint32]) -> None:
    """Write targets into ``neighbors`` and count rows into ``degrees``, from the first key's on."""
    move = np.uint64(target_bits)
    mask = (np.uint64(1) << move) - np.uint64(1)
    if len(keys) == 0:
        return
    first = keys[0] >> move
    for i in range(len(keys)):
        neighbors[i] = keys[i] & mask
        degrees[(keys[i] >> move) - first] += 1


@jit
def split_sources(keys: Keys, target_bits: int, base: int, sources: NDArray[Any]) -> None:
    """Write each key's source, counted from vertex ``base``, into ``sources``."""
    move = np.uint64(target_bits)
    first = np.uint64(base)
    for i in range(len(keys)):
        sources[i] = (keys[i] >> move) + first
