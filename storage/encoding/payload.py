"""What a packed payload is (bitpack.py describes it): its sizes, and how it is decoded, with NumPy alone.

The definition of what `unpack.py` does at memory's speed, with the same answers for malformed payloads. It imports no
compiler and waits for none: opening a graph needs the sizes, and the last frame of an array, if that is short, is
decoded here. Small graphs have no others.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

LANES = 8
ROWS = 32
BLOCK = LANES * ROWS
HEADER_WORDS = 4
VALUES = 256
"""Added to id_bits in the header of a payload of values instead of differences."""


MALFORMED, BEYOND = 1, 2
"""Flags of a chunk that is unpacked: its payload is malformed; it holds an id that is not below the limit."""
PAYLOADS = ("packed", "bits")
"""Encodings whose frames hold a payload of 32-bit words."""
_ROWS, _LANES = np.arange(ROWS, dtype=np.int64), np.arange(LANES, dtype=np.int64)


def payload_words(edges: int, item_bytes: int) -> int:
    """Return the most 32-bit words that a payload of so many edges can take."""
    blocks = -(-edges // BLOCK)
    ids = 2 if item_bytes == 8 else 1
    data = BLOCK + 2 if ids == 1 else 2 * BLOCK + BLOCK // 4 + 2
    return HEADER_WORDS + blocks * (2 * ids + 1 + data) + LANES


def unpack(words: NDArray[np.uint32], out: NDArray[Any]) -> int:
    """As `unpack.unpack`."""
    wide = out.itemsize // 4
    found = _residuals(words, len(out), wide, 0)
    if found is None or not len(out):
        return -2 if found is None else -1
    residuals, first, step = found
    residuals += step[:, None]
    residuals[:, 0] = first
    ids = np.cumsum(residuals, axis=1, dtype=np.uint64) & _ones(words[1])
    out[:] = ids.reshape(-1)[: len(out)]
    largest = int(out.max())
    return largest if largest < 1 << 63 else -2


def unpack_values(words: NDArray[np.uint32], out: NDArray[Any]) -> int:
    """As `unpack.unpack_values`."""
    found = _residuals(words, len(out), 1, VALUES)
    if found is None:
        return -2
    residuals, _, step = found
    out[:] = (residuals + step[:, None]).reshape(-1)[: len(out)].astype(out.dtype)
    return -1


def _residuals(words: NDArray[np.uint32], items: int, wide: int, values: int) -> tuple[NDArray[np.uint64], ...] | None:
    """Residuals (blocks, 256), and each block's first id and step, uint64; None where lengths do not agree."""
    blocks = -(-items // BLOCK)
    at = HEADER_WORDS + blocks * (2 * wide + 1)
    if len(words) < at + LANES or (words[0], words[2]) != (items, blocks):
        return None
    if not 1 + values <= words[1] <= 32 * wide + values:
        return None
    described = words[at - blocks : at].astype(np.int64)
    width, high_width, exceptions = described & 63, described >> 6 & 63, described >> 12
    if (width > 32).any() or (high_width > 32).any() or (exceptions > BLOCK).any():
        return None
    positions = (exceptions + 3) // 4
    ends = at + np.cumsum(LANES * width + positions + (exceptions * high_width + 31) // 32)
    if words[3] != (ends[-1] if blocks else at) or words[3] + LANES > len(words):
        return None
    begins = np.concatenate([[at], ends[:-1]])[:blocks].astype(np.int64)
    bit = _ROWS * width[:, None]
    place = (begins[:, None] + (bit >> 5) * LANES)[:, :, None] + _LANES
    residuals = _pair(words, place, np.minimum(place + LANES, len(words) - 1))
    residuals >>= (bit & 31)[:, :, None].astype(np.uint64)
    residuals = (residuals & _ones(width)[:, None, None]).reshape(blocks, BLOCK)
    for k in np.flatnonzero(exceptions):
        _patch(words, int(begins[k] + LANES * width[k]), described[k], residuals[k])
    heads = words[HEADER_WORDS : at - blocks].reshape(2, blocks, wide).astype(np.uint64)
    first, step = heads[:, :, 0] | (heads[:, :, 1] << np.uint64(32) if wide == 2 else np.uint64(0))
    return residuals, first, step


def _patch(words: NDArray[np.uint32], at: int, described: Any, residuals: NDArray[np.uint64]) -> None:
    """Add the high bits of exceptions, whose positions begin at ``words[at]``, to their residuals."""
    width, high_width, count = described & 63, described >> 6 & 63, int(described >> 12)
    highs = at + (count + 3) // 4
    bit = np.arange(count) * high_width
    place = highs + (bit >> 5)
    high = _pair(words, place, place + 1) >> (bit & 31).astype(np.uint64) & _ones(high_width)
    np.bitwise_or.at(residuals, words[at:highs].view(np.uint8)[:count], high << np.uint64(width))


def _pair(words: NDArray[np.uint32], low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Two words as one number."""
    return words[low].astype(np.uint64) | words[high].astype(np.uint64) << np.uint64(32)


def _ones(bits: Any) -> Any:
    """So many ones, up to 64."""
    return ~(np.uint64(0xFFFFFFFFFFFFFFFF) << np.asarray(bits, np.uint64))
