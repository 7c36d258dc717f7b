"""Gives memory that was freed back to the system: the C library keeps what lies among blocks that are still in use."""

from __future__ import annotations

import ctypes


def give_back_freed_memory() -> None:
    """Give freed memory back, where the C library can (glibc, `malloc_trim`); any thread may call it.

    It otherwise keeps what was freed, and the next stage's memory comes on top of it.
    """
    release = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if release is not None:
        release(0)
