"""One message of an exception that is no error of ours: something was refused, does not fit, or a program failed.

Python and its libraries report a refusal in several ways, of which not all are a MemoryError.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from importlib.metadata import version
from traceback import walk_tb
from types import ModuleType

from penstock.storage.base.budget import address_bytes, address_limit, format_bytes
from penstock.storage.base.threads import WAY_OUT, refused


def explain(error: BaseException) -> str | None:
    """A message about memory or a thread that was refused, or a NumPy that Numba does not fit; None of other errors."""
    for each in _causes(error):
        if isinstance(each, MemoryError):
            return _memory(error, str(each))
        if isinstance(each, OSError) and each.errno == errno.ENOMEM:
            return _memory(error, each.strerror or "")
        if isinstance(each, ImportError) and "failed to map segment" in str(each):
            return _memory(error, str(each))
        if isinstance(each, SystemError) and address_limit() is not None:
            return _memory(error, str(each))  # of a library's C code that was refused memory and did not say so
        modules = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(each.__traceback__))
        named = isinstance(each, AttributeError | ImportError) and "numpy" in str(each)
        if named and any(module.startswith("numba") for module in modules):
            return (
                f"Numba {version('numba')} and NumPy {version('numpy')} do not fit ({each}): "
                "pip install --upgrade numba, or pip install 'numpy<2.5'"
            )
        if refused(each):
            return f"a thread cannot be started; {WAY_OUT}"
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and what led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _memory(error: BaseException, said: str) -> str:
    first = said.partition("\n")[0].rstrip(".")
    named = [(frame.f_globals.get("__name__", ""), frame.f_code) for frame, _ in walk_tb(error.__traceback__)]
    ours = [f" in {module}.{code.co_qualname}" for module, code in named if module.startswith("penstock.")]
    what = f"out of memory{ours[-1] if ours else ''}" + (f": {first}" if first else "")
    limit = address_limit()
    if limit is None:
        return f"{what}; lower --host-memory or --threads, or free some memory"
    held = f"this process has {format_bytes(address_bytes())} of address space and may have {format_bytes(limit)}"
    return f"{what}; {held} (ulimit -v): raise that limit, or lower --host-memory or --threads"


_modules: set[str] = set()


def note(module: ModuleType) -> None:
    """Remember a module as the user's."""
    _modules.add(module.__name__)


def blame(error: BaseException) -> str | None:
    """A message about the innermost line of a user's program that an exception came through; None if there is none."""
    places = [(f.f_code, line) for f, line in walk_tb(error.__traceback__) if f.f_globals.get("__name__") in _modules]
    if not places:
        return None
    code, line = places[-1]
    said = str(error).partition("\n")[0]
    what = type(error).__name__ + (f": {said}" if said else "")
    return f"{code.co_filename}:{line}: {code.co_qualname}() raised {what}"
