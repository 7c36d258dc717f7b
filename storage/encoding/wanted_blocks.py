"""Decodes the wanted blocks of chunks in a packed store (packed_store.py), without Python's lock."""

from typing import Any

import numpy as np
from penstock.storage.base.jit import jit, jit_part
from penstock.storage.encoding.payload import BEYOND, BLOCK, HEADER_WORDS, LANES, MALFORMED
from penstock.storage.encoding.unpack import is_wanted, unpack_marked, unpack_marked_values


@jit_part
def _any_wanted(marks: Any, first: int, last: int) -> bool:
    found = False
    for block in range(first, last):
        found |= is_wanted(marks, block)
    return found


@jit_part
def _payload(store: Any, chunk: int) -> Any:
    """The words of a payload; none where its starts are not inside the words, or are not its own length apart."""
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
