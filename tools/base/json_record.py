"""Records that are JSON objects: a frozen dataclass declares the fields once, by which they are written and read.

When a record is read, the type of a field is its rule: `float` a number from 0 to 2^63, `int` a whole one, `Rate` a
number above 0, `str` a text, `list[X]` and `dict[str, X]` values of one rule, another record or a TypedDict an object
with these fields among others; any other type takes any value. What is null counts as missing, and a missing field is
as by default; one that may be None without a default is written as null. Fields that a record does not have pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, NewType, TypeVar, get_args, get_origin, get_type_hints, is_typeddict

Rate = NewType("Rate", float)
"""Above 0; infinite where it is not limited."""
Record = TypeVar("Record")

MOST = 1 << 63
"""Numbers above are no counts, bytes or seconds of a run; sums of such stay finite."""
_rules: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


class _Field(NamedTuple):
    """A field of a record; rule: its type without None. null: it has no default, and None is written and read."""

    name: str
    rule: Any
    is_read: bool
    required: bool
    null: bool
    nested: bool


def _declared(kind: Any) -> list[_Field]:
    found = []
    for one in fields(kind):
        rule, bare = _rules(kind)[one.name], one.default is MISSING and one.default_factory is MISSING
        null = NoneType in get_args(rule)
        inner = get_args(rule)[0] if null else rule
        nested = any(is_dataclass(part) for part in (inner, *get_args(inner)))
        found.append(_Field(one.name, inner, one.init, bare and one.init and not null, bare and null, nested))
    return found


_fields: Callable[[Any], list[_Field]] = cache(_declared)


def to_json(record: Any) -> dict[str, Any]:
    """Return the fields of a record by name; those that are None by default are left out."""
    found: dict[str, Any] = {}
    for name, _, _, _, null, nested in _fields(type(record)):
        value = getattr(record, name)
        if value is not None or null:
            found[name] = _plain(value) if nested and value is not None else value
    return found


def _plain(value: Any) -> Any:
    return [to_json(item) for item in value] if isinstance(value, list) else to_json(value)


def of_json(kind: type[Record], facts: object, name: str = "") -> Record:
    """Return the record that an object holds; name: of the object in messages. Raises ValueError naming the field."""
    given: dict[str, Any] = {}
    known, before = _object(name, facts), f"{name}." if name else ""
    for one in _fields(kind):
        value = known.get(one.name)
        if value is None:
            if one.required:
                raise ValueError(f"{before}{one.name} is missing")
            if one.is_read and one.null:
                given[one.name] = None
        elif one.is_read:
            given[one.name] = _checked(before + one.name, value, one.rule)
    return kind(**given)


def _checked(name: str, value: Any, rule: Any) -> Any:
    """Return a value by its rule, without what is null in objects. Raises ValueError naming the field and its value."""
    if rule in _SIMPLE:
        return _SIMPLE[rule](name, value)
    if isinstance(rule, UnionType):
        return _checked(name, value, get_args(rule)[0])
    if get_origin(rule) is list:
        if not isinstance(value, list):
            raise ValueError(f"{name} is {shown(value)}; it must be a list")
        return [_checked(f"{name}[{at}]", item, get_args(rule)[0]) for at, item in enumerate(value)]
    if get_origin(rule) is dict:
        return {key: _checked(f"{name}.{key}", item, get_args(rule)[1]) for key, item in _object(name, value).items()}
    if is_dataclass(rule):
        return of_json(rule, value, name)  # type: ignore[arg-type]
    if is_typeddict(rule):
        known = _object(name, value)
        for key in sorted(rule.__required_keys__ - known.keys()):
            raise ValueError(f"{name}.{key} is missing")
        rules = {key: of for key, of in _rules(rule).items() if key in known}
        return known | {key: _checked(f"{name}.{key}", known[key], of) for key, of in rules.items()}
    return value


def shown(value: object) -> str:
    """A value in a message: what it is, if it is long or has parts."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value) if not isinstance(value, int) or abs(value) < 1 << 70 else "a number of many digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _object(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name or 'it'} is {shown(value)}; it must be an object")
    return {key: item for key, item in value.items() if item is not None}


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is {shown(value)}; it must be a number")
    if not 0 <= value <= MOST:  # nan is neither
        raise ValueError(f"{name} is {shown(value)}; it must be a number from 0 to 2^63")
    return value


def _count(name: str, value: Any) -> int:
    if _number(name, value) != int(value):
        raise ValueError(f"{name} is {shown(value)}; it must be a whole number")
    return int(value)


def _rate(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{name} is {shown(value)}; it must be a number above 0")
    return max(float(value), 1e-9) if value < MOST else math.inf


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {shown(value)}; it must be a text")
    return value


_SIMPLE = {float: _number, int: _count, Rate: _rate, str: _text}
