"""Owns every call of the HDF5 library. Refuses to decode: frames go in and out as bytes and places.

Writing never enters a filter (``write_direct_chunk``), so the zstd plugin is not needed; reading only asks
where each chunk lies (``chunk_iter``) and closes the file. Whatever the library complains about in a
file becomes a FileError that says what is wrong, for graph.py to add the way out.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import h5py
import numpy as np
from numpy.typing import NDArray
from penstock.storage.codec import Coding, checksum
from penstock.storage.schema import FORMAT_VERSION, ArraySpec, Header, HeaderError

ZSTD_FILTER = 32015
T = TypeVar("T")
ALIGNMENT = 4096
_FORMAT, _COMPLETE, _GRAPH = "penstock_format", "penstock_complete", "penstock_graph"
_HEADER, _HEADER_CHECKSUM = "penstock_header", "penstock_header_checksum"
_TROUBLE = (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError, OverflowError)


class FileError(Exception):
    """A file that is not a complete Penstock graph file of this version; says why."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the frames of one array lie in one file: int64 byte offsets and lengths, in order."""

    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest file holds: the header, the chunk tables, the places of its own frames.

    ``tables[path]`` is uint64 (chunks, 2): length and checksum of every frame.
    """

    header: Header
    tables: dict[str, NDArray[np.uint64]]
    places: dict[str, Places]


class FrameFile:
    """A graph file being written: datasets grow frame by frame."""

    def __init__(self, path: Path, graph_id: str) -> None:
        self.path = path
        self._file = h5py.File(
            path,
            "w",
            libver=("v110", "v110"),
            alignment_threshold=ALIGNMENT,
            alignment_interval=ALIGNMENT,
        )
        self._file.attrs[_FORMAT] = FORMAT_VERSION
        self._file.attrs[_GRAPH] = graph_id
        self._datasets: dict[str, Any] = {}

    def create(self, path: str, coding: Coding) -> None:
        """Make an empty dataset for frames of such items."""
        shape: tuple[int, ...] = (coding.chunk_items,)
        kind = coding.kind
        if coding.encoding != "plain":
            shape, kind = (1, coding.payload_bytes), np.dtype(np.uint8)
        settings = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        settings.set_chunk(shape)
        settings.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        settings.set_filter(ZSTD_FILTER, h5py.h5z.FLAG_OPTIONAL, (max(1, coding.level),))
        space = h5py.h5s.create_simple((0, *shape[1:]), (h5py.h5s.UNLIMITED, *shape[1:]))
        links = h5py.h5p.create(h5py.h5p.LINK_CREATE)
        links.set_create_intermediate_group(True)
        name = path.encode()
        dataset = h5py.h5d.create(self._file.id, name, h5py.h5t.py_create(kind), space, dcpl=settings, lcpl=links)
        h5py.Dataset(dataset).attrs["encoding"] = coding.encoding
        self._datasets[path] = dataset

    def append(self, path: str, frame: bytes, items: int) -> None:
        """Add the frame of the next ``items`` items (fewer than a chunk's only at the end)."""
        dataset = self._datasets[path]
        first, *rest = dataset.shape
        step = items if not rest else 1
        dataset.set_extent((first + step, *rest))
        dataset.write_direct_chunk((first, *[0 for _ in rest]), frame)

    def finish(self, header: Header | None, tables: dict[str, NDArray[np.uint64]]) -> None:
        """Write the header and tables (the manifest's), mark the file complete, and close it."""
        if header is not None:
            text = header.to_json()
            self._file.create_dataset(_HEADER, data=np.bytes_(text.encode()))
            self._file.attrs[_HEADER_CHECKSUM] = np.uint64(checksum(text.encode()))
        for path, table in tables.items():
            self._file.create_dataset(_table_path(path), data=table)
        self._file.flush()
        self._file.attrs[_COMPLETE] = 1
        self._file.close()

    def abandon(self) -> None:
        """Close the file whatever state it is in; it will be removed."""
        with suppress(*_TROUBLE):
            self._file.close()


def write_columns(path: Path, columns: dict[str, NDArray[Any]]) -> None:
    """Write a plain table to a new file: one dataset a column, strings as UTF-8. OSError when the disk fails."""
    with h5py.File(path, "w") as file:
        for name, values in columns.items():
            strings = values.dtype.kind == "T"
            file.create_dataset(
                name,
                data=values.astype(object) if strings else values,
                dtype=h5py.string_dtype() if strings else None,
            )


def read_manifest(path: Path) -> Manifest:
    """Read and check a manifest file. Raises FileError; OSError when it cannot be read at all."""
    return _opened(path, _read_manifest)


def read_shard(path: Path, header: Header, specs: list[ArraySpec]) -> dict[str, Places]:
    """Return where a shard's frames of the given arrays lie. Raises FileError, OSError."""

    def read(file: Any) -> dict[str, Places]:
        if file.attrs[_GRAPH] != header.graph_id:
            raise FileError("it belongs to another graph")
        return {spec.path: _places(file, spec) for spec in specs}

    return _opened(path, read)


def _opened(path: Path, read: Callable[[Any], T]) -> T:
    """Return ``read(file)`` of a complete graph file of this version."""
    with path.open("rb") as raw:
        if raw.read(8) != b"\x89HDF\r\n\x1a\n":
            raise FileError("it is not a Penstock graph (not an HDF5 file)")
    try:
        with h5py.File(path, "r") as file:
            version = file.attrs.get(_FORMAT)
            if version is None:
                raise FileError("it is an HDF5 file, but not a Penstock graph")
            if version > FORMAT_VERSION:
                raise FileError(
                    f"it has format version {version}, and this Penstock reads up to {FORMAT_VERSION}; upgrade Penstock"
                )
            if file.attrs.get(_COMPLETE) is None:
                raise FileError("it was never finished")
            return read(file)
    except PermissionError:
        raise
    except _TROUBLE as error:
        reason = str(error).strip("'\"").partition("\n")[0]
        raise FileError(f"it is truncated or damaged ({reason})") from error


def _read_manifest(file: Any) -> Manifest:
    if _HEADER not in file:
        raise FileError("it is a shard of a striped graph; open the graph's manifest file instead")
    text = bytes(_whole(file, _HEADER)[()])
    if checksum(text) != int(file.attrs[_HEADER_CHECKSUM]):
        raise FileError("it is damaged: the checksum of its header is wrong")
    try:
        header = Header.from_json(text.decode())
    except HeaderError as error:
        raise FileError(f"it is damaged: {error}") from error
    tables = {spec.path: _table(file, spec) for spec in header.arrays}
    here = [spec for spec in header.arrays if spec.path in file]
    return Manifest(header, tables, {spec.path: _places(file, spec) for spec in here})


def _whole(file: Any, path: str) -> Any:
    """A dataset stored in one piece, which therefore cannot be larger than its file."""
    dataset = file[path]
    bytes_stored = dataset.id.get_storage_size()
    if dataset.chunks is not None or dataset.size * dataset.dtype.itemsize != bytes_stored:
        raise FileError(f"it is damaged: {path} is not stored in one piece")
    return dataset


def _table_path(path: str) -> str:
    return f"{path}_chunks"


def _table(file: Any, spec: ArraySpec) -> NDArray[np.uint64]:
    if spec.chunks == 0:
        return np.empty((0, 2), np.uint64)
    dataset = _whole(file, _table_path(spec.path))
    if dataset.shape != (spec.chunks, 2) or dataset.dtype != np.uint64:
        raise FileError(f"it is damaged: the chunk table of {spec.path} has shape {dataset.shape}")
    table: NDArray[np.uint64] = np.ascontiguousarray(dataset[()])
    if checksum(table) != spec.table_checksum:
        raise FileError(f"it is damaged: the checksum of the chunk table of {spec.path} is wrong")
    return table


def _places(file: Any, spec: ArraySpec) -> Places:
    """Ask once where every chunk of a dataset lies."""
    if spec.path not in file:
        raise FileError(f"it is damaged: {spec.path} is missing")
    dataset = file[spec.path].id
    unit = spec.chunk_items if spec.encoding == "plain" else 1
    found: list[tuple[int, int, int]] = []
    dataset.chunk_iter(lambda chunk: found.append((chunk.chunk_offset[0] // unit, chunk.byte_offset, chunk.size)))
    rows = np.array(sorted(found), np.int64).reshape(-1, 3)
    if not np.array_equal(rows[:, 0], np.arange(len(rows))):
        raise FileError(f"it is damaged: chunks of {spec.path} are missing")
    return Places(rows[:, 1].copy(), rows[:, 2].copy())
