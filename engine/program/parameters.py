"""The values that a program's parameters may have: declared by annotations, checked wherever a program is made.

A parameter that is annotated as a number (`int`, `float`, `bool`, one of these or None) takes such numbers only; one
annotated with a `Range`, as those named here are, takes the numbers of the range. What is annotated otherwise
(vertices, mappings) is checked where it is looked up in a graph.
"""

from __future__ import annotations

import functools
import inspect
import math
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np
from penstock.storage.base.errors import InputError

LARGEST_WHOLE = 2**63 - 1
"""Whole numbers reach kernels as int64."""
NUMBERS = (int, float, bool)


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`, NaN never being one. above, below: without `low`, without `high` itself.

    infinite: whether infinity is a value.
    """

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False
    infinite: bool = False

    def holds(self, value: float) -> bool:
        """Whether a number is in the range."""
        if not (math.isfinite(value) or (self.infinite and not math.isnan(value))):
            return False
        return (value > self.low if self.above else value >= self.low) and (
            value < self.high if self.below else value <= self.high
        )

    @property
    def words(self) -> str:
        """What follows "a number" in a message."""
        if math.isfinite(self.high) and math.isfinite(self.low) and self.high < LARGEST_WHOLE:
            return f" in {'(' if self.above else '['}{self.low:g}, {self.high:g}{')' if self.below else ']'}"
        if math.isfinite(self.low):
            return f" above {self.low:g}" if self.above else f" of at least {self.low:g}"
        return ""


Finite = Annotated[float, Range()]
NonNegative = Annotated[float, Range(low=0)]
Positive = Annotated[float, Range(low=0, above=True)]
Share = Annotated[float, Range(low=0, high=1, below=True)]
"""A part of a whole, but not all of it: damping."""
Width = Annotated[float, Range(low=0, above=True, infinite=True)]
"""Of a bucket of priorities; an infinite one holds them all."""
Count = Annotated[int, Range(low=0, high=LARGEST_WHOLE)]
PositiveCount = Annotated[int, Range(low=1, high=LARGEST_WHOLE)]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a parameter takes: which kinds of numbers, whether None, and in which range (None: any).

    texts_only: nothing but a text is refused; the author declared no kind, and the default is a number.
    """

    kinds: frozenset[type]
    optional: bool
    range: Range | None
    texts_only: bool = False

    @classmethod
    def of(cls, annotation: Any) -> Kind | None:
        """The rule of an annotation; None where it is not of numbers alone."""
        kinds: set[type] = set()
        optional, limits = False, None
        members = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
        for member in members:
            if get_origin(member) is Annotated:
                member, *extra = get_args(member)
                limits = next((item for item in extra if isinstance(item, Range)), limits)
            if member is None or member is type(None):
                optional = True
            elif member in NUMBERS:
                kinds.add(member)
            else:
                return None
        return cls(frozenset(kinds), optional, limits) if kinds else None

    def takes(self, value: Any) -> bool:
        """Whether a value is one of these numbers."""
        if self.texts_only:
            return not isinstance(value, str)
        if value is None:
            return self.optional
        if isinstance(value, bool | np.bool_):
            return bool in self.kinds
        if isinstance(value, int | np.integer):
            return bool(self.kinds & {int, float}) and self._in_range(value)
        return isinstance(value, float | np.floating) and float in self.kinds and self._in_range(value)

    def check(self, name: str, value: Any) -> None:
        """Refuse a value that is none of these numbers; `name` is for the message. Raises InputError."""
        if not self.takes(value):
            raise InputError(f"{name} is {value!r}; it must be {self.words}")

    def _in_range(self, value: Any) -> bool:
        try:
            return self.range is None or self.range.holds(value)
        except OverflowError:  # a whole number beyond all floats
            return False

    @property
    def words(self) -> str:
        """What a value must be, for messages."""
        if self.kinds == {bool}:
            text = "True or False"
        else:
            text = f"a {'' if float in self.kinds else 'whole '}number{self.range.words if self.range else ''}"
        return f"{text}, or None" if self.optional else text


def check_value(name: str, value: Any, annotation: Any) -> None:
    """Refuse a value that does not match the annotation; `name` is for the message. Raises InputError."""
    kind = Kind.of(annotation)
    if kind is not None:
        kind.check(name, value)


@functools.cache
def kinds_of(init: Callable[..., Any]) -> dict[str, Kind]:
    """What a constructor's parameters take, of those that are annotated as numbers.

    One without an annotation whose default is a number takes anything but a text. A source may be a text whatever its
    annotation says: vertices have names where a graph has names (`vertex_ids.py`).
    """
    init = inspect.unwrap(init)
    found = {}
    for name, annotation in inspect.get_annotations(init).items():
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, getattr(init, "__globals__", {}))
            except Exception:  # known to type checkers only: not one of ours, and not a number
                continue
        kind = Kind.of(annotation)
        if kind is not None and name not in ("source", "return"):
            found[name] = kind
    for name, parameter in inspect.signature(init).parameters.items():
        if parameter.annotation is parameter.empty and isinstance(parameter.default, int | float):
            found.setdefault(name, Kind(frozenset(NUMBERS), optional=False, range=None, texts_only=True))
    return found


def checking(init: Callable[..., None]) -> Callable[..., None]:
    """The constructor, which refuses bad values before it runs."""
    parameters = [*inspect.signature(init).parameters.values()][1:]
    names = [one.name for one in parameters if one.kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        given = {**dict(zip(names, args, strict=False)), **kwargs}  # what does not fit the constructor refuses itself
        for name, kind in kinds_of(init).items():
            if name in given:
                kind.check(f"{type(self).__name__}: {name}", given[name])
        init(self, *args, **kwargs)

    return checked
