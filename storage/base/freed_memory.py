"""Gives memory back to the system: what was freed among blocks that are still in use, and pages of libraries' files.

The C library keeps what was freed. Linking a cached kernel reads a seventh of LLVM's library, 20 to 40 MiB, of which a
running kernel uses nothing; opening a graph reads HDF5's. What a process has mapped counts as its memory until the
system runs short of some. Pages of libraries stay in the system's page cache, and are mapped again when they are used.
Only what was never written is given back: code and constants as they are in the file, on Linux alone.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import sys
import threading
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
"""Parameters of glibc's mallopt; once they are set, they stay as they are."""
LARGE_BYTES = 1 << 20


def keep_no_large_blocks() -> None:
    """Give blocks of a MiB and more back once they are freed, where the C library can (glibc), until the process ends.

    It otherwise takes blocks up to the size of the largest that was freed (32 MiB at most) from memory that it keeps.
    Each block then costs its page faults: convert would take 18 % more CPU, walks take 12 % less.
    """
    choose = getattr(ctypes.CDLL(None), "mallopt", None)
    if choose is not None:
        choose(MMAP_THRESHOLD, LARGE_BYTES)
        choose(TRIM_THRESHOLD, LARGE_BYTES)


def give_back_freed_memory() -> None:
    """Give freed memory back, where the C library can (glibc, `malloc_trim`); any thread may call it.

    It otherwise keeps what was freed, and the next stage's memory comes on top of it.
    """
    release = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if release is not None:
        release(0)


LEAST_BYTES = 64 << 10
"""Of a part of a library: smaller ones are not worth a call."""
_MAPPED = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ \S+ +/.*\.so[.0-9]*")
_IN_MEMORY, _OF_FILE = np.uint64(3 << 62), np.uint64(1 << 61)
"""Bits of an entry of /proc/self/pagemap: the page is in memory or swapped out; it is a file's, unchanged."""


_looking = threading.Lock()


def give_back_library_pages() -> None:
    """Forget the pages of all libraries until they are used again; any thread may call it."""
    if sys.platform != "linux":
        return
    with _looking:
        for first, size in _unwritten_parts(len(sys.modules)):
            _madvise()(first, size, mmap.MADV_DONTNEED)  # a refusal leaves the pages where they are


@lru_cache(maxsize=1)
def _unwritten_parts(modules: int) -> list[tuple[int, int]]:
    """First byte and length of each part that nobody has written, looked for when more modules are imported."""
    with suppress(OSError):  # a system that hides /proc
        parts = library_parts(Path("/proc/self/maps").read_text(errors="replace"))
        return [part for part in parts if not _written(*part)]
    return []


def library_parts(maps: str) -> list[tuple[int, int]]:
    """First byte and length of each part of a library's file, as /proc/self/maps has them, that nobody can write.

    Python unloads no library: what is found stays.
    """
    found = (one for one in map(_MAPPED.fullmatch, maps.splitlines()) if one is not None)
    parts = ((int(one[1], 16), int(one[2], 16)) for one in found)
    return [(first, last - first) for first, last in parts if last - first >= LEAST_BYTES]


@cache
def _written(first: int, size: int) -> bool:
    """Whether a page of these was written, by the linker that adapts addresses, or a debugger. Raises OSError."""
    with Path("/proc/self/pagemap").open("rb", buffering=0) as pages:
        pages.seek(first // mmap.PAGESIZE * 8)
        entries = np.frombuffer(pages.read(size // mmap.PAGESIZE * 8), np.uint64)
    return bool(np.any((entries & _IN_MEMORY != 0) & (entries & _OF_FILE == 0)))


@cache
def _madvise() -> Any:
    function = ctypes.CDLL(None).madvise
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function
