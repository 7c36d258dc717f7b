"""Owns the bytes of one raw input as they lie: a file or standard input, in order or by position; small files as text.

Refuses folders, and devices that are neither a terminal nor the null device: their bytes do not end.
"""

import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.places import Address, Place, open_stored, place_of

STANDARD_INPUT = "-"


class RawFile:
    """One input's bytes as they lie on disk, with the first of them known before reading.

    Attributes: ``name`` for messages, ``size`` in bytes or None on a pipe, ``done`` bytes read.
    """

    def __init__(self, path: Place) -> None:
        self.name, self._file, self.size = _open(path, ordered=True)
        self.done = 0
        self._ahead = b""
        try:
            with _reading(self.name):
                while len(self._ahead) < 64 and (piece := self._file.read(64 - len(self._ahead))):
                    self._ahead += piece
        except RunError:
            self.close()
            raise

    @property
    def first(self) -> bytes:
        """The first bytes (up to 64), still unread."""
        return self._ahead

    def read(self, count: int) -> bytes:
        """Up to ``count`` bytes; empty at the end."""
        if self._ahead:
            piece, self._ahead = self._ahead[:count], self._ahead[count:]
        else:
            with _reading(self.name):
                piece = self._file.read(count)
        self.done += len(piece)
        return piece

    def read_into(self, buffer: memoryview) -> int:
        """Fill the front of ``buffer``; return how many bytes, 0 at the end."""
        if self._ahead:
            piece = self.read(len(buffer))
            buffer[: len(piece)] = piece
            return len(piece)
        with _reading(self.name):
            count: int = self._file.readinto(buffer)
        self.done += count
        return count

    def close(self) -> None:
        """Close the file (standard input stays open)."""
        if self.name != "standard input":
            self._file.close()


class PositionedFile:
    """A file whose bytes any number of threads read by position. Use as a context manager.

    Reading is not mapping: mapped pages would count as our memory.
    """

    def __init__(self, path: Place) -> None:
        self.name, self._file, size = _open(path)
        self._stored = hasattr(self._file, "read_at")
        if size is None:
            self.close()
            raise InputError(f"{path} is no regular file, and its bytes are wanted in any order; copy it to one")
        self.size = size

    def read(self, start: int, out: NDArray[Any]) -> None:
        """Fill a contiguous array with the bytes from ``start`` on.

        Raises:
            InputError: the file ends before.
            RunError: the disk failed.
        """
        view = memoryview(out.reshape(-1).view(np.uint8))
        with _reading(self.name):
            while view:
                count = self._read_at(view, start)
                if count == 0:
                    raise InputError(f"{self.name} became shorter while it was read")
                start += count
                view = view[count:]

    def _read_at(self, view: memoryview, start: int) -> int:
        if not self._stored:
            return os.preadv(self._file.fileno(), [view], start)
        piece = self._file.read_at(len(view), start)
        view[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the file (standard input stays open)."""
        if self.name != "standard input":
            self._file.close()

    def __enter__(self) -> "PositionedFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def open_text(path: Path, hint: str = "") -> Iterator[io.TextIOWrapper]:
    """Open a small file of text in UTF-8; hint: how to get one.

    Raises:
        InputError: there is no such file, or it is no such text.
        RunError: the disk failed.
    """
    if hint and not path.exists():
        raise InputError(f"{path} does not exist; {hint}")
    name, file, _ = _open(path)
    with _reading(name), io.TextIOWrapper(io.BufferedReader(file), encoding="utf-8-sig") as text:
        try:
            yield text
        except UnicodeDecodeError as error:
            raise InputError(f"{name} is not UTF-8 text ({error.reason} at byte {error.start})") from None


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(f"{name}: reading failed: {error.strerror or error}") from error


def _open(path: Place, *, ordered: bool = False) -> tuple[str, Any, int | None]:
    if str(path) == STANDARD_INPUT:
        stdin: Any = sys.stdin.buffer
        return "standard input", stdin.raw, None
    path = place_of(path)
    if isinstance(path, Address):
        return str(path), *open_stored(path, ordered=ordered)
    if path.is_dir():
        raise InputError(f"{path} is a folder; name the files in it")
    try:
        file = path.open("rb", buffering=0)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; check the name ('-' is standard input)") from None
    except OSError as error:
        raise InputError(f"{path} cannot be opened: {error.strerror}; check its owner") from error
    found = os.fstat(file.fileno())
    if stat.S_ISCHR(found.st_mode) and not file.isatty() and found.st_rdev != os.stat(os.devnull).st_rdev:
        file.close()
        raise InputError(f"{path} is a device; name a file or a pipe")
    return str(path), file, found.st_size if stat.S_ISREG(found.st_mode) else None
