"""Parents, targets and cutoffs of searches on a GPU: those of the host, on fresh random graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.widest import WidestPath
from penstock.engine.session import Session
from support.graphs import on_disk, skewed, weighed
from support.oracles import EdgeList

pytestmark = pytest.mark.gpu

VERTICES = 20_000
KINDS: dict[type[Program], str] = {BFS: "level", SSSP: "distance", WidestPath: "width"}
WAYS: list[dict[str, Any]] = [
    {},
    {"mode": "sync"},
    {"route": "filter", "device_edge_memory": 1 << 17},
    {"route": "zero-copy", "device_edge_memory": 1 << 17},
    {"device_edge_memory": 1 << 18},
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("directed", [True, False])
def test_the_hosts_paths(directed: bool, way: dict[str, Any], tmp_path: Path) -> None:
    seed = int(np.random.SeedSequence().entropy) % 2**31  # type: ignore[operator]
    ends = skewed(VERTICES, 10 * VERTICES, seed)
    graph = on_disk(weighed(EdgeList(VERTICES, *ends, None, directed), "uint8"), tmp_path / "g.h5", chunk_edges=1 << 12)
    source = int(ends[0][0])
    with (
        Session(graph, device="cuda:0", partition_bytes=1 << 14, **way) as session,
        Session(graph, device="cpu") as host,
    ):
        for kind, field in KINDS.items():
            values = host.run(kind(source)).to_dict(field)
            target = sorted(values, key=lambda v: (values[v], v))[len(values) // 2]
            for given in ({"parents": True}, {"target": [target, source]}, {"cutoff": values[target]}):
                ours, theirs = session.run(kind(source, **given)), host.run(kind(source, **given))
                assert ours.fields.keys() == theirs.fields.keys()
                for name, wanted in theirs.fields.items():
                    np.testing.assert_array_equal(ours.fields[name], wanted, err_msg=f"{name}, {given}, seed {seed}")
                if "target" in given:
                    assert ours.path(target) == theirs.path(target), f"seed {seed}"
