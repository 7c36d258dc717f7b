"""Threads that read chunks from disk into the caller's memory: `Reader.fetch`, `_submit`, `_work`, `_perform`.

A stripe is one file with edges: a shard, or the manifest of a graph without shards. A fetch becomes a few merged reads
(read_plan.py); each is one job: a thread of its stripe reads it into the thread's buffer, verifies and decodes every
chunk in it straight into the slab (`fetch_payloads`: copies its payload), and reports to the `PendingRead`. Reads of a
stripe overlap each other and all decoding, of which at most ``decode_threads`` run at once.
"""

import queue
import threading
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import RunError
from penstock.storage.base.slot_pool import HUGE_PAGE, aligned_empty
from penstock.storage.base.stage_clock import BusyTimer, stage
from penstock.storage.base.threads import check_stacks, start
from penstock.storage.base.timeline import Timeline, Work
from penstock.storage.encoding.codec import Decoder
from penstock.storage.format.direct_io import DirectFile, open_direct_file
from penstock.storage.format.frames import Frames
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.read_plan import (
    MOST_BYTES,
    READS_IN_FLIGHT,
    ReadRange,
    buffer_bytes,
    plan_reads,
    read_threads,
    split_bytes,
)
from penstock.storage.read.pending_read import Fill, PayloadTarget, PendingRead, ReadRecord, SlabTarget

BATCH_CHUNKS = 256
"""Chunks of one fetch in `Reader.fetch_all`."""

_LOST = RunError("a reading thread ended in the middle of a read; run again")
"""The outcome of a job whose thread reported nothing."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """One chunk of a job: its frame begins at byte ``first`` of the thread's buffer; ``fill`` fills ``out`` from it."""

    frames: Frames
    chunk: int
    first: int
    out: NDArray[Any]
    fill: Fill


@dataclass(frozen=True, slots=True)
class _Job:
    """One merged read of a fetch, and the chunks in it."""

    pending: PendingRead
    wanted: ReadRange
    pieces: tuple[_Piece, ...]


class Reader:
    """Reads the chunks of a graph on disk with threads of its own; a context manager, shared by a process.

    ``decode_threads`` decode at once, ``reads_in_flight`` reads of ``most_bytes`` or a frame are under way per stripe;
    ``direct_io`` bypasses the page cache where the file system allows; ``throttle`` slows every stripe to so many bytes
    per second, for tests. ``timeline`` takes every read and every decoding, a track for each thread.

    Raises RunError: a file cannot be opened, or the threads or their buffers cannot be had; nothing stays open.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        decode_threads: int,
        reads_in_flight: int = READS_IN_FLIGHT,
        most_bytes: int = MOST_BYTES,
        direct_io: bool = False,
        throttle: float | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self._timeline = timeline
        self.decode_threads = max(1, decode_threads)
        self._decoders: queue.SimpleQueue[Decoder] = queue.SimpleQueue()
        for _ in range(self.decode_threads):
            self._decoders.put(Decoder())
        self._files: dict[int, DirectFile] = {}
        self._queues: dict[int, queue.SimpleQueue[_Job | None]] = {}
        self._threads: list[threading.Thread] = []
        self._reading = BusyTimer()
        self._counting = threading.Lock()
        self._bytes_read = 0
        self._most_bytes = most_bytes
        longest, self._decoder_bytes = graph.frame_bytes
        self._buffer_bytes = buffer_bytes(longest, most_bytes)
        try:
            for number in _edge_files(graph):
                self._files[number] = open_direct_file(graph.open_files[number], direct=direct_io, throttle=throttle)
            count = read_threads(len(self._files), self.decode_threads, reads_in_flight)
            buffers = self._buffers(count)
            for number in self._files:
                self._queues[number] = queue.SimpleQueue()
                for _ in range(count // len(self._files)):
                    self._start(number, buffers.pop())
        except BaseException:
            self.close()
            raise

    def _buffers(self, count: int) -> list[NDArray[np.uint8]]:
        """A buffer for every thread, all allocated before a thread starts, so that none has a job without one.

        They are parts of one array, which the system then has in huge pages: a direct read into pages of 4 KiB is cut
        into requests of as many pages as the disk takes at once (1 MiB on a virtual disk), and is a third slower.
        """
        check_stacks(count, "penstock-read")
        try:
            room = aligned_empty(count * self._buffer_bytes, np.uint8, HUGE_PAGE)
            return list(room.reshape(count, self._buffer_bytes))
        except MemoryError as error:
            size = format_bytes(self._buffer_bytes)
            raise RunError(
                f"the buffers of {count} reading threads, {size} each, cannot be allocated; "
                "lower --threads, or raise the limit on memory (ulimit -v)"
            ) from error

    def _start(self, number: int, buffer: NDArray[np.uint8]) -> None:
        arguments = self._files[number], self._queues[number], memoryview(buffer)
        thread = threading.Thread(target=self._work, args=arguments, name="penstock-read")
        thread.daemon = True
        self._threads.append(thread)  # before a signal can come, that `close` ends it
        start(thread)

    @property
    def threads(self) -> int:
        """How many reads are under way at most, in all stripes, while nothing is decoded."""
        return len(self._threads)

    @property
    def memory_bytes(self) -> int:
        """The most bytes that the threads' buffers hold at once."""
        return len(self._threads) * self._buffer_bytes + self.decode_threads * self._decoder_bytes

    @property
    def bytes_read(self) -> int:
        """Bytes read so far; any thread may ask."""
        return self._bytes_read

    @property
    def busy_seconds(self) -> float:
        """Seconds so far in which at least one read was under way."""
        return self._reading.seconds

    def fetch(
        self,
        adjacency: Adjacency,
        chunks: NDArray[np.int64],
        first_edge: int,
        neighbors: NDArray[Any],
        weights: NDArray[Any] | None = None,
    ) -> PendingRead:
        """Begin to fetch chunks, ascending numbers, into the caller's slabs.

        Edge e of a chunk goes to ``neighbors[e - first_edge]``, its weight likewise; the slabs are
        contiguous and of the adjacency's dtypes, and must not be touched before ``result``
        or ``cancel`` returned. Without ``weights`` none are read.
        """
        slabs = SlabTarget(neighbors, first_edge), None if weights is None else SlabTarget(weights, first_edge)
        return self._fetch(adjacency, chunks, slabs)

    def fetch_payloads(
        self,
        adjacency: Adjacency,
        chunks: NDArray[np.int64],
        neighbors: PayloadTarget,
        weights: PayloadTarget | SlabTarget | None = None,
    ) -> PendingRead:
        """Begin to fetch the payloads of chunks, ascending numbers, as `fetch`, but without unpacking them.

        Every payload is verified and checked to be sound: of its chunk's items and words, its blocks inside it. Weights
        go to words where their encoding is ``bits``, else decoded into a slab.
        """
        return self._fetch(adjacency, chunks, (neighbors, weights))

    def _fetch(
        self,
        adjacency: Adjacency,
        chunks: NDArray[np.int64],
        targets: tuple[SlabTarget | PayloadTarget, SlabTarget | PayloadTarget | None],
    ) -> PendingRead:
        """Begin to fetch chunks of neighbors, and of weights where they have a target."""
        pieces: list[_Piece] = []
        for frames, target in zip((adjacency.neighbors, adjacency.weights), targets, strict=True):
            if target is None:
                continue
            assert frames is not None, "the graph is in memory, or has no weights"
            if (splice := adjacency.splice) is not None:
                assert isinstance(target, SlabTarget), "edges that a splice puts together have no payloads"
                of_weights = frames is adjacency.weights
                spliced = splice.pieces(frames, chunks, target.items, target.first_item, weights=of_weights)
                pieces += [_Piece(frames, at, 0, out, fill) for at, out, fill in spliced]
                continue
            fill, places = target.places(frames, chunks)
            pieces += [_Piece(frames, at, 0, out, fill) for at, out in zip(chunks.tolist(), places, strict=True)]
        return self._submit(pieces)

    def fetch_all(self, adjacency: Adjacency, neighbors: NDArray[Any], weights: NDArray[Any] | None = None) -> None:
        """Fetch every edge of an adjacency into arrays of its length, and wait for them. Raises RunError."""
        total_bytes = int(adjacency.chunk_bytes(weights is not None).sum())
        with stage("loading", total_bytes) as meter:
            for first in range(0, adjacency.chunks, BATCH_CHUNKS):
                chunks = np.arange(first, min(first + BATCH_CHUNKS, adjacency.chunks))
                meter.bytes += self.fetch(adjacency, chunks, 0, neighbors, weights).result().bytes

    def _submit(self, pieces: list[_Piece]) -> PendingRead:
        shard, offsets, lengths = (
            np.array([getattr(piece.frames, name)[piece.chunk] for piece in pieces], np.int64)
            for name in ("shard", "offsets", "lengths")
        )
        most = min(self._most_bytes, split_bytes(int(lengths.sum()), self.decode_threads))
        reads = plan_reads(shard, offsets, lengths, most)
        pending = PendingRead(len(reads))
        try:
            for wanted in reads:
                parts = tuple(replace(pieces[i], first=int(offsets[i]) - wanted.start) for i in wanted.members)
                self._queues[wanted.shard].put(_Job(pending, wanted, parts))
        except BaseException:
            pending.cancel()
            raise
        return pending

    def close(self) -> None:
        """Finish what was asked for, then stop the threads and close the files."""
        for jobs in self._queues.values():
            for _ in self._threads:  # more than the queue has threads: each None ends one, the others are dropped
                jobs.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread() and thread.is_alive():  # a Session may be collected there
                thread.join()
        self._threads.clear()
        for file in self._files.values():
            file.close()
        self._files.clear()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _work(self, file: DirectFile, jobs: queue.SimpleQueue[_Job | None], buffer: memoryview) -> None:
        """One thread: the jobs of one stripe, until the queue has a None. Errors go to the job's `PendingRead`."""
        while (job := jobs.get()) is not None:
            if job.pending.begin():
                outcome: ReadRecord | BaseException = _LOST
                try:
                    outcome = self._perform(job, file, buffer)
                except BaseException as error:
                    outcome = error
                finally:
                    job.pending.end(outcome)
                    del outcome
            del job  # a waiting thread keeps no slab and no exception alive

    def _perform(self, job: _Job, file: DirectFile, buffer: memoryview) -> ReadRecord:
        """Read and decode one job; return what it cost."""
        begun = time.perf_counter()
        with self._reading:
            file.read(job.wanted, buffer)
        read = time.perf_counter()
        with self._counting:
            self._bytes_read += job.wanted.length
        decoder = self._decoders.get()
        try:
            decoding = time.perf_counter()
            for piece in job.pieces:
                length = int(piece.frames.lengths[piece.chunk])
                frame = buffer[piece.first : piece.first + length]
                piece.fill(piece.chunk, frame, decoder, piece.out)
            decoded = time.perf_counter()
        finally:
            self._decoders.put(decoder)
        if self._timeline is not None:
            _stamp(self._timeline, job, (begun, read, decoding, decoded))
        return ReadRecord(job.wanted.length, len(job.pieces), read - begun, decoded - decoding)


def _stamp(timeline: Timeline, job: _Job, moments: tuple[float, float, float, float]) -> None:
    """Add a job's read and its decoding to the timeline."""
    begun, read, decoding, decoded = moments
    chunk, count = job.pieces[0].chunk, len(job.pieces)
    timeline.add(timeline.here("disk"), "read", begun, read - begun, Work(job.wanted.length, first=chunk, parts=count))
    size = sum(piece.out.nbytes for piece in job.pieces)
    timeline.add(timeline.here("decode"), "decode", decoding, decoded - decoding, Work(size, first=chunk, parts=count))


def _edge_files(graph: Graph) -> list[int]:
    """Numbers of the files that hold edges: the shards, or else the manifest."""
    return list(range(1, len(graph.open_files))) if len(graph.open_files) > 1 else list(range(len(graph.open_files)))
