"""Graph files for the tests of storage: small, of every dataset kind, with many chunks.

Owns how they are made and where in the file each kind of dataset lies, so that it can be damaged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import h5py
import numpy as np
from numpy.typing import NDArray
from penstock.storage.encoding.codec import checksum
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.frames import Frames
from penstock.storage.format.graph import Graph
from penstock.storage.format.writer import GraphWriter

CHUNK = 512
VERTICES = 700


def string_array(texts: Iterable[str]) -> StringArray:
    """Texts as a graph file has its string ids."""
    parts = [text.encode() for text in texts]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return StringArray(np.frombuffer(b"".join(parts), np.uint8), ends)


class Rows:
    """A random graph in CSR: int64 offsets, neighbors sorted in rows, weights, sparse original ids."""

    def __init__(self, seed: int = 1, edges: int = 6000, kind: Any = np.uint32, weights: Any = np.uint8) -> None:
        random = np.random.default_rng(seed)
        degrees = np.bincount((VERTICES * random.random(edges) ** 2).astype(np.int64), minlength=VERTICES)
        self.degrees = degrees
        self.offsets = np.concatenate([[0], np.cumsum(degrees)])
        rows = [np.sort(random.integers(0, VERTICES, degree)) for degree in degrees]
        self.neighbors: NDArray[Any] = np.concatenate(rows).astype(kind)
        self.weights: NDArray[Any] | None = None
        if weights is not None:
            self.weights = random.integers(0, 200, edges).astype(weights)
        self.original: NDArray[np.uint64] = np.arange(VERTICES, dtype=np.uint64) * np.uint64(2**50 // 3)

    @property
    def edges(self) -> int:
        return len(self.neighbors)


def write_rows(
    path: Path,
    rows: Rows,
    *,
    directions: tuple[str, ...] = ("out", "in"),
    pieces: int = 777,
    chunk: int = CHUNK,
    **options: Any,
) -> Path:
    """Write the same rows as every direction, in pieces that fit no chunk."""
    settings: dict[str, Any] = {
        "vertices": VERTICES,
        "directed": True,
        "vertex_dtype": rows.neighbors.dtype,
        "weight_dtype": None if rows.weights is None else rows.weights.dtype,
        "provenance": {"source": "tests"},
        **options,
    }
    with (
        mock.patch("penstock.storage.format.adjacency_writer.CHUNK_EDGES", chunk),
        mock.patch("penstock.storage.format.adjacency_writer.CHUNK_VERTICES", 300),
        GraphWriter(path, **settings) as writer,
    ):
        writer.input_edges = rows.edges
        for direction in directions:
            adjacency = writer.adjacency(direction)
            for first in range(0, rows.edges, pieces):
                part = slice(first, first + pieces)
                adjacency.append(rows.neighbors[part], None if rows.weights is None else rows.weights[part])
            for first in range(0, VERTICES, 123):
                adjacency.degrees(rows.degrees[first : first + 123])
            adjacency.finish()
        writer.original_ids(rows.original[:100])
        writer.original_ids(rows.original[100:])
    return path


def whole(frames: Frames | None) -> NDArray[Any]:
    """All items of an array on disk."""
    assert frames is not None
    return np.concatenate([np.empty(0, frames.spec.kind), *frames.load()])


def frame_places(graph: Graph) -> dict[str, tuple[Path, int, int]]:
    """Per kind of chunked dataset: the file, offset and length of one chunk."""
    assert isinstance(graph.original, Frames)
    arrays = {"neighbors": graph.out.neighbors, "weights": graph.out.weights, "degrees": graph.out.degrees}
    found = {}
    for name, frames in {**arrays, "original_id": graph.original}.items():
        assert frames is not None
        file = frames.files[int(frames.shard[1])]
        found[name] = (file, int(frames.offsets[1]), int(frames.lengths[1]))
    return found


def table_places(path: Path) -> dict[str, int]:
    """Per dataset that is stored in one piece: the offset in the manifest of some byte of it."""
    data = path.read_bytes()
    graph = Graph.open(path)
    found = {"header": data.index(b'"vertices": ') + 12}
    assert isinstance(graph.original, Frames)
    for frames in (graph.out.neighbors, graph.out.weights, graph.out.degrees, graph.original):
        assert frames is not None
        found[f"table of {frames.spec.path}"] = data.index(frames.checksums[1].tobytes())
        if frames.payload_words is not None:
            found[f"payload sizes of {frames.spec.path}"] = data.index(frames.checksums[1].tobytes()) + 8
    return found


def forge_tables(path: Path, change: Callable[[str, NDArray[np.uint64]], NDArray[np.uint64]], version: int) -> None:
    """Change every chunk table, the checksums above it and the version of the format, as someone might by intent."""
    with h5py.File(path, "r+") as file:
        header = json.loads(bytes(file["penstock_header"][()]))
        for spec in header["arrays"]:
            name = f"{spec['path']}_chunks"
            table = np.ascontiguousarray(change(spec["path"], file[name][()]))
            spec["table_checksum"] = checksum(table)
            del file[name]
            file.create_dataset(name, data=table)
        file.attrs["penstock_format"] = version
    forge_header(path, header)


def forge_header(path: Path, header: Any) -> None:
    """Put another header into a graph file, with its checksum."""
    text = json.dumps(header).encode()
    with h5py.File(path, "r+") as file:
        del file["penstock_header"]
        file.create_dataset("penstock_header", data=np.bytes_(text))
        file.attrs["penstock_header_checksum"] = np.uint64(checksum(text))


def as_version_1(path: Path) -> None:
    """Make a graph file what version 1 wrote: chunk tables without the sizes of payloads."""
    forge_tables(path, lambda name, table: table[:, :2], 1)


def header_of(path: Path) -> dict[str, Any]:
    """The header as JSON, read without Penstock."""
    data = path.read_bytes()
    start = data.index(b'{\n "arrays"')
    text, _ = json.JSONDecoder().raw_decode(data[start:].decode("latin-1"))
    assert isinstance(text, dict)
    return text
