"""Owns MatrixMarket files: an entry (row, column) is an edge, ids become zero-based.

Takes coordinate matrices, real, integer (double) or pattern; ``symmetric`` (or real ``hermitian``)
says that the graph is undirected. A rectangular matrix has as many vertices as its longer side.
Values are weights. The banner may be indented or begin with one ``%``, as most readers allow.
Refuses dense arrays and vectors (no graphs), complex values, skew symmetry (the two directions of an
edge would have opposite weights), and files whose size line does not tell the truth. The format
is that of Boisvert, Pozo, Remington (NIST, 1996).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from penstock.storage.base.errors import InputError
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.ingest.bytes.blocks import Bytes, line_blocks
from penstock.storage.ingest.bytes.file import STANDARD_INPUT
from penstock.storage.ingest.bytes.stream import Stream
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.text.columns import Columns
from penstock.storage.ingest.text.declared_size import DeclaredSize
from penstock.storage.ingest.text.diagnose import is_data, shown
from penstock.storage.ingest.text.edge_list import TextFile, parse_blocks

BANNERS = ("%%matrixmarket", "%matrixmarket")
_VALUES = {"real": True, "double": True, "integer": True, "pattern": False}


@dataclass(frozen=True, slots=True)
class MatrixHeader:
    """What banner and size line say, and how many lines they took."""

    rows: int
    columns: int
    entries: int
    valued: bool
    symmetric: bool
    lines: int


def has_banner(first: bytes) -> bool:
    """Whether a file that begins so is a MatrixMarket file, or was meant to be one."""
    return first.lstrip(b" \t\xef\xbb\xbf").lower().startswith((b"%%matrix", b"%matrixmarket"))


class MatrixMarketSource:
    """One MatrixMarket file. See `options.Source`."""

    one_based = True

    def __init__(self, path: str | Path, options: IngestOptions) -> None:
        self.name = str(path)
        self._path = path
        self._options = options
        self._stream = Stream(path, options.host_memory)
        self.total_bytes = self._stream.raw_bytes
        self._blocks = line_blocks(self._stream, options.block_bytes)
        try:
            self._first = next(self._blocks, np.empty(0, np.uint8))
            self._header, self._start = read_header(self._first.tobytes(), self.name)
        finally:
            if str(path) != STANDARD_INPUT:
                self._stream.close()
        self.known_vertices = max(self._header.rows, self._header.columns)
        self.undirected = self._header.symmetric

    @property
    def bytes_done(self) -> int:
        """Bytes of input read so far, as they lie on disk."""
        return self._stream.raw_done

    def batches(self) -> Iterator[EdgeBatch]:
        """Yield the entries as edges, in order.

        Raises:
            InputError: a line is no entry, an index is outside the matrix, or there are more or
                fewer entries than the size line says.
        """
        header = self._header
        keep = header.valued and self._options.weights is not False
        if self._options.weights and not header.valued:
            raise InputError(f"{self.name} is a pattern: it has no values to take as weights")
        if str(self._path) != STANDARD_INPUT:
            self._stream = Stream(self._path, self._options.host_memory)
            self._blocks = line_blocks(self._stream, self._options.block_bytes)
            self._first = next(self._blocks)
        size = (header.rows, header.columns)
        promise = DeclaredSize(self.name, "size line", header.entries, size, ("row", "column"), "matrix")
        with self._stream as stream:
            file = TextFile(stream, Columns(0, 1, 2 if header.valued else -1), header.lines)
            for parsed in parse_blocks(self._text(file), self._options.workers):
                batch = parsed.batch
                promise.check(parsed, file.edges)
                if len(batch):
                    one = batch.sources.dtype.type(1)
                    yield EdgeBatch(batch.sources - one, batch.targets - one, batch.weights if keep else None)
            promise.check_end(file.edges)

    def _text(self, file: TextFile) -> Iterator[tuple[TextFile, Bytes]]:
        if self._start < len(self._first):
            yield file, self._first[self._start :]
        for block in self._blocks:
            yield file, block


def read_header(first: bytes, name: str) -> tuple[MatrixHeader, int]:
    """Read banner, comments and size line from a file's first bytes.

    Returns:
        the header, and where the entries begin.

    Raises:
        InputError: there is no banner, it asks for what is no graph, or no size line follows.
    """
    lines = first.split(b"\n")
    banner = lines[0].decode("utf-8", "replace")
    valued, symmetric = _read_banner(banner, name)
    at = len(lines[0]) + 1
    for number, raw in enumerate(lines[1:], start=2):
        line = raw.decode("utf-8", "replace")
        at += len(raw) + 1
        if is_data(line):
            rows, columns, entries = _read_sizes(line, number, name)
            return MatrixHeader(rows, columns, entries, valued, symmetric, number), at
    raise InputError(f"{name}: the size line (rows columns entries) is missing; fetch it again")


def _read_banner(line: str, name: str) -> tuple[bool, bool]:
    words = line.split()
    if not words or words[0].lower() not in BANNERS:
        raise InputError(
            f"{name}, line 1: a MatrixMarket file begins with %%MatrixMarket, and this one does "
            f"not; --format text reads a bare list of edges\n    {shown(line)}"
        )
    words = [word.lower() for word in words[1:]]

    def refuse(reason: str) -> InputError:
        return InputError(f"{name}, line 1: {reason}\n    {shown(line)}")

    if len(words) != 4:
        raise refuse("the banner needs four words: matrix coordinate FIELD SYMMETRY; correct it")
    kind, layout, field, symmetry = words
    if kind != "matrix":
        raise refuse(f"{kind!r} is no graph; only 'matrix' is")
    if layout != "coordinate":
        raise refuse(
            f"the layout {layout!r} is not supported, only 'coordinate' is: a dense array has "
            "every edge; write the entries that are edges in coordinate layout"
        )
    if field not in _VALUES:
        raise refuse(f"values of type {field!r} cannot be weights; use real, integer or pattern")
    if symmetry not in ("general", "symmetric", "hermitian"):
        raise refuse(
            f"the symmetry {symmetry!r} is not supported, only general and symmetric are; write the matrix as general"
        )
    return _VALUES[field], symmetry != "general"


def _read_sizes(line: str, number: int, name: str) -> tuple[int, int, int]:
    words = line.split()
    if len(words) != 3 or not all(word.isascii() and word.isdigit() for word in words):
        raise InputError(
            f"{name}, line {number}: the size line must be three whole numbers, rows columns "
            f"entries; correct it\n    {shown(line)}"
        )
    rows, columns, entries = (int(word) for word in words)
    if max(rows, columns) >= 1 << 64:
        raise InputError(f"{name}, line {number}: a matrix larger than 2^64 - 1 has no vertex ids\n    {shown(line)}")
    return rows, columns, entries
