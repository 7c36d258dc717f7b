"""What the lines of `--metrics` hold, as far as `penstock report` reads them: every value is checked before it is used.

A field that is null counts as missing. Fields without a rule pass.
"""

from __future__ import annotations

import json
import math
from typing import Any

from penstock.tools.run.metrics import FORMAT

Rule = Any
"""What a value must be: a function from the name of a field and its value to the value, which raises a ValueError that
names both; a dict: an object with these fields among others, those that end in ! always; a list: an object whose values
follow one rule."""

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
    found: dict[str, Any] = _check("", facts, _KINDS[kind])
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


def _memory(name: str, value: Any) -> dict[str, Any]:
    """Readings of memory; where edges are told, so is where there is room for them."""
    found: dict[str, Any] = _check(name, value, [_count])
    room = ("edges", "edges_host", "edges_device")
    if any(key in found for key in room):
        _check(name, found, {f"{key}!": _count for key in room})
    return found


def _check(name: str, value: Any, rule: Rule) -> Any:
    """A value by its rule: what is null is left out of objects. Raises ValueError."""
    if callable(rule):
        return rule(name, value)
    if not isinstance(value, dict):
        raise ValueError(f"{name or 'it'} is {_shown(value)}; it must be an object")
    found = {key: item for key, item in value.items() if item is not None}
    rules = dict.fromkeys(found, rule[0]) if isinstance(rule, list) else rule
    for field, of in rules.items():
        key = field.removesuffix("!") if isinstance(rule, dict) else field
        inner = f"{name}.{key}" if name else key
        if key in found:
            found[key] = _check(inner, found[key], of)
        elif key != field:
            raise ValueError(f"{inner} is missing")
    return found


def _ranks(name: str, value: Any) -> list[dict[str, Any]]:
    """What each rank did."""
    if not isinstance(value, list):
        raise ValueError(f"{name} is {_shown(value)}; it must be a list")
    return [_check(f"{name}[{at}]", one, _RANK) for at, one in enumerate(value)]


_RANK: dict[str, Rule] = {
    **dict.fromkeys(("host!", "device!"), _text),
    **dict.fromkeys(("rank!", "tasks!", "bytes_disk!", "bytes_link!", "peak_memory_bytes!"), _count),
    **dict.fromkeys(("seconds!", "exchange_seconds!", "value_seconds"), _number),
    "value_bytes": _count,
}
_RATES = ("disk_bytes", "decode_bytes", "gather_bytes", "copy_bytes", "line_rate", "kernel_edges")
_ACCOUNT: dict[str, Rule] = {
    "wall_seconds": _number,
    "stages": [_number],
    "stages_beside": [_number],
    "stage_bytes": [_count],
    **dict.fromkeys(("kernels_compiled", "kernels_loaded"), _count),
}
"""Where the wall time of the job has gone so far; metrics of format 1 do not tell."""
_KINDS: dict[str, dict[str, Rule]] = {
    "job": {
        "format!": _count,
        "graph!": {"path": _text, "vertices": _count, "edges": _count, "bytes": _count},
        "device!": {"kind!": _text, "name!": _text},
        "rates": dict.fromkeys(_RATES, _rate),
        "budget": {"host": _count, "device": _count},
        "machine": {"processor": _text},
        "parameters": {},
        "options": {},
        "program": _text,
        "started": _text,
        "threads": _count,
        **_ACCOUNT,
    },
    "iteration": {
        "seconds!": _number,
        "frontier_vertices!": _count,
        "frontier_edges!": _count,
        "routes!": [[_number]],
        "busy_seconds!": [_number],
        "memory": _memory,
        **dict.fromkeys(("walk_seconds", "plan_seconds", "exchange_seconds", "value_wait_seconds"), _number),
        **dict.fromkeys(("checkpoint_seconds", "compile_seconds"), _number),
        **dict.fromkeys(("iteration", "chunks_read", "bytes_disk", "bytes_link", "bytes_unpacked"), _count),
        **dict.fromkeys(("checkpoint_bytes", "windows", "value_bytes"), _count),
        "direction": _text,
        "phase": _count,
        "phase_name": _text,
        **_ACCOUNT,
    },
    "result": {"total_seconds": _number, "ranks": _ranks, **_ACCOUNT},
    "failed": {"error!": _any, **_ACCOUNT},
    "end": {**_ACCOUNT, "wall_seconds!": _number, "stages!": [_number]},
}


def _shown(value: Any) -> str:
    """A value in a message: what it is, if it is long or has parts."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value) if not isinstance(value, int) or abs(value) < 1 << 70 else "a number of many digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
