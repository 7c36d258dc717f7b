"""Decodes packed payloads (bitpack.py describes them), block by block, at memory's speed.

Every length is checked against the payload's own before it is used, so that not even a forged file with fitting
checksums makes a kernel touch memory outside its arrays.
"""

from typing import Any

import numpy as np
from penstock.storage.base.jit import jit, jit_inlined, jit_part
from penstock.storage.encoding.payload import BLOCK, HEADER_WORDS, LANES, VALUES
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
