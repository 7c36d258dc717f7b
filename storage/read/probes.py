"""Measures this machine's rate of decoding, and what a `Reader` makes of it (`disk_probe.py` measures the disk).

Decoding: whole frames, from checksum to ids, by several threads as a `Reader` has them. The frames are a graph's own,
read once, or made here: sorted rows of 16 random ids in the default encoding. Every frame is in memory before the first
is decoded; what is counted is decoded bytes.

A sweep: partitions of a graph file in order, several at once, into slabs; beside it the same reads without decoding, so
that what the disk gives, what the reader takes of it and what decoding costs can be compared.

Encodings are compared with the code that stores them, at several zstd levels: bytes per edge, speed of a core, seconds
of a sweep. measurements.md has the table, decisions/encoding.md why ``packed`` at zstd's fastest level is the default.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import RunError
from penstock.storage.base.measurement import RateSample, TimeBudget
from penstock.storage.base.slot_pool import aligned_empty
from penstock.storage.base.threads import ThreadPool
from penstock.storage.encoding.codec import LEVELS, Coding, Decoder, Encoder, checksum
from penstock.storage.encoding.payload import PAYLOADS
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.read_plan import PAGE, ReadRange, plan_reads, split_bytes
from penstock.storage.format.schema import CHUNK_EDGES
from penstock.storage.read.pending_read import PayloadTarget, PendingRead, ReadRecord
from penstock.storage.read.reader import Reader

BLOCK_BYTES = 1 << 20
ROW_EDGES = 16
ID_BITS = 25
PLACES = 4
"""Chunks that a thread has room for: what it decodes goes to memory, not to the same place in its cache."""


@dataclass(frozen=True, slots=True)
class EncodedChunk:
    """A frame in memory: `decode(decoder, out)` verifies and decodes it into `items` items of `kind`."""

    items: int
    kind: np.dtype[Any]
    decode: Callable[[Decoder, Any], None]


def stored_chunks(graph: Graph, most: int) -> list[EncodedChunk]:
    """Read up to `most` frames of a graph's neighbors, spread over the file; [] for a graph in memory."""
    frames = graph.out.neighbors
    if frames is None or not frames.spec.chunks:
        return []
    spec = frames.spec
    picked = np.unique(np.linspace(0, spec.chunks - 1, min(most, spec.chunks)).astype(int)).tolist()
    return [
        EncodedChunk(spec.chunk_length(number), spec.kind, partial(frames.decode, number, frames.read(number)))
        for number in picked
    ]


def made_chunks(many: int, items: int = CHUNK_EDGES) -> list[EncodedChunk]:
    """Encode `many` chunks of random sorted rows of uint32 ids."""
    coding = Coding("packed", np.dtype(np.uint32), items, LEVELS["packed"])
    encoder, rng = Encoder(coding), np.random.default_rng(1)
    return [_made(encoder, coding, rng) for _ in range(many)]


def _made(encoder: Encoder, coding: Coding, rng: np.random.Generator) -> EncodedChunk:
    rows = rng.integers(0, 1 << ID_BITS, (coding.chunk_items // ROW_EDGES, ROW_EDGES), dtype=np.uint32)
    rows.sort(axis=1)
    frame = encoder.encode(rows.reshape(-1))
    expected = checksum(frame)

    def decode(decoder: Decoder, out: Any) -> None:
        if checksum(frame) != expected:
            raise RunError("a frame changed in memory while it was decoded: check this machine's memory")
        decoder.decode(frame, coding.encoding, out, coding.chunk_items, 1 << ID_BITS)

    return EncodedChunk(rows.size, coding.kind, decode)


def decode_rates(
    chunks: Sequence[EncodedChunk], threads: Sequence[int], seconds: float, clock: TimeBudget
) -> tuple[RateSample, ...]:
    """Decode the chunks over and over for `seconds` with each number of threads; amounts are decoded bytes.

    The seconds of a row are those of the cores, over the threads: what else the machine does takes nothing of the rate.
    Every thread decodes at least one chunk. Stops early, with fewer rows, when the clock has nothing left.
    """
    chunks[0].decode(Decoder(), room_for(chunks)[: chunks[0].items])  # compiles, or loads what was compiled
    rows: list[RateSample] = []
    for workers in threads:
        if rows and not clock.allows(seconds):
            break
        rows.append(_with_threads(chunks, workers, clock.until(seconds), clock))
    return tuple(rows)


def _with_threads(chunks: Sequence[EncodedChunk], workers: int, until: float, clock: TimeBudget) -> RateSample:
    turn = count()

    def work(_: int) -> tuple[int, float]:
        decoder, done, began = Decoder(), 0, time.thread_time()
        slab = [room_for(chunks) for _ in range(PLACES)]
        while not done or clock.now() < until:
            number = next(turn)
            chunk, place = chunks[number % len(chunks)], slab[number % PLACES]
            chunk.decode(decoder, place[: chunk.items])
            done += chunk.items * chunk.kind.itemsize
        return done, time.thread_time() - began

    with ThreadPool(workers, "decode") as pool:
        amounts, seconds = zip(*pool.map(work, range(workers)), strict=True)
    return RateSample(workers, sum(amounts), sum(seconds) / workers)


def room_for(chunks: Sequence[EncodedChunk]) -> NDArray[Any]:
    """Allocate memory for the longest of the chunks, which all have one dtype."""
    return np.empty(max(chunk.items for chunk in chunks), chunks[0].kind)


PARTITION_BYTES = 32 << 20
"""Of neighbors, decoded: the usual size of a partition."""
AHEAD = 4
"""Partitions that are read at once."""


class SweepProbe:
    """Part of a sweep over an adjacency on disk, without weights; its slabs are allocated, and touched, once.

    payloads: the payloads are fetched, not unpacked. Raises ValueError where the file does not tell their sizes.
    """

    def __init__(self, adjacency: Adjacency, *, payloads: bool = False) -> None:
        self.adjacency = adjacency.stored
        self._step = max(1, PARTITION_BYTES // (adjacency.chunk_edges * adjacency.neighbor_dtype.itemsize))
        self._starts: NDArray[np.int64] | None = None
        length, kind = min(adjacency.edges, self._step * adjacency.chunk_edges), adjacency.neighbor_dtype
        if payloads:
            words = adjacency.payload_words(False)
            if words is None:
                raise ValueError(f"the file does not tell the sizes of the payloads of the {adjacency.direction}-edges")
            self._starts, kind = np.concatenate([[0], np.cumsum(words)]), np.dtype(np.uint32)
            length = max(int(words[self.chunks(number)].sum()) for number in range(self.partitions))
        self._slabs = deque(aligned_empty(length, kind) for _ in range(AHEAD))
        for slab in self._slabs:
            slab[:: PAGE // slab.itemsize] = 0

    @property
    def partitions(self) -> int:
        """How many partitions the adjacency has."""
        return -(-self.adjacency.chunks // self._step)

    def chunks(self, partition: int) -> NDArray[np.int64]:
        """Return the chunks of a partition; after the last one the first follows."""
        first = partition % self.partitions * self._step
        return np.arange(first, min(first + self._step, self.adjacency.chunks))

    def reads(self, partition: int, threads: int) -> list[ReadRange]:
        """Return the reads of a partition, as a reader with so many decoding threads merges them."""
        frames = self.adjacency.neighbors
        assert frames is not None, "the graph is on disk"
        chunks = self.chunks(partition)
        lengths = frames.lengths[chunks]
        return plan_reads(
            frames.shard[chunks], frames.offsets[chunks], lengths, split_bytes(int(lengths.sum()), threads)
        )

    def run(self, reader: Reader, first: int, seconds: float) -> RateSample:
        """Fetch partitions from number ``first`` on, at least one; none is begun after ``seconds``, or a second time.

        The sample counts bytes read from disk; it is `at` the number of the reader's threads.
        """
        began = time.perf_counter()
        total, pending = ReadRecord(), deque[PendingRead]()
        try:
            for partition in range(first, first + self.partitions):
                if partition > first and time.perf_counter() - began >= seconds:
                    break
                if len(pending) == AHEAD:
                    total += pending.popleft().result()
                pending.append(self._fetch(reader, partition))
            while pending:
                total += pending.popleft().result()
        finally:
            for left in pending:
                left.cancel()
        return RateSample(reader.threads, total.bytes, time.perf_counter() - began)

    def _fetch(self, reader: Reader, partition: int) -> PendingRead:
        chunks, slab = self.chunks(partition), self._slabs[0]
        self._slabs.rotate()
        if self._starts is None:
            return reader.fetch(self.adjacency, chunks, int(chunks[0]) * self.adjacency.chunk_edges, slab)
        target = PayloadTarget(slab, int(self._starts[chunks[0]]), self._starts)
        return reader.fetch_payloads(self.adjacency, chunks, target)


CANDIDATES = (("plain", 1), ("plain", 3), ("delta", 1), ("packed", -1), ("packed", 1), ("packed", 3))
"""Encodings, each with the zstd level of its frames."""
DISK_BYTES_PER_SECOND = 3e9
SAMPLE_CHUNKS = 32
_LEAST_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class EncodingRow:
    """One line of the comparison; speeds are of one core, in bytes of decoded ids.

    Of an encoding with payloads, ``payload_bytes_per_edge`` is what they take without zstd, and
    ``payload_bytes_per_second`` how fast frames become payloads that are not unpacked; else both are None.
    ``sweep_seconds_2`` and ``_16`` are what 10^9 edges take from a disk of 3 GB/s with so many cores: the slower of
    reading and decoding.
    """

    graph: str
    encoding: str
    level: int
    bytes_per_edge: float
    encode_bytes_per_second: float
    decode_bytes_per_second: float
    payload_bytes_per_edge: float | None
    payload_bytes_per_second: float | None
    sweep_seconds_2: float
    sweep_seconds_16: float


def compare_encodings(graph: str, neighbors: NDArray[Any]) -> Iterator[EncodingRow]:
    """Yield a row for each candidate, measured on up to 32 chunks spread over ``neighbors``."""
    firsts = range(0, len(neighbors), CHUNK_EDGES)
    step = max(1, len(firsts) // SAMPLE_CHUNKS)
    chunks = [neighbors[first : first + CHUNK_EDGES].copy() for first in firsts[::step]]
    for encoding, level in CANDIDATES:
        yield _measure(graph, chunks, Coding(encoding, neighbors.dtype, CHUNK_EDGES, level))


def graph_neighbors(graph: Graph) -> NDArray[Any]:
    """Return up to 32 chunks, spread over the out-adjacency, of a graph on disk or in memory."""
    adjacency = graph.out.stored
    if adjacency.arrays is not None:
        return adjacency.arrays[0]
    assert adjacency.neighbors is not None
    step = max(1, adjacency.chunks // SAMPLE_CHUNKS)
    pieces = list(adjacency.neighbors.load(range(0, adjacency.chunks, step)))
    return np.concatenate(pieces) if pieces else np.empty(0, adjacency.neighbor_dtype)


def _measure(graph: str, chunks: list[NDArray[Any]], coding: Coding) -> EncodingRow:
    encoder, decoder = Encoder(coding), Decoder()
    frames, words = [], []
    for chunk in chunks:
        frames.append(encoder.encode(chunk))
        words.append(encoder.words)
    payload = np.empty(max(words, default=0), np.uint32)
    out = np.empty(CHUNK_EDGES, coding.kind)

    def encode() -> None:
        for chunk in chunks:
            checksum(encoder.encode(chunk))

    def decode() -> None:
        for chunk, frame in zip(chunks, frames, strict=True):
            checksum(frame)
            decoder.decode(frame, coding.encoding, out[: len(chunk)], CHUNK_EDGES, None)

    def copy_payloads() -> None:
        for chunk, frame, size in zip(chunks, frames, words, strict=True):
            checksum(frame)
            decoder.copy_payload(frame, coding.encoding, coding.kind, len(chunk), CHUNK_EDGES, payload[:size])

    has_payloads = coding.encoding in PAYLOADS
    edges = sum(len(chunk) for chunk in chunks)
    raw = edges * coding.kind.itemsize
    each = sum(len(frame) for frame in frames) / max(1, edges)
    speed = raw / _seconds(decode)
    return EncodingRow(
        graph=graph,
        encoding=coding.encoding,
        level=coding.level,
        bytes_per_edge=each,
        encode_bytes_per_second=raw / _seconds(encode),
        decode_bytes_per_second=speed,
        payload_bytes_per_edge=4 * sum(words) / max(1, edges) if has_payloads else None,
        payload_bytes_per_second=raw / _seconds(copy_payloads) if has_payloads else None,
        sweep_seconds_2=sweep_seconds(each, coding.kind.itemsize, speed, 2),
        sweep_seconds_16=sweep_seconds(each, coding.kind.itemsize, speed, 16),
    )


def sweep_seconds(bytes_per_edge: float, item_bytes: float, speed: float, cores: int) -> float:
    """Return the seconds of 10^9 edges: the slower of the disk and of ``cores`` that decode."""
    decode = item_bytes / (speed * cores) if speed else 0.0
    return 1e9 * max(bytes_per_edge / DISK_BYTES_PER_SECOND, decode)


def _seconds(work: Callable[[], None]) -> float:
    """The best of several runs, at least three and a fifth of a second of them."""
    work()
    best, begun = float("inf"), time.perf_counter()
    runs = 0
    while runs < 3 or time.perf_counter() - begun < _LEAST_SECONDS:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
        runs += 1
    return best
