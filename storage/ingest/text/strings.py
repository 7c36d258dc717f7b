"""Text: blanks, tabs or commas between fields, `#` and `%` comments, a header; ids are numbers or strings.

Numbers are read as `edge_list` says. Of strings every batch brings its distinct names and counts with their numbers.
Lines are the same, but an id is any field (``7`` and ``07`` are two); with ``sides`` a source
and a target of the same name are two vertices, and every name is preceded by a byte, 1 or 2, that
says which. Refuses ids that are empty, longer than 65,535 bytes, not UTF-8, or hold a zero byte.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from penstock.storage.encoding.string_array import LONGEST_NAME, StringArray
from penstock.storage.format.edges import EdgeBatch, LocalNames
from penstock.storage.ingest.bytes.blocks import Bytes, line_at
from penstock.storage.ingest.bytes.file import STANDARD_INPUT
from penstock.storage.ingest.bytes.stream import Stream
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.text import diagnose
from penstock.storage.ingest.text.columns import Columns
from penstock.storage.ingest.text.diagnose import SHOWN_FIELD, shown, split_fields
from penstock.storage.ingest.text.edge_list import (
    BUFFERS,
    Parsed,
    TextFile,
    TextSource,
    bad_at,
    first_data,
    parsed_in_order,
    read_layout,
    text_blocks,
)
from penstock.storage.ingest.text.parser import ANY_FIELDS
from penstock.storage.ingest.text.string_fields import distinct_fields, pack_fields, parse_fields

BLOCK_PART = 4
"""Blocks are so much smaller than those of numbers, because what a block comes to is larger: 100 bytes an edge."""


def text_source(paths: Sequence[str | Path], options: IngestOptions) -> TextSource:
    """Edge lists as a source, of strings where the options or the first line say so."""
    named = options.string_ids or (options.string_ids is None and _begins_with_strings(paths[0], options))
    return (NamedTextSource if named else TextSource)(paths, options)


class NamedTextSource(TextSource):
    """Edge lists in text whose ids are strings: numbers of the batch's ``names``. See `core.source.Source`.

    ``columns`` are taken whatever a header says.
    """

    named = True

    def __init__(self, paths: Sequence[str | Path], options: IngestOptions, columns: Columns | None = None) -> None:
        super().__init__(paths, replace(options, host_memory=options.host_memory // BLOCK_PART))
        self._memory = options.host_memory
        self._only = columns

    def _parsed(self) -> Generator[Parsed]:
        return parsed_in_order(self._blocks(), partial(parse_names, sides=self._options.sides), self._options.workers)

    def _blocks(self) -> Iterator[tuple[TextFile, Bytes]]:
        for file, block in super()._blocks():
            file.explain = what_is_wrong
            if self._only is not None:
                file.columns, file.fields = self._only, ANY_FIELDS
            yield file, block


def _begins_with_strings(path: str | Path, options: IngestOptions) -> bool:
    """Whether an end of the first edge of a file is no number; a pipe is not looked into."""
    if str(path) == STANDARD_INPUT:
        return False
    with Stream(path, options.host_memory) as stream:
        for block in text_blocks(stream, options):
            rest, taken, _ = read_layout(block, options, stream.name)
            if taken.width == 0:  # comments alone
                continue
            columns = taken.columns
            line = first_data(rest)
            fields = split_fields(line) if line else []
            ends = [fields[column] for column in (columns.source, columns.target) if column < len(fields)]
            return any(not diagnose.is_number(end) for end in ends)
    return False


def parse_names(block: tuple[TextFile, Bytes], sides: bool) -> Parsed:
    """Parse the whole lines of a block, in any thread."""
    file, text = block
    columns = file.columns
    most = len(text) // (2 if columns.source == columns.target else 4) + 1
    room, _, weights = BUFFERS.room(2 * most, columns.weight >= 0)
    places = room.view(np.int32)[: 4 * most].reshape(most, 4)
    edges, lines, begin = parse_fields(text, (*columns,), file.fields, places, weights)
    bad = bad_at(text, lines, begin)
    names, ends = local_names(text, places[:edges], sides)
    if bad is None and (wrong := not_utf8(text, places, names, sides)) is not None:
        start = text[:wrong].tobytes().rfind(b"\n") + 1
        bad = text[:wrong].tobytes().count(b"\n") + 1, line_at(text, start)
    found = weights[:edges].copy() if columns.weight >= 0 else None
    return Parsed(file, EdgeBatch(ends[:, 0].copy(), ends[:, 1].copy(), found, names=names), lines, bad, text)


def local_names(text: Bytes, places: NDArray[np.int32], sides: bool) -> tuple[LocalNames, NDArray[np.uint32]]:
    """The distinct names among fields, and their numbers, uint32 (m, 2).

    ``places`` int32 (m, 4) are as `fields.parse_fields` gives them.
    """
    edges = len(places)
    numbers = np.empty((edges, 2), np.uint32)
    keys = np.empty((2 * edges, 2), np.uint64)
    firsts = np.empty(2 * edges, np.int64)
    count = int(distinct_fields(text, places, sides, numbers, keys, firsts))
    firsts = firsts[:count]
    size = int(places[firsts >> 1, 1 + 2 * (firsts & 1)].sum(dtype=np.int64)) + sides * count
    names = StringArray(np.empty(size, np.uint8), np.empty(count, np.int64))
    pack_fields(text, places, firsts, int(sides), names.ends, names.text)
    return LocalNames(keys[:count].copy(), firsts, names), numbers


def places_of(lengths: NDArray[np.int32]) -> NDArray[np.int32]:
    """Where fields of these lengths, sources and targets in turn, are end to end: int32 (m, 4), for `local_names`."""
    places = np.empty((len(lengths) // 2, 4), np.int32)
    places[:, 1::2] = lengths.reshape(-1, 2)
    places[:, 0::2] = (np.cumsum(lengths, dtype=np.int32) - lengths).reshape(-1, 2)
    return places


def not_utf8(text: Bytes, places: NDArray[np.int32], found: LocalNames, sides: bool) -> int | None:
    """Where a name that is no UTF-8 lies in ``text``; None if all are."""
    if int(found.names.text.max(initial=0)) < 128:
        return None
    names = found.names
    lines = np.empty(len(names.text) + len(names) * (1 - sides), np.uint8)
    pack_fields(text, places, found.firsts, 2, np.empty(len(names), np.int64), lines)
    try:
        lines.tobytes().decode()
    except UnicodeDecodeError as error:
        first = found.firsts[lines[: error.start].tobytes().count(b"\n")]
        return int(places[first >> 1, 2 * (first & 1)])
    return None


def what_is_wrong(line: str, columns: Columns) -> str:
    """Why a line cannot be read, and the option that would help; empty if each field that is taken is right."""
    found = split_fields(line)
    for column, role in ((columns.source, "source"), (columns.target, "target")):
        if column >= len(found):
            break
        word = found[column]
        reason = bad_name(word)
        if reason:
            return f"{role} {shown(word, SHOWN_FIELD)!r} {reason}"
    return _about_numbers(found, columns)


def bad_name(word: str) -> str:
    """Why a field is no id; empty if it is one."""
    return (
        "is an empty field; --columns names other columns"
        if word == ""
        else f"is longer than {LONGEST_NAME} bytes; --columns names other columns"
        if len(word.encode()) > LONGEST_NAME
        else "holds a zero byte; this is no text"
        if "\0" in word
        else "is not UTF-8; convert the file (iconv -f LATIN1 -t UTF-8)"
        if "\ufffd" in word
        else ""
    )


def _about_numbers(found: list[str], columns: Columns) -> str:
    """What is wrong with the number of fields or the weight."""
    last = max(columns)
    if last >= len(found):
        return (
            f"it has {len(found)} column{'s' * (len(found) != 1)}, and column {last} counted from 0 is wanted; "
            "--columns names others"
        )
    reason = diagnose.bad_weight(found[columns.weight]) if columns.weight >= 0 else ""
    return f"weight {shown(found[columns.weight], SHOWN_FIELD)!r} {reason}" if reason else ""
