"""Owns the files of a graph being written: all get their names at the end, or none is left.

The manifest's temporary file is opened first and renamed last, so that a graph that can be opened is
whole. Refuses to know rows and chunks: append.py fills the files.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage import stripe
from penstock.storage.atomic import replacing
from penstock.storage.encode import EncodedFrame
from penstock.storage.errors import RunError
from penstock.storage.hdf5 import FrameFile, disk_error
from penstock.storage.placing import Placer
from penstock.storage.schema import ArraySpec, Header, ShardEntry
from penstock.storage.threads import ThreadPool


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the HDF5 library's complaint about a write into one error that names the file."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        found = disk_error(error)
        reason = found.strerror or found
        raise RunError(f"{path} could not be written: {reason}; free space or name another output") from error


class FileSet:
    """The manifest and the shards under temporary names, and what was written to them so far."""

    def __init__(self, path: Path, stripes: Sequence[Path], threads: int) -> None:
        self.path, self.stripes, self.threads = path, tuple(stripes), threads
        self.graph_id = secrets.token_hex(16)
        self.specs: list[ArraySpec] = []
        self._tables: dict[str, NDArray[np.uint64]] = {}
        self._files: list[FrameFile] = []
        self._stack = ExitStack()
        self._placer = Placer(threads)
        self._inodes: list[tuple[Path, int]] = []

    @property
    def manifest(self) -> FrameFile:
        """The manifest file."""
        return self._files[0]

    @property
    def shards(self) -> list[FrameFile]:
        """The files that chunks of edges go to: the shards, or else the manifest itself."""
        return self._files[1:] or self._files

    @property
    def shard_entries(self) -> tuple[ShardEntry, ...]:
        """What the header says about the shards."""
        names = [stripe.shard_name(self.path, number) for number in range(len(self.stripes))]
        return tuple(ShardEntry(name, str(folder)) for name, folder in zip(names, self.stripes, strict=True))

    def open(self, *, force: bool) -> None:
        """Make the files. Raises InputError where one may not be written."""
        targets = [self.path]
        targets += [Path(entry.directory) / entry.name for entry in self.shard_entries]
        for target in targets:
            partial = self._stack.enter_context(replacing(target, force=force))
            with writing(target):
                self._files.append(FrameFile(partial, self.graph_id))
            self._inodes.append((target, partial.stat().st_ino))
        self.pool = self._stack.enter_context(ThreadPool(self.threads, "encode"))

    def place(self, file: FrameFile, array: str, frame: EncodedFrame) -> None:
        """Append a frame to an array of one of the files, soon. Raises RunError for this or an earlier one."""

        def write() -> None:
            with writing(self.path):
                file.append(array, frame.data, frame.items)

        with writing(self.path):
            self._placer.put(file.path, len(frame.data), write)

    def add(self, spec: ArraySpec, table: NDArray[np.uint64]) -> None:
        """Note a finished array and its chunk table."""
        self.specs.append(spec)
        if len(table):
            self._tables[spec.path] = table

    def commit(self, header: Header) -> None:
        """Finish the files and give them their names, the manifest last. Raises RunError."""
        with writing(self.path):
            self._placer.finish()
            self._placer.close()
            for shard in self._files[1:]:
                shard.finish(None, {})
            self.manifest.finish(header, self._tables)
        self._stack.close()

    def abandon(self, error: BaseException) -> None:
        """Remove everything, shards that have their names already included."""
        self._placer.close()
        for file in self._files:
            file.abandon()
        self._stack.__exit__(type(error), error, error.__traceback__)
        for target, inode in self._inodes:
            if target.exists() and target.stat().st_ino == inode:
                target.unlink()


Rows = list[tuple[int, int]]


def table_of(rows: Rows) -> NDArray[Any]:
    """Return the chunk table, uint64 (chunks, 2), of (length, checksum) pairs."""
    return np.array(rows, np.uint64).reshape(-1, 2)
