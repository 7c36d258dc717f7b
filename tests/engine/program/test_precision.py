"""Programs in single precision: what they give, what they take, and which have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from penstock.engine import Program, Session, run
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.planning.requirements import RunSetting, planned
from penstock.engine.program.precision import TOLERANCE
from penstock.engine.program.program import fields_of
from penstock.engine.programs.eigenvector import Eigenvector
from penstock.engine.programs.katz import DivergedError, Katz
from penstock.engine.programs.pagerank import PPR, PageRank
from penstock.engine.programs.php import PHP
from penstock.engine.resources.config import Config
from penstock.storage.base.errors import InputError
from support.covering import covering
from support.graphs import in_memory, shape

SIMULATED = {"device": "emulated", "kernels": "cuda"}
simulator = pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu")
REFERENCE: dict[str, Any] = {"kernels": "reference"}
PROGRAMS: dict[str, Callable[[], Program]] = {
    "pagerank": PageRank,
    "personalized_pagerank": lambda: PPR(source=0),
    "katz": lambda: Katz(alpha=1e-3),
    "eigenvector": Eigenvector,
    "php": lambda: PHP(source=0),
}
"""Weighted ranks and hitting probabilities have phases."""


@covering("weight, name", (True, False), PROGRAMS, strength=1)
def test_answers_are_those_of_double_precision(name: str, weight: bool) -> None:
    graph = in_memory(shape("sparse", weights="uint8"))
    program = PROGRAMS[name]()
    program.needs_weights = weight
    wanted = run(program, graph, **REFERENCE)
    found = run(program, graph, precision="single", **REFERENCE)
    assert found.converged
    for field, values in found.fields.items():
        assert values.dtype == np.float32
        assert wanted.fields[field].dtype == np.float64
        np.testing.assert_allclose(values, wanted.fields[field], rtol=TOLERANCE, atol=1e-6)


@pytest.mark.parametrize("way", [{}, pytest.param(SIMULATED, marks=simulator), {"mode": "async"}])
def test_on_compiled_kernels(way: dict[str, Any]) -> None:
    graph = in_memory(shape("sparse"))
    with Session(graph, precision="single", **way) as session:
        (found,) = session.run(PageRank()).fields.values()
    (wanted,) = run(PageRank(), graph, **REFERENCE).fields.values()
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=1e-5)


def test_state_takes_half() -> None:
    graph, taken = in_memory(shape("sparse")), []
    for precision in ("double", "single"):
        made, asks, _ = planned(graph, PageRank(), RunSetting(Config(precision=precision)))  # type: ignore[arg-type]
        taken.append(sum(np.dtype(field.dtype).itemsize for field in fields_of(made).values()))  # type: ignore[arg-type]
        assert asks[0].program is made
    assert taken == [8, 4]


def test_values_that_outgrow_single_precision_are_refused() -> None:
    with pytest.raises(DivergedError, match=r"alpha 1\.0 is too large .* here about 0\.0"):
        run(Katz(alpha=1.0), in_memory(shape("sparse", weights="uint8")), precision="single", **REFERENCE)


def test_programs_without_such_a_form_are_refused() -> None:
    graph = in_memory(shape("sparse"))
    with pytest.raises(InputError, match="precision is 'single', and BFS has no such form: its numbers are whole"):
        run("bfs", graph, source=0, precision="single", **REFERENCE)
    with pytest.raises(InputError, match="precision is 'half'; choose one of double, single"):
        run("pagerank", graph, precision="half")
