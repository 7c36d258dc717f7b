"""The six algorithms of LDBC Graphalytics, from the command line to its output format, by its own rules of validation.

References come from the independent verifiers, on a directed and an undirected graph with weights and gaps among ids,
and from the benchmark itself, whose two example graphs lie in data/graphalytics with their six answers each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine.programs.table import PROGRAMS
from penstock.storage.format.graph import Graph
from penstock.tools import cli
from support import catalogue_oracles as right
from support.graphs import skewed
from support.oracles import EdgeList, bfs_levels, components, pagerank, shortest_distances
from support.source_code import DATA

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
    "pagerank": ["--no-weight", "--tol", "0", "--max-iter", "7"],
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
        got = output_of(algorithm, tmp_path / "g.h5", PARAMETERS.get(algorithm, []))
        assert list(got) == (np.arange(60) * 7).tolist()
        labels = 7 if algorithm in ("cdlp", "wcc") else None
        wanted = [value * labels if labels else value for value in reference(algorithm, edges)]
        right.check_graphalytics(rule, got, {7 * v: str(value) for v, value in enumerate(wanted)})


def output_of(algorithm: str, graph: Path, parameters: list[str]) -> dict[int, str]:
    """What `penstock run --format graphalytics` writes: id -> value, in its order."""
    written = graph.with_suffix(f".{algorithm}")
    how = [*parameters, "--format", "graphalytics", "--output", str(written), "--quiet", "--no-calibrate"]
    assert cli.run_command(["run", algorithm, str(graph), *how]) == 0
    return values_of(written)


def values_of(output: Path) -> dict[int, str]:
    """A file of Graphalytics' output format."""
    pairs = (line.split(" ") for line in output.read_text().splitlines())
    return {int(vertex): value for vertex, value in pairs}


EXAMPLES = {"example-directed": ("1", ["--direction", "both"]), "example-undirected": ("2", ["--undirected"])}
"""The source of BFS and SSSP, by the benchmark's properties of these graphs, and how they are converted."""
ROUNDS = {"pagerank": ["--no-weight", "--tol", "0", "--max-iter", "2"], "cdlp": ["--max-iter", "2"]}
"""The rounds of PR and CDLP, by the same."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_benchmarks_own_examples(name: str, tmp_path: Path) -> None:
    source, how = EXAMPLES[name]
    edges = DATA / "graphalytics" / f"{name}.e"
    vertices = list(values_of(edges.with_name(f"{name}-BFS")))
    (tmp_path / "g.v").write_text("".join(f"{vertex}\n" for vertex in vertices))
    convert = ["convert", str(edges), str(tmp_path / "g.h5"), "--weights", "--format", "text", "--quiet"]
    assert cli.run_command([*convert, "--vertices", str(tmp_path / "g.v"), *how]) == 0
    assert Graph.open(tmp_path / "g.h5").vertices == len(vertices)
    for algorithm, rule in RULES.items():
        parameters = ["--source", source] if algorithm in ("bfs", "sssp") else ROUNDS.get(algorithm, [])
        wanted = values_of(edges.with_name(f"{name}-{'PR' if algorithm == 'pagerank' else algorithm.upper()}"))
        right.check_graphalytics(rule, output_of(algorithm, tmp_path / "g.h5", parameters), wanted)


def test_help_names_every_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["run", "--help"]) == 0
    told = capsys.readouterr().out.split()
    assert set(PROGRAMS) <= set(told)
