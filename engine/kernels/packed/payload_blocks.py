"""Which blocks a payload has and which of them are wanted, found by the threads of a CUDA block.

Nothing that a payload says is believed: sizes that do not fit its own length, or the array that it is in, make it
malformed. `storage/encoding/bitpack.py` has the layout.
"""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.cuda.device_functions import is_marked
from penstock.engine.kernels.cuda.driver import BLOCK, cuda, device
from penstock.engine.kernels.packed.warp import LAST, WARP, WARPS, make_running_sum
from penstock.storage.encoding.payload import BLOCK as ITEMS
from penstock.storage.encoding.payload import LANES

MALFORMED = np.uint32((1 << 32) - 1)
"""The size of a block whose description cannot be; a payload has fewer words."""
LONGEST = np.int64((1 << 32) - 1)
ZERO = np.int64(0)
ONE = np.int64(1)
BLOCK_BITS = np.int64(8)
WORD_BITS = np.int64(5)
LOW5 = np.int64(31)
LOW6 = np.uint32(63)
WIDEST = np.uint32(32)
U32 = np.uint64(32)
EMPTY = np.uint32(0)


@device
def width_of(description):  # type: ignore[no-untyped-def]
    """Bits of a residual in the lanes (uint32, as all of a description)."""
    return np.uint32(description & LOW6)


@device
def high_width_of(description):  # type: ignore[no-untyped-def]
    """Bits of an exception above those."""
    return np.uint32((description >> np.uint32(6)) & LOW6)


@device
def exceptions_of(description):  # type: ignore[no-untyped-def]
    """How many exceptions a block has."""
    return np.uint32(description >> np.uint32(12))


@device
def size_of(description):  # type: ignore[no-untyped-def]
    """Words of the data of a block, MALFORMED if there is no such block."""
    width, high_width = width_of(description), high_width_of(description)
    exceptions = exceptions_of(description)
    sound = width <= WIDEST and high_width <= WIDEST and exceptions <= np.uint32(ITEMS)
    highs = np.uint32(np.uint32(np.uint32(exceptions * high_width) + np.uint32(31)) >> np.uint32(5))
    positions = np.uint32(np.uint32(exceptions + np.uint32(3)) >> np.uint32(2))
    return np.uint32(np.uint32(width << np.uint32(3)) + positions + highs) if sound else MALFORMED


@device
def is_here(words, begin, length, data):  # type: ignore[no-untyped-def]
    """Whether a payload of `length` words is at words[begin] and has room for what is before `data`."""
    return begin >= ZERO and length >= data + np.int64(LANES) and length <= LONGEST and begin + length <= words.shape[0]


@device
def end_of_data(header, length, data, items, kind):  # type: ignore[no-untyped-def]
    """Where the data of the last block ends in a payload of `length` words; 0 if its header (int64) is not of it.

    data: where that of the first one begins. kind: words of an id; VALUES or 0.
    """
    (edges, id_bits, blocks, end), (id_words, values) = header, kind
    sound = edges == items and blocks == (items + np.int64(ITEMS - 1)) >> BLOCK_BITS
    sound = sound and id_bits > values and id_bits <= values + np.int64(32) * id_words
    return end if sound and end >= data and end <= length - np.int64(LANES) else ZERO


_running_sum = make_running_sum(np.uint64)


@device
def sum_up(value):  # type: ignore[no-untyped-def]
    """The sum of a CUDA block's values (int64, >= 0) up to this thread's; all threads call it, once between two barriers."""
    totals = cuda.shared.array(WARPS, np.int64)
    warp = cuda.threadIdx.x // WARP
    mine = np.int64(_running_sum(np.uint64(value)))
    if cuda.threadIdx.x & LAST == LAST:
        totals[warp] = mine
    cuda.syncthreads()
    before = ZERO
    for other in range(warp):
        before += totals[other]
    return before + mine


@device
def share_of(high):  # type: ignore[no-untyped-def]
    """Which of the first `high` blocks of a payload this thread looks at: neighboring ones, [first, last)."""
    each = (high + np.int64(BLOCK - 1)) // np.int64(BLOCK)
    first = min(high, np.int64(cuda.threadIdx.x) * each)
    return first, min(high, first + each)


@device
def size_of_share(words, at, high):  # type: ignore[no-untyped-def]
    """Words of the data of this thread's share of the blocks, of which the first description is words[at]; int64."""
    first, last = share_of(high)
    size = ZERO
    for k in range(first, last):
        size += np.int64(size_of(words[np.uint64(at + k)]))
    return size


@device
def find_blocks(words, at, place, low, high, table):  # type: ignore[no-untyped-def]
    """table[k - low] = description << 32 | where the data of block k begins, for blocks [low, high).

    at: as above. place: where the data of this thread's share begins. All threads of the CUDA block call it.
    """
    first, last = share_of(high)
    for k in range(first, last):
        description = words[np.uint64(at + k)]
        if k >= low:
            table[np.uint64(k - low)] = (np.uint64(description) << U32) | np.uint64(min(place, LONGEST))
        place += np.int64(size_of(description))


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
