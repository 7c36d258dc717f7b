"""Bridges: what random sums take for a bridge by chance is found out, and the answer made anew."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from penstock.engine import from_edges, run
from penstock.engine.programs import bridges
from penstock.engine.programs.bridges import Bridges

RINGS = [(v, (v + 1) % 9) for v in range(9)] + [(9 + v, 9 + (v + 1) % 5) for v in range(5)]
TIES = [(4, 9), (11, 14), (14, 15), (15, 14), (2, 2)]


@pytest.mark.parametrize("seed", [0, 1])
def test_numbers_of_few_bits_give_the_same_answer(seed: int) -> None:
    """Of numbers of two bits every fourth edge of a ring passes by chance."""
    graph = from_edges(RINGS + TIES, undirected=True)
    cuts: list[int] = []

    def cut(state: dict[str, np.ndarray], mask: int) -> None:  # type: ignore[type-arg]
        whole(state, mask)
        cuts.append(len(set(state["component"].tolist())))

    whole = bridges._cut
    with mock.patch.object(bridges, "_mask", return_value=3), mock.patch.object(bridges, "_cut", cut):
        result = run(Bridges(seed=seed), graph, kernels="reference")
    assert result.to_dict("bridge_to") == {9: 4, 14: 11}
    assert result.to_dict("component") == dict.fromkeys(range(9), 0) | dict.fromkeys(range(9, 14), 9) | {14: 14, 15: 14}
    assert cuts[-1] == 3
    assert len(cuts) > 1
    assert all(parts > 3 for parts in cuts[:-1])


def test_numbers_leave_room_for_their_sum() -> None:
    for bits, edges in ((31, 1 << 20), (31, 1 << 29), (22, 1 << 39)):
        assert bridges._mask(mock.Mock(edges=edges)) == 2**bits - 1
