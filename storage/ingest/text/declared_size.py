"""Owns text files that declare their size before their edges: every id inside it, no entry more, none less.

MatrixMarket's size line and DIMACS' problem line are such declarations; a file that does not keep to it is
truncated or damaged, and is refused with the line where that shows.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Place
from penstock.storage.ingest.bytes.blocks import Bytes, line_blocks, lines_of
from penstock.storage.ingest.bytes.file import STANDARD_INPUT
from penstock.storage.ingest.bytes.stream import InputFiles, Stream
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.text import diagnose
from penstock.storage.ingest.text.columns import Columns
from penstock.storage.ingest.text.edge_list import Explain, Parsed, TextFile, parse_block, parsed_in_order


@dataclass(frozen=True, slots=True)
class DeclaredSize:
    """What the first lines of a file say: where source, target and weight are in the lines after them, how many
    ``lines`` and ``bytes`` they are, how many ``entries`` follow, the largest id of each end (None: not said), and the
    ``letters`` that begin lines (`parser.parse_lines`)."""

    columns: Columns
    lines: int
    bytes: int
    entries: int = 0
    largest: tuple[int, int] | None = None
    letters: tuple[int, int] | None = None


class DeclaredSource(InputFiles, ABC):
    """One such file. See `core/source.Source`. Its first block is read when it is opened."""

    _line = "size line"
    _ends = ("source", "target")
    _whole = "vertices"
    """What messages call the declaration, the ends of an entry, and what the ids are in."""
    _explain: Explain = staticmethod(diagnose.what_is_wrong)

    def __init__(self, path: Place, options: IngestOptions) -> None:
        super().__init__([path], options)
        self._start()
        try:
            self._size = self._read_size(self._first.tobytes())
        finally:
            if str(path) != STANDARD_INPUT:
                self._stream.close()
        size = self._size.largest
        self.known_vertices = None if size is None else max(size)
        self.one_based = size is not None

    @abstractmethod
    def _read_size(self, first: bytes) -> DeclaredSize:
        """The declaration in the file's first bytes."""

    def _is_entry(self, line: str) -> bool:
        """Whether a line is an entry, as the parser has it."""
        return diagnose.is_data(line)

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the entries as edges, in order.

        Raises:
            InputError: a line is no entry, an id is outside of what is declared, or entries are more or fewer.
        """
        if str(self._paths[0]) != STANDARD_INPUT:
            self._start()
        with self._stream as stream:
            size = self._size
            file = TextFile(stream, size.columns, size.lines, explain=self._explain, letters=size.letters)
            parse = partial(parsed_in_order, parse=parse_block, workers=self._options.workers)
            for parsed in self._in_step(self._text(file), parse):
                batch = parsed.batch
                self._check(parsed, file.edges)
                if len(batch):
                    first = batch.sources.dtype.type(self.one_based)
                    weights = None if self._options.weights is False else batch.weights
                    yield EdgeBatch(batch.sources - first, batch.targets - first, weights)
            self._check_end(file.edges)

    def _start(self) -> None:
        """Open the file and read its first block."""
        self._open = self._stream = Stream(self._paths[0], self._options.host_memory)
        self._blocks = line_blocks(self._stream, self._options.block_bytes)
        self._first = next(self._blocks, np.empty(0, np.uint8))

    def _text(self, file: TextFile) -> Iterator[tuple[TextFile, Bytes]]:
        if self._size.bytes < len(self._first):
            yield file, self._first[self._size.bytes :]
        for block in self._blocks:
            yield file, block

    def _check(self, parsed: Parsed, before: int) -> None:
        """Refuse a block of edges, ``before`` of which came earlier, with one more than declared, or an id outside."""
        size, batch = self._size, parsed.batch
        if size.largest is None:
            return
        if before + len(batch) > size.entries:
            line, text = self._entry_line(parsed, size.entries - before)
            raise InputError(
                f"{self.name}, line {line}: its {self._line} says {size.entries} entries, and here "
                f"is one more; correct the {self._line}\n    {diagnose.shown(text)}"
            )
        for ids, largest, word in zip((batch.sources, batch.targets), size.largest, self._ends, strict=True):
            at = first_outside(ids, largest)
            if at is not None:
                line, text = self._entry_line(parsed, at)
                raise InputError(
                    f"{self.name}, line {line}: {word} {ids[at]} is outside 1..{largest}, the {self._whole} "
                    f"that its {self._line} states; correct the line\n    {diagnose.shown(text)}"
                )

    def _check_end(self, entries: int) -> None:
        """Refuse fewer entries than declared."""
        if self._size.largest is not None and entries < self._size.entries:
            raise InputError(
                f"{self.name}: its {self._line} says {self._size.entries} entries, and it ends after "
                f"{entries}: the file is truncated, or its {self._line} is wrong; fetch it "
                "again, or correct the line"
            )

    def _entry_line(self, parsed: Parsed, entry: int) -> tuple[int, str]:
        """Line number and text of the ``entry``-th entry of a block."""
        entries = (line for line in lines_of(parsed.text) if self._is_entry(line[1]))
        number, line, _ = next(islice(entries, entry, None))
        return parsed.lines_before + number, line


def first_outside(ids: NDArray[Any], size: int) -> int | None:
    """Where the first id outside 1..``size`` is, if there is one."""
    if len(ids) == 0 or (int(ids.min()) >= 1 and int(ids.max()) <= size):
        return None
    outside = ids == 0
    if int(ids.max()) > size:
        outside |= ids > ids.dtype.type(size)
    return int(np.argmax(outside))
