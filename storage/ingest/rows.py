"""Owns text whose lines are rows: the neighbors of one vertex, any number of them, in one line.

A row belongs to the vertex its first field names (``owned``), or to the vertex of its own number. Lines
may be longer than memory: one that does not fit a block is cut between two neighbors, and the next
block says whose it continues. Refuses to know formats; adjacency.py and metis.py do.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.storage.edges import EdgeBatch
from penstock.storage.errors import InputError
from penstock.storage.ingest.blocks import BYTE_ORDER_MARK, Bytes, last_newline
from penstock.storage.ingest.explain import SHOWN_FIELD, Columns, bad_id, bad_weight, shown, split_fields
from penstock.storage.ingest.lines import (
    BAD_LINE,
    NEWLINE,
    ends_field,
    has_lone_return,
    id_at,
    is_blank,
    skip_field,
    skip_line,
    weight_at,
)
from penstock.storage.ingest.stream import Stream
from penstock.storage.ingest.text import Buffers, Parsed, TextFile, line_at, narrow_batch
from penstock.storage.native import native

COMMA, COLON, _HASH = 44, 58, 35


class Shape(NamedTuple):
    """How a row is spelled: its first field names its vertex (``owned``), or ``skip`` fields are passed;
    a weight follows each neighbor (``weighted``)."""

    owned: bool = False
    skip: int = 0
    weighted: bool = False


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows from vertex ``row`` on; ``inside``: the first line continues a row (of ``row``, where rows are
    owned); ``unfinished``: the last line goes on in the next block. ``rows`` end in it."""

    file: TextFile
    text: Bytes
    shape: Shape
    row: int
    inside: bool
    unfinished: bool
    rows: int = 0


Head = Callable[[Bytes], tuple[int, int, Shape] | None]
"""Given the first bytes: bytes and lines of the head, and the shape of the rows that follow; None: more, please."""


def row_blocks(stream: Stream, block_bytes: int, file: TextFile, head: Head) -> Iterator[RowBlock]:
    """Cut content into blocks of rows, each ending in a newline, of about ``block_bytes``.

    Raises:
        InputError: a field that is longer than a block, or lines that end in carriage returns alone.
    """
    tail = np.empty(0, np.uint8)
    shape: Shape | None = None
    row, inside, ended = 0, False, False
    while not ended:
        block, filled, ended = _next(stream, tail, block_bytes)
        if shape is None:
            block, filled, shape = _without_head(block, filled, file, head)
        cut = last_newline(block, filled) + 1 if shape is not None else 0
        if shape is not None and cut:
            rows = int(count_rows(block[:cut]))
            yield RowBlock(file, block[:cut], shape, row, inside, False, rows)
            row = 0 if shape.owned else row + rows
            inside = False
        elif shape is not None and not ended and not inside and _is_comment(block[:filled]):
            block, filled = np.array([_HASH], np.uint8), 1
        elif shape is not None and filled and not ended:
            cut, owner = _cut_inside(block[:filled], shape, inside, stream.name)
            piece = np.append(block[:cut], np.uint8(NEWLINE))
            yield RowBlock(file, piece, shape, row, inside, True)
            row = owner if shape.owned and not inside else row
            inside = True
        tail = block[cut:filled].copy()
    if shape is None:
        raise InputError(f"{stream.name}: its first line is missing: the file is empty, or truncated; fetch it again")


def _next(stream: Stream, tail: Bytes, block_bytes: int) -> tuple[Bytes, int, bool]:
    """The tail and more content; how many bytes, and whether that was all (then it ends in a newline)."""
    block = np.empty(len(tail) + block_bytes + 1, np.uint8)
    block[: len(tail)] = tail
    filled = len(tail) + stream.read_into(memoryview(block)[len(tail) : -1])
    ended = filled < len(block) - 1
    if ended and filled and block[filled - 1] != NEWLINE:
        block[filled] = NEWLINE
        filled += 1
    return block, filled, ended


def _without_head(block: Bytes, filled: int, file: TextFile, head: Head) -> tuple[Bytes, int, Shape | None]:
    if block[: min(3, filled)].tobytes() == BYTE_ORDER_MARK:
        block, filled = block[3:], filled - 3
    if filled and has_lone_return(block[:filled]):
        raise InputError(
            f"{file.stream.name}: its lines end in carriage returns alone, as on old Macintoshes; convert it "
            "(tr '\\r' '\\n' < FILE)"
        )
    found = head(block[:filled])
    if found is None:
        return block, filled, None
    passed, file.lines, shape = found
    return block[passed:], filled - passed, shape


def _is_comment(text: Bytes) -> bool:
    return text.tobytes().lstrip(b" \t\r")[:1] in (b"#", b"%")


def whole_lines(block: Bytes) -> Iterator[tuple[int, str, int]]:
    """The number (from 1), the text and the end in bytes of every line that ends in the block."""
    at = 0
    for number, raw in enumerate(block.tobytes().split(b"\n")[:-1], start=1):
        at += len(raw) + 1
        yield number, raw.decode("utf-8", "replace"), at


def _cut_inside(text: Bytes, shape: Shape, inside: bool, name: str) -> tuple[int, int]:
    """Where to cut a line that has no end, and the vertex it belongs to if it says so."""
    before = 0 if inside else 1 if shape.owned else shape.skip
    cut = int(last_entry(text, before, 2 if shape.weighted else 1))
    if cut <= 0:
        raise InputError(
            f"{name}: {len(text)} bytes hold no two fields, so this is no adjacency list in text; --format says "
            "what it is"
        )
    first = split_fields(text[:256].tobytes().decode("utf-8", "replace").partition(":")[0])[0]
    return cut, int(first) if first.isascii() and first.isdigit() else 0


@native
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


@native
def count_rows(text: NDArray[np.uint8]) -> int:
    """Lines that are no comment."""
    at = 0
    rows = 0
    while at < len(text):
        rows += not starts_comment(text, at)
        at = skip_line(text, at)
    return rows


@native
def starts_comment(text: NDArray[np.uint8], at: int) -> bool:
    """Whether the line at ``at`` begins with ``#`` or ``%``."""
    while is_blank(text[at]):
        at += 1
    return bool(text[at] == 35 or text[at] == 37)


Accept = Callable[[RowBlock, EdgeBatch], EdgeBatch | int]
"""Given a block and its edges, those to keep, or the number of one that must not be."""


@dataclass(slots=True)
class RowParser:
    """Parses blocks of rows in any thread; the line of an edge that ``accept`` refuses is bad."""

    accept: Accept
    _buffers: Buffers = field(default_factory=Buffers)

    def parse(self, block: RowBlock) -> Parsed:
        """Parse a block."""
        shape, text = block.shape, block.text
        most = len(text) // (4 if shape.weighted else 2) + 1
        sources, targets, weights = self._buffers.room(most, shape.weighted)
        lone = np.empty(most if shape.owned else 0, np.uint64)
        edges, lines, begin, largest, lonely = parse_rows(
            text,
            (block.row, block.inside),
            (shape.owned, shape.skip, shape.weighted),
            (sources, targets),
            weights,
            lone,
        )
        found = weights[:edges] if shape.weighted else None
        batch = narrow_batch(sources[:edges], targets[:edges], found, int(largest))
        bad = None if begin < 0 else (lines + 1, line_at(text, begin))
        if bad is None:
            if lonely:
                batch = EdgeBatch(batch.sources, batch.targets, batch.weights, lone[:lonely].copy())
            accepted = self.accept(block, batch)
            if isinstance(accepted, int):
                bad = _line_of_row(text, int(batch.sources[accepted]) - block.row)
            else:
                batch = accepted
        return Parsed(block.file, batch, lines - block.unfinished, bad, text)


def _line_of_row(text: Bytes, row: int) -> tuple[int, str]:
    """Number (from 1) and text of the ``row``-th line that is no comment."""
    lines = (line for line in whole_lines(text) if line[1].lstrip()[:1] not in ("#", "%"))
    number, line, _ = next(islice(lines, row, None))
    return number, line


@native
def parse_rows(
    text: NDArray[np.uint8],
    place: tuple[int, bool],
    shape: tuple[bool, int, bool],
    ends: tuple[NDArray[np.uint64], NDArray[np.uint64]],
    weights: NDArray[np.float64],
    lone: NDArray[np.uint64],
) -> tuple[int, int, int, Any, int]:
    """Parse whole rows; ``place`` is `RowBlock.row` and ``inside``, ``shape`` a `Shape`.

    Returns:
        edges found, lines passed, where the first bad line begins (-1: none), the largest id, and how
        many owners without neighbors were put into ``lone``.
    """
    row, inside = place
    owned, skip, weighted = shape
    sources, targets = ends
    at = 0
    edges = 0
    lines = 0
    lonely = 0
    largest = np.uint64(0)
    while at < len(text):
        begin = at
        owner = np.uint64(row)
        if not inside and starts_comment(text, at):
            at = skip_line(text, at)
            lines += 1
            continue
        while is_blank(text[at]):
            at += 1
        if not inside and owned:
            if text[at] == NEWLINE:
                at += 1
                lines += 1
                continue
            owner, at = _owner_at(text, at)
        for _ in range(0 if inside or owned or text[at] == NEWLINE else skip):
            while is_blank(text[at]):
                at += 1
            at = BAD_LINE if text[at] == NEWLINE else skip_field(text, at)
            if at == BAD_LINE:
                break
        if at == BAD_LINE:
            return edges, lines, begin, largest, lonely
        start = edges
        comma = inside or (owned and text[at - 1] != COLON)
        while True:
            at = _next_entry(text, at, comma)
            if at == BAD_LINE or text[at] == NEWLINE:
                break
            comma = True
            sources[edges] = owner
            targets[edges], at = id_at(text, at)
            if at != BAD_LINE and weighted:
                at = _next_entry(text, at, True)
                if at != BAD_LINE:
                    weights[edges], at = weight_at(text, at)
            if at == BAD_LINE:
                break
            largest = max(largest, targets[edges])
            edges += 1
        if at == BAD_LINE:
            return edges, lines, begin, largest, lonely
        if edges > start:
            largest = max(largest, owner)
        elif owned and not inside:
            lone[lonely] = owner
            lonely += 1
        at += 1
        lines += 1
        inside = False
        if not owned:
            row += 1
    return edges, lines, BAD_LINE, largest, lonely


@native
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


@native
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


def explain_row(shape: Shape, lowest: int = 0, highest: int | None = None) -> Callable[[str, Columns], str]:
    """What is wrong with a row, in words: an `Explain` for a `TextFile`.

    Neighbors are ``lowest`` to ``highest`` (None: any), and there is a row for each.
    """

    def wrong(line: str, _: Columns) -> str:
        head, colon, rest = line.partition(":") if shape.owned else ("", "", line)
        fields = (split_fields(head) if colon else []) + split_fields(rest if colon or not shape.owned else line)
        first = 1 if shape.owned else shape.skip
        if len(fields) < first:
            return f"it has {len(fields)} fields, and {first} come before the neighbors"
        if shape.owned and bad_id(fields[0]):
            return f"vertex {shown(fields[0], SHOWN_FIELD)!r} {bad_id(fields[0])}"
        for number, word in enumerate(fields[first:]):
            is_weight = shape.weighted and number % 2 == 1
            reason = bad_weight(word) if is_weight else bad_id(word)
            if not reason and not is_weight and highest is not None and not lowest <= int(word) <= highest:
                reason = f"is no vertex: the file states that they are {lowest} to {highest}; correct it"
            if reason:
                return f"{'weight' if is_weight else 'neighbor'} {shown(word, SHOWN_FIELD)!r} {reason}"
        if shape.weighted and (len(fields) - first) % 2:
            return "its last neighbor has no weight; correct it, or leave --weights out"
        return f"it is one row more than the {(highest or 0) - lowest + 1} vertices that the file states; correct that"

    return wrong
