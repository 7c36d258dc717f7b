"""Every call of the HDF5 library; frames go in and out as bytes and places.

The library writes through `DriverFile`, so that it never meets an error of the disk, which it would not always report
and could crash over; every function that writes raises the error itself. Call these in another thread than the main
one: a signal then raises outside the library, never in the driver's calls below it. Writing never enters a filter
(``write_direct_chunk``), so the zstd plugin is not needed; reading only asks where each chunk is (``chunk_iter``) and
closes the file. An error of the library about a file becomes a `FileError` that says what is wrong; frames.py adds the
way out. What a file says of sizes is compared with what it has before anything is allocated, and nothing in it leads to
another file (links, external and virtual datasets are refused).
"""

import atexit
import os
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import h5py
import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import LIBRARY_BYTES, check_room
from penstock.storage.base.errors import InputError, RunError, brief
from penstock.storage.encoding.codec import Coding, checksum, payload_bytes
from penstock.storage.encoding.string_array import STRINGS
from penstock.storage.format.direct_io import DirectFile, OpenFile
from penstock.storage.format.driver_file import DriverFile
from penstock.storage.format.read_plan import ReadRange
from penstock.storage.format.schema import FORMAT_VERSION, ROWS_VERSION, ArraySpec, Header, HeaderError, table_columns
from penstock.storage.tables.columns import Column, Columns, mapped

ZSTD_FILTER = 32015
_SIGNATURE = b"\x89HDF\r\n\x1a\n"
T = TypeVar("T")
ALIGNMENT = 4096
HEAD_BYTES = 1 << 16
ROWS = 1 << 18
"""Rows of a table that are written, and compared, at once."""
_FORMAT, _COMPLETE, _GRAPH = "penstock_format", "penstock_complete", "penstock_graph"
_IDENTITY = "penstock_identity"
"""The same as `_GRAPH`, which is for other tools: that is in a heap without a checksum, and a byte changed there
makes the library (2.0) loop for ever."""
_ORIGIN = "penstock_origin"
_HEADER, _HEADER_CHECKSUM = "penstock_header", "penstock_header_checksum"
_TROUBLE = (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError, OverflowError)


class FileError(Exception):
    """A file that is not a complete Penstock graph file of this version; says why."""


class ForeignError(FileError):
    """A file that need not be damaged: it is something else, or newer."""


@dataclass(frozen=True, slots=True)
class FrameLocations:
    """Where the frames of one array are in one file: int64 byte offsets and lengths, in order."""

    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest file holds: the header, the chunk tables, the places of its own frames.

    ``tables[path]`` is uint64 (chunks, 2 or 3): length and checksum of every frame, and the words of its payload where
    frames hold payloads and the file says (`schema.table_columns`).
    """

    header: Header
    tables: dict[str, NDArray[np.uint64]]
    places: dict[str, FrameLocations]


class FrameFile:
    """A graph file being written: datasets grow frame by frame."""

    def __init__(self, path: Path, graph_id: str, version: int = ROWS_VERSION) -> None:
        self.path = path
        self._driver = DriverFile(path)
        self._file = h5py.File(
            self._driver,
            "w",
            libver=("v110", "v110"),
            alignment_threshold=ALIGNMENT,
            alignment_interval=ALIGNMENT,
        )
        atexit.register(self.abandon)
        self._file.attrs[_FORMAT] = version
        self._file.attrs[_GRAPH] = graph_id
        self._file.attrs[_IDENTITY] = np.bytes_(graph_id)
        self._datasets: dict[str, Any] = {}

    def create(self, path: str, coding: Coding) -> None:
        """Make an empty dataset for frames of such items."""
        shape, kind = _form(coding.encoding, coding.kind, coding.chunk_items)
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
        self._driver.check()

    def append(self, path: str, frame: bytes, items: int) -> None:
        """Add the frame of the next ``items`` items (fewer than a chunk's only at the end)."""
        dataset = self._datasets[path]
        first, *rest = dataset.shape
        step = items if not rest else 1
        dataset.set_extent((first + step, *rest))
        dataset.write_direct_chunk((first, *[0 for _ in rest]), frame)
        self._driver.check()

    def places(self, specs: Iterable[ArraySpec]) -> dict[str, FrameLocations]:
        """Where the frames are of those of some arrays, as far as they are written, that this file has."""
        return {spec.path: _places(self._file, spec) for spec in specs if spec.path in self._datasets}

    def finish(self, header: Header | None, tables: dict[str, NDArray[np.uint64]]) -> None:
        """Write the header and tables (the manifest's), mark the file complete, and close it."""
        if header is not None:
            text = header.to_json()
            self._file.create_dataset(_HEADER, data=np.bytes_(text.encode()))
            self._file.attrs[_HEADER_CHECKSUM] = np.uint64(checksum(text.encode()))
        for path, table in tables.items():
            self._file.create_dataset(_table_path(path), data=table)
        self._file.flush()
        self._driver.check()
        self._file.attrs[_COMPLETE] = 1
        self._close()
        self._driver.check()

    def abandon(self) -> None:
        """Close the file whatever state it is in, unless it is closed already; it will be removed."""
        self._driver.stop()
        with suppress(*_TROUBLE):
            self._close()

    def _close(self) -> None:
        self._datasets.clear()
        self._file.close()
        atexit.unregister(self.abandon)
        self._driver.close()


def write_columns(driver: DriverFile, columns: Columns, threads: int | None, origin: str = "") -> None:
    """Write a plain table: one dataset a column, strings as UTF-8; the file stays open. OSError when the disk fails.

    origin: of which graph and run it is, if it is an answer that another run may begin from.
    """
    file = h5py.File(driver, "w")
    atexit.register(file.close)
    try:
        if origin:
            file.attrs[_ORIGIN] = np.bytes_(origin.encode())
        for name, column in columns.items():
            strings = column.dtype.kind == "T"
            dataset = file.create_dataset(name, (column.rows,), h5py.string_dtype() if strings else column.dtype)
            at = 0
            with closing(_blocks(column, threads)) as blocks:
                for values in blocks:
                    dataset[at : at + len(values)] = values.astype(object) if strings else values
                    at += len(values)
                    driver.check()
            driver.check()
    finally:
        file.close()
        atexit.unregister(file.close)
    driver.check()


def read_columns(path: Path, names: Iterable[str]) -> tuple[dict[str, NDArray[Any]], str]:
    """Return those columns of a plain table that there are, and its origin. Raises InputError."""
    try:
        with h5py.File(path, "r") as file:
            held = {name: file[name] for name in names if name in file}
            found = {
                name: column[()] if column.dtype.kind in "iuf" else column.asstr()[()].astype(STRINGS)
                for name, column in held.items()
            }
            return found, bytes(file.attrs.get(_ORIGIN, b"")).decode()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; name an answer that a run wrote (--output NAME.h5)") from None
    except _TROUBLE as error:
        raise InputError(
            f"{path} is no table in HDF5 ({error}); name an answer that a run wrote (--output NAME.h5)"
        ) from error


def _blocks(column: Column, threads: int | None) -> Generator[NDArray[Any]]:
    """The values of a column in order: fewer strings at once, which are Python objects then."""
    rows = ROWS // 16 if column.dtype.kind == "T" else ROWS
    return mapped({"": column}, lambda parts: parts[0][0], threads=threads, size=rows)


def same_columns(path: Path, columns: Columns, threads: int | None) -> bool:
    """Whether a file holds this table, and nothing else. Raises OSError where the disk does not give it back."""

    def same(source: SeekableFile) -> bool:
        with h5py.File(source, "r") as file:
            return _holds(file, columns, threads)

    held = OpenFile(path)
    try:
        return _read_through(held, same)
    except RunError as error:
        raise error.__cause__ or error from None
    except _TROUBLE:
        return False


def _holds(file: Any, columns: Columns, threads: int | None) -> bool:
    if set(file) != set(columns):
        return False
    for name, column in columns.items():
        dataset, strings = file[name], column.dtype.kind == "T"
        if dataset.shape != (column.rows,) or not (strings or dataset.dtype == column.dtype):
            return False
        at = 0
        with closing(_blocks(column, threads)) as blocks:
            for values in blocks:
                if not _same((dataset.asstr() if strings else dataset)[at : at + len(values)], values):
                    return False
                at += len(values)
    return True


def _same(found: NDArray[Any], wanted: NDArray[Any]) -> bool:
    """Whether two arrays of one shape hold the same, to the bit where they are numbers."""
    if wanted.dtype.kind == "T":
        return bool((found == wanted.astype(object)).all())
    bits = f"u{wanted.itemsize}"
    return np.array_equal(found.view(bits), wanted.view(bits))


class SeekableFile:
    """A file as a library of another format reads it: a position, and reads from there on, all through a `DirectFile`.

    Its first `HEAD_BYTES` are read at once: h5py (3.16) crashes where a read fails while it opens a file, and not where
    a later one does. trouble: the first RunError of a read, or signal during one, which such a library may turn into a
    complaint of its own.
    """

    def __init__(self, held: OpenFile) -> None:
        self._size, self._at = held.size, 0
        self.trouble: BaseException | None = None
        self.head = bytearray(min(HEAD_BYTES, self._size))
        self._file = DirectFile(held)
        try:
            self._fetch(0, memoryview(self.head))
        except BaseException:
            self.close()
            raise

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position, from the start or the end; return it."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def read(self, size: int) -> bytes:
        """Return the next bytes; fewer where the file has no more. Raises RunError."""
        found = bytearray(size)
        return bytes(found[: self.readinto(memoryview(found))])

    def readinto(self, buffer: memoryview) -> int:
        """Fill a buffer as far as the file goes; return the bytes read. Raises RunError."""
        view = memoryview(buffer).cast("B")
        size = max(0, min(len(view), self._size - self._at))
        end = self._at + size
        if end <= len(self.head):
            view[:size] = self.head[self._at : end]
        else:
            try:
                self._fetch(self._at, view[:size])
            except BaseException as error:
                self.trouble = self.trouble or error
                raise
        self._at = end
        return size

    def _fetch(self, at: int, buffer: memoryview) -> None:
        self._file.read(ReadRange(0, at, len(buffer), len(buffer), ()), buffer)

    def close(self) -> None:
        """Close it; the held file stays open."""
        self._file.close()


def read_dataset(path: Path, name: str | None, read: Callable[[Any], T]) -> T:
    """Return ``read(dataset)`` of a dataset of another program's file, of which it is the only one, or has this name.

    Raises InputError where there is none; OSError when the file cannot be read.
    """

    def of_file(source: SeekableFile) -> T:
        with h5py.File(source, "r") as file:
            names = [one for one in file if isinstance(file[one], h5py.Dataset)] if name is None else [name]
            found = file.get(names[0]) if len(names) == 1 else None
            if not isinstance(found, h5py.Dataset) or found.is_virtual or found.external:
                raise InputError(f"{path} has no dataset {name or ''}of its own; name one of {brief(', '.join(file))}")
            return read(found)

    try:
        return _read_through(OpenFile(path), of_file)
    except (RuntimeError, ValueError, KeyError) as error:
        raise InputError(f"{path} is no readable HDF5 file: {error}") from None


def read_manifest(held: OpenFile) -> Manifest:
    """Read and check a manifest file. Raises FileError; OSError when it cannot be read at all."""
    return _opened(held, _read_manifest)


def read_shard(held: OpenFile, header: Header, specs: list[ArraySpec]) -> dict[str, FrameLocations]:
    """Return where a shard's frames of the given arrays are. Raises FileError, OSError."""

    def read(file: Any) -> dict[str, FrameLocations]:
        if not _is_of(file, held, header.graph_id):
            raise FileError("it belongs to another graph")
        return {spec.path: _places(file, spec) for spec in specs}

    return _opened(held, read)


def _opened(held: OpenFile, read: Callable[[Any], T]) -> T:
    """Return ``read(file)`` of a complete graph file of this version."""
    check_room(LIBRARY_BYTES, "opening a graph")

    def of_graph(source: SeekableFile) -> T:
        if not source.head.startswith(_SIGNATURE):
            raise ForeignError("it is not a Penstock graph (not an HDF5 file)")
        return _read_by(source, read)

    return _read_through(held, of_graph)


def _read_through(held: OpenFile, read: Callable[[SeekableFile], T]) -> T:
    """Return ``read(source)``; what the disk or a signal has to say comes before the library's complaint about it."""
    source = SeekableFile(held)
    try:
        return read(source)
    except (FileError, *_TROUBLE) as error:
        if source.trouble is not None:
            raise source.trouble from error
        raise
    finally:
        source.close()


def _read_by(source: SeekableFile, read: Callable[[Any], T]) -> T:
    try:
        with h5py.File(source, "r") as file:
            version = _attribute(file, _FORMAT)
            if version is None:
                raise ForeignError("it is an HDF5 file, but not a Penstock graph")
            if version > FORMAT_VERSION:
                raise ForeignError(
                    f"it has format version {version}, and this Penstock reads up to {FORMAT_VERSION}; upgrade Penstock"
                )
            if _attribute(file, _COMPLETE) is None:
                raise FileError("it was never finished")
            return read(file)
    except PermissionError:
        raise
    except _TROUBLE as error:
        if "alloc" in str(error):
            check_room(LIBRARY_BYTES, "opening a graph")  # a damaged file may ask for more than any machine has
        reason = str(error).strip("'\"").partition("\n")[0]
        raise FileError(f"it is truncated or damaged ({reason})") from error


def _attribute(file: Any, name: str) -> Any:
    """An attribute of the file, which is one number or string of fixed length; None if there is none of that name."""
    if name not in file.attrs:
        return None
    found = file.attrs.get_id(name)
    if found.shape != () or found.dtype.kind not in "iuS":
        raise FileError(f"it is damaged: {name} is not one value")
    return file.attrs[name]


def _is_of(file: Any, held: OpenFile, graph_id: str) -> bool:
    """Whether a shard is of this graph. One of before there was `_IDENTITY` has it near its beginning, in the heap."""
    identity = _attribute(file, _IDENTITY)
    if identity is not None:
        return bytes(identity) == graph_id.encode()
    source = SeekableFile(held)
    try:
        return graph_id.encode() in source.head
    finally:
        source.close()


def _read_manifest(file: Any) -> Manifest:
    if not _is_here(file, _HEADER):
        raise ForeignError("it is a shard of a striped graph; open the graph's manifest file instead")
    text = bytes(_whole(file, _HEADER, "S")[()])
    if checksum(text) != int(_attribute(file, _HEADER_CHECKSUM)):
        raise FileError("it is damaged: the checksum of its header is wrong")
    try:
        header = Header.from_json(text.decode())
    except HeaderError as error:
        raise FileError(f"it is damaged: {error}") from error
    version = int(_attribute(file, _FORMAT))
    if header.layout == "list" and version < header.version:
        raise FileError(f"it is damaged: its layout is {header.layout}, and its format version {version}")
    tables = {spec.path: _table(file, spec, table_columns(spec.encoding, version)) for spec in header.arrays}
    here = [spec for spec in header.arrays if _is_here(file, spec.path)]
    return Manifest(header, tables, {spec.path: _places(file, spec) for spec in here})


def _is_here(file: Any, path: str) -> bool:
    """Whether there is something of that path. Raises FileError if a link on the way may lead out of the file."""
    names = path.encode().split(b"/")
    for depth in range(1, len(names) + 1):
        name = b"/".join(names[:depth])
        if not file.id.links.exists(name):
            return False
        if file.id.links.get_info(name).type != h5py.h5l.TYPE_HARD:
            raise FileError(f"it is damaged: {path} is behind a link")
    return True


def _dataset(file: Any, path: str) -> Any:
    """A dataset of this very file, whose bytes are in no other file."""
    if not _is_here(file, path):
        raise FileError(f"it is damaged: {path} is missing")
    dataset = file[path]
    if not isinstance(dataset, h5py.Dataset) or dataset.is_virtual or dataset.external:
        raise FileError(f"it is damaged: {path} is not a dataset of its own")
    return dataset


def _whole(file: Any, path: str, kind: str) -> Any:
    """A dataset of this kind of dtype stored in one piece, which is inside its file, and so cannot be larger."""
    dataset = _dataset(file, path)
    stored, place = dataset.id.get_storage_size(), dataset.id.get_offset()
    whole = place is not None and place + stored <= file.id.get_filesize()
    if not whole or dataset.dtype.kind != kind or dataset.size * dataset.dtype.itemsize != stored:
        raise FileError(f"it is damaged: {path} is not stored in one piece")
    return dataset


def _table_path(path: str) -> str:
    return f"{path}_chunks"


def _table(file: Any, spec: ArraySpec, columns: int) -> NDArray[np.uint64]:
    chunks = spec.chunks
    if chunks == 0:
        return np.empty((0, columns), np.uint64)
    dataset = _whole(file, _table_path(spec.path), "u")
    if dataset.shape != (chunks, columns) or dataset.dtype != np.uint64:
        raise FileError(f"it is damaged: the chunk table of {spec.path} has shape {dataset.shape}")
    table: NDArray[np.uint64] = np.ascontiguousarray(dataset[()])
    if checksum(table) != spec.table_checksum:
        raise FileError(f"it is damaged: the checksum of the chunk table of {spec.path} is wrong")
    return table


def _form(encoding: str, kind: np.dtype[Any], chunk_items: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape of a chunk of a dataset, and the dtype of its elements: items, or one payload of bytes."""
    if encoding == "plain":
        return (chunk_items,), kind
    return (1, payload_bytes(encoding, kind, chunk_items)), np.dtype(np.uint8)


def _places(file: Any, spec: ArraySpec) -> FrameLocations:
    """Return where every chunk of a dataset is; refuse first a dataset with more chunks than the header has."""
    dataset = _dataset(file, spec.path)
    chunk, kind = _form(spec.encoding, spec.kind, spec.chunk_items)
    same = dataset.chunks == chunk and dataset.dtype == kind and dataset.shape[1:] == chunk[1:]
    if not same or -(-dataset.shape[0] // chunk[0]) > spec.chunks:
        raise FileError(f"it is damaged: {spec.path} is not the array that its header describes")
    found: list[tuple[int, int, int]] = []
    dataset.id.chunk_iter(lambda one: found.append((one.chunk_offset[0] // chunk[0], one.byte_offset, one.size)))
    rows = np.array(sorted(found), np.int64).reshape(-1, 3)
    if not np.array_equal(rows[:, 0], np.arange(len(rows))):
        raise FileError(f"it is damaged: chunks of {spec.path} are missing")
    return FrameLocations(rows[:, 1].copy(), rows[:, 2].copy())
