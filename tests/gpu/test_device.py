"""The real device gives every program's answer by every route, whatever share of the edges it may hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkers import EdgeList
from penstock.engine import run
from penstock.engine.session import Session
from penstock.storage.errors import InputError, RunError
from samples import SHAPES, in_memory, on_disk, shape, skewed, weighed
from trials import PROGRAMS, check, program_of

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_shape(name: str, kind: str, directed: bool) -> None:
    if kind == "empty":
        pytest.skip("nothing to place on a device")
    edges = shape(kind, directed=directed, weights="uint8")
    graph = in_memory(edges)
    ways: list[dict[str, Any]] = [{}, {"direction": "push"}, {"direction": "pull"}, {"mode": "sync"}]
    if name not in ("bfs", "sweeps"):
        ways.append({"mode": "async"})
    for way in ways:
        check(name, edges, run(program_of(name, edges), graph, device="cuda:0", **way).fields)


@pytest.mark.parametrize("share", [1.0, 0.25, 0.03])
@pytest.mark.parametrize("route", ["auto", "filter", "zero-copy"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_route_and_budget(name: str, route: str, share: float, tmp_path: Path) -> None:
    edges = weighed(EdgeList(20_000, *skewed(20_000, 600_000, 5)), "uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=1 << 12)
    memory = max(int(share * 1_200_000 * 5), 3 * (1 << 12) * 5)
    for way in ({}, {"direction": "push"}):
        options = {"device": "cuda:0", "route": route, "device_edge_memory": memory, "partition_bytes": 1 << 16}
        check(name, edges, run(program_of(name, edges), graph, **options, **way).fields)


@pytest.mark.parametrize("weights", ["uint8", "uint32", "float32", "float64"])
def test_weights(weights: str) -> None:
    edges = shape("skewed", weights=weights)
    check("sssp", edges, run(program_of("sssp", edges), in_memory(edges), device="cuda:0").fields)


def test_runs_share_a_session() -> None:
    edges = shape("skewed", weights="uint8")
    with Session(in_memory(edges), device="cuda:0") as session:
        for name in (*PROGRAMS, *PROGRAMS):
            check(name, edges, session.run(program_of(name, edges)).fields)


def test_the_ceiling_holds() -> None:
    edges = weighed(EdgeList(100_000, *skewed(100_000, 100_000, 5)), None)
    with pytest.raises((RunError, InputError), match="--device-"):
        run(program_of("bfs", edges), in_memory(edges), device="cuda:0", device_memory=1 << 20)


def test_a_device_that_is_not_there() -> None:
    edges = EdgeList(2, np.array([0]), np.array([1]))
    with pytest.raises(InputError, match="cuda:99"):
        run(program_of("wcc", edges), in_memory(edges), device="cuda:99")
