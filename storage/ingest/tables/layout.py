"""How a CSV file is laid out, from its first lines: delimiter, header, columns, where its records begin."""

import csv
import re
from dataclasses import dataclass

from penstock.storage.base.errors import InputError, brief
from penstock.storage.ingest.bytes.blocks import Bytes
from penstock.storage.ingest.core.formats import refuse_content, suffix_of
from penstock.storage.ingest.core.source import DELIMITERS, IngestOptions
from penstock.storage.ingest.text import diagnose
from penstock.storage.ingest.text.columns import TakenColumns, choose_columns, find_columns, id_spaces, known_header

SAMPLE_BYTES = 64 << 10
SAMPLE_RECORDS = 50

_QUOTED = re.compile(rb'(^|[,;|\t]) *"([^"]|"")*"(?=[,;|\t\r]|$)')
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.:]*")
_MISSING = frozenset({"na", "n/a", "nan", "null", "none", "-"})


@dataclass(frozen=True, slots=True)
class TableLayout:
    """``taken`` columns; the records begin at byte ``start``, behind ``lines`` lines, with ``first``."""

    taken: TakenColumns
    start: int
    lines: int
    first: tuple[str, ...]


def read_table_layout(block: Bytes, options: IngestOptions, file: str) -> TableLayout | None:
    """Find the layout of a CSV file from its first block; None if the block holds no record.

    Raises:
        InputError: the content is no CSV; the delimiter, the header or the columns must be said.
    """
    sample = _sample(block, file)
    if sample is None:
        return None
    lines, comments, body = sample
    delimiter = options.delimiter or _found_delimiter(body, file)
    records = read_records(body, delimiter)
    names = records[0][0] if _is_header([fields for fields, _ in records], options, file) else []
    width = len(records[0][0])
    if width < 2:
        raise InputError(
            f"{file}: its first line has no {delimiter!r}, which divides columns; --delimiter names another, --format "
            "text reads fields divided by blanks"
        )
    if options.columns is None:
        columns = choose_columns(names, width, options.weights, file)
    else:
        columns = find_columns(names, options.columns, file)
    spaces = sorted(id_spaces(names))
    if len(spaces) > 1 and not options.sides:
        raise InputError(
            f"{file}: its header has two spaces of ids, {brief(' and '.join(spaces))}, in which an id may be two "
            "vertices; --bipartite keeps them apart"
        )
    if max(columns) >= width:
        raise InputError(f"{file} has no column {max(columns)}; its first line has {width}, counted from 0")
    passed = comments + (records[0][1] if names else 0)
    data = [tuple(fields) for fields, _ in records[1 if names else 0 :]]
    commented = sum(1 for line in lines[:comments] if line.strip())
    bare = tuple(name.strip() for name in names)
    taken = TakenColumns(file, columns, bare, width, delimiter, commented)
    return TableLayout(taken, sum(len(line) + 1 for line in lines[:passed]), passed, data[0] if data else ())


def read_header(block: Bytes, file: str) -> tuple[tuple[str, ...], str, int] | None:
    """The first record of a CSV file that is no comment, what divides it, and how many lines of comments come before.

    None if there is no record. Raises InputError as `read_table_layout`.
    """
    sample = _sample(block, file)
    if sample is None:
        return None
    _, comments, body = sample
    delimiter = _found_delimiter(body, file)
    return tuple(name.strip() for name in read_records(body, delimiter)[0][0]), delimiter, comments


def _sample(block: Bytes, file: str) -> tuple[list[bytes], int, list[str]] | None:
    """The first lines, how many of them come before the first record, and those from it on as text; None without one.

    Raises InputError where the content is no CSV.
    """
    refuse_content(block[:SAMPLE_BYTES].tobytes(), file)
    lines = _first_lines(block)
    comments = next((number for number, line in enumerate(lines) if _is_data(line)), None)
    if comments is None:
        return None
    return lines, comments, [line.decode("utf-8", "replace") + "\n" for line in lines[comments:]]


def _first_lines(block: Bytes) -> list[bytes]:
    """The lines of a sample with a line of data; all lines of the block if a sample has none."""
    lines = block[:SAMPLE_BYTES].tobytes().split(b"\n")[:-1]
    return lines if any(map(_is_data, lines)) else block.tobytes().split(b"\n")[:-1]


def read_records(lines: list[str], delimiter: str) -> list[tuple[list[str], int]]:
    """The first records of some lines, and the number of lines up to the end of each; empty lines are no records."""
    reader = csv.reader(lines, delimiter=delimiter)
    found: list[tuple[list[str], int]] = []
    try:
        for fields in reader:
            if fields:
                found.append((fields, reader.line_num))
            if len(found) == SAMPLE_RECORDS:
                break
    except csv.Error:  # a field without end, or a carriage return: whoever reads the whole names the line
        pass
    return found or [(lines[0].split(delimiter), 1)]


def looks_quoted(sample: bytes) -> bool:
    """Whether a field of the first lines of data lies between quotes."""
    lines = [line for line in sample.split(b"\n")[:SAMPLE_RECORDS] if _is_data(line)]
    return any(_QUOTED.search(line) for line in lines)


def check_dividers(sample: bytes, file: str) -> None:
    """Refuse text whose fields could be divided by commas or tabs with blanks in them, as names of places have.

    Raises:
        InputError: naming the options that say which.
    """
    lines = [line.decode("utf-8", "replace") for line in sample.split(b"\n")[:SAMPLE_RECORDS] if _is_data(line)]
    for mark in (",", "\t"):
        doubtful = [line for line in lines if len(diagnose.split_fields(line)) > len(line.strip().split(mark))]
        if lines and doubtful and all(mark in line.strip() for line in lines):
            raise InputError(
                f"{file}: its fields are divided by {mark!r} and have blanks in them ({diagnose.shown(doubtful[0])}); "
                f"--delimiter {'tab' if mark != ',' else mark} takes blanks as part of ids, --format text divides at "
                "both"
            )


def is_blank_divided(sample: bytes) -> bool:
    """Whether the first lines of data are plain numbers divided by blanks alone, as some files named .csv are."""
    lines = [line.decode("utf-8", "replace") for line in sample.split(b"\n")[:SAMPLE_RECORDS] if _is_data(line)]
    return bool(lines) and all(_are_blank_divided(line.split(" ")) for line in lines)


def _are_blank_divided(fields: list[str]) -> bool:
    numbers = [field.strip("\r") for field in fields if field.strip("\r")]
    return len(numbers) > 1 and all(map(diagnose.is_number, numbers))


def _is_data(line: bytes) -> bool:
    text = line.strip(b" \t\r")
    return bool(text) and text[:1] not in (b"#", b"%")


def _found_delimiter(body: list[str], file: str) -> str:
    """What divides the columns of the first records: as many in each of them.

    Raises:
        InputError: more than one character does.
    """
    own = "\t" if suffix_of(file) == ".tsv" else ","
    inner = body if own == "\t" else [line.strip(" \t\r\n") + "\n" for line in body]
    widths = {mark: {len(fields) for fields, _ in read_records(inner, mark)} for mark in DELIMITERS}
    fitting = [mark for mark in DELIMITERS if len(widths[mark]) == 1 and widths[mark] != {1}]
    if own == "\t" and own in fitting:
        return own
    if len(fitting) > 1:
        raise InputError(
            f"{file}: its columns may be divided by any of {', '.join(map(repr, fitting))}; --delimiter says by which"
        )
    if fitting:
        return fitting[0]
    return own if widths[own] != {1} else max(DELIMITERS, key=lambda mark: max(widths[mark]))


def _is_header(records: list[list[str]], options: IngestOptions, file: str) -> bool:
    """Whether the first record names columns.

    Raises:
        InputError: it may be either, and ids may be strings.
    """
    if options.header is not None:
        return options.header
    first, following = [field.strip() for field in records[0]], records[1:]
    if any(not field or diagnose.is_number(field) or field.lower() in _MISSING for field in first):
        return False
    if known_header(first) or any(_holds_numbers(following, column) for column in range(len(first))):
        return True
    if options.string_ids is False or not all(map(_WORD.fullmatch, first)):
        return False
    again = {field.strip() for fields in following for field in fields}
    if not again.isdisjoint(first):
        return False
    raise InputError(
        f"{file}: its first line ({brief(', '.join(first[:6]))}) may name columns, or be an edge; --header or "
        "--no-header says"
    )


def _holds_numbers(records: list[list[str]], column: int) -> bool:
    fields = [fields[column].strip() for fields in records if column < len(fields)]
    present = [field for field in fields if field and field.lower() not in _MISSING]
    return bool(present) and all(map(diagnose.is_number, present))
