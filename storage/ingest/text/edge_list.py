"""Text: blanks, tabs or commas between fields, `#` and `%` comments, a header; ids are numbers or strings.

Blocks of lines are parsed on every core, in any order, and yielded in that of the input; only the consumer counts
lines. Takes the first two columns unless the options name others; further columns are not read, but
where no columns are named every line has as many as the file's first one. A first line of column names is recognized;
CRLF, a byte-order mark, empty lines and a missing last newline are no matter. Where ids are strings any field is one
(``7`` and ``07`` are two), and every batch has its distinct names and counts with their numbers. Refuses,
naming file, line and text, whatever is neither, and strings that are empty, longer than 65,535 bytes, not UTF-8, or
have a zero byte.
"""

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Place
from penstock.storage.base.threads import ThreadPool, ordered_map
from penstock.storage.ingest.bytes.blocks import NEWLINE, Bytes, line_at, line_blocks, lines_of
from penstock.storage.ingest.bytes.file import STANDARD_INPUT
from penstock.storage.ingest.bytes.stream import InputFiles, Stream
from penstock.storage.ingest.core.edge_columns import KeptCells
from penstock.storage.ingest.core.edges import EdgeBatch, local_names, not_utf8
from penstock.storage.ingest.core.formats import refuse_content
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.text import diagnose
from penstock.storage.ingest.text.columns import (
    Columns,
    TakenColumns,
    choose_columns,
    find_columns,
    known_header,
    note_columns,
)
from penstock.storage.ingest.text.parser import ANY_FIELDS, has_lone_return, parse_lines

UINT32_END = 1 << 32
SAMPLE_BYTES = 4 << 10
HASH = ord("#")
BLOCK_PART = 4
"""Blocks of names are so much smaller than those of numbers, because what they come to is larger: 100 bytes an edge."""
Explain = Callable[[str, Columns], str]
"""Says what is wrong with a line; empty: it has more or fewer fields than the first one."""


@dataclass(slots=True)
class TextFile:
    """One file while it is read: its stream, its layout, how many lines were passed, who explains a bad one.

    ``fields``: the least and the most that a line has. ``letters``: those that begin its lines (`parse_lines`). Of CSV
    ``delimiter`` divides ``width`` columns, ``named`` says whether ids are strings, and ``kept`` has the cells that
    stay beside edges.
    """

    stream: Stream
    columns: Columns
    lines: int = 0
    edges: int = 0
    explain: Explain = diagnose.what_is_wrong
    fields: tuple[int, int] = ANY_FIELDS
    letters: tuple[int, int] | None = None
    delimiter: str = ","
    width: int = 2
    named: bool = False
    kept: KeptCells | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a block of lines came to: its edges, or (in ``bad``) its first bad line and the text.

    ``lines_before`` counts the file's lines before the block, once the consumer knows."""

    file: TextFile
    batch: EdgeBatch
    lines: int
    bad: tuple[int, str] | None
    text: Bytes
    lines_before: int = 0


class _Buffers(threading.local):
    """What every thread that parses has for the edges of a block."""

    def __init__(self) -> None:
        self._sources, self._targets = np.empty(0, np.uint64), np.empty(0, np.uint64)
        self._weights = np.empty(0, np.float64)

    def room(self, edges: int, weighted: bool) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.float64]]:
        """Sources, targets and weights of at least so many edges (no weights: perhaps fewer)."""
        if len(self._sources) < edges:
            self._sources, self._targets = np.empty(edges, np.uint64), np.empty(edges, np.uint64)
        if weighted and len(self._weights) < edges:
            self._weights = np.empty(len(self._sources), np.float64)
        return self._sources, self._targets, self._weights


BUFFERS = _Buffers()


def parse_block(block: tuple[TextFile, Bytes]) -> Parsed:
    """Parse the whole lines of a block, in any thread."""
    file, text = block
    columns = file.columns
    layout = (*columns,), file.fields
    sources, targets, weights = BUFFERS.room(_most_edges(text, columns), columns.weight >= 0)
    edges, passed, begin, largest = parse_lines(text, layout, file.letters, (sources, targets), None, weights)
    found = weights[:edges] if columns.weight >= 0 else None
    batch = narrow_batch(sources[:edges], targets[:edges], found, largest)
    return Parsed(file, batch, passed, bad_at(text, passed, begin), text)


def parse_names(block: tuple[TextFile, Bytes], sides: bool) -> Parsed:
    """As `parse_block`, of ids that are strings; ``sides``: those of sources and of targets are two spaces."""
    file, text = block
    columns = file.columns
    most = _most_edges(text, columns)
    room, _, weights = BUFFERS.room(2 * most, columns.weight >= 0)
    places = room.view(np.int32)[: 4 * most].reshape(most, 4)
    edges, passed, begin, _ = parse_lines(text, ((*columns,), file.fields), None, None, places, weights)
    bad = bad_at(text, passed, begin)
    names, ends = local_names(text, places[:edges], sides)
    if bad is None and (wrong := not_utf8(text, places, names, sides)) is not None:
        start = text[:wrong].tobytes().rfind(b"\n") + 1
        bad = text[:wrong].tobytes().count(b"\n") + 1, line_at(text, start)
    found = weights[:edges].copy() if columns.weight >= 0 else None
    return Parsed(file, EdgeBatch(ends[:, 0].copy(), ends[:, 1].copy(), found, names=names), passed, bad, text)


def _most_edges(text: Bytes, columns: Columns) -> int:
    return len(text) // (2 if columns.source == columns.target else 4) + 1


def narrow_batch(
    sources: NDArray[np.uint64], targets: NDArray[np.uint64], weights: NDArray[np.float64] | None, largest: int
) -> EdgeBatch:
    """A copy of parsed edges in the narrowest dtype that holds ``largest``."""
    dtype = np.uint32 if largest < UINT32_END else np.uint64
    return EdgeBatch(sources.astype(dtype), targets.astype(dtype), None if weights is None else weights.copy())


def bad_at(text: Bytes, lines: int, begin: int) -> tuple[int, str] | None:
    """The number (from 1) and the text of the bad line that a parser found after ``lines`` good ones; None for -1."""
    return None if begin < 0 else (lines + 1, line_at(text, begin))


class TextSource(InputFiles):
    """Edge lists in text, one file after another. See `core/source.Source`.

    named: ids are strings, numbers of a batch's ``names``; columns: those to take, whatever a header says.
    Once reading has begun: ``passed_over``, what may be the first edge's weight, if none was asked for nor refused;
    ``columns_taken``, which columns are source, target and weight, of every file that differs.
    """

    def __init__(
        self,
        paths: Sequence[Place],
        options: IngestOptions,
        *,
        named: bool = False,
        columns: Columns | None = None,
    ) -> None:
        super().__init__(paths, options)
        self.named, self._columns = named, columns
        part = BLOCK_PART if named or options.edge_properties else 1
        self._parsing = replace(options, host_memory=options.host_memory // part)
        self.passed_over: str | None = None
        self.columns_taken: list[TakenColumns] = []

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the edges of every block of every file, in order.

        Raises:
            InputError: a file is absent, damaged, or has a line that is no edge.
        """
        for parsed in self._parsed():
            if len(parsed.batch):
                yield parsed.batch

    def place_of(self, edge: int) -> tuple[str, int, str] | None:
        """Return the file, the line (from 1) and its text of an edge (from 0), for a message; None of a pipe.

        Reads the input once more.
        """
        if self.total_bytes is None:
            return None
        with closing(self._parsed()) as blocks:
            for parsed in blocks:
                if edge < len(parsed.batch):
                    number, line = self._line_of(parsed, edge)
                    return parsed.file.stream.name, parsed.lines_before + number, line
                edge -= len(parsed.batch)
        return None

    def _line_of(self, parsed: Parsed, edge: int) -> tuple[int, str]:
        """The number (from 1) and the text of the line of an edge (from 0) of a block."""
        number, line, _ = next(islice(_data_lines(parsed.text), edge, None))
        return number, line.rstrip("\r")

    def _parsed(self) -> Generator[Parsed]:
        parse = partial(parse_names, sides=self._options.sides) if self.named else parse_block
        return self._in_step(self._blocks(), partial(parsed_in_order, parse=parse, workers=self._parsing.workers))

    def _blocks(self) -> Iterator[tuple[TextFile, Bytes]]:
        for stream in self._streams():
            explain = diagnose.what_is_wrong_with_names if self.named else diagnose.what_is_wrong
            file = TextFile(stream, Columns(), explain=explain)
            begun = False
            for block in text_blocks(stream, self._parsing):
                if not begun:
                    block, taken, passed = read_layout(block, self._options, stream.name)
                    file.lines += passed
                    if begun := taken.width > 0:
                        file.columns, file.fields = taken.columns, _fields(taken, block, self._options)
                        if self._columns is not None:
                            file.columns, file.fields = self._columns, ANY_FIELDS
                        note_columns(self.columns_taken, taken)
                        self.passed_over = self.passed_over or _third_number(block, self._options)
                yield file, block


def text_source(paths: Sequence[Place], options: IngestOptions) -> TextSource:
    """Edge lists as a source, of strings where the options or the first line say so."""
    named = _begins_with_strings(paths[0], options) if options.string_ids is None else options.string_ids
    return TextSource(paths, options, named=named)


def _begins_with_strings(path: Place, options: IngestOptions) -> bool:
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
            fields = diagnose.split_fields(line) if line else []
            ends = [fields[column] for column in (columns.source, columns.target) if column < len(fields)]
            return any(not diagnose.is_number(end) for end in ends)
    return False


def text_blocks(stream: Stream, options: IngestOptions) -> Iterator[Bytes]:
    """Yield blocks of whole lines; the option's character at the start of a comment is `#` in them."""
    for block in line_blocks(stream, options.block_bytes):
        if options.comment is not None:
            found = np.flatnonzero(block == ord(options.comment))
            block[found[(found == 0) | (block[found - 1] == NEWLINE)]] = HASH
        yield block


def read_ids(path: Place, options: IngestOptions) -> Iterator[NDArray[Any]]:
    """Yield the ids of a list of vertices: the first column of a text file, a block at a time.

    Raises:
        InputError: the file is absent, damaged, or has a line that begins with no id.
    """
    with Stream(path, options.host_memory) as stream:
        file = TextFile(stream, Columns(0, 0))
        blocks = ((file, block) for block in line_blocks(stream, options.block_bytes))
        for parsed in parsed_in_order(blocks, parse_block, options.workers):
            if len(parsed.batch):
                yield parsed.batch.sources


Block = TypeVar("Block")


def parsed_in_order(blocks: Iterable[Block], parse: Callable[[Block], Parsed], workers: int) -> Generator[Parsed]:
    """Parse blocks on ``workers`` threads; yield them in order, lines counted.

    Raises:
        InputError: the first bad line, in the order of the input.
    """
    with (
        ThreadPool(workers, "parse") as pool,
        closing(ordered_map(pool, parse, blocks, workers + 2)) as results,
    ):
        for parsed in results:
            file = parsed.file
            if parsed.bad is not None:
                number, line = parsed.bad
                reason = file.explain(line, file.columns) or diagnose.other_width(line, file.columns, file.fields[0])
                raise diagnose.bad_line(file.stream.name, file.lines + number, line, reason)
            yield replace(parsed, lines_before=file.lines)
            file.lines += parsed.lines
            file.edges += len(parsed.batch)


def read_layout(block: Bytes, options: IngestOptions, name: str) -> tuple[Bytes, TakenColumns, int]:
    """Find the columns of a file from its first block with a line of data.

    Returns:
        the block after its header line, the columns (of width 0 without such a line), and how many lines were passed.

    Raises:
        InputError: the content is another format; a column is named that the header does not have; the header does
            not say which columns are source and target.
    """
    refuse_content(block[:SAMPLE_BYTES].tobytes(), name)
    if has_lone_return(block):
        raise InputError(
            f"{name} holds binary data and is no text; --format names what it is"
            if bool((block[:SAMPLE_BYTES] == 0).any())
            else about_returns(name)
        )
    data = _data_lines(block)
    passed, line, at = next(data, (0, "", 0))
    fields = diagnose.split_fields(line) if line else []
    names: list[str] = []
    if line and options.header is not False:
        _, following, _ = next(data, (0, "", 0))
        if options.header or _is_header(line, following, options):
            names = [field.strip("\"'") for field in fields]
    columns = _columns(names, options, name)
    width = len(names) or (diagnose.count_fields(line, max(columns) + 1)[1] if line else 0)
    taken = TakenColumns(name, columns, tuple(names), width)
    return (block[at:], taken, passed) if names else (block, taken, 0)


def _fields(taken: TakenColumns, block: Bytes, options: IngestOptions) -> tuple[int, int]:
    """The least and the most fields of the lines of a file that begins so, behind its header."""
    if options.columns is not None:
        return ANY_FIELDS
    if taken.names:
        return taken.width, taken.width
    return diagnose.count_fields(first_data(block), max(taken.columns) + 1)


def about_returns(name: str) -> str:
    """The error of a file whose lines end as no text's lines do today."""
    return f"{name}: its lines end in carriage returns alone, as on old Macintoshes; convert it (tr '\\r' '\\n' < FILE)"


def _third_number(block: Bytes, options: IngestOptions) -> str | None:
    """The third field of the first edge, if it is a number and nothing is said of weights."""
    asked = options.weights is not None or options.columns is not None
    third = [] if asked else diagnose.split_fields(first_data(block))[2:3]
    return diagnose.shown(third[0], diagnose.SHOWN_FIELD) if third and diagnose.is_number(third[0]) else None


def _is_header(line: str, following: str, options: IngestOptions) -> bool:
    """A first line of names: known ones, or any if the next line has numbers (else ids are strings)."""
    if not diagnose.looks_like_header(line):
        return False
    if known_header(diagnose.split_fields(line)):
        return True
    if not following:
        return options.string_ids is False
    return any(map(diagnose.is_number, diagnose.split_fields(following)))


def _columns(names: list[str], options: IngestOptions, name: str) -> Columns:
    """The columns that the options name; else those that the header does; else the first ones."""
    if options.columns is not None:
        return find_columns(names, options.columns, name)
    if names:
        return choose_columns(names, len(names), options.weights, name)
    return Columns(0, 1, 2) if options.weights else Columns(0, 1)


def first_data(block: Bytes) -> str:
    """The first line of data in a block; empty if there is none."""
    return next(_data_lines(block), (0, "", 0))[1]


def _data_lines(block: Bytes) -> Iterator[tuple[int, str, int]]:
    """Those of `lines_of` that are neither empty nor comments."""
    return (line for line in lines_of(block) if diagnose.is_data(line[1]))
