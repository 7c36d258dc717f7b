"""The formats of tables, a record each: which tables are written so, how files are named, who writes them, how large.

A new format is a record here, and a function of `arrow_files.py` that writes record batches from their beginning to
their end; formats that are not written so belong to the writers of what they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, get_args, get_type_hints

from penstock.storage.base.errors import InputError, for_python

if TYPE_CHECKING:
    import numpy as np

ANSWERS, EDGES, PAIRS, WALKS = "answers", "edges", "pairs", "walks"


@dataclass(frozen=True)
class StyleOption:
    """What an option of output does, as the command line says it, and with which formats of text it begins."""

    help: str
    formats: tuple[str, ...]


class TableStyle(TypedDict, total=False):
    """Options of output, for all tables: of the command line, job files and Python. Writers find them by name."""

    csv_safe: Annotated[
        bool,
        StyleOption(
            "Of CSV and TSV: put ' before each text that a spreadsheet would take for a formula (=, +, -, @, tab or "
            "line end first).",
            ("csv", "tsv"),
        ),
    ]


def style_options() -> dict[str, StyleOption]:
    """The options of output by name."""
    return {name: get_args(hint)[1] for name, hint in get_type_hints(TableStyle, include_extras=True).items()}


@for_python
def check_style(style: TableStyle, format: str) -> None:
    """Refuse options that there are not, or that a format has no use for. Raises InputError."""
    known = style_options()
    for name, value in style.items():
        if name not in known:
            raise InputError(f"unknown option {name!r}; the options of output are {', '.join(known)}")
        places = known[name].formats
        if value and not format.startswith(places):
            flag, named = f"--{name.replace('_', '-')}", " and ".join(one.upper() for one in places)
            raise InputError(
                f"{flag} is for {named}, and the format of the output is {format}; leave it out, or write .{places[0]}"
            )


@dataclass(frozen=True)
class TableFormat:
    """One format of tables.

    Parameters
    ----------
    name : str
        As `--format` has it.
    holds : tuple of str
        What is written so: `ANSWERS`, `EDGES`, `PAIRS`, `WALKS`.
    save : str
        The function of `arrow_files` that writes it; "" where tables are not written from beginning to end.
    settings : Mapping
        What that function is given.
    endings : tuple of str or None
        Of files; None: the name behind a point.
    text : bool
        Whether numbers are written in decimals.
    most, usual : float
        By how much it makes a table smaller: at most (ids without a gap beside absent values), and usually.
    """

    name: str
    holds: tuple[str, ...]
    save: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    endings: tuple[str, ...] | None = None
    text: bool = False
    most: int = 1
    usual: float = 1

    @property
    def ends(self) -> tuple[str, ...]:
        """How the names of files of it end."""
        return (f".{self.name}",) if self.endings is None else self.endings


_TABLES = (ANSWERS, EDGES, PAIRS)
_TABS = {"delimiter": "\t"}
_GZIP = {"gzip": True}
FORMATS = {
    one.name: one
    for one in (
        TableFormat("csv", (*_TABLES, WALKS), "save_csv", text=True),
        TableFormat("csv.gz", (*_TABLES, WALKS), "save_csv", _GZIP, text=True, most=64, usual=3),
        TableFormat("tsv", _TABLES, "save_csv", _TABS, text=True),
        TableFormat("tsv.gz", _TABLES, "save_csv", _TABS | _GZIP, text=True, most=64, usual=3),
        TableFormat("parquet", (*_TABLES, WALKS), "save_parquet", most=2048, usual=2),
        TableFormat("feather", (*_TABLES, WALKS), "save_feather", endings=(".feather", ".arrow"), most=16, usual=1.2),
        TableFormat("txt", (WALKS,), "save_walk_lines", text=True),
        TableFormat("txt.gz", (WALKS,), "save_walk_lines", _GZIP, text=True, most=64, usual=3),
        TableFormat("hdf5", (ANSWERS, PAIRS), endings=(".h5",)),
        TableFormat("npy", (ANSWERS, WALKS)),
        TableFormat("npz", (EDGES,)),
        TableFormat("graphar", (ANSWERS,), endings=(".vertex.yml", ".vertex.yaml"), most=2048, usual=2),
        TableFormat("graphalytics", (ANSWERS,), "save_graphalytics", endings=(), text=True),
    )
}


def formats_of(what: str, *, streamed: bool = False) -> dict[str, TableFormat]:
    """Return the formats that hold `what`, by name; streamed: only those written from their beginning to their end."""
    return {one.name: one for one in FORMATS.values() if what in one.holds and (one.save or not streamed)}


def endings_of(what: str) -> str:
    """How the names of files of `what` end, as a list."""
    return ", ".join(end for one in formats_of(what).values() for end in one.ends)


def format_of(path: PurePath, format: str | None, what: str) -> str:
    """Return `format`, or the name of the one of `what` that a file's name asks for. Raises InputError."""
    known = formats_of(what)
    if format is not None and format not in known:
        raise InputError(f"{format!r} is not a format of {what}; there are {', '.join(known)}")
    endings = {end: one.name for one in known.values() for end in one.ends}
    found = format or next((name for end, name in endings.items() if path.name.lower().endswith(end)), None)
    if found is None:
        raise InputError(f"{path}: no format of {what} ends in {path.suffix!r}; use one of {endings_of(what)}")
    return found


def check_streamed(format: str, what: str) -> None:
    """Refuse a format that is not written from its beginning to its end. Raises InputError."""
    known = formats_of(what, streamed=True)
    if format not in known:
        raise InputError(f"{format} cannot be written to standard output; name a file, or one of {', '.join(known)}")


DECIMALS = {2: 6, 4: 10, 8: 18}
"""Characters of a floating-point number that is not round, by its bytes."""


@dataclass(frozen=True)
class SizeRange:
    """Bytes, the least and about how many."""

    least: int
    likely: int


@dataclass(frozen=True)
class ColumnSize:
    """Bytes of all values of a column: as text, the least and about, and in memory."""

    least_text: int
    likely_text: int
    in_memory: int


def column_size(dtype: np.dtype[np.generic], rows: int, *, sparse: bool) -> ColumnSize:
    """The size of a column of numbers; sparse: values may be absent."""
    likely = DECIMALS[dtype.itemsize] if dtype.kind == "f" else 2
    return ColumnSize(0 if sparse else rows, rows * likely, rows * dtype.itemsize)


def digits_of_first(count: int) -> int:
    """Digits of the numbers 0 to count - 1, written one after another."""
    total, power = count, 10
    while power < count:
        total += count - power
        power *= 10
    return total


def table_size(format: str, rows: int, columns: Sequence[ColumnSize]) -> SizeRange:
    """The size of a table of so many rows in one of `FORMATS`."""
    written = FORMATS[format]
    if written.text:
        between = rows * len(columns)  # a delimiter or a newline behind every value
        least = between + sum(column.least_text for column in columns)
        likely = between + sum(column.likely_text for column in columns)
    else:
        least = likely = sum(column.in_memory for column in columns)
    return SizeRange(least // written.most, int(likely / written.usual))
