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
from penstock.storage.format.frames import READS, Frames
from penstock.storage.format.index import Index, from_chunks
from penstock.storage.format.row_pages import RowPages
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

    def load(chunk: int) -> NDArray[Any]:
        """Return the degrees of a chunk, which the next one of the same thread replaces."""
        decoder, items = own()
        out: NDArray[Any] = items[: spec.chunk_length(chunk)]
        frame = degrees.read(chunk)
        with decoding:
            degrees.decode(chunk, frame, decoder, out)
        with counting:
            meter.bytes += int(degrees.lengths[chunk])
            if pages is not None:
                pages.bytes_read += int(degrees.lengths[chunk])
        # Floats cannot wrap around; where their sum is at most twice the edges, the integer sum cannot either.
        if out.itemsize == 8 and out.sum(dtype=np.float64) > 2.0 * edges:
            raise unequal("more")
        return out

    with stage("index", int(degrees.lengths.sum())) as meter:
        try:
            index = from_chunks(spec.items, spec.chunk_items, load, max(READS, threads), pages)
        except OverflowError as error:
            raise unequal("more") from error
    if index.edges != edges:
        raise unequal(str(index.edges))
    if pages is not None:
        pages.bytes_read = 0
    return index


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
