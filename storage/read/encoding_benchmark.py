"""Owns the comparison of encodings: bytes an edge, decode speed of one core, and what a sweep would take.

Measures the ones we store with the very code that stores them, and beside them the alternatives (plain,
deltas, deltas with shuffled bytes, each under zstd). Refuses to choose: README.md shows the table
and says why ``packed`` with zstd's fastest level is the default. Nothing here is used by a run.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.encoding import bitpack, delta, unpack
from penstock.storage.encoding.codec import Decoder, checksum, compress, content_bytes
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import CHUNK_EDGES

DISK_BYTES_PER_SECOND = 3e9
SAMPLE_CHUNKS = 32
_LEAST_SECONDS = 0.2

Codes = NDArray[np.uint8]


def _plain(ids: NDArray[Any]) -> Codes:
    return ids.view(np.uint8)


def _undo_plain(payload: Codes, out: NDArray[Any]) -> None:
    """Nothing: the payload is decompressed into ``out`` itself."""


def _delta(ids: NDArray[Any]) -> Codes:
    out = np.empty_like(ids)
    delta.differences(ids, out)
    return out.view(np.uint8)


def _undo_delta(payload: Codes, out: NDArray[Any]) -> None:
    delta.sums(payload.view(out.dtype), out)


def _shuffled(ids: NDArray[Any]) -> Codes:
    planes = _delta(ids).reshape(len(ids), ids.itemsize).T
    return np.ascontiguousarray(planes).reshape(-1)


def _undo_shuffled(payload: Codes, out: NDArray[Any]) -> None:
    planes = payload.reshape(out.itemsize, len(out))
    deltas = np.ascontiguousarray(planes.T).reshape(-1).view(out.dtype)
    delta.sums(deltas, out)


def _packed(ids: NDArray[Any]) -> Codes:
    words = np.zeros(bitpack.payload_words(CHUNK_EDGES, ids.itemsize), np.uint32)
    bitpack.pack(ids, words, True)
    return words.view(np.uint8)


def _undo_packed(payload: Codes, out: NDArray[Any]) -> None:
    unpack.unpack(payload.view(np.uint32), out)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An encoding to measure: ids to payload and back, and the zstd level of the frame."""

    name: str
    level: int
    code: Callable[[NDArray[Any]], Codes]
    undo: Callable[[Codes, NDArray[Any]], None]


CANDIDATES = (
    Candidate("plain", 1, _plain, _undo_plain),
    Candidate("plain", 3, _plain, _undo_plain),
    Candidate("delta", 1, _delta, _undo_delta),
    Candidate("delta+shuffle", 1, _shuffled, _undo_shuffled),
    Candidate("packed", -1, _packed, _undo_packed),
    Candidate("packed", 1, _packed, _undo_packed),
    Candidate("packed", 3, _packed, _undo_packed),
)


@dataclass(frozen=True, slots=True)
class EncodingRow:
    """One line of the comparison; speeds are of one core, in bytes of decoded ids.

    ``sweep_seconds_2`` and ``_16`` are what 10^9 edges take from a disk of 3 GB/s with so many
    cores: the slower of reading and decoding.
    """

    graph: str
    encoding: str
    level: int
    bytes_per_edge: float
    encode_bytes_per_second: float
    decode_bytes_per_second: float
    sweep_seconds_2: float
    sweep_seconds_16: float


def compare_encodings(
    graph: str, neighbors: NDArray[Any], candidates: tuple[Candidate, ...] = CANDIDATES
) -> Iterator[EncodingRow]:
    """Yield a row for each candidate, measured on up to 32 chunks spread over ``neighbors``."""
    firsts = range(0, len(neighbors), CHUNK_EDGES)
    step = max(1, len(firsts) // SAMPLE_CHUNKS)
    chunks = [neighbors[first : first + CHUNK_EDGES].copy() for first in firsts[::step]]
    for candidate in candidates:
        yield _measure(graph, chunks, candidate)


def graph_neighbors(graph: Graph) -> NDArray[Any]:
    """Return up to 32 chunks, spread over the out-adjacency, of a graph on disk or in memory."""
    adjacency = graph.out
    if adjacency.arrays is not None:
        return adjacency.arrays[0]
    assert adjacency.neighbors is not None
    step = max(1, adjacency.chunks // SAMPLE_CHUNKS)
    pieces = list(adjacency.neighbors.load(range(0, adjacency.chunks, step)))
    return np.concatenate(pieces) if pieces else np.empty(0, adjacency.neighbor_dtype)


def _measure(graph: str, chunks: list[NDArray[Any]], candidate: Candidate) -> EncodingRow:
    frames = [compress(candidate.code(chunk), candidate.level) for chunk in chunks]
    decoder = Decoder()
    whole = max((candidate.code(chunk).nbytes for chunk in chunks), default=0)
    scratch = np.empty(whole, np.uint8)
    outs = [np.empty_like(chunk) for chunk in chunks[:1]]

    def encode() -> None:
        for chunk in chunks:
            checksum(compress(candidate.code(chunk), candidate.level))

    def decode() -> None:
        for chunk, frame in zip(chunks, frames, strict=True):
            checksum(frame)
            out = outs[0][: len(chunk)]
            payload = out.view(np.uint8) if candidate.undo is _undo_plain else scratch
            payload = payload[: content_bytes(frame)]
            decoder.decompress(frame, payload)
            candidate.undo(payload, out)
            if len(chunk) and out[-1] != chunk[-1]:
                raise AssertionError(f"{candidate.name} does not decode what it encoded")

    edges = sum(len(chunk) for chunk in chunks)
    raw = sum(chunk.nbytes for chunk in chunks)
    size = sum(len(frame) for frame in frames)
    speed = raw / _seconds(decode)
    each = size / max(1, edges)
    item = raw / max(1, edges)
    return EncodingRow(
        graph=graph,
        encoding=candidate.name,
        level=candidate.level,
        bytes_per_edge=each,
        encode_bytes_per_second=raw / _seconds(encode),
        decode_bytes_per_second=speed,
        sweep_seconds_2=sweep_seconds(each, item, speed, 2),
        sweep_seconds_16=sweep_seconds(each, item, speed, 16),
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
