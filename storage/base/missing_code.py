"""What is done about compiled code that was asked for: where it is not kept, another process may compile it."""

import sys
from collections.abc import Callable
from typing import Any

Origin = Callable[[], dict[str, Any]]
"""Describes in JSON how another process finds a function; raises TypeError where none can."""


Asked = Callable[[str, Origin | None, Any], None]
"""Is given the name of an entry, its origin, None where no other process finds it, and its arguments."""
Missing = Callable[[str, str, Origin | None, Any], bool]
"""Is given what people call a piece of code that is not kept, and the same; returns whether it is kept now."""


FEW = 1 << 18
"""Items, or vertices and edges: so few are done without compiled code sooner than it is made."""
FEW_BESIDE = 1 << 14
"""The same where the compiler is imported: its code may be kept, and is then a hundred times as fast."""


_asked: Asked | None = None
_missing: Missing | None = None
"""What is called for code that is asked for, kept or not, and for what is missing."""


def when_asked(call: Asked | None) -> None:
    """Let `call` be given all code that is asked for from now on, before it is looked for; None: nothing."""
    global _asked
    _asked = call


def are_few(items: int, *, beside: bool = False) -> bool:
    """Whether so many are done without compiled code; none are where something is told what code is asked for.

    beside: whether there is a compiler all the same.
    """
    return items <= (min(FEW, FEW_BESIDE) if beside else FEW) and _asked is None


def are_left(items: int) -> bool:
    """The same of one loop over items, now."""
    return are_few(items, beside="numba" in sys.modules)


def tell_asked(entry: str, origin: Origin | None, signature: Any) -> None:
    """Say that code is asked for."""
    if _asked is not None:
        _asked(entry, origin, signature)


def when_missing(call: Missing | None) -> Missing | None:
    """Let `call` be given all code that is missing from now on, None: nothing; return what was called before."""
    global _missing
    before, _missing = _missing, call
    return before


def tell_missing(name: str, entry: str, origin: Origin | None = None, signature: Any = None) -> bool:
    """Say that code is not kept; return whether it is kept now. This process compiles it otherwise."""
    return _missing is not None and _missing(name, entry, origin, signature)
