"""The digest of a function and of all that it calls, by which its compiled code is found, of the cores and of GPUs.

Of a function of Penstock's own the whole file counts, since that says how what it calls is compiled; of an author's
function its bytecode, whatever became of its file since. Functions of libraries whose versions are in the names of
compiled code are not followed.
"""

import functools
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np

VERSIONED = "numpy", "math", "numba", "numba_cuda", "llvmlite"
"""Packages whose versions are in the names of compiled code (math: Python's), wherever they are installed."""


def function_digest(function: Any) -> str:
    """Digest of all that the code compiled of a function depends on, but for versions and types of arguments."""
    digest = hashlib.sha256()
    waiting, seen = [_plain(function)], set()
    while waiting:
        inner = waiting.pop()
        if id(inner) in seen:
            continue
        seen.add(id(inner))
        code, ours = inner.__code__, str(inner.__module__).startswith("penstock.")
        place = f".{inner.__qualname__}.{code.co_firstlineno}" if ours else ""
        digest.update(f"{inner.__module__}{place}\0".encode())
        if ours and not code.co_filename.startswith("<"):
            digest.update(_file_digest(code.co_filename))
        for part in _codes(code):
            constants = tuple(one for one in part.co_consts if not isinstance(one, CodeType))
            digest.update(repr((part.co_code, constants, part.co_names, part.co_varnames)).encode())
        cells = zip(code.co_freevars, (cell.cell_contents for cell in inner.__closure__ or ()), strict=True)
        names = (name for part in _codes(code) for name in part.co_names)
        for name, value in (*((name, inner.__globals__.get(name)) for name in names), *cells):
            if not hasattr(_plain(value), "__code__"):
                digest.update(f"{name}={_told(value, ours)}\0".encode())
            elif _package(_plain(value).__module__) not in VERSIONED:
                waiting.append(_plain(value))
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """The Python function of a compiled one or of an intrinsic, else the value."""
    return getattr(value, "py_func", None) or getattr(value, "_defn", None) or value


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _package(module: str | None) -> str:
    return str(module).partition(".")[0]


def _told(value: Any, ours: bool) -> str:
    """What a function takes from elsewhere; ours: where the file of what it takes it from is in the digest."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, ModuleType | type):
        module = value.__module__ if isinstance(value, type) else value.__name__
        if module.startswith("penstock."):
            return value.__name__ + _file_digest(str(sys.modules[module].__file__)).hex()
        if isinstance(value, ModuleType) and (ours or _package(module) in VERSIONED):
            return "module"  # the file says which; some have two names
        return value.__name__ if ours else repr(value)
    if not ours or isinstance(value, int | float | str | bytes | bool | tuple | np.generic | None):
        return repr(value)
    return type(value).__qualname__  # made in the module that uses it, whose file is in the digest


@functools.cache
def _file_digest(path: str) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest()
