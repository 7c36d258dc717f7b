"""What a payload says about its blocks, and which of them are wanted.

Nothing that a payload says is believed: sizes that do not fit its own length, or the array that it is in, make it
malformed. `storage/encoding/bitpack.py` has the layout.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda.device_functions import is_marked
from penstock.engine.kernels.cuda.driver import cuda, device
from penstock.storage.encoding.payload import BLOCK as ITEMS
from penstock.storage.encoding.payload import HEADER_WORDS, LANES

MALFORMED = np.int64(1 << 36)
"""The size of a block whose description cannot be; more words than a payload has, and 2^23 of them still an int64."""
LONGEST = np.int64((1 << 32) - 1)
"""Words of a payload."""
ZERO = np.int64(0)
ONE = np.int64(1)
BLOCK_BITS = np.int64(8)
WORD_BITS = np.int64(5)
LOW5 = np.int64(31)
LOW6 = np.int64(63)
U32 = np.uint64(32)
EMPTY = np.uint32(0)


@device
def width_of(description):  # type: ignore[no-untyped-def]
    """Bits of a residual in the lanes (int64)."""
    return description & LOW6


@device
def high_width_of(description):  # type: ignore[no-untyped-def]
    """Bits of an exception above those (int64)."""
    return (description >> np.int64(6)) & LOW6


@device
def exceptions_of(description):  # type: ignore[no-untyped-def]
    """How many exceptions a block has (int64)."""
    return description >> np.int64(12)


@device
def size_of(description):  # type: ignore[no-untyped-def]
    """Words of the data of a block (int64), MALFORMED if there is no such block."""
    width, high_width = width_of(description), high_width_of(description)
    exceptions = exceptions_of(description)
    if width > np.int64(32) or high_width > np.int64(32) or exceptions > np.int64(ITEMS):
        return MALFORMED
    highs = (exceptions * high_width + LOW5) >> WORD_BITS
    return np.int64(LANES) * width + ((exceptions + np.int64(3)) >> np.int64(2)) + highs


@device
def may_be_payload(words, begin, length, blocks, id_words):  # type: ignore[no-untyped-def]
    """Whether `length` words at words[begin] have room for what a payload of so many blocks has besides their data."""
    least = np.int64(HEADER_WORDS) + blocks * (id_words + id_words + ONE) + np.int64(LANES)
    return begin >= ZERO and least <= length <= LONGEST and begin + length <= words.shape[0]


@device
def end_of_data(header, length, items, kind):  # type: ignore[no-untyped-def]
    """Where the data of the last block ends in a payload of `length` words with this header; 0 if it cannot be one.

    header: its four words (int64). kind: words of an id; VALUES or 0.
    """
    id_words, values = kind
    blocks = (items + np.int64(ITEMS - 1)) >> BLOCK_BITS
    said, id_bits, said_blocks, end = header
    id_bits -= values
    least = np.int64(HEADER_WORDS) + blocks * (id_words + id_words + ONE)
    if said != items or said_blocks != blocks or id_bits < ONE or id_bits > np.int64(32) * id_words:
        return ZERO
    return end if least <= end <= length - np.int64(LANES) else ZERO


@device
def first_marked(marks, low, high):  # type: ignore[no-untyped-def]
    """The first marked bit of [low, high) (int64); high if there is none."""
    at = low
    while at < high:
        left = np.uint32(marks[np.uint64(at >> WORD_BITS)] >> np.uint32(at & LOW5))
        if left != EMPTY:
            return min(high, at + np.int64(cuda.ffs(left)) - ONE)
        at = (at | LOW5) + ONE
    return high


@device
def after_last_marked(marks, low, high):  # type: ignore[no-untyped-def]
    """One more than the last marked bit of [low, high) (int64); low if there is none."""
    at = high - ONE
    while at >= low:
        left = np.uint32(marks[np.uint64(at >> WORD_BITS)] << np.uint32(LOW5 - (at & LOW5)))
        if left != EMPTY:
            return max(low, at - np.int64(cuda.clz(left)) + ONE)
        at = at - (at & LOW5) - ONE
    return low


@device
def wanted_part(marks, begin, low, high):  # type: ignore[no-untyped-def]
    """Blocks [low, high) of the chunk that begins at edge `begin`, less those before the first and after the last mark.

    A block of a chunk lies in two of the adjacency's blocks where chunks are not whole blocks.
    """
    first = (begin >> BLOCK_BITS) + low
    last = ((begin + (high << BLOCK_BITS) - ONE) >> BLOCK_BITS) + ONE
    last = min(last, np.int64(marks.shape[0]) << WORD_BITS)
    one = first_marked(marks, first, last)
    if one >= last:
        return low, low
    other = after_last_marked(marks, one, last)
    before = ((one << BLOCK_BITS) - begin) >> BLOCK_BITS
    after = (((other << BLOCK_BITS) - ONE - begin) >> BLOCK_BITS) + ONE
    return max(low, before), min(high, after)


@device
def is_wanted(marks, begin, end):  # type: ignore[no-untyped-def]
    """Whether one of the adjacency's blocks that edges [begin, end) lie in is marked; there are two at most."""
    first, last = begin >> BLOCK_BITS, (end - ONE) >> BLOCK_BITS
    if last >> WORD_BITS >= marks.shape[0]:
        return False
    return is_marked(marks, np.uint64(first)) or is_marked(marks, np.uint64(last))
