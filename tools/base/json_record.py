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
from typing import Any, NewType, TypeVar, get_args, get_origin, get_type_hints, is_typeddict

Rate = NewType("Rate", float)
"""Above 0; infinite where it is not limited."""
Record = TypeVar("Record")

MOST = 1 << 63
"""Numbers above are no counts, bytes or seconds of a run; sums of such stay finite."""
_rules: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


def to_json(record: Any) -> dict[str, Any]:
    """Return the fields of a record by name; those that are None by default are left out."""
    found: dict[str, Any] = {}
    for one in fields(record):
        value = getattr(record, one.name)
        if value is None and one.default is None:
            continue
        if isinstance(value, list):
            value = [to_json(item) if is_dataclass(item) else item for item in value]
        found[one.name] = to_json(value) if is_dataclass(value) else value
    return found


def of_json(kind: type[Record], facts: object, name: str = "") -> Record:
    """Return the record that an object holds; name: of the object in messages. Raises ValueError naming the field."""
    made: Any = kind
    given: dict[str, Any] = {}
    known, rules = _object(name, facts), _rules(kind)
    for one in fields(made):
        rule, place = rules[one.name], f"{name}.{one.name}" if name else one.name
        if one.init and one.name in known:
            given[one.name] = _checked(place, known[one.name], rule)
        elif one.init and one.default is MISSING and one.default_factory is MISSING:
            if NoneType not in get_args(rule):
                raise ValueError(f"{place} is missing")
            given[one.name] = None
    return kind(**given)


def _checked(name: str, value: Any, rule: Any) -> Any:
    """Return a value by its rule, without what is null in objects. Raises ValueError naming the field and its value."""
    if isinstance(rule, UnionType):
        return _checked(name, value, get_args(rule)[0])
    if rule in _PLAIN:
        return _PLAIN[rule](name, value)
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


_PLAIN = {float: _number, int: _count, Rate: _rate, str: _text}
