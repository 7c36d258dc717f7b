"""Raw pairs of ids, little-endian, no header: source, target, source, target, ... as uint32 or uint64.

Plain files are read by several threads, a bounded piece each, and again where edges have to wait for all ids; a
checksum tells whether a piece is still the same. Compressed ones and pipes are read as they come. Refuses a
size that is no multiple of a pair's.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial

import numpy as np
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.places import Place
from penstock.storage.base.threads import PerThread, pooled_map
from penstock.storage.encoding.codec import checksum
from penstock.storage.ingest.bytes.file import PositionedFile
from penstock.storage.ingest.bytes.stream import InputFiles, Stream
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.core.source import IngestOptions


class PairSource(InputFiles):
    """Files of (source, target) pairs, one after another. See `core/source.Source`."""

    def __init__(self, paths: Sequence[Place], dtype: str, options: IngestOptions) -> None:
        super().__init__(paths, options)
        self._dtype = np.dtype(dtype)
        self._block_bytes = options.block_bytes // 16 * 16
        self._pairs = PerThread(lambda: np.empty(self._block_bytes // self._dtype.itemsize, self._dtype))
        if options.columns is not None or options.weights:
            raise InputError(f"{self.name}: binary pairs have no columns and no weights to choose")

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the pairs, in order; those of a plain file are read by several threads.

        Raises:
            InputError: a file's length is no multiple of a pair's, or the file is absent.
        """
        for stream in self._streams():
            if stream.compression is None and stream.raw_bytes is not None:
                yield from self._by_position(stream.name)
            else:
                yield from self._as_they_come(stream)

    def _by_position(self, path: str) -> Iterator[EdgeBatch]:
        with PositionedFile(path) as file:
            self._check_length(file.name, file.size)
            parts = range(0, file.size, self._block_bytes)
            with closing(pooled_map(partial(self._part, file), parts, self._options.workers, "pairs")) as batches:
                for batch in batches:
                    self._closed_bytes += batch.sources.nbytes + batch.targets.nbytes
                    yield batch

    def _part(self, file: PositionedFile, start: int, size: int | None = None, wanted: int | None = None) -> EdgeBatch:
        """The pairs that begin at a byte of a file; size, wanted: bytes and checksum of those that are read again."""
        size = min(self._block_bytes, file.size - start) if size is None else size
        pairs = self._pairs()[: size // self._dtype.itemsize]
        file.read(start, pairs)
        found = checksum(pairs)
        if wanted not in (None, found):
            raise RunError(f"{file.name} was changed while it was read; convert it again")
        sources, targets = pairs.reshape(-1, 2).T.copy()
        return EdgeBatch(sources, targets, again=partial(self._again, file.name, start, size, found))

    def _again(self, path: str, start: int, size: int, wanted: int) -> EdgeBatch:
        """The same pairs once more. Raises RunError where they are others, InputError where there are none."""
        with PositionedFile(path) as file:
            return self._part(file, start, size, wanted)

    def _as_they_come(self, stream: Stream) -> Iterator[EdgeBatch]:
        total = 0
        while True:
            block = np.empty(self._block_bytes, np.uint8)
            count = stream.read_into(memoryview(block))
            total += count
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
