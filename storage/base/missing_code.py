"""What is done about compiled code that was asked for: where it is not kept, said once, or compiled elsewhere."""

from collections.abc import Callable
from typing import Any

Origin = Callable[[], dict[str, Any]]
"""Describes in JSON how another process finds a function; raises TypeError where none can."""


Asked = Callable[[str, Origin | None, Any], None]
"""Is given the name of an entry, its origin, None where no other process finds it, and its arguments."""


class _Missing:
    """What is called when code is missing; asked: whenever some is asked for, kept or not."""

    call: Callable[[], None] | None = None
    elsewhere: Callable[[Origin, Any], bool] | None = None
    asked: Asked | None = None


def tell_missing() -> None:
    """Say that code that was asked for is not kept."""
    call, _Missing.call = _Missing.call, None
    if call is not None:
        call()


def when_missing(call: Callable[[], None] | None) -> None:
    """Let `call` be called when code is next asked for that is not kept, once, before it is compiled; None: nothing."""
    _Missing.call = call


def compile_elsewhere(call: Callable[[Origin, Any], bool] | None) -> None:
    """Let `call` be given what is missing, and the types of its arguments, from now on; None: nothing.

    It returns whether the code is kept now.
    """
    _Missing.elsewhere = call


def compiled_elsewhere(origin: Origin, signature: Any) -> bool:
    """Whether another process has compiled a function for these types, and keeps it."""
    return _Missing.elsewhere is not None and _Missing.elsewhere(origin, signature)


def when_asked(call: Asked | None) -> None:
    """Let `call` be given all code that is asked for from now on, before it is looked for; None: nothing."""
    _Missing.asked = call


def tell_asked(entry: str, origin: Origin | None, signature: Any) -> None:
    """Say that code is asked for."""
    if _Missing.asked is not None:
        _Missing.asked(entry, origin, signature)
