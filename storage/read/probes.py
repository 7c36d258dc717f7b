"""Measures this machine's rates of reading from disk and of decoding.

The disk: direct reads of files, scattered, several in flight. The page cache is bypassed (O_DIRECT), so that the figure
is the disk's and not the memory's; where the file system takes no direct reads, that is an error and not a number.

Decoding: whole frames, from checksum to ids, by several threads as a `Reader` has them. The frames are a graph's own,
read once, or made here: sorted rows of 16 random ids in the default encoding. Every frame is in memory before the first
is decoded; what is counted is decoded bytes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from io import FileIO
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import flush
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.rate_sample import RateSample
from penstock.storage.base.slot_pool import aligned_empty
from penstock.storage.base.threads import ThreadPool
from penstock.storage.base.time_budget import TimeBudget
from penstock.storage.encoding.codec import LEVELS, Coding, Decoder, Encoder, checksum
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import CHUNK_EDGES

BLOCK_BYTES = 1 << 20
ROW_EDGES = 16
ID_BITS = 25
PLACES = 4
"""Chunks that a thread has room for: what it decodes goes to memory, not to the same place in its cache."""


def write_probe_file(path: Path, size_bytes: int, progress: Callable[[int], None]) -> float:
    """Fill a new file with bytes that no disk can compress; return the seconds until durable.

    Raises:
        RunError: the disk is full or failed.
    """
    block = np.random.default_rng(1).integers(0, 256, BLOCK_BYTES, np.uint8)
    began = time.perf_counter()
    try:
        with path.open("wb", buffering=0) as file:
            for done in range(0, size_bytes, BLOCK_BYTES):
                block[:8] = np.frombuffer(done.to_bytes(8, "little"), np.uint8)
                file.write(block.data)
                progress(done + BLOCK_BYTES)
        flush(path)
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}; --size asks for less") from error
    return time.perf_counter() - began


def disk_rate(
    paths: Sequence[Path], block_bytes: int, in_flight: int, most_bytes: int, most_seconds: float = float("inf")
) -> RateSample:
    """Read whole blocks of files in a scattered order with ``in_flight`` threads, each block once.

    No read begins after ``most_bytes`` of them or ``most_seconds``; several files (the shards of a striped
    graph) are read at the same time.

    Raises:
        InputError: the file system takes no direct reads.
    """
    blocks = [(path, number) for path in paths for number in range(path.stat().st_size // block_bytes)]
    rng = np.random.default_rng(block_bytes + in_flight)
    order = rng.permutation(len(blocks))[: max(1, most_bytes // block_bytes)]
    turn = count()
    began = time.perf_counter()

    def read(worker: int) -> int:
        done = 0
        buffer = aligned_empty(block_bytes, np.uint8)
        with ExitStack() as stack:
            files = {path: stack.enter_context(FileIO(path, "rb", opener=_open_direct)) for path in paths}
            while (mine := next(turn)) < len(order) and time.perf_counter() - began < most_seconds:
                path, number = blocks[int(order[mine])]
                files[path].seek(number * block_bytes)
                done += files[path].readinto(buffer.data) or 0
        return done

    with ThreadPool(in_flight, "read") as pool:
        total = sum(pool.map(read, range(in_flight)))
    return RateSample(in_flight, total, time.perf_counter() - began)


def _open_direct(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | getattr(os, "O_DIRECT", 0))
    except OSError as error:
        raise InputError(
            f"{path}: no direct reads here ({error.strerror}); name a place on another disk "
            "(bench disk --folder, calibrate --file)"
        ) from error


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

    def work(_: int) -> int:
        decoder, done = Decoder(), 0
        slab = [room_for(chunks) for _ in range(PLACES)]
        while not done or clock.now() < until:
            number = next(turn)
            chunk, place = chunks[number % len(chunks)], slab[number % PLACES]
            chunk.decode(decoder, place[: chunk.items])
            done += chunk.items * chunk.kind.itemsize
        return done

    began = clock.now()
    with ThreadPool(workers, "decode") as pool:
        amount = sum(pool.map(work, range(workers)))
    return RateSample(workers, amount, clock.now() - began)


def room_for(chunks: Sequence[EncodedChunk]) -> NDArray[Any]:
    """Allocate memory for the longest of the chunks, which all have one dtype."""
    return np.empty(max(chunk.items for chunk in chunks), chunks[0].kind)
