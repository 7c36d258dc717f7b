"""Every program of the catalogue that a GPU runs gives the answer there that the host gives (tests/engine/programs)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkers import EdgeList
from penstock.engine import Program, run
from penstock.engine.programs.adsorption import Adsorption
from penstock.engine.programs.betweenness import Betweenness
from penstock.engine.programs.chebyshev import ChebyshevPageRank
from penstock.engine.programs.coloring import Coloring
from penstock.engine.programs.degrees import Degrees
from penstock.engine.programs.hits import HITS
from penstock.engine.programs.independent_set import MaximalIndependentSet
from penstock.engine.programs.katz import Katz
from penstock.engine.programs.kcore import Coreness, KCore
from penstock.engine.programs.personalized import PPR
from penstock.engine.programs.php import PHP
from penstock.engine.programs.reachability import Reachability
from penstock.engine.programs.scc import SCC
from penstock.engine.programs.table import PROGRAMS
from penstock.engine.programs.widest import WidestPath
from penstock.engine.session import Session
from penstock.storage.errors import InputError
from samples import on_disk, skewed, weighed

pytestmark = pytest.mark.gpu

MAKERS: dict[str, Callable[[], Program]] = {
    "reachability": lambda: Reachability([3, 50]),
    "widest": lambda: WidestPath(3),
    "betweenness": lambda: Betweenness([3, 50], raw=True),
    "personalized_pagerank": lambda: PPR(3),
    "katz": lambda: Katz(alpha=0.001),
    "hits": HITS,
    "php": lambda: PHP(3),
    "adsorption": lambda: Adsorption({3: 2.0, 50: 1.0}),
    "scc": SCC,
    "degrees": Degrees,
    "coreness": Coreness,
    "kcore": lambda: KCore(4),
    "mis": MaximalIndependentSet,
    "coloring": Coloring,
}
ELSEWHERE = {"bfs", "sssp", "pagerank", "wcc"}
"""In test_device.py, against their checkers."""
ON_ROWS = {"cdlp", "triangles", "lcc", "cf"}
"""Programs on whole rows, which a GPU refuses."""


def test_none_is_left_out() -> None:
    assert MAKERS.keys() | ELSEWHERE | ON_ROWS == PROGRAMS.keys()


def equal(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(ours[name], values, rtol=1e-6, atol=1e-9, err_msg=name)
        else:
            np.testing.assert_array_equal(ours[name], values, err_msg=name)


@pytest.mark.parametrize(
    "way",
    [
        {},
        {"direction": "push"},
        {"direction": "pull"},
        {"mode": "sync"},
        {"route": "filter", "device_edge_memory": 1 << 16},
        {"route": "zero-copy", "device_edge_memory": 1 << 16},
        {"device_edge_memory": 1 << 18},
    ],
)
@pytest.mark.parametrize("directed", [True, False])
def test_the_hosts_answer(directed: bool, way: dict[str, Any], tmp_path: Path) -> None:
    edges = weighed(EdgeList(3000, *skewed(3000, 30_000, 5), None, directed), "uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=1 << 10)
    makers = dict(MAKERS) if directed else {**MAKERS, "chebyshev": ChebyshevPageRank}
    with (
        Session(graph, device="cuda:0", partition_bytes=1 << 13, **way) as session,
        Session(graph, device="cpu") as host,
    ):
        for make in makers.values():
            equal(session.run(make()).fields, host.run(make()).fields)


@pytest.mark.parametrize("name", sorted(ON_ROWS))
def test_whole_rows_are_refused(name: str, tmp_path: Path) -> None:
    edges = weighed(EdgeList(30, *skewed(30, 60, 5), None, False), "uint8")
    with pytest.raises(InputError, match="--device cpu"):
        run(PROGRAMS[name](), on_disk(edges, tmp_path / "graph.h5", chunk_edges=1 << 4), device="cuda:0")
