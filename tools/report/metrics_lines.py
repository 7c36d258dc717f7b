"""What the lines of `--metrics` hold, as far as `penstock report` reads them: every value is checked before it is used.

A field that is null is as good as missing; what must be there, and what it must be, is below. Other fields pass.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from penstock.tools.run.metrics import FORMAT

Check = Callable[[str, Any], Any]
"""From the name of a field and its value to the value, or a ValueError that names both."""

MOST = 1 << 63
"""Numbers above are no counts, bytes or seconds of a run; sums of such stay finite."""


def checked(facts: Any) -> dict[str, Any]:
    """A line's facts, checked. Raises ValueError for what no run writes."""
    if not isinstance(facts, dict):
        raise ValueError(f"it is {_shown(facts)}, not an object")
    _encodable(facts)
    kind = facts.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"kind is {_shown(kind)}, which is not known")
    newest = facts.get("format")
    if kind == "job" and isinstance(newest, int) and newest > FORMAT:  # its fields may be others
        raise ValueError(f"format {_shown(newest)} is newer than this Penstock's {FORMAT}; update it")
    found: dict[str, Any] = _fields(_KINDS[kind])("", facts)
    return found


def _encodable(facts: dict[str, Any]) -> None:
    try:
        json.dumps(facts, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a text in it is not Unicode: it holds half of a surrogate pair") from None


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is {_shown(value)}; it must be a number")
    if not 0 <= value <= MOST:  # nan is neither
        raise ValueError(f"{name} is {_shown(value)}; it must be a number from 0 to 2^63")
    return value


def _count(name: str, value: Any) -> int:
    if _number(name, value) != int(value):
        raise ValueError(f"{name} is {_shown(value)}; it must be a whole number")
    return int(value)


def _rate(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{name} is {_shown(value)}; it must be a number above 0")
    return max(float(value), 1e-9) if value < MOST else math.inf


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {_shown(value)}; it must be a text")
    return value


def _any(name: str, value: Any) -> Any:
    return value


def _object(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name or 'it'} is {_shown(value)}; it must be an object")
    return value


def _each(check: Check) -> Check:
    """An object whose values are all of one kind; those that are null are left out."""

    def every(name: str, value: Any) -> dict[str, Any]:
        found = _object(name, value).items()
        return {key: check(f"{name}.{key}", item) for key, item in found if item is not None}

    return every


def _fields(known: Mapping[str, tuple[bool, Check]]) -> Check:
    """An object with these fields among others; (whether it must be there, what it is)."""

    def whole(name: str, value: Any) -> dict[str, Any]:
        found = {key: item for key, item in _object(name, value).items() if item is not None}
        for key, (needed, check) in known.items():
            inner = f"{name}.{key}" if name else key
            if key in found:
                found[key] = check(inner, found[key])
            elif needed:
                raise ValueError(f"{inner} is missing")
        return found

    return whole


def _maybe(check: Check, *names: str) -> dict[str, tuple[bool, Check]]:
    return dict.fromkeys(names, (False, check))


def _must(check: Check, *names: str) -> dict[str, tuple[bool, Check]]:
    return dict.fromkeys(names, (True, check))


def _memory(name: str, value: Any) -> dict[str, Any]:
    """Readings of memory; where edges are told, so is where there is room for them."""
    found: dict[str, Any] = _each(_count)(name, value)
    room = ("edges", "edges_host", "edges_device")
    if any(key in found for key in room):
        for key in room:
            if key not in found:
                raise ValueError(f"{name}.{key} is missing")
    return found


_RATES = ("disk_bytes", "decode_bytes", "gather_bytes", "copy_bytes", "line_rate", "kernel_edges")
_GRAPH = _maybe(_text, "path") | _maybe(_count, "vertices", "edges", "bytes")
_KINDS: dict[str, Mapping[str, tuple[bool, Check]]] = {
    "job": {
        **_must(_count, "format"),
        **_must(_fields(_GRAPH), "graph"),
        **_must(_fields(_must(_text, "kind") | _must(_text, "name")), "device"),
        **_maybe(_fields(_maybe(_rate, *_RATES)), "rates"),
        **_maybe(_fields(_maybe(_count, "host", "device")), "budget"),
        **_maybe(_fields(_maybe(_text, "processor")), "machine"),
        **_maybe(_object, "parameters", "options"),
        **_maybe(_text, "program", "started"),
        **_maybe(_count, "threads"),
    },
    "iteration": {
        **_must(_number, "seconds"),
        **_must(_count, "frontier_vertices", "frontier_edges"),
        **_must(_each(_each(_number)), "routes"),
        **_must(_each(_number), "busy_seconds"),
        **_maybe(_memory, "memory"),
        **_maybe(_number, "walk_seconds", "plan_seconds", "checkpoint_seconds"),
        **_maybe(_count, "iteration", "chunks_read", "bytes_disk", "bytes_link"),
        **_maybe(_count, "checkpoint_bytes"),
        **_maybe(_text, "direction"),
    },
    "result": _maybe(_number, "total_seconds"),
    "failed": _must(_any, "error"),
}


def _shown(value: Any) -> str:
    """A value in a message: what it is, if it is long or has parts."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value) if not isinstance(value, int) or abs(value) < 1 << 70 else "a number of many digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
