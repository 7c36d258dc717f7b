"""A condition on edges, asked of chunks: which of their edges it holds for, and which chunks it can hold in.

A test is true, false, or neither where a value is null (Kleene's logic, as in SQL); edges stay for which the whole is
true. The same tree is asked of the least and greatest values of all chunks at once, where "true" means that it may be
true of an edge: chunks of which that is not so are not read. A value that a column cannot hold (2.5 among whole
numbers, a string that does not occur) is replaced by the greatest one below it, which the comparisons are made to fit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property, reduce
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import brief
from penstock.storage.convert.subgraph.expression import Condition, Not, Several, Test, Value, moment_of, parse, refusal
from penstock.storage.format.edge_properties import NUMBERS, EdgeProperty
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.ingest.core.edge_columns import WEIGHT

Mask = NDArray[np.bool_]
Numbers = tuple[NDArray[Any], Mask | None]
"""Values of a column as numbers, and which are null (None: none)."""
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
FEW = 16
"""Values of `in` that are compared one by one, which takes less time than to sort."""
_DAY = 86_400_000_000
_BELOW = {"<": "<=", "<=": "<=", ">": ">", ">=": ">"}
"""What a comparison with a value becomes, where a column has none such, with the greatest below it."""
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class _Bound:
    """A test with its column: the comparison is with ``values``, numbers as the column's, each exact or just below."""

    column: EdgeProperty
    number: int
    test: Test
    values: tuple[tuple[Any, bool], ...]

    def truth(self, numbers: Numbers) -> tuple[Mask, Mask]:
        """Where it is true, and where it is false."""
        found, null = numbers
        if self.test.operator == "null":
            none = np.zeros(len(found), np.bool_) if null is None else null
            return none, ~none
        held = self._holds(found)
        return (held, ~held) if null is None else (held & ~null, ~held & ~null)

    def _holds(self, found: NDArray[Any]) -> Mask:
        if self.test.operator == "in":
            floats, values = found.dtype.kind == "f", [value for value, exact in self.values if exact]
            held = values if floats else [value for value in values if -(1 << 63) <= value < 1 << 63]
            if len(held) <= FEW:
                return reduce(np.logical_or, (found == value for value in held), np.zeros(len(found), np.bool_))
            return np.isin(found, np.array(held, np.float64 if floats else np.int64))
        ((value, exact),) = self.values
        if exact:
            return np.asarray(_COMPARE[self.test.operator](found, value))
        if self.test.operator in ("=", "!="):
            return np.full(len(found), self.test.operator == "!=")
        return np.asarray(_COMPARE[_BELOW[self.test.operator]](found, value))

    def possible(self, low: NDArray[Any], high: NDArray[Any]) -> tuple[Mask, Mask]:
        """Of which chunks it may be true, and of which false, by the least and greatest values of each."""
        both = np.ones(len(low), np.bool_)
        operator = self.test.operator
        if operator == "null":
            return both & bool(self.column.nulls), both
        if operator == "in":
            inside = ((low <= value) & (value <= high) for value, exact in self.values if exact)
            return reduce(np.logical_or, inside, ~both), both
        ((value, exact),) = self.values
        if operator in ("=", "!="):
            inside = (low <= value) & (value <= high) & exact
            other = ~(inside & (low == high))
            return (inside, other) if operator == "=" else (other, inside)
        ends = (low, high) if operator[0] == "<" else (high, low)
        return self._holds(ends[0]), ~self._holds(ends[1])


@dataclass(frozen=True)
class EdgeFilter:
    """A condition on the edges of one graph. Raises InputError for columns that it does not have, or of other types."""

    text: str
    condition: Condition
    graph: Graph

    @classmethod
    def of(cls, text: str, graph: Graph) -> EdgeFilter:
        """Read a condition on a graph's edges. Raises InputError with line and column."""
        found = cls(text, parse(text), graph)
        _ = found._bound  # checks every test
        return found

    @classmethod
    def between(cls, name: str, low: float, high: float, graph: Graph) -> EdgeFilter:
        """The condition that a column is in a range, both bounds included, as weights have them; infinite: none."""
        if graph.weight_dtype == np.float32:
            low, high = float(np.float32(low)), float(np.float32(high))
        ends = [Test(name, sign, (end,), (1, 1)) for sign, end in ((">=", low), ("<=", high)) if np.isfinite(end)]
        return cls(f"{name} {low:g}..{high:g}", Several("and", (Not(Test(name, "null", (), (1, 1))), *ends)), graph)

    def joined(self, other: EdgeFilter) -> EdgeFilter:
        """The condition that both hold."""
        both = Several("and", (self.condition, other.condition))
        return EdgeFilter(f"({self.text}) and ({other.text})", both, self.graph)

    def possible_chunks(self, adjacency: Adjacency) -> Mask:
        """The chunks in which it may hold of an edge."""
        none = np.ones(adjacency.chunks, np.bool_)
        held: dict[int, NDArray[Any]] = {}

        def ask(test: _Bound) -> tuple[Mask, Mask]:
            if test.number < 0:
                return none, none
            if test.number not in held:
                bounds = adjacency.columns[test.number].bounds.whole()
                held[test.number] = test.column.numbers(bounds)[0].reshape(-1, 2).T
            return test.possible(*held[test.number])

        return self._truth(self.condition, ask)[0]

    def holds(self, adjacency: Adjacency, first: int, last: int) -> Mask:
        """Of which of the edges first..last-1 it holds. Raises RunError where they cannot be read."""
        return self._asked(
            lambda number: (
                _weights(adjacency, first, last) if number < 0 else adjacency.columns[number].frames.part(first, last)
            )
        )

    def holds_of_weights(self, weights: NDArray[Any]) -> Mask:
        """The same of edges that have nothing but weights."""
        return self._asked(lambda number: weights)

    def _asked(self, stored: Callable[[int], NDArray[Any]]) -> Mask:
        held: dict[int, Numbers] = {}

        def ask(test: _Bound) -> tuple[Mask, Mask]:
            if test.number not in held:
                held[test.number] = test.column.numbers(stored(test.number))
            return test.truth(held[test.number])

        return self._truth(self.condition, ask)[0]

    def _truth(self, condition: Condition, ask: Callable[[_Bound], tuple[Mask, Mask]]) -> tuple[Mask, Mask]:
        if isinstance(condition, Not):
            true, false = self._truth(condition.of, ask)
            return false, true
        if isinstance(condition, Several):
            joins = (np.logical_and, np.logical_or) if condition.word == "and" else (np.logical_or, np.logical_and)
            true, false = self._truth(condition.of[0], ask)
            for one in condition.of[1:]:  # one by one: there may be thousands, and each takes 2 bytes of every edge
                more = self._truth(one, ask)
                true, false = joins[0](true, more[0]), joins[1](false, more[1])
            return true, false
        return ask(self._bound[id(condition)])

    @cached_property
    def _bound(self) -> dict[int, _Bound]:
        """Every test of the condition with its column, by the identity of the test."""
        return {id(test): self._with_column(test) for test in _tests(self.condition)}

    def _with_column(self, test: Test) -> _Bound:
        """A test with its column, and its values as that has them."""
        known = [column.property for column in self.graph.out.columns]
        names = [one.name for one in known]
        if test.name == WEIGHT and self.graph.weight_dtype is not None:
            floats = self.graph.weight_dtype.kind == "f"
            column, number = EdgeProperty(WEIGHT, "float" if floats else "int"), -1
        elif test.name in names:
            number = names.index(test.name)
            column = known[number]
        else:
            there = [*names, *([WEIGHT] if self.graph.weight_dtype is not None else [])]
            have = f"they have {', '.join(there)}" if there else "they have none"
            what = f"edges have no {brief(test.name)!r} ({have}; convert --edge-properties keeps columns)"
            raise refusal(test.place, what)
        if test.operator == "true":
            test = Test(test.name, "=", (True,), test.place)
        if column.type == "bool" and test.operator not in ("=", "!=", "in", "null"):
            raise refusal(test.place, f"{test.name} is true or false, which are not more or less")
        return _Bound(column, number, test, tuple(self._number(column, test, value) for value in test.values))

    def _number(self, column: EdgeProperty, test: Test, value: Value) -> tuple[Any, bool]:
        """A value as a number of a column, and whether it is exactly that; else the column has none such."""
        kind, name = column.type, test.name
        if kind in NUMBERS and isinstance(value, int | float) and not isinstance(value, bool):
            return self._in_dtype(column, value)
        if kind == "bool" and isinstance(value, bool):
            return int(value), True
        if kind == "string" and isinstance(value, str):
            at = bisect_right(column.values, value) - 1
            return at, at >= 0 and column.values[at] == value
        if kind in ("date", "timestamp") and isinstance(value, str | date):
            return _moment(kind, value, test)
        wanted = {"string": "a 'string'", "bool": "true or false", "date": "a date", "timestamp": "a date or time"}
        shown = f"'{value}'" if isinstance(value, str | date) else str(value).lower()
        raise refusal(test.place, f"{name} is {wanted.get(kind, 'a number')}, and is compared with {brief(shown)}")

    def _in_dtype(self, column: EdgeProperty, value: float) -> tuple[Any, bool]:
        """A number among those that a column may have: whole numbers, or doubles."""
        frames = [one.frames for one in self.graph.out.columns if one.property.name == column.name]
        floats = column.type == "float" and column.name == WEIGHT
        if frames and column.name != WEIGHT:
            floats = frames[0].kind.kind == "f"
        if not floats:
            below = floor(value)
            return below, below == value
        try:
            near = float(value)
        except OverflowError:
            near = np.inf if value > 0 else -np.inf
        if near > value:
            near = float(np.nextafter(near, -np.inf))
        return np.float64(near), near == value


def _tests(condition: Condition) -> Iterator[Test]:
    """The tests of a condition, from left to right."""
    if isinstance(condition, Test):
        yield condition
        return
    for one in (condition.of,) if isinstance(condition, Not) else condition.of:
        yield from _tests(one)


def _weights(adjacency: Adjacency, first: int, last: int) -> NDArray[Any]:
    """The weights of edges first..last-1."""
    if adjacency.weights is not None:
        return adjacency.weights.part(first, last)
    found = adjacency.edges_in(first, last)[1]
    assert found is not None, "a graph without weights has no condition on them"
    return found


def _moment(kind: str, value: str | date, test: Test) -> tuple[int, bool]:
    """Days, or microseconds, since 1970, and whether the time is exactly these."""
    try:
        found = moment_of(value) if isinstance(value, str) else value
    except ValueError:
        what = f"{test.name} is a {kind}, and {brief(str(value))!r} is none: write 2026-01-31"
        raise refusal(test.place, what) from None
    whole = found if isinstance(found, datetime) else datetime(found.year, found.month, found.day)
    since = whole - _EPOCH
    if kind == "timestamp":
        return (since.days * _DAY) + since.seconds * 1_000_000 + since.microseconds, True
    return since.days, not (since.seconds or since.microseconds)
