"""The sizes of a packed payload (bitpack.py describes it); imports no compiler, so that opening a graph needs none."""

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


def payload_words(edges: int, item_bytes: int) -> int:
    """Return the most 32-bit words that a payload of so many edges can take."""
    blocks = -(-edges // BLOCK)
    ids = 2 if item_bytes == 8 else 1
    data = BLOCK + 2 if ids == 1 else 2 * BLOCK + BLOCK // 4 + 2
    return HEADER_WORDS + blocks * (2 * ids + 1 + data) + LANES
