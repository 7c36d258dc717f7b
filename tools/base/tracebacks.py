"""One message of an exception that is no error of ours: something was refused, does not fit, or a program failed.

Python and its libraries report a refusal in several ways, of which not all are a MemoryError.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from importlib.metadata import version
from types import ModuleType, TracebackType

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
        if isinstance(each, AttributeError | ImportError) and "numpy" in str(each) and _came_through(each, "numba"):
            return (
                f"Numba {version('numba')} and NumPy {version('numpy')} do not fit ({each}): "
                "pip install --upgrade numba, or pip install 'numpy<2.5'"
            )
        if refused(each):
            return f"a thread cannot be started; {WAY_OUT}"
    return None


def _came_through(error: BaseException, package: str) -> bool:
    """Whether an exception was raised in a package, or in one whose name begins so, or in what these called."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").partition(".")[0].startswith(package):
            return True
        trace = trace.tb_next
    return False


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and what led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _memory(error: BaseException, said: str) -> str:
    first = said.partition("\n")[0].rstrip(".")
    where = _where(error.__traceback__)
    what = ": ".join(part for part in (f"out of memory in {where}" if where else "out of memory", first) if part)
    limit = address_limit()
    if limit is None:
        return f"{what}; lower --host-memory or --threads, or free some memory"
    held = f"this process has {format_bytes(address_bytes())} of address space and may have {format_bytes(limit)}"
    return f"{what}; {held} (ulimit -v): raise that limit, or lower --host-memory or --threads"


def _where(trace: TracebackType | None) -> str | None:
    """The innermost function of ours that was at work."""
    found = None
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if module.startswith("penstock."):
            found = f"{module}.{trace.tb_frame.f_code.co_qualname}"
        trace = trace.tb_next
    return found


_modules: set[str] = set()


def note(module: ModuleType) -> None:
    """Remember a module as the user's."""
    _modules.add(module.__name__)


def blame(error: BaseException) -> str | None:
    """A message about the innermost line of a user's program that an exception came through; None if there is none."""
    found: TracebackType | None = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") in _modules:
            found = trace
        trace = trace.tb_next
    if found is None:
        return None
    code = found.tb_frame.f_code
    said = str(error).partition("\n")[0]
    what = type(error).__name__ + (f": {said}" if said else "")
    return f"{code.co_filename}:{found.tb_lineno}: {code.co_qualname}() raised {what}"
