"""Owns the compiled half of rows: bytes of lines in, edges out, no Python lock held.

Fields are divided by blanks with at most one comma among them; a colon may follow the field that names
a row's vertex. Refuses to explain: at the first line that is not as it should be it says where that begins.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.storage.ingest.text.parser import (
    BAD_LINE,
    NEWLINE,
    ends_field,
    id_at,
    is_blank,
    skip_field,
    skip_line,
    weight_at,
)

COMMA, COLON, HASH, PERCENT = 44, 58, 35, 37


@jit
def parse_rows(
    text: NDArray[np.uint8],
    place: tuple[Any, bool],
    shape: tuple[bool, int, bool],
    ends: tuple[NDArray[np.uint64], NDArray[np.uint64]],
    weights: NDArray[np.float64],
    lone: NDArray[np.uint64],
) -> tuple[int, int, int, Any, int]:
    """Parse whole rows; ``place`` is `RowBlock.row` (uint64) and ``inside``, ``shape`` a `RowShape`.

    Returns:
        edges found, lines passed, where the first bad line begins (-1: none), the largest id, and how
        many owners without neighbors were put into ``lone``.
    """
    row, inside = place
    owned, _, weighted = shape
    at = 0
    edges = 0
    lines = 0
    lonely = 0
    largest = np.uint64(0)
    while at < len(text):
        begin = at
        while is_blank(text[at]):
            at += 1
        if not inside and (starts_comment(text, at) or (owned and text[at] == NEWLINE)):
            at = skip_line(text, at)
            lines += 1
            continue
        owner = row
        if not inside:
            owner, at = _start(text, at, row, shape)
        start = edges
        if at != BAD_LINE:
            comma = inside or (owned and text[at - 1] != COLON)
            edges, at, largest = _entries(text, (at, edges), (comma, weighted), ends, weights, largest)
        if at == BAD_LINE:
            return edges, lines, begin, largest, lonely
        ends[0][start:edges] = owner
        if edges > start:
            largest = max(largest, owner)
        elif owned and not inside:
            lone[lonely] = owner
            lonely += 1
        at += 1
        lines += 1
        inside = False
        if not owned:
            row += np.uint64(1)
    return edges, lines, BAD_LINE, largest, lonely


@jit
def _start(text: NDArray[np.uint8], at: int, row: Any, shape: tuple[bool, int, bool]) -> tuple[Any, int]:
    """The vertex of the row that begins at ``at``, and where what comes before its neighbors ends."""
    owned, skip, _ = shape
    if owned:
        return _owner_at(text, at)
    for _ in range(0 if text[at] == NEWLINE else skip):
        while is_blank(text[at]):
            at += 1
        if text[at] == NEWLINE:
            return row, BAD_LINE
        at = skip_field(text, at)
    return row, at


@jit
def _entries(
    text: NDArray[np.uint8],
    place: tuple[int, int],
    how: tuple[bool, bool],
    ends: tuple[NDArray[np.uint64], NDArray[np.uint64]],
    weights: NDArray[np.float64],
    largest: Any,
) -> tuple[int, int, Any]:
    """Read neighbors up to the newline; ``place`` is where, and the number of the next edge; ``how`` says whether a
    comma may come first, and whether weights follow. Returns edges, where the line ends (BAD_LINE: it is bad), and the
    largest id."""
    at, edges = place
    comma, weighted = how
    targets = ends[1]
    while True:
        at = _next_entry(text, at, comma)
        if at == BAD_LINE or text[at] == NEWLINE:
            return edges, at, largest
        comma = True
        targets[edges], at = id_at(text, at)
        if at != BAD_LINE and weighted:
            at = _next_entry(text, at, True)
            if at != BAD_LINE:
                weights[edges], at = weight_at(text, at)
        if at == BAD_LINE:
            return edges, at, largest
        largest = max(largest, targets[edges])
        edges += 1


@jit
def _owner_at(text: NDArray[np.uint8], first: int) -> tuple[Any, int]:
    """The id at ``first`` and where its field ends, after a colon if there is one; BAD_LINE if it is none."""
    at = first
    while not ends_field(text[at]) and text[at] != COLON:
        at += 1
    end = text[at]
    text[at] = NEWLINE
    owner, stop = id_at(text, first)
    text[at] = end
    if stop == BAD_LINE:
        return owner, stop
    while is_blank(text[at]):
        at += 1
    if text[at] == COLON:
        return owner, at + 1
    return owner, stop


@jit
def _next_entry(text: NDArray[np.uint8], at: int, comma: bool) -> int:
    """The start of the next field, or the newline; a comma may stand before it if ``comma``."""
    while is_blank(text[at]):
        at += 1
    if text[at] != COMMA:
        return at
    if not comma:
        return BAD_LINE
    at += 1
    while is_blank(text[at]):
        at += 1
    return BAD_LINE if text[at] == NEWLINE or text[at] == COMMA else at


@jit
def last_entry(text: NDArray[np.uint8], before: int, step: int) -> int:
    """The end of the last whole entry of ``step`` fields, ``before`` fields being none; 0 if there is none."""
    at = 0
    fields = 0
    cut = 0
    while at < len(text):
        while at < len(text) and (is_blank(text[at]) or text[at] == COMMA or text[at] == COLON):
            at += 1
        start = at
        while at < len(text) and not ends_field(text[at]) and text[at] != COLON:
            at += 1
        if at > start and at < len(text):
            fields += 1
            if fields > before and (fields - before) % step == 0:
                cut = at
    return cut


@jit
def count_rows(text: NDArray[np.uint8]) -> int:
    """Lines that are no comment."""
    at = 0
    rows = 0
    while at < len(text):
        rows += not starts_comment(text, at)
        at = skip_line(text, at)
    return rows


@jit
def starts_comment(text: NDArray[np.uint8], at: int) -> bool:
    """Whether the line at ``at`` begins with ``#`` or ``%``."""
    while is_blank(text[at]):
        at += 1
    return bool(text[at] == HASH or text[at] == PERCENT)
