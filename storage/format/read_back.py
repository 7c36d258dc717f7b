"""Owns the last look at a graph file before it gets its name: it is opened as any graph is, from its temporary files.

Header, tables of chunks and HDF5's own structures are all under checksums and are all read. Frames are read where they
take no time; of a larger graph the first and the last of every array, for each frame was written by one call whose
outcome was seen, and `penstock verify` reads them all.
"""

from collections.abc import Sequence
from pathlib import Path

from penstock.storage.base.errors import PenstockError, RunError
from penstock.storage.base.open_file import OpenFile
from penstock.storage.encoding.codec import checksum
from penstock.storage.format import hdf5
from penstock.storage.format.frames import Frames, assemble, read_shard
from penstock.storage.format.hdf5 import FileError

WHOLE_BYTES = 64 << 20
"""Files of so many bytes in all are read back to their last frame."""


def read_back(path: Path, manifest: Path, shards: Sequence[Path]) -> None:
    """Read what was written for the graph file ``path``. Raises RunError where it is not what a graph file is."""
    try:
        held = OpenFile(manifest)
        found = hdf5.read_manifest(held)
        files = [OpenFile(shard) for shard in shards]
        opened = assemble(held, found, [(file, read_shard(file, found.header)) for file in files])
        everything = sum(file.size for file in opened.held) <= WHOLE_BYTES
        for frames in opened.frames.values():
            _check(frames, everything)
    except (FileError, OSError, PenstockError) as error:
        raise RunError(f"{path} could not be written: it cannot be read back: {error}; name another output") from error


def _check(frames: Frames, everything: bool) -> None:
    chunks = range(frames.spec.chunks)
    for chunk in chunks if everything or len(chunks) < 3 else (chunks[0], chunks[-1]):
        if checksum(frames.read(chunk)) != int(frames.checksums[chunk]):
            raise FileError(f"the checksum of {frames.name(chunk)} does not match")
