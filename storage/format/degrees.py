"""Reads the degrees of an adjacency into its row index, on several threads.

The degrees are all that a run reads of a graph before its edges. A thread reads, decodes and sums up one chunk at a
time: the disk has several requests at once, and no degree is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import RunError
from penstock.storage.base.stage_clock import stage
from penstock.storage.base.threads import PerThread
from penstock.storage.encoding.codec import Decoder
from penstock.storage.encoding.payload import payload_words
from penstock.storage.format.frames import READS, Frames
from penstock.storage.format.index import Index, from_chunks
from penstock.storage.format.row_pages import OFFSET_BYTES, RowPages
from penstock.storage.format.schema import SPAN_COLUMNS


def read_index(degrees: Frames, direction: str, edges: int, threads: int, page_threads: int = 0) -> Index:
    """Return the row index of an adjacency of so many edges. Raises RunError where its degrees are damaged.

    threads: how many decode at once. page_threads: how many do when rows are wanted, whose degrees are then read
    again (`row_pages.py`); 0: all offsets are kept.
    """
    spec = degrees.spec
    own = PerThread(lambda: (Decoder(), np.empty(min(spec.items, spec.chunk_items), spec.kind)))
    pages = RowPages(spec.items, spec.chunk_items, page_threads) if page_threads else None
    decoding, counting = threading.Semaphore(threads), threading.Lock()

    def unequal(total: str) -> RunError:
        return RunError(
            f"{degrees.files[0]} is damaged: its {direction}-degrees sum up to {total} and not to its {edges} edges; "
            "convert the input again"
        )

    def read(chunk: int) -> Any:
        """Return the frame of a chunk, and count its bytes."""
        frame = degrees.read(chunk)
        with counting:
            meter.bytes += len(frame)
            if pages is not None:
                pages.bytes_read += len(frame)
        return frame

    def load(chunk: int) -> NDArray[Any]:
        """Return the degrees of a chunk, which the next one of the same thread replaces."""
        decoder, items = own()
        out: NDArray[Any] = items[: spec.chunk_length(chunk)]
        frame = read(chunk)
        with decoding:
            degrees.decode(chunk, frame, decoder, out)
        # Floats cannot wrap around; where their sum is at most twice the edges, the integer sum cannot either.
        if out.itemsize == 8 and out.sum(dtype=np.float64) > 2.0 * edges:
            raise unequal("more")
        return out

    def packed(chunk: int) -> NDArray[np.uint32]:
        """Return the payload of a chunk's degrees, made anew where the file does not say how long it is."""
        if degrees.payload_words is None:
            return _packed_anew(load(chunk))
        words = np.empty(int(degrees.payload_words[chunk]), np.uint32)
        degrees.copy_payload(chunk, read(chunk), own()[0], words)
        return words

    with stage("index", int(degrees.lengths.sum())) as meter:
        try:
            index = from_chunks(spec.items, spec.chunk_items, load, max(READS, threads), pages)
        except OverflowError as error:
            raise unequal("more") from error
    if index.edges != edges:
        raise unequal(str(index.edges))
    if pages is not None:
        pages.bytes_read, pages.packed = 0, packed
    return index


def _packed_anew(degrees: NDArray[Any]) -> NDArray[np.uint32]:
    """The payload of degrees, of which the lower 32 bits are kept: the offsets that are made of them have no more."""
    from penstock.storage.encoding.bitpack import pack  # the compiler, only where something is packed

    words = np.empty(payload_words(len(degrees), OFFSET_BYTES), np.uint32)
    return words[: int(pack(degrees.astype(np.uint32), words, False))]


def packed_bytes(degrees: Frames, rows: int) -> int:
    """Bytes of the payloads of so many rows, whole chunks, at most; those of all rows together where it is 0."""
    spec = degrees.spec
    words = degrees.payload_words
    if words is None:
        words = np.full(spec.chunks, payload_words(spec.chunk_items, OFFSET_BYTES))
    if not rows or not len(words):
        return OFFSET_BYTES * int(words.sum())
    return OFFSET_BYTES * int(np.add.reduceat(words, np.arange(0, len(words), rows // spec.chunk_items)).max())


@dataclass(frozen=True, slots=True)
class ListFacts:
    """What a graph in the order of its input (``--layout list``) has beside its edges.

    Attributes
    ----------
    spans : Frames or ndarray
        Least and greatest source, least and greatest target of every block, uint32 (blocks, 4).
    degrees : mapping
        "out" and "in": degrees of the vertices, on disk or as an index; of an undirected graph only "out", which counts
        both ends of an edge, and a self-loop once. Empty where memory was too short to count them.
    self_loops : int
        Edges from a vertex to itself.
    """

    spans: Frames | NDArray[np.uint32]
    degrees: Mapping[str, Frames | Index]
    self_loops: int

    def read_spans(self) -> NDArray[np.uint32]:
        """All spans, uint32 (blocks, 4); of a file they are read. Raises RunError."""
        spans = self.spans if isinstance(self.spans, np.ndarray) else self.spans.whole()
        return spans.reshape(-1, SPAN_COLUMNS)

    def index(self, direction: str, total: int, threads: int) -> Index | None:
        """The degrees of one direction, which sum up to ``total``; of a file they are read. Raises RunError."""
        found = self.degrees.get(direction)
        return found if found is None or isinstance(found, Index) else read_index(found, direction, total, threads)
