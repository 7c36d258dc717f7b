"""The digest of a function and of all that it calls, by which its compiled code is found, of the cores and of GPUs.

Of a function of Penstock's own the whole file counts, since that says how what it calls is compiled; of an author's
function its bytecode, defaults, options of compiling, and what it takes of modules and classes, whatever became of
their files since. Functions of libraries whose versions are in the names of compiled code are not followed.
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
    found = [_plain(function)]
    numbers = {id(found[0]): 0}
    for inner in found:  # which grows
        code, ours = inner.__code__, str(inner.__module__).startswith("penstock.")
        place = f".{inner.__qualname__}.{code.co_firstlineno}" if ours else ""
        digest.update(f"{inner.__module__}{place}\0".encode())
        if ours and not code.co_filename.startswith("<"):
            digest.update(file_digest(code.co_filename))
        for part in codes(code):
            constants = tuple(one for one in part.co_consts if not isinstance(one, CodeType))
            digest.update(repr((part.co_code, constants, part.co_names, part.co_varnames)).encode())
        for name, value in _taken(inner, ours):
            plain = _plain(value)
            if not hasattr(plain, "__code__"):
                digest.update(f"{name}={_told(value, ours)}\0".encode())
            elif _package(plain.__module__) not in VERSIONED:
                number = numbers.setdefault(id(plain), len(found))
                found += [plain] if number == len(found) else []
                digest.update(f"{name}: {number} {_options(value)}\0".encode())
    return digest.hexdigest()


def _taken(function: Any, ours: bool) -> Iterator[tuple[str, Any]]:
    """What a function takes from elsewhere, by name; ours: as in `_told`."""
    code = function.__code__
    names = [name for part in codes(code) for name in part.co_names]
    cells = zip(code.co_freevars, (cell.cell_contents for cell in function.__closure__ or ()), strict=True)
    defaults = function.__defaults__ or (), *sorted((function.__kwdefaults__ or {}).items())
    waiting = [("defaults", defaults), *cells, *((name, function.__globals__.get(name)) for name in names)]
    seen = set()
    while waiting:
        name, value = waiting.pop()
        yield name, value
        if isinstance(value, tuple):
            waiting += ((f"{name}.{at}", one) for at, one in enumerate(value))
        elif isinstance(value, ModuleType | type) and not (ours or _is_told_whole(value) or id(value) in seen):
            seen.add(id(value))
            waiting += ((f"{name}.{one}", getattr(value, one)) for one in (*names, "_fields") if hasattr(value, one))


def _plain(value: Any) -> Any:
    """The Python function of a compiled one, of a ufunc of Numba's or of an intrinsic, else the value."""
    value = getattr(value, "_dispatcher", value)
    return getattr(value, "py_func", None) or getattr(value, "_defn", None) or value


def _options(value: Any) -> str:
    """How an author has a function compiled: the options, and the types where they are given."""
    value = getattr(value, "_dispatcher", value)
    options = {**getattr(value, "targetoptions", {}), **getattr(value, "locals", {})}
    told = (f"{name}={sorted(one) if isinstance(one, set) else one}" for name, one in sorted(options.items()))
    fixed = [] if getattr(value, "_can_compile", True) else [one.signature for one in value.overloads.values()]
    return f"{[*told]} {fixed}"


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def _package(module: str | None) -> str:
    return str(module).partition(".")[0]


def _module_of(value: ModuleType | type) -> str:
    return value.__module__ if isinstance(value, type) else value.__name__


def _is_told_whole(value: ModuleType | type) -> bool:
    """Whether a module or class is Penstock's, whose files count, or of a package whose version does."""
    return _package(_module_of(value)) in ("penstock", "builtins", *VERSIONED)


def _told(value: Any, ours: bool) -> str:
    """What a function takes from elsewhere; ours: where the file of what it takes it from is in the digest."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, tuple):
        return f"{type(value).__qualname__}{getattr(value, '_fields', '')} of {len(value)}"  # which are taken, too
    if isinstance(value, ModuleType | type):
        module = _module_of(value)
        if module.startswith("penstock."):
            return value.__name__ + file_digest(str(sys.modules[module].__file__)).hex()
        if isinstance(value, ModuleType) and (ours or _package(module) in VERSIONED):
            return "module"  # the file says which; some have two names
        return value.__name__ if ours else repr(value)
    if not ours or isinstance(value, int | float | str | bytes | bool | np.generic | None):
        return repr(value)
    return type(value).__qualname__  # made in the module that uses it, whose file is in the digest


@functools.cache
def file_digest(path: str) -> bytes:
    """Digest of a file, as it is when a process first asks for it."""
    return hashlib.sha256(Path(path).read_bytes()).digest()
