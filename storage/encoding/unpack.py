"""Decodes packed payloads (bitpack.py describes them), whole ones and wanted blocks of many, at memory's speed.

Every length is checked against the payload's own before it is used, so that not even a forged file with fitting
checksums makes a kernel touch memory outside its arrays.
"""

from typing import Any

import numpy as np
from penstock.storage.base.jit import jit, jit_inlined, jit_part
from penstock.storage.encoding.payload import BEYOND, BLOCK, HEADER_WORDS, LANES, MALFORMED, VALUES
from penstock.storage.encoding.simd import sum_block, unpack_block

_U0 = np.uint64(0)
_U1 = np.uint64(1)
_U32 = np.uint64(32)


@jit_inlined
def word_pair(words: Any, at: int, wide: bool) -> Any:
    """Return a word, or two as one number where it is ``wide``."""
    value = np.uint64(words[at])
    if wide:
        value |= np.uint64(words[at + 1]) << _U32
    return value


@jit_inlined
def _patch(words: Any, at: int, width: int, high_width: int, count: int, residuals: Any) -> None:
    """Add the high bits of ``count`` exceptions to their residuals."""
    highs = at + (count + 3) // 4
    mask = (_U1 << np.uint64(high_width)) - _U1
    for i in range(count):
        position = (words[at + (i >> 2)] >> np.uint32((i & 3) * 8)) & np.uint32(255)
        bit = i * high_width
        window = np.uint64(words[highs + (bit >> 5)])
        window |= np.uint64(words[highs + (bit >> 5) + 1]) << _U32
        high = (window >> np.uint64(bit & 31)) & mask
        residuals[position] |= residuals.dtype.type(high << np.uint64(width))


@jit_inlined
def block_words(description: Any) -> Any:
    """Return the 32-bit words of a block."""
    exceptions = description >> 12
    return LANES * (description & 63) + (exceptions + 3) // 4 + (exceptions * ((description >> 6) & 63) + 31) // 32


@jit_inlined
def open_block(words: Any, at: int, description: Any, residuals: Any) -> Any:
    """Write the residuals of the block whose data begins at ``words[at]``; return where that of the next one does."""
    width = description & 63
    high_width = (description >> 6) & 63
    exceptions = description >> 12
    unpack_block(words, at, width, residuals)
    at += LANES * width
    if exceptions:
        _patch(words, at, width, high_width, exceptions, residuals)
        at += (exceptions + 3) // 4 + (exceptions * high_width + 31) // 32
    return at


@jit_part
def _sound(words: Any, edges: int, w: int, values: int) -> Any:
    """Whether every length in the payload agrees with the payload's own length."""
    blocks = (edges + BLOCK - 1) // BLOCK
    at: Any = HEADER_WORDS + blocks * (2 * w + 1)
    if len(words) < at + LANES or words[0] != edges or words[2] != blocks:
        return False
    if words[1] < 1 + values or words[1] > 32 * w + values:
        return False
    for k in range(blocks):
        description: Any = np.int64(words[HEADER_WORDS + 2 * blocks * w + k])
        width = description & 63
        high_width = (description >> 6) & 63
        exceptions = description >> 12
        if width > 32 or high_width > 32 or exceptions > BLOCK:
            return False
        at += block_words(description)
    return at == words[3] and at + LANES <= len(words)


@jit
def sound(words: Any, items: int, id_words: int, values: int) -> bool:
    """Whether a payload is one of so many items whose blocks fit it.

    Parameters
    ----------
    words : ndarray of uint32
        The payload.
    items : int
        How many it must hold.
    id_words : int
        Words of an item: 2 for uint64 ids, else 1.
    values : {0, VALUES}
        Whether it must hold differences or values.
    """
    return bool(_sound(words, items, id_words, values))


@jit
def unpack(words: Any, out: Any) -> Any:
    """Decode a payload of ids.

    Parameters
    ----------
    words : ndarray of uint32
        The payload.
    out : ndarray of uint32 or uint64, (edges,)
        Is filled with the ids, as many as the payload holds.

    Returns
    -------
    int
        The largest id (-1 for no edges), or -2 for a malformed payload; ids are below 2^63.
    """
    return unpack_marked(words, out, np.empty(0, np.uint32), 0)


@jit_part
def is_wanted(marks: Any, block: int) -> bool:
    """Return whether a bitmap wants a block; one without words wants all."""
    return len(marks) == 0 or (marks[block >> 5] >> np.uint32(block & 31)) & np.uint32(1) != 0


@jit_part
def unpack_marked(words: Any, out: Any, marks: Any, first_block: int) -> Any:
    """As `unpack`, but only of blocks that ``marks`` wants; block 0 of the payload has bit ``first_block`` there."""
    edges = len(out)
    wide = out.itemsize == 8
    w = 2 if wide else 1
    if not _sound(words, edges, w, 0):
        return -2
    kind = out.dtype.type
    blocks = (edges + BLOCK - 1) // BLOCK
    mask = kind(~_U0 >> np.uint64(64 - np.int64(words[1])))
    residuals = np.empty(BLOCK, out.dtype)
    tail = np.empty(BLOCK, out.dtype)
    largest = kind(0)
    at: Any = HEADER_WORDS + blocks * (2 * w + 1)
    for k in range(blocks):
        description: Any = np.int64(words[HEADER_WORDS + 2 * blocks * w + k])
        if not is_wanted(marks, first_block + k):
            at += block_words(description)
            continue
        start = kind(word_pair(words, HEADER_WORDS + k * w, wide))
        step = kind(word_pair(words, HEADER_WORDS + (blocks + k) * w, wide))
        at = open_block(words, at, description, residuals)
        residuals[0] = kind(0) - step
        if (k + 1) * BLOCK <= edges:
            largest = max(largest, sum_block(residuals, start, step, mask, out, k * BLOCK))
        else:
            sum_block(residuals, start, step, mask, tail, 0)
            for i in range(edges - k * BLOCK):
                out[k * BLOCK + i] = tail[i]
                largest = max(largest, tail[i])
    if edges == 0:
        return -1
    return np.int64(largest) if np.int64(largest) >= 0 else -2


@jit
def unpack_values(words: Any, out: Any) -> Any:
    """Decode a payload of values.

    Parameters
    ----------
    words : ndarray of uint32
        The payload.
    out : ndarray of uint8, uint16 or uint32, (items,)
        Is filled with the values, as many as the payload holds.

    Returns
    -------
    int
        -1, or -2 for a malformed payload.
    """
    return unpack_marked_values(words, out, np.empty(0, np.uint32), 0)


@jit_part
def unpack_marked_values(words: Any, out: Any, marks: Any, first_block: int) -> Any:
    """As `unpack_values`, but of wanted blocks only; see `unpack_marked`."""
    edges = len(out)
    if not _sound(words, edges, 1, VALUES):
        return -2
    kind = out.dtype.type
    blocks = (edges + BLOCK - 1) // BLOCK
    residuals = np.empty(BLOCK, np.uint32)
    at = HEADER_WORDS + blocks * 3
    for k in range(blocks):
        description: Any = np.int64(words[HEADER_WORDS + 2 * blocks + k])
        if not is_wanted(marks, first_block + k):
            at += block_words(description)
            continue
        step = words[HEADER_WORDS + blocks + k]
        at = open_block(words, at, description, residuals)
        block = out[k * BLOCK : (k + 1) * BLOCK]
        for i in range(len(block)):
            block[i] = kind(residuals[i] + step)
    return -1


@jit_part
def _any_wanted(marks: Any, first: int, last: int) -> bool:
    found = False
    for block in range(first, last):
        found |= is_wanted(marks, block)
    return found


@jit_part
def _payload(store: Any, chunk: int) -> Any:
    """Return the words of a payload; none where its starts are not inside the words or not its own length apart."""
    first = store.starts[chunk] - store.first_word
    last = store.starts[chunk + 1] - store.first_word
    inside = first >= 0 and last - first >= HEADER_WORDS + LANES and last <= len(store.words)
    if not inside or np.int64(store.words[first + 3]) + LANES != last - first:
        return store.words[:0]
    return store.words[first:last]


@jit_part
def _clear(items: Any, least: Any, marks: Any, first_block: int) -> None:
    """Write 0 for items of wanted blocks that are at least ``least``."""
    for block in range((len(items) + BLOCK - 1) // BLOCK):
        if is_wanted(marks, first_block + block):
            for i in range(block * BLOCK, min((block + 1) * BLOCK, len(items))):
                if items[i] >= least:
                    items[i] = 0


@jit
def decode_ids(store: Any, target: Any, first_chunk: int, last_chunk: int, status: Any) -> None:
    """Decode chunks of ids; see `packed_store.unpack_wanted`, which has checked that they fit their room."""
    size = store.chunk_items
    kind = target.out.dtype.type
    for chunk in range(first_chunk, last_chunk):
        first, last = chunk * size, min((chunk + 1) * size, store.items)
        block = first // BLOCK
        if not _any_wanted(target.marks, block, (last + BLOCK - 1) // BLOCK):
            continue
        items = target.out[first - target.first_item : last - target.first_item]
        largest = unpack_marked(_payload(store, chunk), items, target.marks, block)
        if largest == -2:
            status[chunk - first_chunk] = MALFORMED
            _clear(items, kind(0), target.marks, block)
        elif target.limit > 0 and largest >= target.limit:
            status[chunk - first_chunk] = BEYOND
            _clear(items, kind(target.limit), target.marks, block)


@jit
def decode_values(store: Any, target: Any, first_chunk: int, last_chunk: int, status: Any) -> None:
    """Decode chunks of values, as `decode_ids`."""
    size = store.chunk_items
    for chunk in range(first_chunk, last_chunk):
        first, last = chunk * size, min((chunk + 1) * size, store.items)
        block = first // BLOCK
        if not _any_wanted(target.marks, block, (last + BLOCK - 1) // BLOCK):
            continue
        items = target.out[first - target.first_item : last - target.first_item]
        if unpack_marked_values(_payload(store, chunk), items, target.marks, block) == -2:
            status[chunk - first_chunk] = MALFORMED
            _clear(items, target.out.dtype.type(0), target.marks, block)
