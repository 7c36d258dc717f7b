"""Layers: the same answers, on every kind of kernels, from fewer passes; and what cannot run so is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine.api import run
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.execution.layers import layer_bounds
from penstock.engine.programs.sssp import SSSP
from penstock.engine.session import Session
from penstock.storage.base.errors import InputError
from penstock.storage.convert.from_arrays import from_edges
from penstock.storage.format.graph import Graph

VERTICES = 20_000


@pytest.fixture(scope="module")
def graph() -> Graph:
    return chains(VERTICES)


def chains(vertices: int) -> Graph:
    """Three long chains of random local edges, one after another, weights 1 to 9."""
    random, count = np.random.default_rng(4), 3 * vertices
    sources = random.integers(0, vertices, count)
    targets = np.clip(sources + random.integers(-200, 260, count), 0, vertices - 1)
    return from_edges(sources, targets, random.integers(1, 10, count), vertices=vertices)


def test_bounds_are_whole_spans_of_about_equal_edges(graph: Graph) -> None:
    assert layer_bounds(graph.out.index(), 1).tolist() == [0, VERTICES]
    assert layer_bounds(graph.out.index(), 3).tolist() == [0, 4096, 12_288, VERTICES]
    assert layer_bounds(graph.out.index(), 100).tolist() == [0, 4096, 8192, 12_288, 16_384, VERTICES]
    assert layer_bounds(from_edges([], [], vertices=7).out.index(), 3).tolist() == [0, 7]


@pytest.mark.parametrize("program", ["sssp", "reachability", "widest"])
@pytest.mark.usefixtures("unfused")
def test_answers_are_those_without_layers(graph: Graph, program: str) -> None:
    parameters: dict[str, Any] = {"source": 3}
    plain = run(program, graph, **parameters)
    layered = run(program, graph, **parameters, tuning={"layers": 4})
    for name, values in plain.fields.items():
        assert np.array_equal(values, layered.fields[name])
    assert layered.converged


def test_ranks_are_those_without_layers(graph: Graph) -> None:
    plain = run("pagerank", graph, tol=1e-7, weight=None)
    layered = run("pagerank", graph, tol=1e-7, weight=None, mode="async", tuning={"layers": 4}, max_iter=100_000)
    assert layered.converged
    assert np.abs(plain.fields["rank"] - layered.fields["rank"]).sum() < 1e-6


@pytest.mark.usefixtures("unfused")
def test_a_run_without_layers_goes_on_by_layers(tmp_path: Path) -> None:
    """The limit of its bucket, which layers do not move, holds nothing back."""
    graph = chains(9000)
    with Session(graph) as session:
        steps = session.steps(SSSP(source=3, delta=3.0), Checkpoints(tmp_path, 1))
        for _ in range(20):
            next(steps)
        steps.close()
    whole = run(SSSP(source=3, delta=3.0), graph)
    layered = run(SSSP(source=3, delta=3.0), graph, checkpoint=tmp_path, resume=True, tuning={"layers": 4})
    assert layered.before == 20
    assert np.array_equal(whole.fields["distance"], layered.fields["distance"])


def test_the_reference_and_the_compiled_kernels_take_the_same_turns() -> None:
    graph = chains(9000)  # three layers
    how: dict[str, Any] = {"source": 3, "tuning": {"layers": 4}}
    runs = [run("reachability", graph, kernels=kind, **how) for kind in ("host", "reference")]
    assert runs[0].iterations == runs[1].iterations


@pytest.mark.parametrize(
    ("program", "options", "words"),
    [
        ("pagerank", {"weight": None}, "by layers: the order .* not free.*pagerank with mode"),
        ("wcc", {}, "not free"),
        ("coreness", {}, "not free"),
        ("sssp", {"source": 0, "direction": "pull"}, "only pushes"),
        ("sssp", {"source": 0, "tuning": {"layers": -1}}, "at least 0"),
    ],
)
def test_what_cannot_run_by_layers_is_refused(graph: Graph, program: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(program, graph, **{"tuning": {"layers": 4}, **options})
