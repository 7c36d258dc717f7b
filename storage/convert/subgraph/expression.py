"""The language of `--where`: comparisons of columns with values, `in`, `is null`, joined by `and`, `or` and `not`.

As in SQL: strings have single quotes, names may have double ones, words are of any case, and a comparison with null is
neither true nor false. Nothing else can be written: no call, no arithmetic. A parsed condition is a tree of `Test`s; an
error says line and column. Which columns there are, and of which types, is asked later (edge_filter.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import isfinite
from typing import NoReturn

from penstock.storage.base.errors import InputError, brief

Value = bool | int | float | str | date | datetime
OPERATORS = {"==": "=", "<>": "!="} | {sign: sign for sign in ("=", "!=", "<", "<=", ">", ">=")}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_WORDS = frozenset({"and", "or", "not", "in", "is", "null", "true", "false"})
MOST_LETTERS = 1 << 16
MOST_DEPTH = 100
_TOKEN = re.compile(
    r"""(?P<blank>\s+)
    |(?P<moment>\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)?(?![\w.]))
    |(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    |(?P<name>[^\W\d]\w*)
    |(?P<quoted>"(?:[^"]|"")+")
    |(?P<string>'(?:[^']|'')*')
    |(?P<sign>==|!=|<>|<=|>=|[=<>(),])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison of a column: ``operator`` is one of `OPERATORS`, "in" (with several values), "null" or "true"."""

    name: str
    operator: str
    values: tuple[Value, ...]
    place: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Not:
    """True where the other is false."""

    of: Condition


@dataclass(frozen=True, slots=True)
class Several:
    """Conditions of which all ("and") or one ("or") is to hold."""

    word: str
    of: tuple[Condition, ...]


Condition = Test | Not | Several


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """A keyword or a sign; empty for others."""
        word = self.text.lower()
        return word if self.kind in ("sign", "end") or (self.kind == "name" and word in _WORDS) else ""


def refusal(place: tuple[int, int], what: str) -> InputError:
    """The error at a place of a condition, which is its line and column, both from 1."""
    return InputError(f"--where, line {place[0]}, column {place[1]}: {what}")


def parse(text: str) -> Condition:
    """Read a condition. Raises InputError with line and column for what is none."""
    return _Parser(text).whole()


class _Parser:
    """Recursive descent over the tokens of one condition."""

    def __init__(self, text: str) -> None:
        self._text = text
        if len(text) > MOST_LETTERS:
            raise InputError(f"--where has {len(text):,} characters, and at most {MOST_LETTERS:,} are read")
        self._tokens = list(self._scan())
        self._next = self._depth = 0

    def whole(self) -> Condition:
        found = self._either()
        if self._seen.word != "end":
            self._expect("and, or, or the end")
        return found

    def _scan(self) -> Iterator[_Token]:
        at = 0
        while at < len(self._text):
            found = _TOKEN.match(self._text, at)
            if found is None:
                rest = self._text[at:]
                if rest[0] in "'\"":
                    raise refusal(self._place(at), f"a quote {rest[0]} is opened and not closed")
                raise refusal(
                    self._place(at), f"{brief(rest.split(maxsplit=1)[0])!r} is no name, number, date or 'string'"
                )
            assert found.lastgroup is not None
            if found.lastgroup != "blank":
                yield _Token(found.lastgroup, found[0], at)
            at = found.end()
        yield _Token("end", "end", at)

    def _place(self, at: int) -> tuple[int, int]:
        before = self._text[:at]
        return before.count("\n") + 1, at - before.rfind("\n")

    @property
    def _seen(self) -> _Token:
        return self._tokens[self._next]

    def _expect(self, what: str) -> NoReturn:
        token = self._seen
        shown = "the end" if token.kind == "end" else brief(token.text)
        raise refusal(self._place(token.at), f"{shown} stands where {what} is expected")

    def _taken(self, *words: str) -> str:
        """The next keyword or sign, if it is one of these; empty for others."""
        word = self._seen.word
        if word in words:
            self._next += 1
            return word
        return ""

    def _either(self) -> Condition:
        found = [self._all()]
        while self._taken("or"):
            found.append(self._all())
        return found[0] if len(found) == 1 else Several("or", tuple(found))

    def _all(self) -> Condition:
        found = [self._one()]
        while self._taken("and"):
            found.append(self._one())
        return found[0] if len(found) == 1 else Several("and", tuple(found))

    def _one(self) -> Condition:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise refusal(self._place(self._seen.at), f"more than {MOST_DEPTH} conditions are inside of each other")
        try:
            if self._taken("not"):
                return Not(self._one())
            if self._taken("("):
                found = self._either()
                if not self._taken(")"):
                    self._expect("and, or, or )")
                return found
            return self._test()
        finally:
            self._depth -= 1

    def _test(self) -> Condition:
        place = self._place(self._seen.at)
        if self._seen.kind in ("name", "quoted") and not self._seen.word:
            return self._of_column(self._name(), place)
        value = self._value("a column or a value")
        operator = self._operator()
        if not operator:
            self._expect("a comparison")
        if self._seen.kind not in ("name", "quoted") or self._seen.word:
            self._expect("the name of a column")
        place = self._place(self._seen.at)
        return Test(self._name(), _MIRRORED[operator], (value,), place)

    def _of_column(self, name: str, place: tuple[int, int]) -> Condition:
        if operator := self._operator():
            if self._seen.kind in ("name", "quoted") and not self._seen.word:
                self._expect("a value (strings have single quotes; columns are compared with values only)")
            return Test(name, operator, (self._value("a value"),), place)
        if self._taken("is"):
            negated = self._taken("not")
            if not self._taken("null"):
                self._expect("null")
            return Not(Test(name, "null", (), place)) if negated else Test(name, "null", (), place)
        negated = self._taken("not")
        if self._taken("in"):
            found = Test(name, "in", self._list(), place)
            return Not(found) if negated else found
        if negated:
            self._expect("in")
        return Test(name, "true", (), place)

    def _list(self) -> tuple[Value, ...]:
        if not self._taken("("):
            self._expect("(")
        values = [self._value("a value")]
        while self._taken(","):
            values.append(self._value("a value"))
        if not self._taken(")"):
            self._expect(", or )")
        return tuple(values)

    def _operator(self) -> str:
        return OPERATORS.get(self._taken(*OPERATORS), "")

    def _name(self) -> str:
        token = self._seen
        self._next += 1
        return token.text[1:-1].replace('""', '"') if token.kind == "quoted" else token.text

    def _value(self, expected: str) -> Value:
        token = self._seen
        if token.word == "null":
            raise refusal(
                self._place(token.at), "a comparison with null holds of no edge; write is null, or is not null"
            )
        if word := self._taken("true", "false"):
            return word == "true"
        if token.kind not in ("number", "string", "moment"):
            self._expect(expected)
        self._next += 1
        if token.kind == "string":
            return token.text[1:-1].replace("''", "'")
        try:
            return moment_of(token.text) if token.kind == "moment" else _number(token.text)
        except ValueError as error:
            raise refusal(self._place(token.at), f"{brief(token.text)}: {error}") from None


def _number(text: str) -> int | float:
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    found = float(text)
    if not isfinite(found):
        raise ValueError("a number must be finite")
    return found


def moment_of(text: str) -> date | datetime:
    """Return the date or the time (in UTC, without a zone) that ISO text is. Raises ValueError."""
    if "T" not in text and " " not in text:
        return date.fromisoformat(text)
    found = datetime.fromisoformat(text)
    try:
        return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise ValueError("in UTC its year is not one of 1 to 9999") from None
