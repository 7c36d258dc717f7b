"""Distances at the edge of what floats hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import run
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.programs.sssp import SSSP, FloatSSSP, HugeSSSP
from penstock.storage.base.errors import InputError
from support.graphs import in_memory, on_disk
from support.oracles import EdgeList

HUGE = EdgeList(5, np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([1e308, 1e308, 1.5]))
WAYS: list[dict[str, Any]] = [
    {"kernels": "reference", "direction": "push"},
    {"kernels": "reference", "direction": "pull", "mode": "sync"},
    pytest.param(
        {"device": "emulated", "kernels": "cuda"},
        marks=pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu"),
    ),
]


@pytest.mark.parametrize("way", WAYS)
def test_farther_than_the_largest_float_is_not_unreached(way: dict[str, Any], tmp_path: Path) -> None:
    for graph in (in_memory(HUGE), on_disk(HUGE, tmp_path / "graph.h5")):
        with pytest.raises(
            InputError, match=r"2 vertices are farther than 1.8e\+308 from the source.*scale the weights"
        ):
            run(SSSP(0), graph, **way)
        assert run(SSSP(1), graph, **way).to_dict() == {1: 0.0, 2: 1e308, 3: 1e308}


@pytest.mark.parametrize("delta", [1e-300, 1e308, float("inf")])
def test_buckets_of_any_width(delta: float) -> None:
    assert run(SSSP(1, delta=delta), in_memory(HUGE), kernels="reference").to_dict() == {1: 0.0, 2: 1e308, 3: 1e308}


def test_usual_weights_are_not_held_below() -> None:
    usual = EdgeList(5, HUGE.sources, HUGE.targets, np.array([1e300, 0.5, 1.5]))
    assert type(SSSP(0).form(in_memory(usual), "auto")) is FloatSSSP
    assert type(SSSP(0).form(in_memory(HUGE), "auto")) is HugeSSSP
