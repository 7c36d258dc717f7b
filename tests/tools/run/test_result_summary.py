"""Summaries look only at vertices that have a value; components are counted; what a program measured is told."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from penstock.engine import from_edges, run
from penstock.engine.program import vertex_ids
from penstock.storage.base.errors import InputError
from penstock.storage.results import group_counts
from penstock.tools.base.output import plain
from penstock.tools.run.answer_options import AnswerOptions
from penstock.tools.run.result_summary import ResultSummary, path_line


def answer(best: list[tuple[int, object]] | None = None, **fields: np.ndarray) -> ResultSummary:
    result: Any = SimpleNamespace(
        stored=fields,
        known={},
        numbers=lambda name: (fields[name], 4294967295 if fields[name].dtype == np.uint32 else None),
        graph=SimpleNamespace(original=None),
        top_rows=lambda count, **how: [{"vertex": vertex, "level": value} for vertex, value in (best or [])[:count]],
    )
    return ResultSummary(result)


@pytest.mark.parametrize(
    ("fields", "told", "lines"),
    [
        ({"level": np.array([0, 4294967295, 2, 1, 2], np.uint32)}, {"reached": 4, "min": 0, "max": 2},
         "4 of 5 vertices, 0 to 2"),
        ({"parent": np.array([10, 4294967295, 13, 10, 13], np.uint32)}, {"reached": 4}, None),
        ({"component": np.array([5, 5, 8, 5, 9, 9])}, {"components": 3, "largest": 3},
         "3 components, the largest of 3 vertices"),
        ({"component": np.zeros(0, int)}, {"components": 0, "largest": 0}, None),
        ({"color": np.zeros(4, int)}, {"colors": 1, "largest": 4}, "1 color, the largest of 4 vertices"),
        ({"member": np.array([1, 0, 1], np.uint8)}, {"count": 2}, "2 of 3 vertices"),
        ({"rank": np.array([0.25, 0.75])}, {"min": 0.25, "max": 0.75, "sum": 1.0}, None),
        ({"rank": np.zeros(0)}, {}, None),
        ({"x": np.ones((2, 3))}, {"min": 1.0, "max": 1.0, "sum": 6.0}, "3 numbers a vertex, 1 to 1"),
        ({"x": np.ones((0, 3))}, {}, "0 numbers a vertex"),
    ],
)  # fmt: skip
def test_values_of_a_field_are_counted(fields: dict[str, Any], told: dict[str, Any], lines: str | None) -> None:
    """Of levels and parents those that are reached alone."""
    (name,) = fields
    found = answer([(0, 1)], **fields)
    assert found.fields[name] == told
    assert lines is None or (name, lines) in found.field_lines()
    if fields[name].ndim == 2:
        assert found.top(AnswerOptions(top=1)) == [], "vectors have no order"


def test_the_top_is_the_engines() -> None:
    found = answer([(12, 0), (14, 1)], level=np.array([0, 1]))
    assert found.top(AnswerOptions(top=1)) == [{"vertex": 12, "level": 0}]
    assert found.top(AnswerOptions(top=0)) == []
    found = answer(component=np.array([5, 5, 8, 5, 9, 9]))
    assert found.top(AnswerOptions(top=2)) == [{"component": 5, "vertices": 3}, {"component": 9, "vertices": 2}]


def test_the_errors_of_a_descent_are_told() -> None:
    graph = from_edges([0, 0, 1], [2, 3, 3], [1.0, 2.0, 4.5], undirected=True)
    summary = ResultSummary(run("cf", graph, rank=2, max_iter=3, kernels="reference"), 1.0)
    errors = json.loads(json.dumps(plain(summary.facts())))["measures"]["rmse"]
    assert len(errors) == 3
    assert f"  rmse            {errors[0]:.6g} at first, {errors[2]:.6g} at last" in summary.lines(AnswerOptions())


@pytest.mark.parametrize(("program", "weights", "told"), [("sssp", None, 1), ("sssp", [2, 3], 0), ("bfs", None, 0)])
def test_weights_that_are_missed(program: str, weights: list[int] | None, told: int) -> None:
    summary = ResultSummary(run(program, from_edges([0, 1], [1, 2], weights), source=0, kernels="reference"), 1.0)
    lines = [line.split(maxsplit=1) for line in summary.lines(AnswerOptions())]
    assert lines.count(["weights", "none in this graph: each edge counts as 1"]) == told
    facts = summary.facts()
    assert facts["measures"] == {}
    assert "paths" not in facts


@pytest.mark.parametrize(("tol", "told"), [(0, ""), (1e-12, ", stopped before it converged")])
def test_iterations_that_were_counted_are_no_failure(tol: float, told: str) -> None:
    graph = from_edges([0, 1, 2, 0], [1, 2, 0, 2])
    summary = ResultSummary(run("pagerank", graph, tol=tol, max_iter=2, kernels="reference"), 1.0)
    assert f"  iterations      2{told}" in summary.lines(AnswerOptions())


def test_a_format_without_an_output_is_refused() -> None:
    with pytest.raises(
        InputError, match="--format graphalytics is the format of an output, and there is none; add --out"
    ):
        AnswerOptions(format="graphalytics").check(force=False)


def test_groups_and_the_first_vertices_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = group_counts.count_groups

    def counting(labels: Any, top: int, *rest: Any, **named: Any) -> Any:
        calls.append(top)
        return real(labels, top, *rest, **named)

    monkeypatch.setattr(group_counts, "count_groups", counting)
    graph = from_edges([0, 2, 4], [1, 3, 5])
    summary = ResultSummary(run("wcc", graph, kernels="reference"), listed=2)
    assert summary.fields == {"component": {"components": 3, "largest": 2}}
    assert summary.top(AnswerOptions(top=2)) == [{"component": 0, "vertices": 2}, {"component": 2, "vertices": 2}]
    assert summary.facts()["fields"] == summary.fields
    assert summary.lines(AnswerOptions(top=1))
    assert calls == [2]
    assert len(summary.top(AnswerOptions(top=5))) == 3
    assert calls == [2, 5]


def test_names_of_groups_that_are_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_counts, "SMALL", 0)
    graph = from_edges([5, 2**40, 2**50], [2**30, 7, 2**50 + 1], renumber=True)
    summary = ResultSummary(run("wcc", graph, kernels="reference"), listed=1)
    assert summary.fields == {"component": {"components": 3, "largest": 2}}
    assert summary.top(AnswerOptions(top=1)) == [{"component": 5, "vertices": 2}]


def test_paths_to_targets() -> None:
    """People see both ends of a long one; machines all of it."""
    graph = from_edges([*range(40), 50], [*range(1, 41), 51])
    summary = ResultSummary(run("bfs", graph, source=0, target=[2, 40, 51], kernels="reference"))
    paths = json.loads(json.dumps(plain(summary.facts())))["paths"]
    assert paths[0] == {"target": 2, "reached": True, "level": 2, "hops": 2, "vertices": [0, 1, 2]}
    assert paths[1]["vertices"] == list(range(41))
    assert paths[2] == {"target": 51, "reached": False}
    lines = summary.lines(AnswerOptions())
    assert "  path to 2       level 2, 2 edges: 0 > 1 > 2" in lines
    assert any("9 > 10 > 11 > (17 more, which --json lists) > 29 > 30" in line for line in lines)
    assert "  path to 51      none" in lines


def test_a_target_without_parents_and_beyond_a_cutoff() -> None:
    graph = from_edges([0, 1], [1, 2])
    given = {"source": 0, "target": 2, "kernels": "reference"}
    assert path_line(ResultSummary(run("sssp", graph, parents=False, **given)).paths[0], None) == (
        "path to 2",
        "distance 2",
    )
    assert "  path to 2       none within the cutoff 1" in ResultSummary(run("sssp", graph, cutoff=1, **given)).lines(
        AnswerOptions()
    )


@pytest.mark.parametrize("order", ["none", "hubs"])
def test_only_the_names_of_groups_that_are_shown_are_looked_up(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of equally large groups those of the first names come first, however vertices are ordered."""
    graph = from_edges(["z", "m", "m", "b"], ["y", "n", "o", "a"], order=order)
    summary = ResultSummary(run("wcc", graph, kernels="reference"), listed=3)
    monkeypatch.setattr(vertex_ids, "original_names", None)  # which reads the names of all vertices
    assert summary.fields == {"component": {"components": 3, "largest": 3}}
    assert summary.top(AnswerOptions(top=3)) == [
        {"component": "m", "vertices": 3},
        {"component": "a", "vertices": 2},
        {"component": "y", "vertices": 2},
    ]
    assert "fields" not in vars(summary.result)


def test_values_that_are_names_have_no_extremes() -> None:
    graph = from_edges(["a", "b", "b"], ["b", "c", "d"])
    summary = ResultSummary(run("articulation", graph, kernels="reference"))
    assert summary.fields["top"] == {"reached": 3}
    assert ("top", "3 of 4 vertices") in summary.field_lines()
