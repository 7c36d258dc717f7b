"""Covering arrays of `support/covering.py`: every pair occurs in few rows, and the whole product is still there."""

from __future__ import annotations

import itertools

import pytest
from support.covering import covering, covering_rows


@pytest.mark.parametrize(("sizes", "strength", "most"), [((3, 3, 3, 3), 2, 11), ((5, 4, 2), 2, 20), ((5, 4, 2), 1, 5)])
def test_every_combination_occurs_in_few_rows(sizes: tuple[int, ...], strength: int, most: int) -> None:
    rows = list(itertools.product(*map(range, sizes)))
    found = list(covering_rows(rows, strength))
    assert len(found) <= most
    for columns in itertools.combinations(range(len(sizes)), strength):
        assert {tuple(row[c] for c in columns) for row in found} == {tuple(row[c] for c in columns) for row in rows}


def test_the_rest_of_a_product_is_marked() -> None:
    names, params = covering("a, b, c", "xy", [1, 2], {"k": 0, "l": 1}, where=lambda a, b, c: (a, b) != ("x", 1)).args
    assert names == ["a", "b", "c"]
    assert [param.values for param in params] == [
        row for row in itertools.product("xy", (1, 2), "kl") if row[:2] != ("x", 1)
    ]
    kept = [param.values for param in params if not param.marks]
    assert 4 <= len(kept) < len(params)
    assert {row[1:] for row in kept} == set(itertools.product((1, 2), "kl"))
    names, params = covering("a, b", "xyz", [1, 2], rare=["z"]).args
    assert [param.values[0] for param in params if param.marks] == ["z", "z"]
