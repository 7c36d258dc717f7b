"""Numba compilation with a disk cache that knows the author's functions.

What a kernel is closed over (the author's functions, compiled) is not seen in its source, so the key of its entry in
the user's cache is a digest of the sources of all kernels and of the program.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from penstock.storage.base.budget import check_room
from penstock.storage.base.kernel_cache import kept

COMPILER_BYTES = 64 << 20
"""What must be free before a kernel is compiled or loaded: LLVM ends the process where it is refused memory."""


@functools.cache
def _sources() -> bytes:
    """Digest of the files that the host's kernels are made of."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if not path.name.startswith(("cuda", "reference")):
            digest.update(path.read_bytes())
    return digest.digest()


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small function that only kernels call (never cached on its own)."""
    return numba.njit(error_model="numpy", nogil=True)(function)  # type: ignore[no-any-return]


class Kernel:
    """A kernel in two versions, each compiled when first called: on all threads, and on the caller's alone.

    Waking threads costs more than a small iteration's whole work, and much more on a busy machine.
    """

    def __init__(self, function: Callable[..., Any], key: str) -> None:
        self._function, self._key = function, key

    @functools.cached_property
    def parallel(self) -> Any:
        """The version for `prange` on all threads."""
        return self._compiled(parallel=True)

    @functools.cached_property
    def serial(self) -> Any:
        """The version that stays on the caller's thread."""
        return self._compiled(parallel=False)

    def _compiled(self, *, parallel: bool) -> Any:
        check_room(COMPILER_BYTES, f"compiling the kernel {self._function.__qualname__}")
        compiled = numba.njit(parallel=parallel, nogil=True, error_model="numpy")(self._function)
        function = self._function
        name = f"{self._key} {function.__module__}.{function.__qualname__}.{function.__code__.co_firstlineno}"
        return kept(compiled, lambda: hashlib.sha256(_sources() + name.encode()).hexdigest())


def kernel(key: str) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a kernel closed over compiled functions; `key` names what it is closed over."""
    return lambda function: Kernel(function, key)
