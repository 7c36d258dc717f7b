"""A fetch under way: where it puts what it reads; its jobs, counted; its result, or the first error.

`result` returns or raises only when no job writes to the caller's slab any more. Every job that began
ends: an error while its outcome is added up is the outcome. The threads of reader.py run the jobs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.stage_clock import waiting

if TYPE_CHECKING:
    from penstock.storage.encoding.codec import Decoder
    from penstock.storage.format.frames import Frames

Fill = Callable[[int, Any, "Decoder", NDArray[Any]], None]
"""fill(chunk, frame, decoder, out) verifies one frame and fills ``out``. Raises RunError."""


@dataclass(frozen=True, slots=True)
class SlabTarget:
    """Decoded items: item e goes to ``items[e - first_item]``, a contiguous array of the adjacency's dtype."""

    items: NDArray[Any]
    first_item: int

    def places(self, frames: Frames, chunks: NDArray[np.int64]) -> tuple[Fill, list[NDArray[Any]]]:
        """Return what fills places, and the part of the slab of each chunk. Raises ValueError where they do not fit."""
        slab = self.items
        if slab.dtype != frames.spec.dtype or not slab.flags.c_contiguous:
            raise ValueError(f"a slab of {slab.dtype} for {frames.spec.path} of {frames.spec.dtype}")
        if len(chunks) == 0:
            return frames.decode, []
        size, items = frames.spec.chunk_items, frames.spec.items
        first, last = _ends(frames, chunks)
        end = min((last + 1) * size, items)
        if first * size < self.first_item:
            raise ValueError(f"chunks {first}..{last} of {frames.spec.chunks} from edge {self.first_item}")
        if end - self.first_item > len(slab):
            raise ValueError(f"a slab of {len(slab)} edges for edges {self.first_item}..{end}")
        starts = [chunk * size - self.first_item for chunk in chunks.tolist()]
        return frames.decode, [slab[start : min(start + size, items - self.first_item)] for start in starts]


@dataclass(frozen=True, slots=True)
class PayloadTarget:
    """Payloads of chunks, one after another: that of chunk c takes words ``starts[c]`` to ``starts[c + 1]`` of all.

    ``words`` uint32 is contiguous and begins with word ``first_word``; ``starts`` int64 (chunks + 1,) are the running
    sums of `Adjacency.payload_words`.
    """

    words: NDArray[np.uint32]
    first_word: int
    starts: NDArray[np.int64]

    def places(self, frames: Frames, chunks: NDArray[np.int64]) -> tuple[Fill, list[NDArray[Any]]]:
        """Return what fills places, and the words that each chunk's payload fills.

        Raises ValueError for words that the payloads would not fit, or starts that are not those of the payloads.
        """
        if frames.payload_words is None:
            raise ValueError(f"the sizes of the payloads of {frames.spec.path} are unknown")
        if self.words.dtype != np.uint32 or not self.words.flags.c_contiguous:
            raise ValueError(f"payloads are contiguous uint32 words, not {self.words.dtype}")
        if len(self.starts) != len(frames.lengths) + 1:
            raise ValueError(f"{len(self.starts)} starts for the payloads of {len(frames.lengths)} chunks")
        if len(chunks) == 0:
            return frames.copy_payload, []
        first, last = _ends(frames, chunks)
        if not np.array_equal(self.starts[chunks + 1] - self.starts[chunks], frames.payload_words[chunks]):
            raise ValueError(f"the starts are not those of the payloads of {frames.spec.path}")
        if self.starts[first] < self.first_word or self.starts[last + 1] - self.first_word > len(self.words):
            raise ValueError(f"{len(self.words)} words from word {self.first_word} for chunks {first}..{last}")
        begins, ends = (self.starts[chunks + more] - self.first_word for more in (0, 1))
        return frames.copy_payload, [self.words[b:e] for b, e in zip(begins.tolist(), ends.tolist(), strict=True)]


def _ends(frames: Frames, chunks: NDArray[np.int64]) -> tuple[int, int]:
    """The first and the last of some chunks. Raises ValueError for one that the array does not have."""
    first, last = int(chunks.min()), int(chunks.max())
    if first < 0 or last >= len(frames.lengths):
        raise ValueError(f"chunks {first}..{last} of {len(frames.lengths)}")
    return first, last


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """What a fetch cost: bytes read, chunks decoded, and busy seconds summed over the threads."""

    bytes: int = 0
    chunks: int = 0
    read_seconds: float = 0.0
    decode_seconds: float = 0.0

    def __add__(self, other: ReadRecord) -> ReadRecord:
        return ReadRecord(
            self.bytes + other.bytes,
            self.chunks + other.chunks,
            self.read_seconds + other.read_seconds,
            self.decode_seconds + other.decode_seconds,
        )


class PendingRead:
    """A fetch under way."""

    def __init__(self, jobs: int) -> None:
        self._changed = threading.Condition()
        self._waiting, self._running = jobs, 0
        self._error: BaseException | None = None
        self._cancelled = False
        self._record = ReadRecord()

    def result(self) -> ReadRecord:
        """Wait for the fetch and return what it cost. Raises RunError as the reader found it."""
        with self._changed:
            if not self._settled():
                with waiting():
                    self._changed.wait_for(self._settled)
            if self._error is not None:
                raise self._error
            if self._cancelled:
                raise RuntimeError("the result of a cancelled fetch is asked for")
            return self._record

    def cancel(self) -> None:
        """Drop the jobs that have not begun and wait for those that have."""
        with self._changed:
            self._cancelled = True
            self._changed.wait_for(lambda: self._running == 0)
            self._changed.notify_all()

    @property
    def done(self) -> bool:
        """Whether ``result`` would return at once."""
        with self._changed:
            return self._settled()

    def begin(self) -> bool:
        """Claim a job (for the reader); False when it is not wanted any more."""
        with self._changed:
            self._waiting -= 1
            if self._cancelled or self._error is not None:
                return False
            self._running += 1
            return True

    def end(self, outcome: ReadRecord | BaseException) -> None:
        """Report a job that was begun (for the reader)."""
        with self._changed:
            self._running -= 1
            try:
                if isinstance(outcome, ReadRecord):
                    self._record += outcome
                elif self._error is None:
                    self._error = outcome
            except MemoryError as error:
                self._error = error
            finally:
                self._changed.notify_all()

    def _settled(self) -> bool:
        dropped = self._cancelled or self._error is not None
        return self._running == 0 and (dropped or self._waiting == 0)
