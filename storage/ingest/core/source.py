"""Owns what a raw input may be told, and what every input promises.

A `Source` is anything that yields bounded edge batches in input order: a file, several, standard
input, a generator. Conversion knows nothing else about where edges come from. Refuses to read.
"""

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import cores
from penstock.storage.base.errors import InputError, brief
from penstock.storage.ingest.core.edges import EdgeBatch

SMALLEST_BLOCK = 64 << 10
LARGEST_BLOCK = 4 << 20
THREAD_BYTES = 12 << 20
LONGEST_VALUE = 1 << 20
"""Bytes of the longest value that an input may have: a name, an attribute, a cell of a table or a database."""
DELIMITERS = (",", ";", "\t", "|")
"""What divides the columns of CSV, looked for in this order."""


class Source(Protocol):
    """Edges in input order.

    ``total_bytes`` is the size of the input as it lies on disk (None if unknown, as on a pipe) and
    ``bytes_done`` how much of it was read; ``known_vertices`` is a vertex count that the input
    states (None if it must be found); ``undirected`` says that the input states that each edge is
    undirected. Where the input counts vertices from 1 (and the edges given from 0), there is also a
    true ``one_based``; where ids are strings, a true ``named``, and batches have `EdgeBatch.names`.
    """

    @property
    def name(self) -> str:
        """For messages and provenance."""
        ...

    @property
    def total_bytes(self) -> int | None:
        """Size of the input."""
        ...

    @property
    def bytes_done(self) -> int:
        """How much of it was read."""
        ...

    @property
    def known_vertices(self) -> int | None:
        """Vertices, if stated."""
        ...

    @property
    def undirected(self) -> bool:
        """Whether each edge is stated to be undirected."""
        ...

    def batches(self) -> Generator[EdgeBatch]:
        """Yield the edges, once."""
        ...


@dataclass(frozen=True, slots=True)
class RowPiece:
    """Some edges of a source that lie row by row: those of the rows from vertex ``first`` on.

    ``offsets`` (int64, rows + 1) says where each row begins and where the last ends, counted over all edges.
    A row too long for a piece lies in several, which have no other row and are not ``whole``.
    """

    first: int
    offsets: NDArray[np.int64]
    whole: bool = True

    @property
    def edges(self) -> int:
        """Edges of the piece."""
        return int(self.offsets[-1] - self.offsets[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """How to read raw input.

    ``columns`` names or numbers (from 0) the source, the target and, third, the weight column;
    None takes the first two. ``weights``: True takes a third column as weight, False drops weights,
    None does what the format says (text and Parquet: none; MatrixMarket and CSR: if present).
    ``header``: the first line holds column names (None: find out). ``comment``: one character that begins lines of
    comments in text, as # and % do. ``delimiter``: the one character that divides the columns of CSV (None: found out).
    ``query``: what to read of a database; ``query_reads``: files and folders that DuckDB may read for it.
    ``edge_properties``: columns to keep beside the edges, by name, perhaps with a type (``amount:float``).
    ``string_ids``: ids are strings, of text or Parquet (None: if the first line says so). ``sides``: ids of sources and
    of targets are two spaces. ``host_memory`` bounds what reading may hold, in bytes; ``scratch`` is a folder for what
    DuckDB does not hold (None: the system's). ``threads`` is the number of parsing threads (None: every core).
    """

    columns: tuple[int | str, ...] | None = None
    weights: bool | None = None
    header: bool | None = None
    comment: str | None = None
    delimiter: str | None = None
    query: str | None = None
    query_reads: tuple[Path, ...] = ()
    scratch: Path | None = None
    edge_properties: tuple[str, ...] = ()
    string_ids: bool | None = False
    sides: bool = False
    host_memory: int = 1 << 30
    threads: int | None = None

    def __post_init__(self) -> None:
        mark = self.delimiter
        if mark is not None and (len(mark) != 1 or not mark.isascii() or mark.isalnum() or mark in '"\r\n\0.+-'):
            shown = brief(mark)
            raise InputError(f"--delimiter {shown!r} is not one character that may divide columns, like ';' or tab")
        begins = self.comment
        if begins is not None and (len(begins) != 1 or not begins.isascii() or begins.isdigit() or begins.isspace()):
            raise InputError(f"--comment {brief(begins)!r} is not one character that begins no edge, like '/' or ';'")
        columns = self.columns
        if columns is None:
            return
        if len(columns) not in (2, 3) or len(set(columns)) != len(columns):
            raise InputError(
                f"--columns {','.join(map(str, columns))} must name two different columns (source, "
                "target) or three (source, target, weight), for instance --columns 0,1,2"
            )
        if any(isinstance(column, int) and column < 0 for column in columns):
            raise InputError(f"--columns {columns}: columns are counted from 0")
        if self.weights is True and len(columns) == 2:
            raise InputError("--weights with --columns needs a third column: the weight's")
        if self.weights is False and len(columns) == 3:
            raise InputError("--columns names a weight column, and weights are to be dropped")

    @property
    def workers(self) -> int:
        """Threads that parse: as many as the memory can feed."""
        wanted = self.threads if self.threads is not None else cores()
        return max(1, min(wanted, self.host_memory // THREAD_BYTES))

    @property
    def block_bytes(self) -> int:
        """Input bytes parsed at once, so that all blocks and their results fit our quarter.

        A block of text becomes at most 2.7 times its size of edges (twice without weights), waits with ``workers``
        others, and is parsed into a thread's own buffers of six times its size.
        """
        blocks = 10 * self.workers + 8
        return min(LARGEST_BLOCK, max(SMALLEST_BLOCK, self.host_memory // 4 // blocks))


def parse_delimiter(text: str) -> str:
    """The character that ``","``, ``"tab"``, ``"comma"`` and the like name, for `IngestOptions`."""
    return {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}.get(text.lower(), text)


def parse_names(text: str | None) -> tuple[str, ...]:
    """Turn ``"amount,kind"`` into names; None into none."""
    return () if text is None else tuple(name.strip() for name in text.split(","))


def parse_columns(text: str) -> tuple[int | str, ...]:
    """Turn ``"0,1,2"`` or ``"source,target"`` into columns for `IngestOptions`."""
    names = [name.strip() for name in text.split(",")]
    return tuple(int(name) if name.isascii() and name.isdigit() and len(name) < 10 else name for name in names)
