"""Owns the question whether a program's values are numbers: a NaN is refused rather than answered, or waited for.

NaN differs from itself, so a vertex that holds one changes for ever and a run without a limit would never end: values
are looked at now and then while a run goes on, in the iterations 64, 128, 256 …, and at its end. Refuses nothing where
a program itself fills a field with NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program import fields_of
from penstock.storage.errors import RunError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program import Program

FIRST_LOOK = 64
STEP = 1 << 20  # values looked at together


def check_numbers(program: Program, fields: dict[str, NDArray[Any]], iterations: int) -> None:
    """Raise RunError if a field of floats holds a NaN and was not filled with them."""
    for name, field in fields_of(program).items():
        values = fields.get(name)
        if values is None or values.dtype.kind != "f" or _is_nan(field.fill) or _is_nan(field.unreached):
            continue
        flat = values.reshape(-1)
        if any(np.isnan(flat[first : first + STEP]).any() for first in range(0, len(flat), STEP)):
            raise RunError(
                f"{type(program).__name__}: {int(np.isnan(flat).sum()):,} of {len(flat):,} values of {name!r} are no "
                f"numbers (NaN) after {iterations} iterations; correct start(), edge() or vertex() (0 / 0, inf - inf?)"
            )


def look(program: Program, fields: Callable[[], dict[str, NDArray[Any]]], iterations: int) -> None:
    """As `check_numbers`, if it is time to; `fields` is called only then."""
    if iterations >= FIRST_LOOK and iterations & (iterations - 1) == 0:
        check_numbers(program, fields(), iterations)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isnan(value))
