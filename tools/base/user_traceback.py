"""An exception in a user's program becomes one message that names the function and the line."""

from types import ModuleType, TracebackType

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
