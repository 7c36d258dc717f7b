"""Owns the compiled parser of text lines: bytes in, numbers out, no Python lock held.

A line holds fields divided by blanks (spaces, tabs, carriage returns) with at most one comma among
them; two commas make an empty field. Lines that are empty or begin with ``#`` or ``%`` are skipped, and so is the rest
of a line from a field on that begins so, behind those that are taken.
Refuses to explain: at the first line that is not as it should be it stops and says where that line
begins; `diagnose.what_is_wrong` then reads it again in plain Python.

Decimal numbers with few digits are exact as integer times or over a power of ten (Clinger, 1990);
the others go to the C library's strtod, so that every weight is the nearest double. A weight that is written as a whole
number is that number: one that no double holds is bad.
"""

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray
from penstock.storage.base.jit import jit, jit_inlined, jit_part
from penstock.storage.encoding.string_array import LONGEST_NAME

_strtod = types.ExternalFunction("strtod", types.float64(types.uintp, types.uintp))
_POWERS = np.array([10.0**exponent for exponent in range(23)])
_ZERO = np.uint64(48)
_NINE = np.uint64(9)
_TEN = np.uint64(10)
_LAST_TENTH = np.uint64((1 << 64) // 10)
_EXACT = np.uint64(1 << 53)

NEWLINE = 10
BAD_LINE = -1
ANY_FIELDS = (0, 1 << 62)
"""The least and the most fields of lines that may have any number of them."""


@jit_inlined
def byte_at(text: NDArray[np.uint8], at: int) -> int:
    """The byte at ``at``, which is never negative: whether it counts from the end is not asked (a fifth of parsing)."""
    return text[np.uintp(at)]  # type: ignore[no-any-return]


@jit_part
def is_blank(byte: int) -> bool:
    """Space, tab or carriage return."""
    return byte == 32 or byte == 9 or byte == 13


@jit_part
def ends_field(byte: int) -> bool:
    """Whether a field ends before this byte."""
    return byte == NEWLINE or byte == 44 or is_blank(byte)


@jit
def id_at(text: NDArray[np.uint8], first: int) -> tuple[Any, int]:
    """The vertex id at ``first`` and where it ends; BAD_LINE as its end if it is none."""
    at = first
    value = np.uint64(0)
    digit = np.uint64(byte_at(text, at)) - _ZERO
    while digit <= _NINE:
        value = value * _TEN + digit
        at += 1
        digit = np.uint64(byte_at(text, at)) - _ZERO
    if at == first or not ends_field(byte_at(text, at)):
        return value, BAD_LINE
    return (value, at) if at - first <= 19 else _long_id(text, first, at)


@jit_part
def _long_id(text: NDArray[np.uint8], first: int, last: int) -> tuple[Any, int]:
    """As `id_at`, for 20 digits or more, which may not fit 64 bits."""
    value = np.uint64(0)
    for i in range(first, last):
        digit = np.uint64(text[i]) - _ZERO
        if value > _LAST_TENTH or (value == _LAST_TENTH and digit > np.uint64(5)):
            return value, BAD_LINE
        value = value * _TEN + digit
    return value, last


@jit_part
def skip_line(text: NDArray[np.uint8], at: int) -> int:
    """Where the next line begins."""
    while byte_at(text, at) != NEWLINE:
        at += 1
    return at + 1


@jit_inlined
def skip_field(text: NDArray[np.uint8], at: int) -> int:
    """Where the field at ``at`` ends."""
    while True:
        while byte_at(text, at) > 44:
            at += 1
        if ends_field(byte_at(text, at)):
            return at
        at += 1


@jit_part
def weight_at(text: NDArray[np.uint8], first: int) -> tuple[float, int]:
    """The decimal number at ``first`` and where it ends; BAD_LINE as its end if it is none."""
    at = first
    negative = byte_at(text, at) == 45
    if negative or byte_at(text, at) == 43:
        at += 1
    mantissa = np.uint64(0)
    significant = 0
    exponent = 0
    digits = 0
    point = False
    while True:
        digit = np.uint64(byte_at(text, at)) - _ZERO
        if digit <= _NINE:
            digits += 1
            if significant > 0 or digit > np.uint64(0):
                significant += 1
            if significant <= 19:
                mantissa = mantissa * _TEN + digit
                if point:
                    exponent -= 1
        elif byte_at(text, at) == 46 and not point:
            point = True
        else:
            break
        at += 1
    if digits == 0:
        return 0.0, BAD_LINE
    whole = not point
    if byte_at(text, at) | 32 == 101:
        whole = False
        at += 1
        minus = byte_at(text, at) == 45
        if minus or byte_at(text, at) == 43:
            at += 1
        power = 0
        start = at
        while np.uint64(byte_at(text, at)) - _ZERO <= _NINE:
            if power < 100000:
                power = power * 10 + int(byte_at(text, at)) - 48
            at += 1
        if at == start:
            return 0.0, BAD_LINE
        exponent += -power if minus else power
    if not ends_field(byte_at(text, at)):
        return 0.0, BAD_LINE
    if significant <= 19 and mantissa <= _EXACT and -22 <= exponent <= 22:
        value = float(mantissa)
        value = value / _POWERS[-exponent] if exponent < 0 else value * _POWERS[exponent]
        return -value if negative else value, at
    if whole and (significant > 19 or np.uint64(float(mantissa)) != mantissa):
        return 0.0, BAD_LINE
    value = _strtod(np.uintp(text.ctypes.data) + np.uintp(first), np.uintp(0))
    return value, at if np.isfinite(value) else BAD_LINE


@jit
def next_field(text: NDArray[np.uint8], at: int, column: int) -> int:
    """From the end of a field to the start of the next; BAD_LINE if the line has no other."""
    while is_blank(byte_at(text, at)):
        at += 1
    if byte_at(text, at) == 44 and column > 0:
        at += 1
        while is_blank(byte_at(text, at)):
            at += 1
    return BAD_LINE if byte_at(text, at) == NEWLINE else at


@jit_inlined
def line_end(text: NDArray[np.uint8], at: int, fields: int, wanted: tuple[int, int]) -> int:
    """Where the next line begins, from the end of a line's field number ``fields`` on; BAD_LINE if the line has fewer
    or more fields than ``wanted``. A field that begins with ``#`` or ``%`` begins a comment.
    """
    if wanted[0] == 0:
        return skip_line(text, at)
    byte = byte_at(text, at)
    while fields < wanted[0] and (byte == 44 or byte == 32 or byte == 9) and byte_at(text, at + 1) > 44:
        at = skip_field(text, at + 1)
        byte = byte_at(text, at)
        fields += 1
    if byte == 13:
        at += 1
    if byte_at(text, at) == NEWLINE and fields == wanted[0]:
        return at + 1
    return _counted_end(text, at, fields, wanted)


@jit_part
def _counted_end(text: NDArray[np.uint8], at: int, fields: int, wanted: tuple[int, int]) -> int:
    """As `line_end`, for any spelling. An empty field behind a last comma counts or does not, as is right."""
    while True:
        while is_blank(byte_at(text, at)):
            at += 1
        comma = int(byte_at(text, at) == 44)
        if comma:
            at += 1
            while is_blank(byte_at(text, at)):
                at += 1
        if byte_at(text, at) == NEWLINE or byte_at(text, at) == 35 or byte_at(text, at) == 37:
            right = fields <= wanted[1] and fields + comma >= wanted[0]
            return skip_line(text, at) if right else BAD_LINE
        fields += 1
        at = skip_field(text, at)


@jit
def parse_lines(
    text: NDArray[np.uint8],
    layout: tuple[tuple[int, int, int], tuple[int, int]],
    letters: tuple[int, int] | None,
    ends: tuple[NDArray[np.uint64], NDArray[np.uint64]] | None,
    places: NDArray[np.int32] | None,
    weights: NDArray[np.float64],
) -> tuple[int, int, int, Any]:
    """Parse whole lines of ``text`` (its last byte is a newline). Where an argument is None, no code asks for it.

    ``layout`` is the positions of source, target and weight (-1: no weight), and the least and the most fields of a
    line. ``letters``: field 0 of a line is the first letter, blanks alone are between fields, no field is behind those
    that are taken, and the second letter begins a comment. ``ends`` takes sources and targets, which are numbers;
    ``places``, int32 (m, 4), takes where they begin and how long they are, which are any fields. One of both is None.
    There must be room for an edge per four bytes of text, or per two where source and target are one column.

    Returns:
        edges found, lines passed, where the first bad line begins (-1: none), the largest id.
    """
    columns, fields = layout
    last_column = max(columns)
    at = 0
    edges = 0
    lines = 0
    largest = np.uint64(0)
    while at < len(text):
        begin = at
        while is_blank(byte_at(text, at)):
            at += 1
        if not _is_passed(byte_at(text, at), letters):
            if letters is not None:
                at = _behind(text, at, letters[0])
                if at == BAD_LINE:
                    return edges, lines, begin, largest
            for column in range(0 if letters is None else 1, last_column + 1):
                at = next_field(text, at, column if letters is None else 0)
                if at == BAD_LINE:
                    return edges, lines, begin, largest
                if places is not None and (column == columns[0] or column == columns[1]):
                    at = _name_at(text, at, (column == columns[0], column == columns[1]), places, edges)
                elif ends is not None and column == columns[0]:
                    ends[0][edges], at = id_at(text, at)
                    largest = max(largest, ends[0][edges])
                elif ends is not None and column == columns[1]:
                    ends[1][edges], at = id_at(text, at)
                    largest = max(largest, ends[1][edges])
                elif column == columns[2]:
                    weights[edges], at = weight_at(text, at)
                else:
                    at = skip_field(text, at)
                if at == BAD_LINE:
                    return edges, lines, begin, largest
            if letters is None:
                at = line_end(text, at, last_column + 1, fields)
            else:
                at = skip_line(text, at) if next_field(text, at, 0) == BAD_LINE else BAD_LINE
            if at == BAD_LINE:
                return edges, lines, begin, largest
            edges += 1
        else:
            at = skip_line(text, at)
        lines += 1
    return edges, lines, BAD_LINE, largest


@jit_inlined
def _is_passed(byte: int, letters: tuple[int, int] | None) -> bool:
    """Whether a line whose first byte is this one has no edge: it is empty, or a comment."""
    if letters is not None:
        return bool(byte == NEWLINE or byte == letters[1])
    return byte == NEWLINE or byte == 35 or byte == 37


@jit_inlined
def _behind(text: NDArray[np.uint8], at: int, letter: int) -> int:
    """Where the field at ``at`` ends, which must be this letter; else BAD_LINE."""
    return at + 1 if byte_at(text, at) == letter and is_blank(byte_at(text, at + 1)) else BAD_LINE


@jit_inlined
def _name_at(
    text: NDArray[np.uint8], first: int, taken: tuple[bool, bool], places: NDArray[np.int32], edge: int
) -> int:
    """Where the field at ``first`` ends; ``places`` takes where it is, as source and as target if it is ``taken`` so.

    BAD_LINE for one that is empty, too long, or has a zero byte.
    """
    at = skip_field(text, first)
    if at == first or at - first > LONGEST_NAME or has_zero(text, first, at):
        return BAD_LINE
    if taken[0]:
        places[edge, 0] = first
        places[edge, 1] = at - first
    if taken[1]:
        places[edge, 2] = first
        places[edge, 3] = at - first
    return at


@jit
def has_zero(text: NDArray[np.uint8], start: int, end: int) -> bool:
    """Whether a zero byte is among some bytes."""
    at = start
    while at < end and byte_at(text, at) != 0:
        at += 1
    return at < end


@jit
def has_lone_return(text: NDArray[np.uint8]) -> bool:
    """Whether a carriage return stands before something else than a blank or the line's end."""
    at = 0
    last = len(text) - 1
    while at < last and (
        byte_at(text, at) != 13 or byte_at(text, at + 1) == NEWLINE or is_blank(byte_at(text, at + 1))
    ):
        at += 1
    return at < last
