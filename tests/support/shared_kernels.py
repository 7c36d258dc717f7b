"""Kernels that one worker of a session compiles: another one that needs the same kernel waits, and loads it then.

Three workers with an empty cache compiled half as many kernels again as one. A kernel is a byte of a file that all
workers share; who compiles it has that byte locked. A lock ends with its process, and is waited for half a minute only,
since a kernel that cannot be compiled is not kept.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from penstock.storage.base.kernel_cache import _KernelCache

PATIENCE_SECONDS = 30


def compile_here(patch: pytest.MonkeyPatch) -> None:
    """Let this process compile kernels, which a companion takes longer to begin, and do nothing without them."""
    from penstock.storage.base import missing_code
    from penstock.storage.base.compiler import look_up_once
    from penstock.storage.companion import process

    look_up_once()
    patch.setattr(missing_code, "FEW", 0)
    patch.setattr(process, "is_possible", wraps(process.is_possible)(lambda processes: False))


@contextmanager
def compiled_once(path: Path) -> Iterator[None]:
    """Let this process compile no kernel that another one compiles, as long as both are within this, for one `path`."""
    load, save = _KernelCache.load_overload, _KernelCache.save_overload

    def load_overload(cache: Any, sig: Any, target_context: Any) -> Any:
        loaded = load(cache, sig, target_context)
        if loaded is None:
            entries = cache._entries(sig, target_context.codegen())
            byte = _byte(entries)
            _lock(file, byte)
            loaded = cache._load(entries, sig, target_context)
            if loaded is not None:
                fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)
        return loaded

    def save_overload(cache: Any, sig: Any, data: Any) -> None:
        save(cache, sig, data)
        fcntl.lockf(file, fcntl.LOCK_UN, 1, _byte(cache._entries(sig, data.codegen)))

    with path.open("ab") as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(_KernelCache, "load_overload", load_overload)
        patch.setattr(_KernelCache, "save_overload", save_overload)
        yield


def _byte(entries: list[str]) -> int:
    """Where the lock of a kernel is."""
    return int(entries[0][:12], 16)


def _lock(file: BinaryIO, byte: int) -> None:
    """Lock a byte, or go on without the lock after some time."""
    limit = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < limit:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except OSError:  # another process has it
            time.sleep(0.02)
        else:
            return
