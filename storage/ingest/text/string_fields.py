"""Owns the compiled half of string ids: fields of lines, and the distinct ones among a block's fields.

A name is known by 128 bits of hash, so that nobody keeps names to compare with: among 10^9 names two
share one with probability 10^-21. Each 64-bit half mixes eight bytes at a time by xor, multiply and
shift (after Appleby's MurmurHash64A) with its own constants.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.storage.encoding.string_array import LONGEST_NAME
from penstock.storage.ingest.text.parser import (
    BAD_LINE,
    NEWLINE,
    byte_at,
    is_blank,
    line_end,
    next_field,
    skip_field,
    skip_line,
    weight_at,
)

_K1 = np.uint64(0xC6A4A7935BD1E995)
_K2 = np.uint64(0x9FB21C651E98DF25)
_FINAL = np.uint64(0xFF51AFD7ED558CCD)
_47 = np.uint64(47)
_29 = np.uint64(29)
_32 = np.uint64(32)


@jit
def parse_fields(
    text: NDArray[np.uint8],
    columns: tuple[int, int, int],
    fields: tuple[int, int],
    places: NDArray[np.int32],
    weights: NDArray[np.float64],
) -> tuple[int, int, int]:
    """As `parser.parse_lines`, but ids are any fields: ``places`` int32 (m, 4) takes where source and target
    begin and how long they are. Empty fields, names too long and zero bytes are bad.

    Returns:
        edges found, lines passed, where the first bad line begins (-1: none).
    """
    last_column = max(columns)
    at = 0
    edges = 0
    lines = 0
    while at < len(text):
        begin = at
        while is_blank(byte_at(text, at)):
            at += 1
        if byte_at(text, at) != NEWLINE and byte_at(text, at) != 35 and byte_at(text, at) != 37:
            for column in range(last_column + 1):
                at = next_field(text, at, column)
                if at == BAD_LINE:
                    return edges, lines, begin
                start = at
                if column == columns[2]:
                    weights[edges], at = weight_at(text, at)
                    if at == BAD_LINE:
                        return edges, lines, begin
                else:
                    at = skip_field(text, at)
                if column == columns[0] or column == columns[1]:
                    if at == start or at - start > LONGEST_NAME or has_zero(text, start, at):
                        return edges, lines, begin
                    if column == columns[0]:
                        places[edges, 0] = start
                        places[edges, 1] = at - start
                    if column == columns[1]:
                        places[edges, 2] = start
                        places[edges, 3] = at - start
            at = line_end(text, at, last_column + 1, fields)
            if at == BAD_LINE:
                return edges, lines, begin
            edges += 1
        else:
            at = skip_line(text, at)
        lines += 1
    return edges, lines, BAD_LINE


@jit
def has_zero(text: NDArray[np.uint8], start: int, end: int) -> bool:
    """Whether a zero byte is among some bytes."""
    at = start
    while at < end and byte_at(text, at) != 0:
        at += 1
    return at < end


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
            out[at] = NEWLINE
            at += 1
        ends[i] = at
