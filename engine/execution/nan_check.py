"""Owns the question whether a program's values are numbers: a NaN is refused rather than answered, or waited for.

NaN differs from itself, so a vertex that holds one changes for ever and a run without a limit would never end: values
are looked at after 64 iterations, each time that they are twice as many as at the last look, and at the end. Refuses
nothing where a program itself fills a field with NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.program import absent_value, fields_of
from penstock.engine.program.vertex_ranges import over_ranges
from penstock.storage.base.errors import RunError
from penstock.storage.results.column_statistics import ColumnFacts, facts_of

if TYPE_CHECKING:
    from penstock.engine.program.program import Program
    from penstock.engine.state.device_state import DeviceState
    from penstock.engine.state.state import State

FIRST_LOOK = 64  # iterations


def check_nan(program: Program, fields: dict[str, Any], iterations: int) -> dict[str, ColumnFacts]:
    """Raise RunError if a field of floats holds a NaN and was not filled with them; return what else is known then."""
    known = {}
    for name in _suspects(program, fields):
        values = fields[name]
        in_memory = isinstance(values, np.ndarray)  # then who wants a sum that takes another pass looks once more
        facts = facts_of(values, absent_value(program, name, values), twice=not in_memory)
        if facts.total is not None:
            known[name] = facts
        if np.isnan(facts.least or 0):
            flat = values.reshape(-1)
            found = sum(over_ranges(lambda a, b: int(np.count_nonzero(np.isnan(flat[a:b]))), len(flat)))  # noqa: B023
            raise RunError(
                f"{type(program).__name__}: {found:,} of {len(flat):,} values of {name!r} are no "
                f"numbers (NaN) after {iterations} iterations; correct start(), edge() or vertex() (0 / 0, inf - inf?)"
            )
    return known


def check_nan_now(program: Program, state: State | DeviceState, iterations: int) -> None:
    """As `check_nan`, while a run goes on; values leave a device only if there is something to tell of them."""
    found = [name for name in _suspects(program, state.fields) if state.has_nan(name)]
    if found:
        check_nan(program, {name: state.host_fields()[name] for name in found}, iterations)


def _suspects(program: Program, fields: dict[str, Any]) -> list[str]:
    """Fields of floats that were not filled with NaN; `fields`: arrays, of the host or of a device."""
    return [
        name
        for name, field in fields_of(program).items()
        if name in fields and fields[name].dtype.kind == "f" and not _is_nan(field.fill)
        if not _is_nan(field.unreached)
    ]


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isnan(value))
