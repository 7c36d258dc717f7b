"""Owns raw pairs of ids, little-endian: source, target, source, target, ... as uint32 or uint64.

Plain files are read by several threads, a bounded piece each; compressed ones and pipes as they come. Refuses a
size that is no multiple of a pair's.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from penstock.storage.base.errors import InputError
from penstock.storage.base.parallel_map import ordered_map
from penstock.storage.base.threads import ThreadPool
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.ingest.bytes.file import PositionedFile
from penstock.storage.ingest.bytes.stream import Stream
from penstock.storage.ingest.core.source import IngestOptions


class PairSource:
    """Files of (source, target) pairs, one after another. See `options.Source`."""

    known_vertices: int | None = None
    undirected = False

    def __init__(self, paths: Sequence[str | Path], dtype: np.dtype[Any], options: IngestOptions) -> None:
        self.name = ", ".join(map(str, paths))
        self._paths = list(paths)
        self._dtype = dtype.newbyteorder("<")
        self._block_bytes = options.block_bytes // 16 * 16
        self._threads, self._host_memory = options.workers, options.host_memory
        if options.columns is not None or options.weights:
            raise InputError(f"{self.name}: binary pairs have no columns and no weights to choose")
        sizes = [_plain_size(path) for path in paths]
        self.total_bytes = None if None in sizes else sum(size or 0 for size in sizes)
        self.bytes_done = 0

    def batches(self) -> Iterator[EdgeBatch]:
        """Yield the pairs, in order; those of a plain file are read by several threads.

        Raises:
            InputError: a file's length is no multiple of a pair's, or the file is absent.
        """
        for path in self._paths:
            with Stream(path, self._host_memory) as stream:
                if stream.compression is None and stream.raw_bytes is not None:
                    yield from self._by_position(path)
                else:
                    yield from self._as_they_come(stream)

    def _by_position(self, path: str | Path) -> Iterator[EdgeBatch]:
        with PositionedFile(path) as file, ThreadPool(self._threads, "pairs") as pool:
            self._check_length(file.name, file.size)

            def read(start: int) -> EdgeBatch:
                pairs = np.empty(min(self._block_bytes, file.size - start) // self._dtype.itemsize, self._dtype)
                file.read(start, pairs)
                return EdgeBatch(pairs[::2].copy(), pairs[1::2].copy())

            for batch in ordered_map(pool, read, range(0, file.size, self._block_bytes), self._threads + 1):
                self.bytes_done += batch.sources.nbytes + batch.targets.nbytes
                yield batch

    def _as_they_come(self, stream: Stream) -> Iterator[EdgeBatch]:
        before = self.bytes_done
        total = 0
        while True:
            block = np.empty(self._block_bytes, np.uint8)
            count = stream.read_into(memoryview(block))
            total += count
            self.bytes_done = before + stream.raw_done
            if count < len(block):
                self._check_length(stream.name, total)
            pairs = block[:count].view(self._dtype)
            if count:
                yield EdgeBatch(pairs[::2].copy(), pairs[1::2].copy())
            if count < len(block):
                break

    def _check_length(self, name: str, size: int) -> None:
        record = 2 * self._dtype.itemsize
        if size % record:
            raise InputError(
                f"{name}: {size} bytes are no whole number of {record}-byte pairs of {self._dtype.name}; "
                "the file is truncated, or --format names another record"
            )


def _plain_size(path: str | Path) -> int | None:
    return Path(path).stat().st_size if Path(path).is_file() else None
