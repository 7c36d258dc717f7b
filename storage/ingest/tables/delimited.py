"""CSV (RFC 4180): one delimiter (`,` `;` tab, `|` or `--delimiter`), quotes, a header; blanks divide nothing.

Blocks of whole records are parsed on every core and yielded in order, as `text` does it. Plain numbers go through the
compiled parser; strings, and blocks with a quote in them, through pyarrow. Every record must have as many fields as
the first one: one more or less is most often a delimiter without quotes, and the columns behind it are wrong.
A bad record is read again in plain Python, to say why it is no edge, and the option that would help.
"""

import csv
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Place
from penstock.storage.ingest.bytes.blocks import LONGEST_LINE, Bytes, line_blocks
from penstock.storage.ingest.bytes.file import STANDARD_INPUT
from penstock.storage.ingest.bytes.stream import Stream
from penstock.storage.ingest.core.arrow import Strings, csv_columns
from penstock.storage.ingest.core.edge_columns import KeptCells
from penstock.storage.ingest.core.edges import EdgeBatch, local_names, not_utf8
from penstock.storage.ingest.core.source import DELIMITERS, IngestOptions
from penstock.storage.ingest.tables.layout import TableLayout, read_table_layout
from penstock.storage.ingest.tables.records import (
    COMMA,
    STRAY,
    cells_as_ids,
    cells_as_weights,
    parse_records,
    record_start,
    scan_records,
    trim_cells,
)
from penstock.storage.ingest.text import diagnose
from penstock.storage.ingest.text.columns import Columns, note_columns
from penstock.storage.ingest.text.diagnose import SHOWN_FIELD, bad_name, shown
from penstock.storage.ingest.text.edge_list import BUFFERS, Parsed, TextFile, TextSource, narrow_batch, parsed_in_order

_QUOTE = re.compile(b'"')
_EMPTY = np.empty(0, np.uint8)


Records = tuple[TextFile, Bytes, int | None]
"""Whole records of a file, and where the first begins that is no record (-1: none).

None: no byte is a quote, and nothing is known of the records yet.
"""


class DelimitedSource(TextSource):
    """CSV files, one after another. See `core/source.Source`; named: ids are strings."""

    def _line_of(self, parsed: Parsed, edge: int) -> tuple[int, str]:
        delimiter = parsed.file.delimiter
        return _record_at(parsed.text, record_start(parsed.text, ord(delimiter), edge), delimiter)

    def _parsed(self) -> Generator[Parsed]:
        parse = partial(parse_records_of, sides=self._options.sides)
        return self._in_step(self._records(), partial(parsed_in_order, parse=parse, workers=self._parsing.workers))

    def _records(self) -> Iterator[Records]:
        for stream in self._streams():
            blocks = line_blocks(stream, self._parsing.block_bytes)
            if (found := _first_records(blocks, self._options, stream.name)) is not None:
                first, layout, passed = found
                file = self._table(stream, layout)
                if self.edge_columns is not None:
                    file.kept = KeptCells(self.edge_columns, stream.name, layout.taken.names, file.delimiter)
                    whole = scan_records(first[layout.start :], ord(file.delimiter), file.width)[0]
                    file.kept.settle(first[layout.start : layout.start + whole])
                file.lines += passed
                yield from whole_records(file, chain([first[layout.start :]], blocks))

    def _table(self, stream: Stream, layout: TableLayout) -> TextFile:
        taken = layout.taken
        note_columns(self.columns_taken, taken)
        unasked = self._options.weights is None and self._options.columns is None and len(layout.first) > 2
        if unasked and self.passed_over is None and diagnose.is_number(layout.first[2].strip()):
            self.passed_over = shown(layout.first[2].strip(), SHOWN_FIELD)
        file = TextFile(
            stream, taken.columns, layout.lines, delimiter=taken.delimiter, width=taken.width, named=self.named
        )
        file.explain = partial(what_is_wrong, file)
        return file


def delimited_source(paths: Sequence[Place], options: IngestOptions) -> DelimitedSource:
    """The files as a source, of strings where the options or the first record say so."""
    strings = options.string_ids
    if strings is None:
        strings = _begins_with_strings(paths[0], options)
    return DelimitedSource(paths, options, named=strings)


def _begins_with_strings(path: Place, options: IngestOptions) -> bool:
    """Whether an end of the first edge of a file is no number; a pipe is not looked into."""
    if str(path) == STANDARD_INPUT:
        return False
    with Stream(path, options.host_memory) as stream:
        found = _first_records(line_blocks(stream, options.block_bytes), options, stream.name)
    if found is None:
        return False
    layout = found[1]
    columns = layout.taken.columns
    ends = [layout.first[at] for at in (columns.source, columns.target) if at < len(layout.first)]
    return any(not diagnose.is_number(end.strip()) for end in ends)


def _first_records(blocks: Iterable[Bytes], options: IngestOptions, name: str) -> tuple[Bytes, TableLayout, int] | None:
    """The first block that has a record, its layout, and how many lines of comments came before it."""
    passed = 0
    for block in blocks:
        layout = read_table_layout(block, options, name)
        if layout is not None:
            return block, layout, passed
        passed += int(np.count_nonzero(block == 10))
    return None


def whole_records(file: TextFile, blocks: Iterable[Bytes]) -> Iterator[Records]:
    """Cut blocks of whole lines into blocks of whole records; after a bad one nothing follows."""
    held = _EMPTY
    delimiter = ord(file.delimiter)
    for block in blocks:
        if not (len(held) or file.named or _QUOTE.search(memoryview(block))):
            yield file, block, None
            continue
        text = np.concatenate([held, block]) if len(held) else block
        whole, bad = scan_records(text, delimiter, file.width)
        if bad >= 0:
            yield file, text, bad
            return
        if whole:
            yield file, text[:whole], -1
        held = text[whole:]
        if len(held) > LONGEST_LINE:
            break
    if len(held):  # a quote is open
        yield file, held, 0


def parse_records_of(block: Records, sides: bool) -> Parsed:
    """Parse the records of a block, in any thread."""
    file, text, first_bad = block
    if first_bad is None:
        batch, lines, begin = _plain(file, text)
        if file.kept is not None:
            batch, begin = _with_records(file.kept, batch, text, begin)
        bad = None if begin < 0 else _record_at(text, begin, file.delimiter)
        return Parsed(file, batch, lines, bad, text)
    good = text if first_bad < 0 else text[:first_bad]
    batch, wrong = _named(file, good, sides) if file.named else _numbers(file, good)
    begin = first_bad if wrong < 0 else record_start(good, ord(file.delimiter), wrong)
    if file.kept is not None:
        batch, begin = _with_records(file.kept, batch, good, begin)
    bad = None if begin < 0 else _record_at(text, begin, file.delimiter)
    return Parsed(file, batch, int(np.count_nonzero(text == 10)), bad, text)


def _with_records(kept: KeptCells, batch: EdgeBatch, text: Bytes, begin: int) -> tuple[EdgeBatch, int]:
    """Edges with records of them in the place of weights, and where the first bad record begins (-1: none).

    begin: where the first begins that is no edge, behind all edges.
    """
    good = text if begin < 0 else text[:begin]
    if not len(batch):
        return replace(batch, weights=None), begin
    cells = kept.cells(good)
    try:
        return replace(batch, weights=kept.columns.records(batch.weights, cells, kept.file)), begin
    except InputError:
        for row in range(len(batch)):  # which one it is
            if kept.reason([cell[row : row + 1] for cell in cells]):
                return batch, record_start(good, ord(kept.delimiter), row)
        raise


def _plain(file: TextFile, text: Bytes) -> tuple[EdgeBatch, int, int]:
    """The edges of records of plain numbers, how many lines they are, and where a bad one begins (-1: none)."""
    columns = file.columns
    sources, targets, weights = BUFFERS.room(len(text) // 4 + 1, columns.weight >= 0)
    with_commas = text if file.delimiter == "," else _with_commas(text, file.delimiter)
    edges, lines, begin, largest = parse_records(with_commas, (*columns,), file.width, sources, targets, weights)
    found = weights[:edges] if columns.weight >= 0 else None
    return narrow_batch(sources[:edges], targets[:edges], found, largest), lines, begin


def _numbers(file: TextFile, text: Bytes) -> tuple[EdgeBatch, int]:
    """The edges of records, and which record is none (-1: all are)."""
    cells = _cells(file, text)
    rows = len(cells[0][1]) - 1
    ends = [np.zeros(rows, np.uint64), np.zeros(rows, np.uint64)]
    wrong = [int(cells_as_ids(*cells[end], ends[end])) for end in (0, 1)]
    weights, bad = _weights(cells[2:], rows)
    largest = max(int(end.max(initial=0)) for end in ends)
    return narrow_batch(ends[0], ends[1], weights, largest), _first_of(*wrong, bad)


def _named(file: TextFile, text: Bytes, sides: bool) -> tuple[EdgeBatch, int]:
    """As `_numbers`, with ids that are strings."""
    cells = _cells(file, text)
    joined = np.concatenate([cells[0][0], cells[1][0]])
    places = np.empty((len(cells[0][1]) - 1, 4), np.int32)
    for end, base in ((0, 0), (1, len(cells[0][0]))):
        starts = cells[end][1]
        places[:, 2 * end], places[:, 2 * end + 1] = starts[:-1] + base, np.diff(starts)
    weights, bad = _weights(cells[2:], len(places))
    bad = _first_of(int(trim_cells(joined, places)), bad)
    good = places if bad < 0 else places[:bad]
    names, numbers = local_names(joined, good, sides)
    wrong = not_utf8(joined, good, names, sides)
    if wrong is not None:
        bad = int(np.flatnonzero((good[:, 0] == wrong) | (good[:, 2] == wrong))[0])
    weights = None if weights is None else weights[: len(good)]
    return EdgeBatch(numbers[:, 0].copy(), numbers[:, 1].copy(), weights, names=names), bad


def _cells(file: TextFile, text: Bytes) -> list[Strings]:
    """The source's, target's and weight's cells of whole records."""
    wanted = tuple(column for column in file.columns if column >= 0)
    if len(text) == 0:
        return [(_EMPTY, np.zeros(1, np.int64)) for _ in wanted]
    return csv_columns(text, file.delimiter, file.width, wanted)


def _weights(cells: list[Strings], rows: int) -> tuple[NDArray[np.float64] | None, int]:
    if not cells:
        return None, -1
    weights = np.zeros(rows, np.float64)
    return weights, int(cells_as_weights(*cells[0], weights))


def _first_of(*rows: int) -> int:
    return min((row for row in rows if row >= 0), default=-1)


def _with_commas(text: Bytes, delimiter: str) -> Bytes:
    """The text with commas for its delimiter, and no other comma."""
    table = np.arange(256, dtype=np.uint8)
    table[COMMA] = STRAY
    table[ord(delimiter)] = COMMA
    return table[text]


def _record_at(text: Bytes, begin: int, delimiter: str) -> tuple[int, str]:
    """The line (from 1) of the record at byte ``begin``, and its text."""
    line = int(np.count_nonzero(text[:begin] == 10)) + 1
    return line, _first_record(text[begin : begin + LONGEST_LINE].tobytes().decode("utf-8", "replace"), delimiter)


def _first_record(sample: str, delimiter: str) -> str:
    lines = sample.split("\n")
    reader = csv.reader((line + "\n" for line in lines), delimiter=delimiter)
    try:
        next(reader, None)
    except csv.Error:
        return lines[0]
    ends = reader.line_num
    return lines[0] if ends >= len(lines) > 1 else "\n".join(lines[:ends])


def what_is_wrong(file: TextFile, record: str, columns: Columns) -> str:
    """Why a record is no edge, and the option that would help."""
    text = np.frombuffer((record + "\n").encode(), np.uint8)
    whole, bad = scan_records(text, ord(file.delimiter), 0)
    if bad >= 0 and "\r" in record.rstrip("\r") and '"' not in record:
        return "a carriage return alone stands in it, as if it ended a line; convert the file (tr '\\r' '\\n' < FILE)"
    if bad >= 0:
        return (
            "text stands behind a closing quote; in CSV quotes enclose a whole field and a quote in it is written "
            "twice (--format text takes quotes as part of ids)"
        )
    if whole < len(text):
        return "a quote is opened and not closed; --format text takes quotes as part of ids"
    fields = [cell.strip(" \t") for cell in _plain_cells(record, file.delimiter)]
    if record.lstrip()[:1] in ("#", "%") and (not file.named or len(fields) != file.width):
        return "a comment stands between the records, and in CSV it can be a record; take it out, or see --format text"
    if len(fields) != file.width:
        return _about_width(fields, file)
    about = _about_cells(fields, columns, file) or (_about_kept(record, file.kept) if file.kept else "")
    return about or "it cannot be read; --columns names the columns to take"


def _plain_cells(record: str, delimiter: str) -> list[str]:
    """The fields of a record that is one, of any length."""
    mark = re.escape(delimiter)
    found = re.findall(rf'(?:^|{mark})("[^"]*(?:""[^"]*)*"|[^{mark}]*)', record.rstrip("\r"))
    return [cell[1:-1].replace('""', '"') if cell[:1] == '"' else cell for cell in found]


def _about_width(fields: list[str], file: TextFile) -> str:
    return (
        f"it has {len(fields)} column{'s' * (len(fields) != 1)}, and the first line {file.width}, divided by "
        f"{file.delimiter!r}; put the field that holds {file.delimiter!r} into quotes, or mend the line "
        "(--delimiter names another; --format text --columns 0,1 takes these columns of every line)"
    )


def _about_cells(fields: list[str], columns: Columns, file: TextFile) -> str:
    roles = ((columns.source, "source"), (columns.target, "target"), (columns.weight, "weight"))
    for column, role in roles:
        if column < 0:
            continue
        cell = fields[column]
        if role == "weight":
            reason = diagnose.bad_weight(cell)
        elif file.named:
            reason = "has quotes behind a blank; take the blank out" if cell[:1] == '"' else bad_name(cell)
        else:
            reason = diagnose.bad_id(cell, choose=True)
            reason += _another_delimiter(cell, file.delimiter) if reason else ""
        if reason:
            return f"{role} {shown(cell, SHOWN_FIELD)!r} {reason}"
    return ""


def _about_kept(record: str, kept: KeptCells) -> str:
    return kept.reason(kept.cells(np.frombuffer((record + "\n").encode(), np.uint8)))


def _another_delimiter(cell: str, delimiter: str) -> str:
    marks = [mark for mark in DELIMITERS if mark in cell and mark != delimiter]
    return f" (or --delimiter {marks[0]!r})" if marks else ""
