"""Reachability in a byte a vertex, where memory is short."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.engine import run
from penstock.engine.planning.requirements import RunSetting, planned, requirements_within
from penstock.engine.programs.reachability import Reachability
from penstock.engine.resources.config import Config
from penstock.storage.base.errors import BudgetError
from support import catalogue_oracles as right
from support.graphs import in_memory, skewed
from support.oracles import EdgeList

EDGES = EdgeList(1 << 14, *skewed(1 << 14, 9000, 3), None, True)


@pytest.mark.parametrize(
    "way", [{"kernels": "reference"}, {"mode": "sync"}, {"mode": "async"}, {"direction": "push"}, {"direction": "pull"}]
)
def test_bytes_have_the_same_answer(way: dict[str, Any]) -> None:
    graph = in_memory(EDGES)
    lighter = Reachability(5).lighter(graph)
    assert lighter is not None
    assert lighter.lighter(graph) is None
    wide, narrow = run(Reachability(5), graph, **way), run(lighter, graph, **way)
    assert narrow.fields["reached"].dtype == wide.fields["reached"].dtype == np.uint32
    assert np.array_equal(narrow.fields["reached"], wide.fields["reached"])
    assert np.array_equal(wide.fields["reached"] == 1, right.levels(EDGES, [5]) != right.UNREACHED)
    assert narrow.top(3) == wide.top(3)


def test_bytes_are_for_short_memory_on_cores() -> None:
    graph = in_memory(EDGES)
    lighter = Reachability(5).lighter(graph)
    assert lighter is not None
    config = Config(direction="push")
    wide, narrow = (
        requirements_within(graph, one, RunSetting(config))[1].needs.fixed for one in (Reachability(5), lighter)
    )
    assert wide - narrow == 3 * graph.vertices
    found = [
        planned(graph, Reachability(5), RunSetting(Config(direction="push", host_memory=most)))[0]
        for most in (wide, narrow)
    ]
    assert [type(one) for one in found] == [Reachability, type(lighter)]
    with pytest.raises(BudgetError):
        planned(graph, Reachability(5), RunSetting(Config(direction="push", host_memory=narrow), checkpoints=True))
