"""The compiled half of CSV: where records end, plain numbers between delimiters, cells that become ids and weights.

A record ends at a newline that is not in quotes; quotes begin with a field and end with it (RFC 4180, section 2).
Numbers may have blanks around them. A bad record is only pointed at; `delimited.py` reads it again to say why.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.storage.encoding.string_array import LONGEST_NAME
from penstock.storage.ingest.text.parser import BAD_LINE, NEWLINE, has_zero, id_at, weight_at

COMMA = 44
QUOTE = 34
RETURN = 13
STRAY = 1
"""A byte that no number has: what commas become where another byte is the delimiter."""


@jit
def line_end(text: NDArray[np.uint8], at: int) -> int:
    """Where the newline is that ends the line at ``at``, itself or behind a carriage return; -1 if none is there."""
    if text[at] == NEWLINE:
        return at
    return at + 1 if text[at] == RETURN and text[at + 1] == NEWLINE else -1


@jit
def scan_records(text: NDArray[np.uint8], delimiter: int, width: int) -> tuple[int, int]:
    """Walk over records of ``width`` fields (0: any number).

    ``text`` begins with a record, and its last byte is a newline.

    Returns:
        where the last whole record ends; where the first bad one begins (-1: none). What follows the last whole
        record, if nothing is bad, is a record whose quotes are open.
    """
    at = 0
    whole = 0
    while at < len(text):
        begin = at
        end = line_end(text, at)
        fields = 0
        while end < 0:
            at = _field_end(text, at, delimiter)
            if at < 0:
                return whole, (begin if at == BAD_LINE else -1)
            fields += 1
            end = line_end(text, at)
            if end < 0:
                if text[at] != delimiter:
                    return whole, begin
                at += 1
        if fields > 0 and width > 0 and fields != width:
            return whole, begin
        at = end + 1
        whole = at
    return whole, -1


@jit
def _field_end(text: NDArray[np.uint8], at: int, delimiter: int) -> int:
    """Where the field at ``at`` ends; BAD_LINE for text behind closing quotes, -2 for quotes that stay open."""
    if text[at] != QUOTE:
        while text[at] != delimiter and text[at] != NEWLINE and text[at] != RETURN:
            at += 1
        return at
    at += 1
    while True:
        while at < len(text) and text[at] != QUOTE:
            at += 1
        at += 1
        if at >= len(text):
            return -2
        if text[at] != QUOTE:
            return at if text[at] == delimiter or line_end(text, at) >= 0 else BAD_LINE
        at += 1


@jit
def parse_records(
    text: NDArray[np.uint8],
    columns: tuple[int, int, int],
    width: int,
    sources: NDArray[np.uint64],
    targets: NDArray[np.uint64],
    weights: NDArray[np.float64],
) -> tuple[int, int, int, Any]:
    """As `parser.parse_lines`, of records without quotes, divided by commas alone, that have ``width`` fields each."""
    at = 0
    edges = 0
    lines = 0
    largest = np.uint64(0)
    while at < len(text):
        begin = at
        end = line_end(text, at)
        if end < 0:
            for column in range(width):
                if column == columns[0]:
                    sources[edges], at = id_at(text, _past_blanks(text, at))
                elif column == columns[1]:
                    targets[edges], at = id_at(text, _past_blanks(text, at))
                elif column == columns[2]:
                    weights[edges], at = weight_at(text, _past_blanks(text, at))
                else:
                    while text[at] != COMMA and text[at] != NEWLINE and text[at] != RETURN:
                        at += 1
                if at == BAD_LINE:
                    return edges, lines, begin, largest
                at = _past_blanks(text, at)
                if column + 1 < width:
                    if text[at] != COMMA:
                        return edges, lines, begin, largest
                    at += 1
            end = line_end(text, at)
            if end < 0:
                return edges, lines, begin, largest
            largest = max(largest, max(sources[edges], targets[edges]))
            edges += 1
        at = end + 1
        lines += 1
    return edges, lines, BAD_LINE, largest


@jit
def _past_blanks(text: NDArray[np.uint8], at: int) -> int:
    while text[at] == 32 or text[at] == 9:
        at += 1
    return at


@jit
def record_start(text: NDArray[np.uint8], delimiter: int, record: int) -> int:
    """Where record number ``record`` (from 0, empty lines not counted) begins."""
    at = 0
    while True:
        end = line_end(text, at)
        if end < 0:
            if record == 0:
                return at
            record -= 1
            while end < 0:
                at = _field_end(text, at, delimiter)
                end = line_end(text, at)
                at += 1
        at = end + 1


@jit
def cells_as_ids(text: NDArray[np.uint8], starts: NDArray[np.int64], ids: NDArray[np.uint64]) -> int:
    """Turn cells (cell i is ``text[starts[i]:starts[i + 1]]``) into ids; return the first that is none, or -1."""
    line = np.empty(64, np.uint8)
    for cell in range(len(ids)):
        line, size = _as_line(text, starts[cell], starts[cell + 1], line)
        ids[cell], end = id_at(line, 0)
        if end != size:
            return cell
    return -1


@jit
def cells_as_weights(text: NDArray[np.uint8], starts: NDArray[np.int64], weights: NDArray[np.float64]) -> int:
    """Turn cells into numbers; return the first that is none, or -1."""
    line = np.empty(64, np.uint8)
    for cell in range(len(weights)):
        line, size = _as_line(text, starts[cell], starts[cell + 1], line)
        weights[cell], end = weight_at(line, 0)
        if end != size:
            return cell
    return -1


@jit
def _as_line(text: NDArray[np.uint8], first: int, last: int, line: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], int]:
    """A cell without blanks at its ends as a line, in ``line`` or in a longer array, and its length."""
    first, last = _trimmed(text, first, last)
    size = last - first
    if size >= len(line):
        line = np.empty(2 * size, np.uint8)
    line[:size] = text[first:last]
    line[size] = NEWLINE
    return line, size


@jit
def trim_cells(text: NDArray[np.uint8], places: NDArray[np.int32]) -> int:
    """Take blanks off both ends of names, in place; return the first row with a name that cannot be, or -1.

    ``places`` int32 (m, 4) as `parser.parse_lines` has them. What cannot be: an empty or too long name, one with a
    zero byte, and one whose quotes stand behind a blank.
    """
    for row in range(len(places)):
        for end in range(2):
            start = places[row, 2 * end]
            first, last = _trimmed(text, start, start + places[row, 2 * end + 1])
            if first == last or last - first > LONGEST_NAME or has_zero(text, first, last):
                return row
            if first > start and text[first] == QUOTE:
                return row
            places[row, 2 * end] = first
            places[row, 2 * end + 1] = last - first
    return -1


@jit
def _trimmed(text: NDArray[np.uint8], first: int, last: int) -> tuple[int, int]:
    while first < last and (text[first] == 32 or text[first] == 9):
        first += 1
    while last > first and (text[last - 1] == 32 or text[last - 1] == 9):
        last -= 1
    return first, last
