"""Products of ways of which a test runs a covering array: few rows in which every pair of values of two axes occurs.

The rest of a product has the marker `full`, which `conftest.py` leaves out unless `-m` names it. With strength 1 every
value of each axis occurs; that is for products in which no two axes act on each other.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import pytest


def covering(
    names: str, *axes: Collection[Any], strength: int = 2, where: Callable[..., bool] = lambda *_: True,
    rare: Collection[Any] = (),
) -> pytest.MarkDecorator:  # fmt: skip
    """Return `pytest.mark.parametrize` of a product, of which rows outside a covering array are marked `full`.

    where: which rows of the product there are. rare: values whose rows are all outside.
    """
    values = [tuple(axis) for axis in axes]
    places = itertools.product(*(range(len(axis)) for axis in values))
    rows = [(at, tuple(axis[i] for axis, i in zip(values, at, strict=True))) for at in places]
    rows = [(at, row) for at, row in rows if where(*row)]
    kept = set(covering_rows([at for at, row in rows if not any(value in rare for value in row)], strength))
    params = [pytest.param(*row, marks=() if at in kept else pytest.mark.full) for at, row in rows]
    return pytest.mark.parametrize([name.strip() for name in names.split(",")], params)


def covering_rows(rows: Sequence[tuple[int, ...]], strength: int = 2) -> Iterator[tuple[int, ...]]:
    """Yield rows that have every combination of `strength` values that all have: always the first that adds most.

    With strength 1 all values of an axis are in about as many rows: of several it is one of those used least so far.
    """
    wanted = {row: set(itertools.combinations(enumerate(row), strength)) for row in rows}
    lacking = set().union(*wanted.values())
    uses: Counter[tuple[int, int]] = Counter()

    def worth(row: tuple[int, ...]) -> tuple[int, int]:
        return len(wanted[row] & lacking), -sum(uses[one] for one in enumerate(row)) if strength == 1 else 0

    while lacking:
        best = max(rows, key=worth)
        lacking -= wanted[best]
        uses.update(enumerate(best))
        yield best
