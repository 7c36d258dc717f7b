"""Owns what a new graph makes superfluous: the shards of the graph whose name it takes. They go when it is in place.

Refuses files that changed meanwhile, and shards of other graphs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.storage.base.open_file import OpenFile
from penstock.storage.format import hdf5, stripe
from penstock.storage.format.hdf5 import FileError

_log = logging.getLogger("penstock.storage.format.replaced_files")


@dataclass(frozen=True)
class ReplacedFiles:
    """Shards that belong to the graph that is replaced, with their inodes."""

    inodes: dict[Path, int]

    @staticmethod
    def of(manifest: Path, shards: Sequence[Path]) -> ReplacedFiles:
        """Those of a graph file that is to be replaced, and those of `shards`, which may be replaced, that exist."""
        found = {
            *_shards_of(manifest, [shard.parent for shard in shards]),
            *(shard for shard in shards if shard.exists()),
        }
        return ReplacedFiles({path: path.stat().st_ino for path in found})

    def remove(self) -> None:
        """Remove them; one that cannot be removed is only told of, for nothing reads it any more."""
        for path, inode in self.inodes.items():
            try:
                if path.stat().st_ino == inode:
                    path.unlink()
            except OSError as error:
                _log.warning("%s, a shard of the graph that was replaced, stays: %s", path, error.strerror or error)


def _shards_of(manifest: Path, stripes: Sequence[Path]) -> Iterable[Path]:
    """The shards of a graph file as far as they are found; none of a file that is no whole manifest."""
    try:
        header = hdf5.read_manifest(OpenFile(manifest)).header
    except (FileError, OSError):
        return
    for entry in header.shards:
        for path in stripe.candidates(manifest, entry.name, entry.directory, stripes):
            try:
                hdf5.read_shard(OpenFile(path), header, [])
            except (FileError, OSError):
                continue
            yield path
