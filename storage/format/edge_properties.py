"""Columns that are kept beside the edges: what the header says of one, and its values out of what is stored.

Numbers are stored as weights are, in the narrowest dtype that holds all exactly, so that any of them can be the weight
of a run. What has nulls or is no number is stored as an unsigned distance from the least value (days, microseconds,
ranks of sorted strings), one more where 0 is null; floating-point nulls are NaN. Beside each column are the least and
the greatest value of every chunk, by which chunks are passed over that a condition cannot hold in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

TYPES = ("int", "float", "bool", "date", "timestamp", "string")
NUMBERS = ("int", "float")
UNITS = {"date": "D", "timestamp": "us"}
"""What dates and times are counted in, from 1970-01-01."""
MOST_PROPERTIES = 64
MOST_STRINGS = 1 << 16
"""Different values of a column of strings."""
NAME = re.compile(r"[^\W\d]\w*")
"""Names that a condition can have."""
_PATH = re.compile(r"(out|in)/property_(\d+)(_bounds)?")


def property_path(direction: str, number: int, *, bounds: bool = False) -> str:
    """Return the name of the array of a column, or of the least and greatest values of its chunks."""
    return f"{direction}/property_{number}{'_bounds' if bounds else ''}"


def is_property(path: str, *, bounds: bool = False) -> bool:
    """Whether an array of that name is a column beside edges, or the bounds of one."""
    found = _PATH.fullmatch(path)
    return found is not None and bool(found[3]) == bounds


@dataclass(frozen=True, slots=True)
class EdgeProperty:
    """A column beside the edges.

    Attributes
    ----------
    name : str
        As conditions have it.
    type : str
        One of `TYPES`.
    base : int
        What is added to what is stored; 0 for floating-point numbers.
    nulls : int
        1 where a stored 0, or NaN, is null, and other whole numbers are one more than without nulls; 0: nothing is.
    values : tuple of str
        Of strings, sorted: what is stored is a rank.
    range : tuple of float or None
        Least, mean and greatest value where it can be a weight, else None.
    """

    name: str
    type: str
    base: int = 0
    nulls: int = 0
    values: tuple[str, ...] = ()
    range: tuple[float, float, float] | None = None

    @property
    def sound(self) -> bool:
        """Whether a writer makes such a column."""
        numbers = isinstance(self.base, int) and abs(self.base) < 1 << 63 and self.nulls in (0, 1)
        names = isinstance(self.name, str) and NAME.fullmatch(self.name) is not None
        known = self.type in TYPES and all(isinstance(value, str) for value in self.values)
        stated = self.range is None or (len(self.range) == 3 and all(isinstance(one, float) for one in self.range))
        return numbers and names and known and stated and list(self.values) == sorted(set(self.values))

    @property
    def limit(self) -> int | None:
        """One more than the largest number that may be stored; None for any."""
        count = {"string": len(self.values), "bool": 2}.get(self.type)
        return None if count is None else count + self.nulls

    def numbers(self, stored: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Return values as numbers (of strings their ranks), int64 or floating-point, and which are null (None: none).

        What a null is as a number is no matter.
        """
        if stored.dtype.kind == "f":
            return stored, np.isnan(stored) if self.nulls else None
        moved = np.uint64((self.base - self.nulls) % (1 << 64))
        return (stored.astype(np.uint64) + moved).view(np.int64), stored == 0 if self.nulls else None

    @property
    def facts(self) -> str:
        """What people want to know of it: its type, of strings how many there are, whether there are nulls."""
        count = f" ({len(self.values)})" if self.type == "string" else ""
        return f"{self.type}{count}{', nulls' if self.nulls else ''}"

    def shown(self, number: Any) -> str:
        """Return one of the numbers of `numbers` as people write it."""
        if self.type == "string":
            return self.values[int(number)]
        if self.type == "bool":
            return "true" if number else "false"
        if self.type in UNITS:
            return str(np.array(int(number), f"M8[{UNITS[self.type]}]"))
        return f"{float(number):g}" if self.type == "float" else str(int(number))
