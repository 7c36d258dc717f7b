"""Embeddings by random projections belong to ids, whatever the order of the vertices; steps are checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.engine import from_edges, run
from penstock.engine.programs.fastrp import FastRP
from penstock.storage.base.errors import InputError

EDGES = [(5, 9), (9, 70), (70, 5), (70, 71), (71, 8), (9, 9)]


def test_another_order_of_vertices_has_the_same_embeddings() -> None:
    found = []
    for order in ("none", "degree"):
        result = run("fastrp", from_edges(EDGES, renumber=True, order=order), dimension=6, seed=4)
        found.append(dict(zip(result.ids.tolist(), result["embedding"], strict=True)))
    assert found[0].keys() == found[1].keys()
    for vertex, numbers in found[0].items():
        np.testing.assert_allclose(numbers, found[1][vertex], atol=1e-5)


def test_vertices_without_edges_have_zeros() -> None:
    numbers = run("fastrp", from_edges([(0, 1)], vertices=3), dimension=4)["embedding"]
    assert numbers.shape == (3, 4)
    assert numbers.dtype == np.float32
    assert not numbers[2].any()


@pytest.mark.parametrize("steps", [[], "abc", 3, [1, "a"], [float("nan")], [None]])
def test_steps_are_weights(steps: Any) -> None:
    with pytest.raises(InputError, match="FastRP: steps"):
        FastRP(steps=steps)
