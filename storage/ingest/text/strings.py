"""Text: blanks, tabs or commas between fields, `#` and `%` comments, a header; ids are numbers or strings.

Numbers are read as `edge_list` says. Of strings every batch brings its distinct names and counts with their numbers.
Lines are the same, but an id is any field (``7`` and ``07`` are two); with ``sides`` a source and a target of the same
name are two vertices, and every name is preceded by a byte, 1 or 2, that says which. Refuses ids that are empty, longer
than 65,535 bytes, not UTF-8, or hold a zero byte.

The compiled half finds the fields of lines, and the distinct names among those of a block. A name is known by 128 bits
of hash, so that no names are kept to compare with: among 10^9 names two share one with probability 10^-21. Each 64-bit
half mixes eight bytes at a time by xor, multiply and shift (after Appleby's MurmurHash64A) with its own constants.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.storage.encoding.string_array import LONGEST_NAME, StringArray
from penstock.storage.ingest.bytes.blocks import Bytes, line_at
from penstock.storage.ingest.bytes.file import STANDARD_INPUT
from penstock.storage.ingest.bytes.stream import Stream
from penstock.storage.ingest.core.edges import EdgeBatch, LocalNames
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
from penstock.storage.ingest.text.parser import (
    ANY_FIELDS,
    BAD_LINE,
    NEWLINE,
    byte_at,
    is_blank,
    line_end,
    next_field,
    skip_field,
    skip_line,
    weight_at,
)

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

    ``places`` int32 (m, 4) are as `parse_fields` gives them.
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


_K1 = np.uint64(0xC6A4A7935BD1E995)
_K2 = np.uint64(0x9FB21C651E98DF25)
_FINAL = np.uint64(0xFF51AFD7ED558CCD)
_47 = np.uint64(47)
_29 = np.uint64(29)
_32 = np.uint64(32)


@jit
def parse_fields(
    text: NDArray[np.uint8],
    columns: tuple[int, int, int],
    fields: tuple[int, int],
    places: NDArray[np.int32],
    weights: NDArray[np.float64],
) -> tuple[int, int, int]:
    """As `parser.parse_lines`, but ids are any fields: ``places`` int32 (m, 4) takes where source and target
    begin and how long they are. Empty fields, names too long and zero bytes are bad.

    Returns:
        edges found, lines passed, where the first bad line begins (-1: none).
    """
    last_column = max(columns)
    at = 0
    edges = 0
    lines = 0
    while at < len(text):
        begin = at
        while is_blank(byte_at(text, at)):
            at += 1
        if byte_at(text, at) != NEWLINE and byte_at(text, at) != 35 and byte_at(text, at) != 37:
            for column in range(last_column + 1):
                at = next_field(text, at, column)
                if at == BAD_LINE:
                    return edges, lines, begin
                start = at
                if column == columns[2]:
                    weights[edges], at = weight_at(text, at)
                    if at == BAD_LINE:
                        return edges, lines, begin
                else:
                    at = skip_field(text, at)
                if column == columns[0] or column == columns[1]:
                    if at == start or at - start > LONGEST_NAME or has_zero(text, start, at):
                        return edges, lines, begin
                    if column == columns[0]:
                        places[edges, 0] = start
                        places[edges, 1] = at - start
                    if column == columns[1]:
                        places[edges, 2] = start
                        places[edges, 3] = at - start
            at = line_end(text, at, last_column + 1, fields)
            if at == BAD_LINE:
                return edges, lines, begin
            edges += 1
        else:
            at = skip_line(text, at)
        lines += 1
    return edges, lines, BAD_LINE


@jit
def has_zero(text: NDArray[np.uint8], start: int, end: int) -> bool:
    """Whether a zero byte is among some bytes."""
    at = start
    while at < end and byte_at(text, at) != 0:
        at += 1
    return at < end


@jit
def hash_name(text: NDArray[np.uint8], start: int, length: int, side: int) -> tuple[Any, Any]:
    """128 bits of hash of a name; ``side`` sets equal names apart."""
    one = (np.uint64(length) * _K2) ^ np.uint64(side + 1)
    two = (np.uint64(length) + np.uint64(side)) * _K1 ^ _FINAL
    at = start
    left = length
    while left > 0:
        word = np.uint64(0)
        for i in range(min(left, 8)):
            word |= np.uint64(text[at + i]) << np.uint64(8 * i)
        at += 8
        left -= 8
        mixed = word * _K1
        mixed = (mixed ^ (mixed >> _47)) * _K1
        one = (one ^ mixed) * _K1
        two = (two ^ (word ^ (word >> _32))) * _K2
        two ^= two >> _29
    one = (one ^ (one >> _47)) * _FINAL
    two = (two ^ (two >> _32)) * _FINAL
    return one ^ (one >> _32), two ^ (two >> _29)


@jit
def distinct_fields(
    text: NDArray[np.uint8],
    places: NDArray[np.int32],
    sides: bool,
    numbers: NDArray[np.uint32],
    keys: NDArray[np.uint64],
    firsts: NDArray[np.int64],
) -> int:
    """Number the distinct names among ``places`` in the order in which they come, source before target.

    ``sides``: a name as source and the same as target are two. ``numbers`` uint32 (m, 2) takes the
    numbers, ``keys`` uint64 (2m, 2) the hash of each distinct name, ``firsts`` int64 (2m,) where it
    came first: twice the line, plus one as a target. Returns how many there are.
    """
    capacity = 16
    while capacity < 4 * len(places):
        capacity *= 2
    slots = np.zeros(capacity, np.uint32)
    count = 0
    for i in range(len(places)):
        for end in range(2):
            one, two = hash_name(text, places[i, 2 * end], places[i, 2 * end + 1], end if sides else 0)
            number = find_or_add(one, two, keys, slots, count)
            numbers[i, end] = number
            if number == count:
                firsts[count] = 2 * i + end
                count += 1
    return count


@jit
def find_or_add(one: Any, two: Any, keys: NDArray[np.uint64], slots: NDArray[np.uint32], count: int) -> Any:
    """The number of a key (two halves) among the ``count`` in ``keys``; ``count`` if it is new, and was added.

    ``slots``, 2^n, hold numbers plus one, 0 where free.
    """
    mask = np.uint64(len(slots) - 1)
    slot = one & mask
    while slots[slot] != 0:
        number = np.int64(slots[slot]) - 1
        if keys[number, 0] == one and keys[number, 1] == two:
            return number
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = count + 1
    keys[count, 0] = one
    keys[count, 1] = two
    return count


@jit
def pack_fields(
    text: NDArray[np.uint8],
    places: NDArray[np.int32],
    firsts: NDArray[np.int64],
    apart: int,
    ends: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Copy the fields that `distinct_fields` found into ``out``, and where each ends into ``ends``.

    ``apart`` 1: a byte before each, 1 for a source and 2 for a target; 2: a newline after each; 0: nothing.
    """
    at = 0
    for i in range(len(firsts)):
        line = firsts[i] >> 1
        end = firsts[i] & 1
        if apart == 1:
            out[at] = 1 + end
            at += 1
        start = places[line, 2 * end]
        for j in range(start, start + places[line, 2 * end + 1]):
            out[at] = text[j]
            at += 1
        if apart == 2:
            out[at] = NEWLINE
            at += 1
        ends[i] = at
