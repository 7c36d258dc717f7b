"""Columns of the input that are kept beside edges: from Arrow to records that are sorted with the edges, and to files.

A record is what one edge has: its weight, if there is one, and a value of each column in a dtype of its type (`KINDS`),
in which one value is null. Types are those of the columns, or are said (`amount:float`). Strings become numbers in the
order in which they come, and ranks at the end. What all values have in common is noted on the way, so that the dtypes
of the file are known before it is written.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError, brief
from penstock.storage.format.edge_properties import (
    MOST_PROPERTIES,
    MOST_STRINGS,
    NAME,
    NUMBERS,
    TYPES,
    UNITS,
    EdgeProperty,
)
from penstock.storage.format.schema import EXACT, check_whole_weights, count_dtype, weight_dtype
from penstock.storage.ingest.core.arrow import column_values, csv_batch, type_name

WEIGHT = "weight"
"""What the weight is called among columns: by conditions, and in a record."""
_LEAST = np.iinfo(np.int64).min
KINDS: dict[str, tuple[str, Any]] = {
    "int": ("i8", _LEAST),
    "float": ("f8", np.nan),
    "bool": ("u1", 2),
    "date": ("i4", np.iinfo(np.int32).min),
    "timestamp": ("i8", _LEAST),
    "string": ("u4", np.iinfo(np.uint32).max),
}
"""Of each type the dtype in a record, and the value that is null there."""


@dataclass
class _Column:
    """One column: its name, its type once it is known, and what is common to all values so far."""

    name: str
    type: str = ""
    low: Any = None
    high: Any = None
    nulls: bool = False
    whole: bool = True
    single: bool = True
    codes: dict[str, int] = field(default_factory=dict)

    def note(self, values: NDArray[Any], null: NDArray[np.bool_] | None) -> None:
        """Take note of some values."""
        if null is not None:
            self.nulls, values = True, values[~null]
        if not len(values):
            return
        low, high = values.min().item(), values.max().item()
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
        if self.type in NUMBERS:
            floats = values.astype(np.float64)
            self.whole = self.whole and bool((floats == np.floor(floats)).all()) and abs(high) <= EXACT >= abs(low)
            with np.errstate(over="ignore"):
                self.single = self.single and bool((floats.astype(np.float32).astype(np.float64) == floats).all())

    def stored(self) -> tuple[EdgeProperty, np.dtype[Any]]:
        """What the file says of it, and the dtype there; all values are known."""
        low, high = (0, 0) if self.low is None else (self.low, self.high)
        exact = self.type == "float" or max(abs(low), abs(high)) <= EXACT
        if self.type == "float" and self.nulls:
            return EdgeProperty(self.name, "float", nulls=1), np.dtype(np.float32 if self.single else np.float64)
        if self.type in NUMBERS and exact and not self.nulls:
            kind = weight_dtype(low, high, integral=self.whole, single=self.single)
            return EdgeProperty(self.name, self.type), kind
        if self.type == "string":
            return self._strings()
        base, nulls = low if low < 0 or self.type in UNITS else 0, int(self.nulls)
        if high - base + nulls >= 1 << 64 or low == _LEAST:  # which is null in a record
            raise InputError(f"column {brief(self.name)!r} has whole numbers from {low} to {high}; keep them as text")
        return EdgeProperty(self.name, self.type, base, nulls), count_dtype(high - base + nulls)

    def _strings(self) -> tuple[EdgeProperty, np.dtype[Any]]:
        nulls, values = int(self.nulls), tuple(sorted(self.codes))
        return EdgeProperty(self.name, "string", 0, nulls, values), count_dtype(max(0, len(values) - 1) + nulls)

    def numbered(self, words: Sequence[str], file: str) -> NDArray[np.uint32]:
        """The numbers of distinct strings. Raises InputError for too many."""
        for word in words:
            self.codes.setdefault(word, len(self.codes))
        if len(self.codes) > MOST_STRINGS:
            raise InputError(
                f"{file}: column {brief(self.name)!r} has more than {MOST_STRINGS:,} different strings; keep numbers "
                "in their place, or leave it out of --edge-properties"
            )
        return np.array([self.codes[word] for word in words], np.uint32)


class EdgeColumns:
    """The columns to keep, as `--edge-properties` names them, while the input is read; any thread may.

    weighted: whether records have a weight. Raises InputError for names that cannot be, twice the same, and unknown
    types.
    """

    def __init__(self, wanted: Sequence[str]) -> None:
        self._columns = [_Column(*_name_and_type(one)) for one in wanted]
        self._lock = threading.Lock()
        self.weighted = False
        names = [column.name for column in self._columns]
        if len(set(names)) < len(names) or len(names) > MOST_PROPERTIES:
            raise InputError(
                f"--edge-properties {brief(','.join(wanted))}: a column is named twice, or there are more than "
                f"{MOST_PROPERTIES}"
            )

    @property
    def names(self) -> list[str]:
        """The columns of the input, in the order in which they are kept."""
        return [column.name for column in self._columns]

    @property
    def record(self) -> np.dtype[Any]:
        """The dtype of records, once types are known; of no record where there were none."""
        fields = [(WEIGHT, "f8")] if self.weighted else []
        return np.dtype(fields + [(f"c{n}", KINDS[column.type or "int"][0]) for n, column in enumerate(self._columns)])

    @property
    def types(self) -> dict[str, str]:
        """The types by name, as far as they are known."""
        return {column.name: column.type for column in self._columns}

    def check_names(self, known: Sequence[str], file: str) -> None:
        """Raise InputError for a column that a file does not have, or has twice."""
        for name in self.names:
            if list(known).count(name) != 1:
                seen = f"it has {brief(', '.join(known))}" if known else "it has no header line"
                raise InputError(
                    f"{file}: --edge-properties takes columns by name, and {brief(name)!r} is not the name of one "
                    f"column ({seen})"
                )

    def settle(self, columns: Sequence[Any], file: str) -> None:
        """Take the types of Arrow's columns where none were said. Raises InputError for others than `TYPES`."""
        with self._lock:
            for column, found in zip(self._columns, columns, strict=True):
                column.type = column.type or type_name(found.type)
                if not column.type:
                    raise InputError(
                        f"{file}: column {brief(column.name)!r} holds {brief(str(found.type))} in its first rows; say "
                        f"which type it has: --edge-properties {column.name}:TYPE, of {', '.join(TYPES)}"
                    )

    def records(self, weights: NDArray[Any] | None, columns: Sequence[Any], file: str) -> NDArray[Any]:
        """Make records of some rows, of Arrow's columns. Raises InputError where a value is not of its type."""
        self.settle(columns, file)
        self.weighted = weights is not None
        if weights is not None:
            check_whole_weights(weights, file)
        made = np.empty(len(columns[0]), self.record)
        if weights is not None:
            made[WEIGHT] = weights
        for number, (column, found) in enumerate(zip(self._columns, columns, strict=True)):
            made[f"c{number}"] = self._values(column, found, file)
        return made

    def _values(self, column: _Column, found: Any, file: str) -> NDArray[Any]:
        try:
            values, null, words = column_values(found, column.type)
        except ValueError as error:
            raise InputError(
                f"{file}: column {brief(column.name)!r}: {brief(str(error))}; --edge-properties {column.name}:TYPE "
                f"says another type than {column.type}, of {', '.join(TYPES)}"
            ) from error
        with self._lock:
            if words is not None:
                values = column.numbered(words, file)[values] if len(words) else np.zeros(len(values), np.uint32)
            column.note(values, null)
        kind, missing = KINDS[column.type]
        return values.astype(kind) if null is None else np.where(null, missing, values).astype(kind)

    def stored(self) -> StoredColumns:
        """How records become what the file holds; all of the input was read."""
        for column in self._columns:
            column.type = column.type or "int"  # the input had no row, and nothing was said
        known = [column.stored() for column in self._columns]
        ranks = []
        for column in self._columns:
            rank = np.empty(len(column.codes), np.uint32)
            rank[[column.codes[word] for word in sorted(column.codes)]] = np.arange(len(rank), dtype=np.uint32)
            ranks.append(rank)
        return StoredColumns(tuple(known), tuple(ranks))


@dataclass(frozen=True, slots=True)
class StoredColumns:
    """How records become what the file holds: columns and their dtypes there, and ranks of the numbers of strings."""

    known: tuple[tuple[EdgeProperty, np.dtype[Any]], ...]
    ranks: tuple[NDArray[np.uint32], ...]

    def of(self, records: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """What is stored of some records, but for the weight."""
        return tuple(self._column(number, records[f"c{number}"]) for number in range(len(self.known)))

    def _column(self, number: int, values: NDArray[Any]) -> NDArray[Any]:
        column, kind = self.known[number]
        if kind.kind == "f" or (column.type == "float"):
            return values.astype(kind)
        null = values == KINDS[column.type][1] if column.nulls else None
        if column.type == "string" and len(self.ranks[number]):
            values = self.ranks[number][values if null is None else np.where(null, 0, values)]
        from_base = np.uint64((column.base - column.nulls) % (1 << 64))
        moved = (values.astype(np.int64).view(np.uint64) - from_base).astype(kind)
        return moved if null is None else np.where(null, kind.type(0), moved)


def taken(records: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """Records at these places; as plain bytes, which NumPy moves ten times as fast as fields."""
    return records.view(f"V{records.itemsize}").take(places).view(records.dtype)


@dataclass(frozen=True, slots=True)
class KeptCells:
    """The cells of a CSV file that are kept beside edges. Raises InputError where a column is not there."""

    columns: EdgeColumns
    file: str
    names: tuple[str, ...]
    delimiter: str

    def __post_init__(self) -> None:
        self.columns.check_names(self.names, self.file)

    def settle(self, text: NDArray[np.uint8]) -> None:
        """Take the types of columns from the first records, where none were said. Raises InputError."""
        if len(text):
            self.columns.settle(self.cells(text), self.file)

    def cells(self, text: NDArray[np.uint8]) -> list[Any]:
        """The columns of whole records, as Arrow's."""
        return csv_batch(text, self.delimiter, self.names, self.columns.types)

    def reason(self, cells: Sequence[Any]) -> str:
        """Why the cells of one record are not of their types; empty where they are."""
        try:
            self.columns.records(None, cells, self.file)
        except InputError as error:
            return str(error).removeprefix(f"{self.file}: ")
        return ""


def _name_and_type(wanted: str) -> tuple[str, str]:
    name, _, kind = wanted.partition(":")
    if NAME.fullmatch(name) is None or name == WEIGHT or (kind and kind not in TYPES) or wanted.endswith(":"):
        raise InputError(
            f"--edge-properties {brief(wanted)!r}: name columns by letters, digits and _ ({WEIGHT} is what --weights "
            f"keeps), with a type where it is not that of the column: amount:float, of {', '.join(TYPES)}"
        )
    return name, kind
