"""The comparison of encodings: bytes per edge, speed of one core, and the seconds of a sweep.

Every encoding of neighbors is measured with the code that stores it, at several zstd levels. measurements.md has
the table, decisions/encoding.md why ``packed`` at zstd's fastest level is the default.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.encoding.codec import Coding, Decoder, Encoder, checksum
from penstock.storage.encoding.payload import PAYLOADS
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import CHUNK_EDGES

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
    adjacency = graph.out
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
