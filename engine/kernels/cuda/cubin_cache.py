"""Machine code of a GPU's kernels, kept on disk from one process to the next, so that a second run compiles nothing.

Owns the key of an entry: the digest of the kernel's function, down to the author's own, and of the sort that these may
call, the types of its arguments, the compute capability, and the versions of Numba, its CUDA half, Python and Penstock.
Entries are kept in the user's cache, with what is compiled for the host (`storage/base/kernel_cache.py`).
`compiler.compile_for` says what is in one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from importlib import metadata
from typing import Any

from numba.types import BaseTuple
from penstock.engine.kernels.shared_functions import sort_in_place
from penstock.storage.base.function_digest import function_digest
from penstock.storage.base.kernel_cache import KernelStore, versions
from penstock.storage.base.missing_code import tell_missing
from penstock.storage.base.stage_clock import compiling, count_loaded

Compile = Callable[[], bytes]
_STORE = KernelStore(".cubin")
AT_ONCE = "blocks_at_once"
"""What a kernel's function has as an attribute if `driver.kernel` was told so."""


def cubin_of(
    function: Callable[..., Any], types: tuple[Any, ...], capability: tuple[int, int], compile_: Compile
) -> bytes:
    """The code of `function` for arguments of these numba types: as it was kept, or else by `compile_`."""
    key = key_of(function, types, capability)
    content = _STORE.take(key)
    if content is None and tell_missing(function.__name__, key):
        content = _STORE.take(key)
    if content is None:
        return renewed(function, types, capability, compile_)
    count_loaded()
    return content


def renewed(
    function: Callable[..., Any], types: tuple[Any, ...], capability: tuple[int, int], compile_: Compile
) -> bytes:
    """The code by `compile_`, kept in place of what was kept: for what the driver did not accept."""
    with compiling(function.__name__):
        content = compile_()
    _STORE.keep(key_of(function, types, capability), content)
    return content


def key_of(function: Callable[..., Any], types: tuple[Any, ...], capability: tuple[int, int]) -> str:
    """What an entry's content depends on, as hexadecimal digits."""
    digests = function_digest(function), function_digest(sort_in_place)
    parts = *digests, function.__qualname__, _described(types), str(capability)
    told = [str(function.__dict__[AT_ONCE])] if AT_ONCE in function.__dict__ else []
    return hashlib.sha256("\0".join((*parts, *told, *_versions())).encode()).hexdigest()


def _described(types: tuple[Any, ...]) -> str:
    """The types, and the names of the parts of named tuples, which Numba's names of types leave out."""
    names = [f"{kind} {getattr(kind, 'fields', '')}" for kind in types]
    return str([*names, *(_described(tuple(kind)) for kind in types if isinstance(kind, BaseTuple))])


@cache
def _versions() -> tuple[str, ...]:
    found = [*versions()]
    for name in ("numba-cuda", "penstock"):
        try:
            found.append(metadata.version(name))
        except metadata.PackageNotFoundError:  # Numba's own CUDA half, or a checkout that is not installed
            found.append("")
    return tuple(found)
