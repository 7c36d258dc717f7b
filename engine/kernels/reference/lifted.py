"""An author's function of numbers, called with arrays of them: with all items at once, or with those of one branch.

Items are what Python's numbers would be, 64 bits wide. A function that takes no arrays is called for one after another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.program import arguments

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 8
"""Items for which a function that branches is called one after another."""


class MixedError(Exception):
    """A function of an author asks for the truth of an array whose items are not alike."""


class Items(np.ndarray):
    """The items of one argument, each of which an author's function may have been called with."""

    def __bool__(self) -> bool:
        held = np.count_nonzero(self.view(np.ndarray))
        if 0 < held < self.size:
            raise MixedError(self)
        return bool(held)


def numbers(given: NDArray[Any]) -> NDArray[Any]:
    """An array as Python's numbers would be, 64 bits wide; it may not be written."""
    wide = np.float64 if given.dtype.kind == "f" else np.uint64 if given.dtype == np.uint64 else np.int64
    found = given.astype(wide, copy=False).view(Items)
    found.flags.writeable = False
    return found


def lifted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of an author for arrays, item by item; `every_` arguments are arrays already."""
    whole = [name.startswith("every_") for name in arguments(function)]
    singly = False

    def of_arrays(*given: Any) -> Any:
        nonlocal singly
        columns = [isinstance(one, np.ndarray) and not entire for one, entire in zip(given, whole, strict=True)]
        wide = [numbers(one) if column else one for one, column in zip(given, columns, strict=True)]
        kinds = {one.dtype for one, column in zip(wide, columns, strict=True) if column}
        if not singly and (len(kinds) < 2 or np.dtype(np.uint64) not in kinds):  # which together would be floats
            try:
                with np.errstate(all="ignore"):
                    return _by_branches(function, wide, columns)
            except (TypeError, ValueError, IndexError):  # it takes no array, or would change one
                singly = True
        return _singly(function, wide, columns)

    return of_arrays


def _by_branches(function: Callable[..., Any], given: list[Any], columns: list[bool]) -> Any:
    """Call a function with arrays; where it branches, with the items that go one way and with those that go another."""
    try:
        return function(*given)
    except MixedError as mixed:
        ways = np.asarray(mixed.args[0]) != 0
    if len(ways) <= FEW:
        return _singly(function, given, columns)
    sides = [[one[way] if column else one for one, column in zip(given, columns, strict=True)] for way in (ways, ~ways)]
    return _joined(ways, [_by_branches(function, side, columns) for side in sides])


def _joined(ways: NDArray[np.bool_], found: list[Any]) -> Any:
    """Put results for items together again."""
    if isinstance(found[0], tuple):
        return tuple(_joined(ways, list(pair)) for pair in zip(*found, strict=True))
    joined = np.empty(len(ways), np.result_type(*found))
    joined[ways], joined[~ways] = found
    return joined


def _singly(function: Callable[..., Any], given: list[Any], columns: list[bool]) -> Any:
    """Call a function for one item after another."""
    count = next(len(one) for one, column in zip(given, columns, strict=True) if column)
    items = [one.tolist() if column else [one] * count for one, column in zip(given, columns, strict=True)]
    found = [function(*row) for row in zip(*items, strict=True)]
    if isinstance(found[0], tuple):
        return tuple(np.array(column) for column in zip(*found, strict=True))
    return np.array(found)
