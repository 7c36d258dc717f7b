"""Packed stores for tests: payloads one after another, as `transfer/devices/device.py` describes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.encoding.bitpack import pack
from penstock.storage.encoding.payload import BLOCK, payload_words
from penstock.transfer.devices.device import Device, Unpacker, UnpackRequest

GUARD = 64
"""Items before and after `out` that no decoder may write."""


@dataclass(frozen=True)
class Store:
    """Items, and the payloads of their chunks; limit: one more than the largest id."""

    items: NDArray[Any]
    chunk: int
    values: bool
    words: NDArray[np.uint32]
    starts: NDArray[np.int64]

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return len(self.starts) - 1

    @property
    def limit(self) -> int:
        """One more than the largest id; 0 for values."""
        return 0 if self.values or not len(self.items) else int(self.items.max()) + 1

    def all_marks(self, wanted: NDArray[np.bool_]) -> NDArray[np.uint32]:
        """The bitmap of wanted blocks of the adjacency."""
        bits = np.zeros(-(-len(self.items) // (32 * BLOCK)) * 32, np.uint8)
        bits[: len(wanted)] = wanted
        return np.packbits(bits, bitorder="little").view(np.uint32)


def store_of(items: NDArray[Any], chunk: int, *, values: bool = False) -> Store:
    """Pack items in chunks of so many."""
    payloads = []
    for first in range(0, len(items), chunk):
        part = items[first : first + chunk]
        words = np.zeros(payload_words(len(part), part.itemsize), np.uint32)
        payloads.append(words[: pack(part, words, not values)])
    starts = np.cumsum([0, *map(len, payloads)]).astype(np.int64)
    return Store(items, chunk, values, np.concatenate(payloads), starts)


def decoded(
    store: Store,
    unpacker: Unpacker,
    device: Device,
    chunks: tuple[int, int] | None = None,
    marks: NDArray[np.uint32] | None = None,
    limit: int | None = None,
    in_place: bool = False,
    summed: int = 0,
    behind: int = 0,
) -> NDArray[Any]:
    """The items of these chunks as a device decodes them, into an array that was full of ones: what it left is ones.

    behind: so many items of `out` are behind them. Only the words of these chunks are there. Asserts that nothing was
    written before and after.
    """
    first, last = chunks or (0, store.chunks)
    e0, e1 = first * store.chunk, min(len(store.items), last * store.chunk) + behind
    out = device.to_device(np.full(e1 - e0 + 2 * GUARD, 1, store.items.dtype))
    words = store.words[store.starts[first] : store.starts[last]].copy()
    request = UnpackRequest(
        device.to_device(words), int(store.starts[first]), device.to_device(store.starts), first, last, store.chunk,
        len(store.items), out[GUARD : GUARD + e1 - e0], e0, store.limit if limit is None else limit, store.values,
        None if marks is None else device.to_device(marks), in_place, summed,
    )  # fmt: skip
    stream = device.stream()
    unpacker.unpack(request, stream)
    device.wait(device.event(stream))
    found = device.to_host(out)
    assert (found[:GUARD] == 1).all()
    assert (found[-GUARD:] == 1).all()
    return found[GUARD:-GUARD]


def forged(store: Store, at: int, word: int) -> Store:
    """The store with one word changed."""
    words = store.words.copy()
    words[at % len(words)] = word
    return replace(store, words=words)


def rows(rng: np.random.Generator, edges: int, vertices: int, degree: int, dtype: Any) -> NDArray[Any]:
    """Neighbors in rows of `degree` sorted ids below `vertices`."""
    ids = rng.integers(0, vertices, (-(-edges // degree), degree), np.uint64)
    return np.sort(ids, axis=1).ravel()[:edges].astype(dtype)
