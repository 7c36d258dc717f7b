"""Where every frame of a graph is: file, offset, length, checksum.

Opening checks everything once: the marks of a finished file, that every shard belongs to this graph, that the lengths
in the chunk tables are those in the files, and that every frame is inside its file. ``load`` reads the few frames that
opening needs; reader.py reads the others.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import cores
from penstock.storage.base.errors import DamagedError, InputError, RunError
from penstock.storage.base.threads import PerThread, map_ranges
from penstock.storage.encoding.codec import Decoder, FrameError, checksum, frame_bound
from penstock.storage.encoding.payload import payload_words
from penstock.storage.encoding.string_array import STRINGS, StringArray, first_invalid
from penstock.storage.format import hdf5, stripe
from penstock.storage.format.direct_io import DirectFile, OpenFile
from penstock.storage.format.edge_properties import EdgeProperty, is_property, property_path
from penstock.storage.format.hdf5 import FileError, ForeignError, FrameLocations
from penstock.storage.format.read_plan import ReadRange
from penstock.storage.format.schema import (
    DEGREES,
    DIRECTIONS,
    NEIGHBORS,
    WEIGHTS,
    ArraySpec,
    Header,
    ListPart,
    table_columns,
)

WAY_OUT = "convert the input again, or restore the file from a copy"


READS = 4
"""Chunks that are read at once at least, however few the cores: a disk is slow with one request at a time."""


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of one array, in chunk order.

    ``shard`` int64 (chunks,) numbers ``open_files``; ``offsets`` and ``lengths`` int64 are bytes in that file;
    ``checksums`` uint64. ``limit`` is one more than the largest value allowed, None for any. ``payload_words`` int64
    are the 32-bit words of each frame's payload; None where frames hold none, or where the file does not say. `before`:
    of some chunks of an array (`of_chunks`), how many chunks the array has before it.
    """

    spec: ArraySpec
    open_files: tuple[OpenFile, ...]
    shard: NDArray[np.int64]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    checksums: NDArray[np.uint64]
    limit: int | None
    payload_words: NDArray[np.int64] | None = None
    before: int = 0

    @property
    def kind(self) -> np.dtype[Any]:
        """The dtype of the items."""
        return self.spec.kind

    @property
    def arrays(self) -> tuple[Frames, ...]:
        """The frames of this one array."""
        return (self,)

    @property
    def files(self) -> tuple[Path, ...]:
        """The names of the files, the manifest's first."""
        return tuple(file.path for file in self.open_files)

    @property
    def table(self) -> NDArray[np.uint64]:
        """The chunk table: length and checksum of each frame, and where frames hold payloads the words of each."""
        columns = [self.lengths, self.checksums] + ([] if self.payload_words is None else [self.payload_words])
        return np.stack([column.astype(np.uint64) for column in columns], axis=1)

    @property
    def is_sized(self) -> bool:
        """Whether the table is one of today's version."""
        return (self.payload_words is not None) == (table_columns(self.spec.encoding) == 3)

    def name(self, chunk: int) -> str:
        """Say which chunk of which file this is, for messages."""
        file = self.open_files[int(self.shard[chunk])].path
        return f"chunk {self.before + chunk} of {self.spec.path} in {file} (offset {int(self.offsets[chunk])})"

    def of_chunks(self, first: int, last: int) -> Frames:
        """The frames of chunks first..last-1, as those of an array that has no others."""
        size, here = self.spec.chunk_items, slice(first, last)
        items = max(0, min(last * size, self.spec.items) - first * size)
        return replace(
            self,
            spec=replace(self.spec, items=items),
            shard=self.shard[here],
            offsets=self.offsets[here],
            lengths=self.lengths[here],
            checksums=self.checksums[here],
            payload_words=None if self.payload_words is None else self.payload_words[here],
            before=self.before + first,
        )

    def decode(self, chunk: int, frame: Any, decoder: Decoder, out: NDArray[Any]) -> None:
        """Verify and decode one frame into ``out``, its items. Raises RunError naming the chunk."""
        self._raise(chunk, self.flaw(chunk, frame, decoder, out))

    def copy_payload(self, chunk: int, frame: Any, decoder: Decoder, words: NDArray[np.uint32]) -> None:
        """Verify one frame and copy its payload into ``words``, as many as it has. Raises RunError naming the chunk."""
        spec = self.spec
        self._raise(
            chunk,
            self._flaw(
                chunk,
                frame,
                lambda: decoder.copy_payload(
                    frame, spec.encoding, spec.kind, spec.chunk_length(chunk), spec.chunk_items, words
                ),
            ),
        )

    def _raise(self, chunk: int, flaw: str | None) -> None:
        if flaw is not None:
            raise RunError(f"{self.name(chunk)} is damaged: {flaw}; {WAY_OUT}")

    def flaw(self, chunk: int, frame: Any, decoder: Decoder, out: NDArray[Any]) -> str | None:
        """Verify and decode one frame into ``out``, its items; return what is wrong with it, if anything is."""
        spec = self.spec
        words = None if self.payload_words is None else int(self.payload_words[chunk])
        return self._flaw(
            chunk, frame, lambda: decoder.decode(frame, spec.encoding, out, spec.chunk_items, self.limit, words)
        )

    def _flaw(self, chunk: int, frame: Any, use: Callable[[], None]) -> str | None:
        """Verify one frame and use it; return what is wrong with it, if anything is."""
        if checksum(frame) != int(self.checksums[chunk]):
            return "its checksum does not match"
        try:
            use()
        except FrameError as error:
            return str(error)
        return None

    def read(self, chunk: int) -> bytearray:
        """Read one frame, in the caller's thread. Raises RunError."""
        length = int(self.lengths[chunk])
        frame = bytearray(length)
        with DirectFile(self.open_files[int(self.shard[chunk])]) as file:
            file.read(ReadRange(0, int(self.offsets[chunk]), length, length, ()), memoryview(frame))
        return frame

    def load(self, chunks: Sequence[int] | None = None) -> Iterator[NDArray[Any]]:
        """Yield the items of every chunk (or those named), read by the caller's thread. Raises RunError."""
        decoder = Decoder()
        for chunk in range(self.spec.chunks) if chunks is None else chunks:
            out = np.empty(self.spec.chunk_length(chunk), self.spec.kind)
            self.decode(chunk, self.read(chunk), decoder, out)
            yield out

    def whole(self) -> NDArray[Any]:
        """All items, read and decoded in place by several threads. Raises RunError."""
        spec, own = self.spec, PerThread(Decoder)
        out = np.empty(spec.items, spec.kind)

        def load(first: int, last: int) -> None:
            chunk = first // spec.chunk_items
            self.decode(chunk, self.read(chunk), own(), out[first:last])

        # What threads hold besides is less than the items: half as many of them at most as there are chunks.
        threads = min(max(READS, cores()), spec.chunks // 2)
        map_ranges(load, spec.items, spec.chunk_items, threads)
        return out

    def part(self, first: int, last: int) -> NDArray[Any]:
        """Items first..last-1, of which only their chunks are read, by the caller's thread. Raises RunError."""
        size = self.spec.chunk_items
        chunks = range(first // size, -(-last // size)) if first < last else range(0)
        items = list(self.load(chunks))
        if not items:
            return np.empty(0, self.spec.kind)
        joined = items[0] if len(items) == 1 else np.concatenate(items)
        return joined[first - chunks[0] * size :][: last - first]

    def taken(self, places: NDArray[Any]) -> NDArray[Any]:
        """The items at these places, in their order; only their chunks are read. Raises RunError."""
        out = np.empty(len(places), self.spec.kind)
        chunks = places // self.spec.chunk_items
        wanted = np.unique(chunks).tolist()
        for chunk, items in zip(wanted, self.load(wanted), strict=True):
            here = chunks == chunk
            out[here] = items[places[here] - chunk * self.spec.chunk_items]
        return out


FEW_NAMES = 64
"""Names up to which a chunk is read for each, rather than all chunks."""


@dataclass(frozen=True, slots=True)
class StringIdFrames:
    """The frames of original ids that are strings: where each id ends, and their text."""

    ends: Frames
    text: Frames

    @property
    def kind(self) -> np.dtype[Any]:
        """NumPy's strings."""
        return STRINGS

    @property
    def arrays(self) -> tuple[Frames, ...]:
        """The frames of both arrays."""
        return (self.ends, self.text)

    def whole(self) -> NDArray[Any]:
        """All ids as NumPy's strings. Raises RunError as `names`."""
        return self.names().strings()

    def part(self, first: int, last: int) -> NDArray[Any]:
        """Ids first..last-1 as NumPy's strings, of which only their chunks are read. Raises RunError as `names`."""
        if first >= last:
            return np.empty(0, STRINGS)
        ends = self.ends.part(max(0, first - 1), last).view(np.int64)
        begin = int(ends[0]) if first else 0
        ends = ends[1 if first else 0 :]
        self._check(begin, ends, ends[-1] <= self.text.spec.items)
        text, ends = self.text.part(begin, int(ends[-1])), ends - begin
        return self._checked(text, ends, first).strings()

    def taken(self, places: NDArray[Any]) -> NDArray[Any]:
        """The ids at these places as NumPy's strings; of many all are read. Raises RunError as `names`."""
        if len(places) > FEW_NAMES:
            return self.names().taken(places).strings()
        return np.array([self.part(place, place + 1)[0] for place in places.tolist()], STRINGS)

    def names(self) -> StringArray:
        """Read all ids. Raises RunError where they end outside their text or are no UTF-8."""
        text, ends = self.text.whole(), self.ends.whole().view(np.int64)
        self._check(0, ends, len(ends) == 0 or ends[-1] == len(text))
        return self._checked(text, ends, 0)

    def _check(self, begin: int, ends: NDArray[np.int64], inside: bool | np.bool_) -> None:
        """Refuse ends that do not rise from `begin` on, or are not inside of the text."""
        if not inside or begin < 0 or (ends[:1] < begin).any() or (ends[1:] < ends[:-1]).any():
            raise RunError(f"{self.ends.files[0]} is damaged: the ends of its ids do not rise; convert the input again")

    def _checked(self, text: NDArray[np.uint8], ends: NDArray[np.int64], first: int) -> StringArray:
        """The names, the first of them that of a vertex `first`, if they are UTF-8."""
        bad = first_invalid(text, ends)
        if bad >= 0:
            raise RunError(
                f"{self.ends.files[0]} is damaged: the id of vertex {first + bad} is no UTF-8; convert the input again"
            )
        return StringArray(text, ends)


@dataclass(frozen=True, slots=True)
class EdgeColumn:
    """A column beside the edges of an adjacency: what it is, its frames, least and greatest value of each chunk."""

    property: EdgeProperty
    frames: Frames
    bounds: Frames


StoredIds = Frames | StringIdFrames
"""Original ids in a graph file, whole numbers or strings."""

_NOWHERE = FrameLocations(np.empty(0, np.int64), np.empty(0, np.int64))
"""An array of which a file has nothing."""


@dataclass(frozen=True, slots=True)
class OpenedGraph:
    """What opening found: the header, the files (manifest first) open, the frames of every array."""

    header: Header
    open_files: tuple[OpenFile, ...]
    frames: dict[str, Frames]


def open_frames(path: Path, stripes: Sequence[Path] = ()) -> OpenedGraph:
    """Open a graph file and its shards, if it has any; once more where it is replaced between the two.

    Raises:
        InputError: the file is missing, foreign or newer.
        DamagedError: it is half-written, truncated or damaged, or a shard is missing; the message says where
            shards were looked for.
    """
    while True:
        held, manifest = _open_manifest(path)
        header = manifest.header
        try:
            return assemble(
                held, manifest, [_find_shard(path, header, number, stripes) for number in range(len(header.shards))]
            )
        except DamagedError:
            if not held.replaced:
                raise


def _open_manifest(path: Path) -> tuple[OpenFile, hdf5.Manifest]:
    """Open a graph file alone. Raises as `open_frames`."""
    try:
        held = OpenFile(path)
        return held, hdf5.read_manifest(held)
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist; 'penstock convert INPUT {path}' makes one") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder, not a graph file") from error
    except ForeignError as error:
        way_out = "nothing in it was touched"
        if "not a Penstock graph" in str(error):
            way_out = "'penstock convert INPUT OUTPUT.h5' makes a graph of a raw edge list"
        raise InputError(f"{path} cannot be opened: {error}; {way_out}") from error
    except FileError as error:
        raise DamagedError(f"{path} cannot be opened: {error}; {WAY_OUT}") from error
    except OSError as error:
        if error.errno == errno.EIO:
            raise RunError(f"{path} cannot be read: {error.strerror}; check the disk") from error
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def assemble(
    held: OpenFile, manifest: hdf5.Manifest, shards: Sequence[tuple[OpenFile, dict[str, FrameLocations]]]
) -> OpenedGraph:
    """Put together what a manifest and its shards hold. Raises DamagedError where they do not agree."""
    header = manifest.header
    files = (held, *(file for file, _ in shards))
    parts = [places for _, places in shards]
    frames = {spec.path: _assemble(header, spec, files, manifest, parts) for spec in header.arrays}
    return OpenedGraph(header, files, frames)


def striped(spec: ArraySpec) -> bool:
    """Whether an array is in the shards of a striped graph, and not in its manifest."""
    return spec.path.rpartition("/")[2] in (NEIGHBORS, WEIGHTS) or is_property(spec.path)


def read_shard(held: OpenFile, header: Header) -> dict[str, FrameLocations]:
    """Return where the frames of a shard are. Raises FileError, OSError."""
    return hdf5.read_shard(held, header, [spec for spec in header.arrays if striped(spec)])


def _find_shard(
    manifest: Path, header: Header, number: int, stripes: Sequence[Path]
) -> tuple[OpenFile, dict[str, FrameLocations]]:
    entry = header.shards[number]
    looked: list[str] = []
    for path in stripe.candidates(manifest, header, entry, stripes):
        try:
            held = OpenFile(path)
            return held, read_shard(held, header)
        except FileNotFoundError:
            looked.append(str(path.parent))
        except FileError as error:
            looked.append(f"{path.parent} ({error})")
        except OSError as error:
            if error.errno == errno.EIO:
                raise RunError(f"{path} cannot be read: {error.strerror}; check the disk") from error
            looked.append(f"{path.parent} ({error.strerror or error})")
    raise DamagedError(
        f"{manifest}: its shard {entry.name} (stripe {number} of {len(header.shards)}) was not found "
        f"in {', '.join(looked)}; --stripe DIR says where it is now"
    )


def _assemble(
    header: Header,
    spec: ArraySpec,
    files: tuple[OpenFile, ...],
    manifest: hdf5.Manifest,
    shards: list[dict[str, FrameLocations]],
) -> Frames:
    """Bring the places of an array's frames, from all its files, into chunk order, and check them."""
    table = manifest.tables[spec.path]
    parts = [manifest.places.get(spec.path, _NOWHERE)]
    if shards and striped(spec):
        parts += [part.get(spec.path, _NOWHERE) for part in shards]
    shard, local, stored = _spread(header, spec)
    sizes = np.array([len(part.offsets) for part in parts])
    if sizes.sum() != stored.sum():
        raise _damaged(files[0], f"{spec.path} has {sizes.sum()} of its {stored.sum()} chunks")
    if not np.array_equal(sizes, stored):
        raise _damaged(files[0], f"the shards do not share {spec.path} as they should")
    firsts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    at = local + firsts[shard]
    offsets = np.concatenate([part.offsets for part in parts])[at]
    lengths = np.concatenate([part.lengths for part in parts])[at]
    if not np.array_equal(lengths.astype(np.uint64), table[:, 0]):
        raise _damaged(files[0], f"the chunk table of {spec.path} is not that of its chunks")
    _check_inside(files, spec, shard, offsets, lengths)
    ends = header.edges if header.layout == "rows" else 2 * header.edges
    limits: dict[str, int | None] = {NEIGHBORS: header.vertices, "ids": header.vertices, DEGREES: ends + 1}
    limits |= {property_path(way, n): one.limit for way in DIRECTIONS for n, one in enumerate(header.edge_properties)}
    limit = limits.get(spec.path, limits.get(spec.path.rpartition("/")[2]))
    words = _payload_words(files[0], spec, table)
    return Frames(spec, files, shard, offsets, lengths, table[:, 1].copy(), limit, words)


def _spread(header: Header, spec: ArraySpec) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Of every chunk the number of its file, and its number there; and how many chunks each file has."""
    chunks = spec.chunks
    if not (header.shards and striped(spec)):
        return np.zeros(chunks, np.int64), np.arange(chunks), np.array([chunks])
    whole = ListPart(len(header.shards), chunks, chunks)
    shards, locals_, sizes, files = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.zeros(1, np.int64)], 1
    for part in header.parts or (whole,):
        shard, local = stripe.place(part.stored, part.shards, header.stripe_run)
        shards.append(shard[: part.used] + files)
        locals_.append(local[: part.used])
        sizes.append(np.bincount(shard, minlength=part.shards))
        files += part.shards
    return np.concatenate(shards), np.concatenate(locals_), np.concatenate(sizes)


def _payload_words(file: OpenFile, spec: ArraySpec, table: NDArray[np.uint64]) -> NDArray[np.int64] | None:
    """The words of every payload, as the chunk table has them; None where it does not."""
    if table.shape[1] < 3:
        return None
    words = table[:, 2]
    sound = (words > 0) & (words <= payload_words(spec.chunk_items, spec.kind.itemsize))
    if not sound.all():
        chunk = int(np.argmin(sound))
        raise _damaged(file, f"chunk {chunk} of {spec.path} cannot have a payload of {int(words[chunk])} words")
    return words.astype(np.int64)


def _check_inside(
    files: tuple[OpenFile, ...],
    spec: ArraySpec,
    shard: NDArray[np.int64],
    offsets: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> None:
    sizes = np.array([file.size for file in files], np.int64)
    bound = frame_bound(spec.encoding, spec.kind, spec.chunk_items)
    sound = (offsets >= 0) & (lengths > 0) & (lengths <= bound)
    sound &= offsets <= sizes[shard] - lengths
    if not sound.all():
        chunk = int(np.argmin(sound))
        raise _damaged(files[int(shard[chunk])], f"chunk {chunk} of {spec.path} is not inside it")


def _damaged(file: OpenFile, what: str) -> DamagedError:
    return DamagedError(f"{file.path} cannot be opened: it is damaged: {what}; {WAY_OUT}")
