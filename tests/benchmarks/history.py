"""The record of a measurement, the files that keep the records, and the rule that says what became slower.

A record is one JSON object on a line: one figure of one run of the benchmarks.

The rule
--------
Two medians differ when all of this holds:

- each is the median of at least five values (`LEAST_COUNT`);
- they differ by more than the sum of both spreads (a spread is the distance between the quartiles);
- they differ by more than 2 % of the older one (`LEAST_CHANGE`): the values of one process do not show how much one
  process differs from another.

A figure is then slower or faster; otherwise it is the same. Smaller is better, except for rates (units that end in
``/s``) and for how many times as fast as another program (``x``). A load is not compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

LEAST_COUNT = 5
LEAST_CHANGE = 0.02


@dataclass(frozen=True)
class Figure:
    """What one suite measured under one name: its values in the order in which they were taken."""

    suite: str
    name: str
    unit: str
    values: tuple[float, ...]
    note: str = ""

    @property
    def median(self) -> float:
        return float(np.median(self.values))

    @property
    def spread(self) -> float:
        """The distance between the first and the third quartile."""
        low, high = np.percentile(self.values, (25, 75))
        return float(high - low)


@dataclass(frozen=True)
class Record:
    """A figure as the history keeps it; `value` is the median of `n` values, `date` is UTC in ISO format."""

    date: str
    commit: str
    machine: str
    command: str
    suite: str
    figure: str
    unit: str
    value: float
    spread: float
    n: int

    @classmethod
    def of(cls, figure: Figure, *, date: str, commit: str, machine: str, command: str) -> Record:
        value, spread = (float(f"{number:.6g}") for number in (figure.median, figure.spread))
        return cls(
            date, commit, machine, command, figure.suite, figure.name, figure.unit, value, spread, len(figure.values)
        )

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What must be the same for two records to be comparable."""
        return self.machine, self.suite, self.figure, self.unit

    def line(self) -> str:
        return json.dumps(asdict(self)) + "\n"


@dataclass(frozen=True)
class Verdict:
    """What became of one figure: "slower", "faster", "same", or "not compared"; `old` is None where there is none."""

    old: Record | None
    new: Record
    word: str

    @property
    def ratio(self) -> float | None:
        return self.new.value / self.old.value if self.old is not None and self.old.value else None


def parsed(line: str) -> Record:
    """The record of one line. Raises ValueError for a line that is not one."""
    given = json.loads(line)
    if not isinstance(given, dict) or set(given) != {field.name for field in fields(Record)}:
        raise ValueError(f"a record has the fields {', '.join(field.name for field in fields(Record))}; this is {line}")
    return Record(**given)


def read(folder: Path) -> list[Record]:
    """Every record of the `.jsonl` files of a folder, oldest first."""
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text(encoding="utf-8").splitlines()]
    return sorted((parsed(line) for line in lines if line.strip()), key=lambda record: record.date)


def append(path: Path, records: Iterable[Record]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(record.line() for record in records)


def before(records: Sequence[Record], new: Record, commit: str | None = None) -> Record | None:
    """The last record comparable with `new` and no younger: of `commit`, or of any other than that of `new`."""
    found = [old for old in records if old.key == new.key and old.date <= new.date and old != new]
    chosen = [old for old in found if (old.commit != new.commit if commit is None else old.commit == commit)]
    return chosen[-1] if chosen else None


def compared(old: Record | None, new: Record) -> Verdict:
    """The verdict on one figure, by the rule above."""
    if old is None or min(old.n, new.n) < LEAST_COUNT or new.unit == "load":
        return Verdict(old, new, "not compared")
    worse = new.value - old.value
    if new.unit.endswith("/s") or new.unit == "x":
        worse = -worse
    if abs(worse) <= max(old.spread + new.spread, LEAST_CHANGE * old.value):
        return Verdict(old, new, "same")
    return Verdict(old, new, "slower" if worse > 0 else "faster")


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Lines of aligned columns, the first two to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
