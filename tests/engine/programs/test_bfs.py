"""Levels without parents: those that a search with parents has, in every order of vertices and on every device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import run
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.planning.requirements import RunSetting, plan_memory
from penstock.engine.programs.bfs import BFS, BFSLevels
from penstock.engine.resources.config import Config
from support import catalogue_oracles as right
from support.graphs import in_memory, on_disk, skewed
from support.oracles import EdgeList

WAYS: list[dict[str, Any]] = [
    {"kernels": "reference", "direction": "push"},
    {"kernels": "reference", "direction": "pull"},
    {},
    {"direction": "push"},
    {"direction": "pull"},
    pytest.param(
        {"device": "emulated", "kernels": "cuda"},
        marks=pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu"),
    ),
]


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_levels_alone_are_the_levels(way: dict[str, Any], directed: bool) -> None:
    edges = EdgeList(200, *skewed(200, 500, 3), None, directed)
    result = run(BFS([5, 190], parents=False), in_memory(edges), **way)
    assert list(result.fields) == ["level"]
    levels = np.where(result.fields["level"] == 2**32 - 1, right.UNREACHED, result.fields["level"].astype(np.int64))
    assert np.array_equal(levels, right.levels(edges, [5, 190]))


def test_levels_alone_need_no_order(tmp_path: Path) -> None:
    """Where a search for parents reads whole rows, as ids have another order, one for levels leaves them early."""
    edges = EdgeList(70, *skewed(70, 200, 3), None, False)
    original = np.random.default_rng(0).permutation(70).astype(np.uint64)
    graph = on_disk(edges, tmp_path / "graph.h5", original=original)
    source = int(original[5])
    assert not BFS(source).form(graph, "auto").early_exit
    levels = BFS(source, parents=False).form(graph, "auto")
    assert isinstance(levels, BFSLevels)
    assert levels.early_exit
    assert run(BFS(source, parents=False), graph).to_dict() == run(BFS(source), graph).to_dict("level")


def test_levels_alone_take_less_memory() -> None:
    graph = in_memory(EdgeList(1 << 16, *skewed(1 << 16, 1000, 3), None, False))
    forms = [BFS(5, parents=parents).form(graph, "auto") for parents in (True, False)]
    taken = [plan_memory(graph, program, RunSetting(Config()))[1].state_bytes for program in forms]
    assert taken[0] - taken[1] == 4 << 16
