"""What is said of a run: what the program measured, and that weights were asked for and not found."""

from __future__ import annotations

import json

import pytest
from penstock.engine import from_edges, run
from penstock.storage.base.errors import InputError
from penstock.tools.execution import Wanted
from penstock.tools.outcome import outcome_of
from penstock.tools.output import plain


def test_the_errors_of_a_descent_are_told() -> None:
    graph = from_edges([0, 0, 1], [2, 3, 3], [1.0, 2.0, 4.5], undirected=True)
    outcome = outcome_of(run("cf", graph, rank=2, max_iter=3, kernels="reference"), 1.0)
    errors = json.loads(json.dumps(plain(outcome.facts())))["measures"]["rmse"]
    assert len(errors) == 3
    assert f"  rmse            {errors[0]:.6g} at first, {errors[2]:.6g} at last" in outcome.lines(Wanted())


@pytest.mark.parametrize(("program", "weights", "told"), [("sssp", None, 1), ("sssp", [2, 3], 0), ("bfs", None, 0)])
def test_weights_that_are_missed(program: str, weights: list[int] | None, told: int) -> None:
    outcome = outcome_of(run(program, from_edges([0, 1], [1, 2], weights), source=0, kernels="reference"), 1.0)
    lines = [line.split(maxsplit=1) for line in outcome.lines(Wanted())]
    assert lines.count(["weights", "none in this graph: each edge counts as 1"]) == told
    assert outcome.facts()["measures"] == {}


@pytest.mark.parametrize(("tol", "told"), [(0, ""), (1e-12, ", stopped before it converged")])
def test_iterations_that_were_counted_are_no_failure(tol: float, told: str) -> None:
    graph = from_edges([0, 1, 2, 0], [1, 2, 0, 2])
    outcome = outcome_of(run("pagerank", graph, tol=tol, max_iter=2, kernels="reference"), 1.0)
    assert f"  iterations      2{told}" in outcome.lines(Wanted())


def test_a_format_without_an_output_is_refused() -> None:
    with pytest.raises(
        InputError, match="--format graphalytics is the format of an output, and there is none; add --out"
    ):
        Wanted(format="graphalytics").check(force=False)
