"""PTX of kernels, kept on disk from one process to the next, so that a second run compiles nothing.

Owns the key of an entry: the kernel's bytecode, constants and closure down to the author's own functions (which is the
author's fingerprint and more), the sort that these may call, the types of its arguments, the compute capability, and
the versions of Numba, its CUDA half, Python and Penstock. Entries lie where Numba keeps what it compiles for the host:
beside the sources, or where NUMBA_CACHE_DIR or the user's cache folder says. The driver keeps the machine code that it
makes of PTX itself. Refuses nothing: without a place to keep things each process compiles for itself.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache
from penstock.engine.kernels.author import digest_of
from penstock.engine.kernels.cuda_sort import sort_in_place
from penstock.storage.shelf import Shelf

Compile = Callable[[], str]


def ptx_of(function: Callable[..., Any], types: tuple[Any, ...], capability: tuple[int, int], compile_: Compile) -> str:
    """The PTX of `function` for arguments of these numba types: as it was kept, or else by `compile_`."""
    shelf, key = place_of(function), key_of(function, types, capability)
    kept = None if shelf is None else shelf.take(key)
    return renewed(function, types, capability, compile_) if kept is None else kept.decode()


def renewed(
    function: Callable[..., Any], types: tuple[Any, ...], capability: tuple[int, int], compile_: Compile
) -> str:
    """The PTX by `compile_`, kept in place of what was kept: for what the driver did not accept."""
    text = compile_()
    shelf = place_of(function)
    if shelf is not None:
        shelf.put(key_of(function, types, capability), text.encode())
    return text


def key_of(function: Callable[..., Any], types: tuple[Any, ...], capability: tuple[int, int]) -> str:
    """What an entry's content depends on, as hexadecimal digits."""
    parts = digest_of(function), digest_of(sort_in_place), function.__qualname__, str(types), str(capability)
    return hashlib.sha256("\0".join((*parts, *_versions())).encode()).hexdigest()


def place_of(function: Callable[..., Any]) -> Shelf | None:
    """The shelf beside Numba's own entries for the file of `function`; None where Numba finds no place."""
    return _shelf(function.__code__.co_filename, function)


_shelves: dict[str, Shelf | None] = {}


def _shelf(source: str, function: Callable[..., Any]) -> Shelf | None:
    if source not in _shelves:
        try:
            _shelves[source] = Shelf(Path(FunctionCache(function).cache_path), ".ptx")
        except RuntimeError:  # Numba's word for a machine without a writable folder
            _shelves[source] = None
    return _shelves[source]


@cache
def _versions() -> tuple[str, ...]:
    found = [numba.__version__, str(sys.version_info[:2])]
    for name in ("numba-cuda", "penstock"):
        try:
            found.append(metadata.version(name))
        except metadata.PackageNotFoundError:  # Numba's own CUDA half, or a checkout that is not installed
            found.append("")
    return tuple(found)
