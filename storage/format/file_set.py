"""The files of a graph being written: all of them get their names at the end, or none is left.

The manifest's temporary file is opened first and renamed last, so that a graph that can be opened is whole; that rename
is where a new graph takes the place of an old one. Shards never take the name of a file that exists: an old graph's
shards stay beside theirs until the new manifest is in place, and then those go that were the old manifest's own
(stripe.py). adjacency_writer.py fills the files.

Before the files get their names they are read back: opened as any graph is, which checks the header, the chunk tables
and HDF5's own structures. Frames are all read where they take no time; of a larger graph the first and the last of
every array, because each frame was written by one call whose outcome was checked, and `penstock verify` reads them
all.
"""

import logging
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import (
    check_target,
    debris,
    flush,
    give_name,
    partial_name,
    remove_left,
    sync_folder,
    writing,
)
from penstock.storage.base.errors import PenstockError, RunError, UnsyncedError
from penstock.storage.base.folder_lock import FolderLock
from penstock.storage.base.threads import ThreadPool
from penstock.storage.encoding.codec import Coding, checksum
from penstock.storage.format import hdf5, stripe
from penstock.storage.format.direct_io import OpenFile
from penstock.storage.format.frame_writer import EncodedFrame, FrameWriter
from penstock.storage.format.frames import OpenedGraph, assemble, open_frames, read_shard
from penstock.storage.format.hdf5 import FileError, FrameFile
from penstock.storage.format.schema import (
    ROWS_VERSION,
    SHARDS_VERSION,
    ArraySpec,
    Header,
    Place,
    ShardEntry,
    table_columns,
)

READ_BACK_BYTES = 64 << 20
"""Files of so many bytes in all are read back to their last frame."""
_log = logging.getLogger("penstock.storage.format.file_set")


@dataclass(frozen=True, slots=True)
class AppendedTo:
    """A graph that files are added to, and which its new manifest replaces.

    Attributes
    ----------
    graph_id : str
        That of the graph.
    shards : tuple of ShardEntry
        The files with edges that it has already, in order; the last is one that ``manifest`` is to become, if any.
    files : tuple of OpenFile
        These files, open.
    manifest : Path or None
        The name that the old manifest gets, which holds edges itself; None where shards hold them.
    """

    graph_id: str
    shards: tuple[ShardEntry, ...]
    files: tuple[OpenFile, ...]
    manifest: Path | None

    @classmethod
    def of(cls, opened: OpenedGraph) -> "AppendedTo":
        """The files of an opened graph; shards that stayed behind when its manifest was moved by their own places."""
        header, (manifest, *shards) = opened.header, opened.open_files
        graph, place = manifest.path, header.place
        entries = []
        for entry, shard in zip(header.shards, shards, strict=True):
            stayed = place is not None and shard.path == stripe.recorded_place(Path(place.path), entry)
            moved = stayed and shard.path != stripe.recorded_place(graph, entry)
            entries.append(ShardEntry(entry.name, str(shard.path.parent)) if moved else entry)
        if shards:
            return cls(header.graph_id, tuple(entries), tuple(shards), None)
        folder, name = graph.absolute().parent, stripe.shard_name(graph, 0, os.urandom(4).hex())
        entry = ShardEntry(name, stripe.recorded_folder(graph, folder))
        return cls(header.graph_id, (entry,), (manifest,), folder / name)


@dataclass
class _Part:
    """One file: its name at the end, its temporary one, and the file, once it is open."""

    target: Path
    partial: Path
    file: FrameFile | None = None
    inode: int = 0

    def make(self, graph_id: str, version: int) -> None:
        """Make the file under its temporary name."""
        self.file = FrameFile(self.partial, graph_id, version)
        self.inode = self.partial.stat().st_ino

    @property
    def named(self) -> bool:
        """Whether the file has its name."""
        try:
            return self.inode != 0 and self.target.stat().st_ino == self.inode
        except OSError:
            return False


_mine = threading.local()
"""The graph files that this thread keeps to itself."""


@contextmanager
def kept_to_itself(target: Path) -> Iterator[None]:
    """Let no other command append to a graph file, or replace it, in the block; one in the same thread may.

    Raises InputError where another does.
    """
    if target.absolute() in _held():
        yield
        return
    with _lock(target).holding():
        _held().add(target.absolute())
        try:
            yield
        finally:
            _held().discard(target.absolute())


@contextmanager
def opened_alone(graph: Path, stripes: Sequence[Path]) -> Iterator[OpenedGraph]:
    """Open a graph file to change it, which nobody else does within; a link is followed.

    What processes of this machine that were killed left of files of it, which had no name yet, is removed.
    """
    target = graph.resolve() if graph.is_symlink() else graph
    names = re.compile(rf"{re.escape(target.name)}|{re.escape(target.stem)}(\.[0-9a-f]{{8}})?\.[0-9]+\.h5")
    with kept_to_itself(target):
        opened = open_frames(target, stripes)
        for folder in {file.path.absolute().parent for file in opened.open_files}:
            remove_left(folder, names)
        yield opened


def check_unused(target: Path) -> None:
    """Refuse a graph file that another command appends to, or replaces, now. Raises InputError."""
    if target.absolute() not in _held():
        _lock(target).check()


def _lock(target: Path) -> FolderLock:
    return FolderLock(target.absolute().parent, f".{target.name}.append", "graph")


def _held() -> set[Path]:
    found: set[Path] = _mine.__dict__.setdefault("graphs", set())
    return found


class FileSet:
    """The manifest and the shards under temporary names, and what was written to them so far.

    Once it is open, chunks of edges go to ``shards``, which are the ``manifest`` itself where there are no others.
    """

    manifest: FrameFile
    shards: list[FrameFile]

    def __init__(
        self,
        path: Path,
        stripes: Sequence[Path],
        threads: int,
        *,
        version: int = ROWS_VERSION,
        old: AppendedTo | None = None,
    ) -> None:
        self.path, self.stripes, self.threads = path, tuple(stripes), threads
        self.graph_id = os.urandom(16).hex() if old is None else old.graph_id
        self._version, self._old = max(version, SHARDS_VERSION) if stripes else version, old
        self._linked: Path | None = None
        self.specs: list[ArraySpec] = []
        self.file_bytes = 0
        self._force = False
        self._tag = ""
        self._superseded: dict[Path, int] = {}
        self._unknown: set[Path] = set()
        self._rows: dict[str, list[tuple[int, int, int]]] = {}
        self._tables: dict[str, NDArray[np.uint64]] = {}
        self._parts: list[_Part] = []
        self._stack = ExitStack()
        self._writer = FrameWriter(threads)

    @property
    def _opened(self) -> list[FrameFile]:
        return [part.file for part in self._parts if part.file is not None]

    @property
    def shard_entries(self) -> tuple[ShardEntry, ...]:
        """What the header says about the shards."""
        return (*(self._old.shards if self._old else ()), *self._new_shards)

    @property
    def _new_shards(self) -> tuple[ShardEntry, ...]:
        names = [stripe.shard_name(self.path, number, self._tag) for number in range(len(self.stripes))]
        folders = [stripe.recorded_folder(self.path, folder) for folder in self.stripes]
        return tuple(ShardEntry(name, folder) for name, folder in zip(names, folders, strict=True))

    def open(self, *, force: bool) -> None:
        """Make the files. Raises InputError where one may not be written."""
        self._force = force
        self.path = target = check_target(self.path, force=force)
        if self._old is None and target.exists():
            self._stack.enter_context(kept_to_itself(target))
        if self._old is not None:
            self._tag = os.urandom(4).hex()
        else:
            self._superseded, self._unknown = _shards_of(target, self.stripes)
            if any(place.exists() for place in self._places):
                self._tag = self.graph_id[:8]
        for name in (target, *self._places):
            check_target(name, force=force)
            part = _Part(name, self._stack.enter_context(debris(partial_name(name))))
            self._parts.append(part)
            with writing(name):
                self._writer.call(lambda part=part: part.make(self.graph_id, self._version))  # type: ignore[misc]
        self.manifest, *others = self._opened
        self.shards = others or [self.manifest]
        self.pool = self._stack.enter_context(ThreadPool(self.threads, "encode"))

    @property
    def _places(self) -> list[Path]:
        """Where the new shards will be."""
        return [stripe.recorded_place(self.path, entry) for entry in self._new_shards]

    def create(self, file: FrameFile, path: str, coding: Coding) -> None:
        """Make an empty array in one of the files. Raises RunError."""
        with writing(self.path):
            self._writer.call(lambda: file.create(path, coding))

    def append(self, file: FrameFile, array: str, frame: EncodedFrame) -> None:
        """Append the next frame of an array to one of the files, soon. Raises RunError for this or an earlier one."""
        self._rows.setdefault(array, []).append((len(frame.data), frame.checksum, frame.words))

        def write() -> None:
            with writing(self.path):
                file.append(array, frame.data, frame.items)

        with writing(self.path):
            self._writer.put(file.path, len(frame.data), write)

    def add(self, path: str, coding: Coding, items: int, before: NDArray[np.uint64] | None = None) -> None:
        """Add a finished array, all of whose frames were appended in order, to the header and its table to the file.

        before: the table of the frames that older files have of it.
        """
        rows = np.array(self._rows.pop(path, []), np.uint64).reshape(-1, 3)
        table = np.ascontiguousarray(rows[:, : table_columns(coding.encoding)])
        if before is not None:
            table = np.concatenate([before, table])
        self.specs.append(
            ArraySpec(
                path, coding.kind.name, items, coding.chunk_items, coding.encoding, table_checksum=checksum(table)
            )
        )
        if len(table):
            self._tables[path] = table

    def written(self, header: Header) -> OpenedGraph:
        """What a header names, all of which was added, opened while other arrays are still written. Raises RunError."""
        with writing(self.path):
            places = self._writer.call(lambda: [file.places(header.arrays) for file in self._opened])
            files = [OpenFile(part.partial) for part in self._parts]
        none = {spec.path: np.empty((0, table_columns(spec.encoding)), np.uint64) for spec in header.arrays}
        manifest = hdf5.Manifest(header, none | self._tables, places[0])
        return assemble(files[0], manifest, list(zip(files[1:], places[1:], strict=True)))

    def commit(self, header: Header) -> None:
        """Finish the files, read them back, and give them their names, the manifest last.

        Raises:
            RunError: they could not be written; what had the manifest's name before has it still.
            UnsyncedError: they have their names, but the manifest's folder could not be synced.
        """
        manifest, *shards = self._parts
        if header.shards:
            header = replace(header, place=Place(str(manifest.target.resolve()), manifest.inode))
        with writing(self.path):
            self._writer.finish()
            self._writer.call(lambda: self._finish(header))
        self._writer.close()
        before = () if self._old is None else self._old.files
        _read_back(self.path, manifest.partial, before, [shard.partial for shard in shards])
        self.file_bytes = sum(part.partial.stat().st_size for part in self._parts) + sum(file.size for file in before)
        for shard in shards:
            give_name(shard.partial, shard.target, force=False)
            with writing(shard.target):
                flush(shard.target.parent)
        self._keep_manifest(manifest.target)
        give_name(manifest.partial, manifest.target, force=self._force)
        self._drop_superseded()
        for path in sorted(self._unknown):
            _log.warning("%s stays: it may be another graph's; remove it if no graph needs it", path)
        self._stack.close()

    def _drop_superseded(self) -> None:
        """Once the new manifest will have its name after a power failure, too, remove the shards of the old one."""
        sync_folder(self._parts[0].target)
        _remove(self._superseded)

    def _keep_manifest(self, path: Path) -> None:
        """Give an old manifest that holds edges a second name, under which the new one finds them."""
        if self._old is None or self._old.manifest is None:
            return
        self._linked = self._old.manifest
        try:
            os.link(path, self._linked)
            flush(self._linked.parent)
        except OSError as error:
            raise RunError(
                f"{path} cannot get a second name, as its edges need: {error.strerror or error}; where the file system "
                "has no hard links, convert with --stripe FOLDER, and append then"
            ) from error

    def _finish(self, header: Header) -> None:
        for shard in self._opened[1:]:
            shard.finish(None, {})
        self.manifest.finish(header, self._tables)

    def abandon(self, error: BaseException) -> None:
        """Remove everything that was written, unless the manifest has its name, and with it the graph is in place."""
        replaced = bool(self._parts) and self._parts[0].named
        self._writer.drop()
        with suppress(RuntimeError):  # the thread has ended, and the files are closed
            for file in self._opened:
                self._writer.call(file.abandon)
        self._writer.close()
        self._stack.__exit__(type(error), error, error.__traceback__)
        for shard in self._parts[1:]:
            if shard.named and not replaced:
                shard.target.unlink()
        if self._linked is not None and not replaced:
            self._linked.unlink(missing_ok=True)
        if replaced and not isinstance(error, UnsyncedError):  # a signal
            self._drop_superseded()


def _read_back(path: Path, manifest: Path, before: Sequence[OpenFile], shards: Sequence[Path]) -> None:
    """Read what was written for the graph file ``path``. Raises RunError where it is not what a graph file is."""
    try:
        held = OpenFile(manifest)
        found = hdf5.read_manifest(held)
        files = [*before, *(OpenFile(shard) for shard in shards)]
        opened = assemble(held, found, [(file, read_shard(file, found.header)) for file in files])
        everything = sum(file.size for file in opened.open_files) <= READ_BACK_BYTES
        for frames in opened.frames.values():
            chunks = range(frames.spec.chunks)
            for chunk in chunks if everything or len(chunks) < 3 else (chunks[0], chunks[-1]):
                if checksum(frames.read(chunk)) != int(frames.checksums[chunk]):
                    raise FileError(f"the checksum of {frames.name(chunk)} does not match")
    except (FileError, OSError, PenstockError) as error:
        raise RunError(f"{path} could not be written: it cannot be read back: {error}; name another output") from error


def _shards_of(manifest: Path, stripes: Sequence[Path]) -> tuple[dict[Path, int], set[Path]]:
    """The shards of a graph file as far as they are found; none of a file that is no whole manifest.

    First its own, with their inodes, which a new graph in its place makes superfluous; then those that may be another
    manifest's, where that is not known.
    """
    try:
        header = hdf5.read_manifest(OpenFile(manifest)).header
    except (FileError, OSError):
        return {}, set()
    found: dict[Path, int] = {}
    for entry in header.shards:
        for path in stripe.candidates(manifest, header, entry, stripes):
            try:
                hdf5.read_shard(OpenFile(path), header, [])
            except (FileError, OSError):
                continue
            found[stripe.real_place(path)] = path.stat().st_ino
    own = stripe.own_places(manifest, header)
    unknown = set() if stripe.is_copied(manifest, header) else found.keys() - own
    return {path: inode for path, inode in found.items() if path in own}, unknown


def _remove(inodes: dict[Path, int]) -> None:
    """Remove files that did not change meanwhile; one that cannot be removed is only logged: nothing reads it."""
    for path, inode in inodes.items():
        try:
            if path.stat().st_ino == inode:
                path.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            _log.warning("%s, a shard of the graph that was replaced, stays: %s", path, error.strerror or error)
