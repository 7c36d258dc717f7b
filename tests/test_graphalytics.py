"""The six algorithms of LDBC Graphalytics, from the command line to its output format, by its own rules of validation.

References come from the independent verifiers, on a directed and an undirected graph with weights and gaps among ids.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import verifiers as right
from checkers import EdgeList, bfs_levels, components, pagerank, shortest_distances
from penstock.engine.programs.table import PROGRAMS
from penstock.tools import cli
from samples import skewed

FAR = "9223372036854775807"
SOURCE = 4


def graph_of(*, directed: bool) -> EdgeList:
    """60 vertices, simple, with float weights; the last ten are apart."""
    ends = skewed(50, 200, 11)
    ends = np.unique(ends if directed else np.sort(ends, axis=0), axis=1)
    ends = ends[:, ends[0] != ends[1]]
    ends = np.concatenate([ends, [[51, 52], [53, 54]]], axis=1)
    weights = np.random.default_rng(2).random(ends.shape[1]).round(3) + 0.001
    return EdgeList(60, ends[0], ends[1], weights, directed)


def reference(algorithm: str, edges: EdgeList) -> list[Any]:
    """The right value of every vertex."""
    if algorithm == "bfs":
        return [FAR if level < 0 else level for level in bfs_levels(edges, SOURCE).tolist()]
    if algorithm == "sssp":
        return ["infinity" if one is None else one for one in shortest_distances(edges, SOURCE)]
    answers = {
        "pagerank": lambda: pagerank(edges, sweeps=7),
        "wcc": lambda: components(edges),
        "cdlp": lambda: right.label_propagation(edges, 5),
        "lcc": lambda: right.clustering(edges),
    }
    return list(answers[algorithm]().tolist())


RULES = {
    "bfs": "exact",
    "pagerank": "epsilon",
    "wcc": "equivalence",
    "cdlp": "exact",
    "lcc": "epsilon",
    "sssp": "epsilon",
}
PARAMETERS = {
    "bfs": ["--source", f"{SOURCE * 7}"],
    "sssp": ["--source", f"{SOURCE * 7}"],
    "pagerank": ["--tol", "0", "--max-iter", "7"],
    "cdlp": ["--max-iter", "5"],
}


@pytest.mark.parametrize("directed", [True, False])
def test_outputs_pass_validation(directed: bool, tmp_path: Path) -> None:
    edges = graph_of(directed=directed)
    assert edges.weights is not None
    table = np.stack([edges.sources * 7, edges.targets * 7, edges.weights]).T
    np.savetxt(tmp_path / "g.e", table, fmt=["%d", "%d", "%.3f"])
    np.savetxt(tmp_path / "g.v", np.arange(60) * 7, fmt="%d")
    how = ["--renumber", "--weights", "--format", "text", "--vertices", tmp_path / "g.v", "--quiet"]
    how += ["--direction", "both"] if directed else ["--undirected"]
    assert cli.run_command(["convert", *map(str, [tmp_path / "g.e", tmp_path / "g.h5", *how])]) == 0
    for algorithm, rule in RULES.items():
        written = tmp_path / f"{algorithm}.out"
        how = [
            *PARAMETERS.get(algorithm, []),
            "--format",
            "graphalytics",
            "--output",
            written,
            "--quiet",
            "--no-calibrate",
        ]
        assert cli.run_command(["run", algorithm, *map(str, [tmp_path / "g.h5", *how])]) == 0
        pairs = [line.split(" ") for line in written.read_text().splitlines()]
        assert [int(vertex) for vertex, _ in pairs] == (np.arange(60) * 7).tolist()
        labels = 7 if algorithm in ("cdlp", "wcc") else None
        wanted = [value * labels if labels else value for value in reference(algorithm, edges)]
        got = {int(vertex): value for vertex, value in pairs}
        right.check_graphalytics(rule, got, {7 * v: str(value) for v, value in enumerate(wanted)})


def test_help_names_every_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["run", "--help"]) == 0
    told = capsys.readouterr().out.split()
    assert set(PROGRAMS) <= set(told)
