"""Values of a field that a run keeps in fewer bytes than the answer has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ranges import each_range


@dataclass(frozen=True)
class Widened:
    """Whole numbers, widened where they are read.

    numbers: integers, (vertices,); dtype: the answer's. The largest number of either stands for no value.
    """

    numbers: NDArray[Any]
    dtype: np.dtype[Any]
    ndim = 1

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """The values in some rows."""
        found: NDArray[Any] = self.numbers[rows].astype(self.dtype)
        found[found == np.iinfo(self.numbers.dtype).max] = np.iinfo(self.dtype).max
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The values in all rows."""
        found = np.empty(len(self), self.dtype)

        def fill(first: int, last: int) -> None:
            found[first:last] = self[first:last]

        each_range(fill, len(self))
        return found
