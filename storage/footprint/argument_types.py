"""Types of a function's arguments, or of its result, in JSON, for another process that compiles or loads it."""

from typing import Any

from numba import types


def told_types(signature: Any) -> list[Any]:
    """Types of arguments as JSON has them. Raises TypeError for any that could not be told apart from another."""
    told = [_told(kind) for kind in signature]
    if signature_of(told) != tuple(signature):
        raise TypeError(f"arguments of types {signature}")
    return told


def signature_of(told: list[Any]) -> tuple[Any, ...]:
    """The types that `told_types` was given."""
    return tuple(_understood(kind) for kind in told)


def _told(kind: Any) -> Any:
    if isinstance(kind, types.Array):
        return ["array", _told(kind.dtype), kind.ndim, kind.layout, not kind.mutable, kind.aligned]
    if isinstance(kind, types.BaseTuple):
        return ["tuple", *map(_told, kind)]
    return str(kind)


def _understood(told: Any) -> Any:
    """The type that was told; None for anything else, and where its name does not say which it is."""
    match told:
        case str():
            found = getattr(types, told, None)
            return found if isinstance(found, types.Type) else None
        case ["tuple", *parts]:
            inner = [_understood(part) for part in parts]
            return None if None in inner else types.Tuple(inner)
        case ["array", name, int(ndim), "C" | "F" | "A" as layout, bool(readonly), bool(aligned)]:
            dtype = _understood(name)
            return None if dtype is None else types.Array(dtype, ndim, layout, readonly=readonly, aligned=aligned)
    return None
