"""The distinct names among the fields of a block, which are ids that are strings, and their numbers.

With ``sides`` a source and a target of the same name are two vertices, and every name is preceded by a byte, 1 or 2,
that says which.

A name is known by 128 bits of hash, so that no names are kept to compare with: among 10^9 names two share one with
probability 10^-21. Each 64-bit half mixes eight bytes at a time by xor, multiply and shift (after Appleby's
MurmurHash64A) with its own constants.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.ingest.core.edges import LocalNames


def local_names(
    text: NDArray[np.uint8], places: NDArray[np.int32], sides: bool
) -> tuple[LocalNames, NDArray[np.uint32]]:
    """The distinct names among fields, and their numbers, uint32 (m, 2).

    ``places`` int32 (m, 4) are as `text.parser.parse_lines` gives them.
    """
    edges = len(places)
    numbers = np.empty((edges, 2), np.uint32)
    keys = np.empty((2 * edges, 2), np.uint64)
    firsts = np.empty(2 * edges, np.int64)
    count = int(distinct_fields(text, places, sides, numbers, keys, firsts))
    firsts = firsts[:count]
    size = int(places[firsts >> 1, 1 + 2 * (firsts & 1)].sum(dtype=np.int64)) + sides * count
    names = StringArray(np.empty(size, np.uint8), np.empty(count, np.int64))
    pack_fields(text, places, firsts, int(sides), names.ends, names.text)
    return LocalNames(keys[:count].copy(), firsts, names), numbers


def places_of(lengths: NDArray[np.int32]) -> NDArray[np.int32]:
    """Where fields of these lengths, sources and targets in turn, are end to end: int32 (m, 4), for `local_names`."""
    places = np.empty((len(lengths) // 2, 4), np.int32)
    places[:, 1::2] = lengths.reshape(-1, 2)
    places[:, 0::2] = (np.cumsum(lengths, dtype=np.int32) - lengths).reshape(-1, 2)
    return places


def not_utf8(text: NDArray[np.uint8], places: NDArray[np.int32], found: LocalNames, sides: bool) -> int | None:
    """Where a name that is no UTF-8 lies in ``text``; None if all are."""
    if int(found.names.text.max(initial=0)) < 128:
        return None
    names = found.names
    lines = np.empty(len(names.text) + len(names) * (1 - sides), np.uint8)
    pack_fields(text, places, found.firsts, 2, np.empty(len(names), np.int64), lines)
    try:
        lines.tobytes().decode()
    except UnicodeDecodeError as error:
        first = found.firsts[lines[: error.start].tobytes().count(b"\n")]
        return int(places[first >> 1, 2 * (first & 1)])
    return None


_K1 = np.uint64(0xC6A4A7935BD1E995)
_K2 = np.uint64(0x9FB21C651E98DF25)
_FINAL = np.uint64(0xFF51AFD7ED558CCD)
_47 = np.uint64(47)
_29 = np.uint64(29)
_32 = np.uint64(32)


@jit
def hash_name(text: NDArray[np.uint8], start: int, length: int, side: int) -> tuple[Any, Any]:
    """128 bits of hash of a name; ``side`` sets equal names apart."""
    one = (np.uint64(length) * _K2) ^ np.uint64(side + 1)
    two = (np.uint64(length) + np.uint64(side)) * _K1 ^ _FINAL
    at = start
    left = length
    while left > 0:
        word = np.uint64(0)
        for i in range(min(left, 8)):
            word |= np.uint64(text[at + i]) << np.uint64(8 * i)
        at += 8
        left -= 8
        mixed = word * _K1
        mixed = (mixed ^ (mixed >> _47)) * _K1
        one = (one ^ mixed) * _K1
        two = (two ^ (word ^ (word >> _32))) * _K2
        two ^= two >> _29
    one = (one ^ (one >> _47)) * _FINAL
    two = (two ^ (two >> _32)) * _FINAL
    return one ^ (one >> _32), two ^ (two >> _29)


@jit
def distinct_fields(
    text: NDArray[np.uint8],
    places: NDArray[np.int32],
    sides: bool,
    numbers: NDArray[np.uint32],
    keys: NDArray[np.uint64],
    firsts: NDArray[np.int64],
) -> int:
    """Number the distinct names among ``places`` in the order in which they come, source before target.

    ``sides``: a name as source and the same as target are two. ``numbers`` uint32 (m, 2) takes the
    numbers, ``keys`` uint64 (2m, 2) the hash of each distinct name, ``firsts`` int64 (2m,) where it
    came first: twice the line, plus one as a target. Returns how many there are.
    """
    capacity = 16
    while capacity < 4 * len(places):
        capacity *= 2
    slots = np.zeros(capacity, np.uint32)
    count = 0
    for i in range(len(places)):
        for end in range(2):
            one, two = hash_name(text, places[i, 2 * end], places[i, 2 * end + 1], end if sides else 0)
            number = find_or_add(one, two, keys, slots, count)
            numbers[i, end] = number
            if number == count:
                firsts[count] = 2 * i + end
                count += 1
    return count


@jit
def find_or_add(one: Any, two: Any, keys: NDArray[np.uint64], slots: NDArray[np.uint32], count: int) -> Any:
    """The number of a key (two halves) among the ``count`` in ``keys``; ``count`` if it is new, and was added.

    ``slots``, 2^n, hold numbers plus one, 0 where free.
    """
    mask = np.uint64(len(slots) - 1)
    slot = one & mask
    while slots[slot] != 0:
        number = np.int64(slots[slot]) - 1
        if keys[number, 0] == one and keys[number, 1] == two:
            return number
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = count + 1
    keys[count, 0] = one
    keys[count, 1] = two
    return count


@jit
def pack_fields(
    text: NDArray[np.uint8],
    places: NDArray[np.int32],
    firsts: NDArray[np.int64],
    apart: int,
    ends: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Copy the fields that `distinct_fields` found into ``out``, and where each ends into ``ends``.

    ``apart`` 1: a byte before each, 1 for a source and 2 for a target; 2: a newline after each; 0: nothing.
    """
    at = 0
    for i in range(len(firsts)):
        line = firsts[i] >> 1
        end = firsts[i] & 1
        if apart == 1:
            out[at] = 1 + end
            at += 1
        start = places[line, 2 * end]
        for j in range(start, start + places[line, 2 * end + 1]):
            out[at] = text[j]
            at += 1
        if apart == 2:
            out[at] = 10
            at += 1
        ends[i] = at
