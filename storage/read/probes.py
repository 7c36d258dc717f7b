"""Measures this machine's rate of decoding (`disk_probe.py` measures the disk).

Decoding: whole frames, from checksum to ids, by several threads as a `Reader` has them. The frames are a graph's own,
read once, or made here: sorted rows of 16 random ids in the default encoding. Every frame is in memory before the first
is decoded; what is counted is decoded bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import RunError
from penstock.storage.base.measurement import RateSample, TimeBudget
from penstock.storage.base.threads import ThreadPool
from penstock.storage.encoding.codec import LEVELS, Coding, Decoder, Encoder, checksum
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import CHUNK_EDGES

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
