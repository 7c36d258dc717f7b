"""Owns text whose lines are rows: the neighbors of one vertex, any number of them, in one line.

A row belongs to the vertex its first field names (``owned``), or to the vertex of its own number. Lines may be longer
than memory: one that does not fit a block is cut between two neighbors, and the next block says whose it continues.
Refuses to know formats; adjacency.py and metis.py do.

The compiled half makes edges of bytes of lines without Python's lock. Fields are divided by blanks with at most one
comma among them; a colon may follow the field that names a row's vertex. At the first line that is not as it should be
it says where that begins; what is wrong is found out above.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.ingest.bytes.blocks import (
    LONGEST_LINE,
    Bytes,
    last_newline,
    lines_of,
    next_block,
    without_mark,
)
from penstock.storage.ingest.bytes.stream import InputFiles
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.text.columns import Columns
from penstock.storage.ingest.text.diagnose import (
    SHOWN_FIELD,
    bad_id,
    bad_weight,
    shown,
    split_fields,
    whole_number,
)
from penstock.storage.ingest.text.edge_list import (
    BUFFERS,
    Parsed,
    TextFile,
    about_returns,
    bad_at,
    narrow_batch,
    parsed_in_order,
)
from penstock.storage.ingest.text.parser import (
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


class RowShape(NamedTuple):
    """How a row is spelled: its first field names its vertex (``owned``), or ``skip`` fields are passed;
    a weight follows each neighbor (``weighted``)."""

    owned: bool = False
    skip: int = 0
    weighted: bool = False


@dataclass(frozen=True, slots=True)
class RowListBlock:
    """Rows from vertex ``row`` on; ``inside``: the first line continues a row (of ``row``, where rows are
    owned); ``unfinished``: the last line goes on in the next block. ``rows`` end in it."""

    file: TextFile
    text: Bytes
    shape: RowShape
    row: int
    inside: bool
    unfinished: bool
    rows: int = 0


class RowsSource(InputFiles, ABC):
    """Files whose lines are rows, one after another; a format says how they begin, and which edges there may be."""

    def _parsed(self) -> Iterator[Parsed]:
        parse = partial(parsed_in_order, parse=self._parse, workers=self._options.workers)
        return self._in_step(self._blocks(), parse)

    @abstractmethod
    def _head(self, block: Bytes, file: TextFile) -> tuple[int, int, RowShape] | None:
        """Given the first bytes of a file: bytes and lines of its head, and the shape of rows; None: more, please."""

    @abstractmethod
    def _accept(self, block: RowListBlock, batch: EdgeBatch) -> EdgeBatch | int:
        """Given a block and its edges, those to keep, or the number of one that must not be. Any thread asks."""

    def _blocks(self) -> Iterator[RowListBlock]:
        for stream in self._streams():
            yield from self._rows_of(TextFile(stream, Columns()), self._options.block_bytes // 2)

    def _rows_of(self, file: TextFile, block_bytes: int) -> Iterator[RowListBlock]:
        """Cut content into blocks of rows, each ending in a newline, of about ``block_bytes``.

        Raises:
            InputError: a field that is longer than a block, or lines that end in carriage returns alone.
        """
        tail = np.empty(0, np.uint8)
        shape: RowShape | None = None
        row, inside, ended = 0, False, False
        while not ended:
            block, filled, ended = next_block(file.stream, tail, block_bytes)
            if shape is None:
                block, filled, shape = self._without_head(block, filled, file)
            cut = last_newline(block, filled) + 1
            if shape is None:  # comments alone
                file.lines += int(np.count_nonzero(block[:cut] == NEWLINE))
                if filled - cut > LONGEST_LINE:
                    raise InputError(
                        f"{file.stream.name}: its first line is longer than {LONGEST_LINE} bytes, so this is no list "
                        "of neighbors in text; --format names what it is"
                    )
            elif cut:
                rows = int(count_rows(block[:cut]))
                yield RowListBlock(file, block[:cut], shape, row, inside, False, rows)
                row = 0 if shape.owned else row + rows
                inside = False
            elif not ended and not inside and _is_comment(block[:filled]):
                block, filled = np.array([HASH], np.uint8), 1
            elif filled and not ended:
                cut, owner = _cut_inside(block[:filled], shape, inside, file.stream.name)
                piece = np.append(block[:cut], np.uint8(NEWLINE))
                yield RowListBlock(file, piece, shape, row, inside, True)
                row = owner if shape.owned and not inside else row
                inside = True
            tail = block[cut:filled].copy()
        if shape is None:
            raise InputError(
                f"{file.stream.name}: its first line is missing: the file is empty, or truncated; fetch it again"
            )

    def _without_head(self, block: Bytes, filled: int, file: TextFile) -> tuple[Bytes, int, RowShape | None]:
        block, filled = without_mark(block, filled)
        if filled and has_lone_return(block[:filled]):
            raise InputError(about_returns(file.stream.name))
        found = self._head(block[:filled], file)
        if found is None:
            return block, filled, None
        passed, lines, shape = found
        file.lines += lines
        return block[passed:], filled - passed, shape

    def _parse(self, block: RowListBlock) -> Parsed:
        """Parse a block of rows, in any thread."""
        shape, text = block.shape, block.text
        most = len(text) // (4 if shape.weighted else 2) + 1
        sources, targets, weights = BUFFERS.room(most, shape.weighted)
        lone = np.empty(most if shape.owned else 0, np.uint64)
        edges, lines, begin, largest, lonely = parse_rows(
            text, (np.uint64(block.row), block.inside), shape, (sources, targets), weights, lone
        )
        found = weights[:edges] if shape.weighted else None
        batch = narrow_batch(sources[:edges], targets[:edges], found, int(largest))
        bad = bad_at(text, lines, begin)
        if bad is None:
            if lonely:
                batch = EdgeBatch(batch.sources, batch.targets, batch.weights, lone[:lonely].copy())
            accepted = self._accept(block, batch)
            if isinstance(accepted, int):
                bad = _line_of_row(text, int(batch.sources[accepted]) - block.row)
            else:
                batch = accepted
        return Parsed(block.file, batch, lines - block.unfinished, bad, text)


def _is_comment(text: Bytes) -> bool:
    return text.tobytes().lstrip(b" \t\r")[:1] in (b"#", b"%")


def _cut_inside(text: Bytes, shape: RowShape, inside: bool, name: str) -> tuple[int, int]:
    """Where to cut a line that has no end, and the vertex it belongs to if it says so."""
    before = 0 if inside else 1 if shape.owned else shape.skip
    cut = int(last_entry(text, before, 2 if shape.weighted else 1))
    if cut <= 0:
        raise InputError(
            f"{name}: {len(text)} bytes hold no two fields, so this is no adjacency list in text; --format says "
            "what it is"
        )
    first = split_fields(text[:256].tobytes().decode("utf-8", "replace").partition(":")[0])[0]
    return cut, whole_number(first) if first.isascii() and first.isdigit() else 0


def _line_of_row(text: Bytes, row: int) -> tuple[int, str]:
    """Number (from 1) and text of the ``row``-th line that is no comment."""
    lines = (line for line in lines_of(text) if line[1].lstrip()[:1] not in ("#", "%"))
    number, line, _ = next(islice(lines, row, None))
    return number, line


def what_is_wrong(shape: RowShape, ids: range | None, line: str, _: Columns) -> str:
    """What is wrong with a row; neighbors are ``ids`` (None: any), and there is a row for each."""
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
        if not reason and not is_weight and ids is not None and whole_number(word) not in ids:
            reason = f"is no vertex: the file states that they are {ids.start} to {ids.stop - 1}; correct it"
        if reason:
            return f"{'weight' if is_weight else 'neighbor'} {shown(word, SHOWN_FIELD)!r} {reason}"
    if shape.weighted and (len(fields) - first) % 2:
        return "its last neighbor has no weight; correct it, or leave --weights out"
    return f"it is one row more than the {len(ids or ())} vertices that the file states; correct that"


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
