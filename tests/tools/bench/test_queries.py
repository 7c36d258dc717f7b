"""The comparison of all programs: simple edges, answers that agree or do not, peers that answer as Penstock does."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine.programs.table import PROGRAMS
from penstock.tools import cli
from penstock.tools.bench import queries
from penstock.tools.bench.compare import Comparison, Penstock, Timing, compare_on
from penstock.tools.bench.peers import Igraph, Networkit, Networkx, Scipy
from penstock.tools.bench.queries import PAGERANK_SWEEPS, QUERIES
from penstock.tools.bench.system import Implementation, SimpleEdges, System, Values
from support.graphs import in_memory, skewed
from support.json_page import check_documented
from support.oracles import EdgeList


def graph(*, directed: bool, weighted: bool = True) -> EdgeList:
    """18 vertices with loops and parallel edges, 2 of them apart."""
    ends = skewed(16, 50, 4)
    weights = np.random.default_rng(1).integers(1, 60, 50).astype(np.uint8) if weighted else None
    return EdgeList(18, ends[0], ends[1], weights, directed)


@cache
def edges_of(*, directed: bool) -> SimpleEdges:
    return SimpleEdges.of(in_memory(graph(directed=directed)))


def test_every_program_of_one_number_is_asked() -> None:
    assert QUERIES.keys() == PROGRAMS.keys() - {
        "cf",
        "fastrp",
        "distances",
    }  # whose fields are vectors, or named by sources


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("directed", [True, False])
def test_edges_are_simple(directed: bool, weighted: bool) -> None:
    given = graph(directed=directed, weighted=weighted)
    edges = SimpleEdges.of(in_memory(given))
    ends = zip(given.sources.tolist(), given.targets.tolist(), strict=True)
    pairs = {(u, v) if directed or u < v else (v, u) for u, v in ends if u != v}
    found = list(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True))
    assert found == sorted(pairs)
    if not weighted:
        assert edges.weights.tolist() == [1 + (31 * u + 17 * v) % 64 for u, v in found]
    degree = np.bincount(edges.sources, minlength=18) + (0 if directed else np.bincount(edges.targets, minlength=18))
    assert degree[edges.starts].tolist() == sorted(degree.tolist(), reverse=True)[:4]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # igraph's, about hubs that are not unique
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("peer", [Scipy, Networkit, Igraph, Networkx], ids=lambda peer: peer.name)
def test_peers_answer_as_penstock_does(peer: Any, directed: bool) -> None:
    pytest.importorskip(peer.name)
    edges = edges_of(directed=directed)
    taken = peer()
    taken.take(edges)
    asked = [name for name in taken.queries(edges) if name != PAGERANK_SWEEPS]
    found = compared(edges, [peer()], asked)
    assert (found.wrong, found.failed) == (set(), {})
    assert all({"penstock", peer.name} == times.keys() for times in found.seconds.values())
    assert {"bfs", "sssp", "pagerank", "wcc", "scc"} <= set(asked) | ({"scc"} if peer.name == "networkit" else set())


def compared(edges: SimpleEdges, peers: list[System], names: list[str]) -> Comparison:
    systems = [Penstock(kernels="reference"), *peers]
    return compare_on(edges, systems, names, Timing(1, 0.0), lambda doing: None)


class Other:
    """A system that is wrong at one query and fails at another."""

    name = "other"

    def take(self, edges: SimpleEdges) -> None:
        self._count = edges.vertices

    def queries(self, edges: SimpleEdges) -> dict[str, Implementation]:
        def fail() -> Values:
            raise ArithmeticError("did not converge")

        return {
            "bfs": (lambda: np.zeros(self._count), np.asarray),
            "degrees": (fail, np.asarray),
        }

    def close(self) -> None:
        """Nothing to free."""


def test_wrong_and_failed_answers_are_shown() -> None:
    edges = edges_of(directed=True)
    names = ["bfs", "degrees"]
    found = compared(edges, [Other()], names)
    assert found.wrong == {("bfs", "other")}
    assert found.failed == {("degrees", "other"): "ArithmeticError: did not converge"}
    shown = found.lines(["penstock", "other"], names)
    assert "wrong" in shown[2]
    assert "failed" in shown[3]
    assert shown[4] == "other failed at degrees: ArithmeticError: did not converge"
    with pytest.raises(ArithmeticError):
        compare_on(edges, [Other()], ["degrees"], Timing(1), lambda doing: None)


@pytest.mark.parametrize("directed", [True, False])
def test_colorings_and_independent_sets_must_be_right(directed: bool) -> None:
    edges = edges_of(directed=directed)
    distinct, member = np.arange(edges.vertices), np.zeros(edges.vertices)
    assert queries.colored(edges, distinct, distinct + 7)
    assert not queries.colored(edges, distinct, np.zeros(edges.vertices))
    for v in range(edges.vertices):
        beside = np.concatenate([edges.targets[edges.sources == v], edges.sources[edges.targets == v]])
        member[v] = not member[beside].any()
    assert queries.independent(edges, member, member)
    assert not queries.independent(edges, member, np.zeros(edges.vertices))
    assert not queries.independent(edges, member, np.ones(edges.vertices))


def test_shares_and_near_have_a_limit() -> None:
    edges, values = edges_of(directed=True), np.linspace(1.0, 2.0, 18)
    assert queries.shares(edges, values, values * 3)
    assert not queries.shares(edges, values, values + np.eye(18)[3] * 0.01)
    assert queries.near(edges, values, values * (1 + 1e-8))
    assert not queries.near(edges, values, values * 1.001)


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.h5"
    assert cli.run_command(["generate", "rmat", "--scale", "8", "--output", str(path), "-q"]) == 0
    asked = ["bench", "compare", str(path), "--program", "bfs", "--system", "scipy", "--repeat", "1"]
    assert cli.run_command([*asked, "--threads", "1", "--clock", "cpu", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    check_documented(told)
    assert (told["wrong"], told["failed"], told["vertices"]) == ([], {}, 256)
    assert told["seconds"].keys() == {"bfs"}
    assert told["seconds"]["bfs"].keys() == {"penstock", "scipy"}
    for wrong in (
        ["compare", str(path), "--program", "cf"],
        ["compare", "--program", "bfs"],
        ["compare", "--clock", "cpu"],
        ["compare", "--system", "nobody"],
        ["compare", str(path), "--system", "nobody"],
    ):
        assert cli.run_command(["bench", *wrong]) == 2
    assert "--program 'cf' is not compared" in capsys.readouterr().err
