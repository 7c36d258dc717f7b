"""A cache of bytes in a folder, kept from one process to the next and found by a key.

An entry appears whole (written beside its name, then renamed) and begins with a digest of its content, so that a torn
or damaged one counts as absent. A folder that cannot be read or written is an empty cache: every entry can be made
anew. The least recently used entries are removed to make room.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from penstock.storage.base.atomic import partial_name

MOST_ENTRIES = 512
_DIGEST_BYTES = 32


class BlobCache:
    """Entries `<key><suffix>` of `folder`, at most `most` of them; key: letters and digits."""

    def __init__(self, folder: Path, suffix: str, most: int = MOST_ENTRIES) -> None:
        self.folder = folder
        self.suffix = suffix
        self.most = most

    def take(self, key: str) -> bytes | None:
        """Return what was put under `key`; None where there is nothing, or nothing whole."""
        try:
            entry = self._path(key).read_bytes()
        except OSError:
            return None
        with suppress(OSError):  # a folder that may only be read
            os.utime(self._path(key))
        digest, content = entry[:_DIGEST_BYTES], entry[_DIGEST_BYTES:]
        return content if hashlib.sha256(content).digest() == digest else None

    def put(self, key: str, content: bytes) -> bool:
        """Keep `content` under `key`, in place of what was there; return whether that was possible."""
        target = self._path(key)
        partial = partial_name(target)
        try:
            partial.write_bytes(hashlib.sha256(content).digest() + content)
            os.replace(partial, target)
        except OSError:
            with suppress(OSError):
                partial.unlink()
            return False
        self._make_room()
        return True

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{self.suffix}"

    def _make_room(self) -> None:
        """Remove those not taken for longest, above `most`; another process may do the same at the same time."""
        entries = [path for path in self.folder.glob(f"*{self.suffix}") if not path.name.startswith(".")]
        if len(entries) <= self.most:
            return
        with suppress(OSError):
            entries.sort(key=lambda path: path.stat().st_mtime_ns)
        for path in entries[: len(entries) - self.most]:
            with suppress(OSError):
                path.unlink()
