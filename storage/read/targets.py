"""Where a fetch puts what it reads: decoded items into a slab, or payloads, one after another, into words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # who names a target need not have the HDF5 library
    from penstock.storage.encoding.codec import Decoder
    from penstock.storage.format.frames import Frames

Fill = Callable[[int, Any, "Decoder", NDArray[Any]], None]
"""fill(chunk, frame, decoder, out) verifies one frame and fills ``out``. Raises RunError."""


@dataclass(frozen=True, slots=True)
class SlabTarget:
    """Decoded items: item e goes to ``items[e - first_item]``, a contiguous array of the adjacency's dtype."""

    items: NDArray[Any]
    first_item: int

    def check(self, frames: Frames, chunks: NDArray[np.int64]) -> None:
        """Raise ValueError for a slab that the chunks would not fit."""
        slab = self.items
        if slab.dtype != frames.spec.dtype or not slab.flags.c_contiguous:
            raise ValueError(f"a slab of {slab.dtype} for {frames.spec.path} of {frames.spec.dtype}")
        if len(chunks) == 0:
            return
        size, items = frames.spec.chunk_items, frames.spec.items
        first, last = _ends(frames, chunks)
        end = min((last + 1) * size, items)
        if first * size < self.first_item:
            raise ValueError(f"chunks {first}..{last} of {frames.spec.chunks} from edge {self.first_item}")
        if end - self.first_item > len(slab):
            raise ValueError(f"a slab of {len(slab)} edges for edges {self.first_item}..{end}")

    def place(self, frames: Frames, chunk: int) -> NDArray[Any]:
        """Return the part of the slab that a chunk fills."""
        first = chunk * frames.spec.chunk_items - self.first_item
        return self.items[first : first + frames.spec.chunk_length(chunk)]

    def fill(self, frames: Frames) -> Fill:
        """Return what fills a place."""
        return frames.decode


@dataclass(frozen=True, slots=True)
class PayloadTarget:
    """Payloads of chunks, one after another: that of chunk c takes words ``starts[c]`` to ``starts[c + 1]`` of all.

    ``words`` uint32 is contiguous and begins with word ``first_word``; ``starts`` int64 (chunks + 1,) are the running
    sums of `Adjacency.payload_words`.
    """

    words: NDArray[np.uint32]
    first_word: int
    starts: NDArray[np.int64]

    def check(self, frames: Frames, chunks: NDArray[np.int64]) -> None:
        """Raise ValueError for words that the payloads would not fit, or starts that are not those of the payloads."""
        if frames.payload_words is None:
            raise ValueError(f"the sizes of the payloads of {frames.spec.path} are unknown")
        if self.words.dtype != np.uint32 or not self.words.flags.c_contiguous:
            raise ValueError(f"payloads are contiguous uint32 words, not {self.words.dtype}")
        if len(self.starts) != frames.spec.chunks + 1:
            raise ValueError(f"{len(self.starts)} starts for the payloads of {frames.spec.chunks} chunks")
        if len(chunks) == 0:
            return
        first, last = _ends(frames, chunks)
        if not np.array_equal(self.starts[chunks + 1] - self.starts[chunks], frames.payload_words[chunks]):
            raise ValueError(f"the starts are not those of the payloads of {frames.spec.path}")
        if self.starts[first] < self.first_word or self.starts[last + 1] - self.first_word > len(self.words):
            raise ValueError(f"{len(self.words)} words from word {self.first_word} for chunks {first}..{last}")

    def place(self, frames: Frames, chunk: int) -> NDArray[Any]:
        """Return the words that a chunk's payload fills."""
        first, last = self.starts[chunk : chunk + 2].tolist()
        return self.words[first - self.first_word : last - self.first_word]

    def fill(self, frames: Frames) -> Fill:
        """Return what fills a place."""
        return frames.copy_payload


def _ends(frames: Frames, chunks: NDArray[np.int64]) -> tuple[int, int]:
    """The first and the last of some chunks. Raises ValueError for one that the array does not have."""
    first, last = int(chunks.min()), int(chunks.max())
    if first < 0 or last >= frames.spec.chunks:
        raise ValueError(f"chunks {first}..{last} of {frames.spec.chunks}")
    return first, last
