"""A run that has ended goes on with a higher max_iter or a lower tol, to the answer of one that had these at first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Program, run
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.programs.adsorption import Adsorption
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.circuit import Circuit
from penstock.engine.programs.eigenvector import Eigenvector
from penstock.engine.programs.heat import Heat
from penstock.engine.programs.hits import HITS
from penstock.engine.programs.katz import Katz
from penstock.engine.programs.neural import Neural
from penstock.engine.programs.pagerank import ChebyshevPageRank, PageRank
from penstock.engine.programs.php import PHP
from penstock.engine.session import Session
from penstock.storage.base.errors import InputError
from penstock.tools import cli
from support.catalogue_oracles import OTHER, SOURCE
from support.graphs import in_memory, on_disk
from support.program_cases import tangle
from support.simulation_oracles import HELD

EDGES = tangle(directed=True, weights="float64", core=20, tail=3, count=70)
GRAPH = in_memory(EDGES)
MAKERS: dict[str, Callable[..., Program]] = {
    "cdlp": CDLP,
    "pagerank": lambda **limits: PageRank(weight=False, **limits),
    "weighted pagerank": PageRank,
    "eigenvector": Eigenvector,
    "katz": lambda **limits: Katz(alpha=1e-4, **limits),
    "php": lambda **limits: PHP(SOURCE, **limits),
    "adsorption": lambda **limits: Adsorption({SOURCE: 2.0, OTHER: 1.0}, **limits),
    "hits": HITS,
    "heat": lambda **limits: Heat({SOURCE: 5.0}, {OTHER: -1.0}, time_step=0.02, weight=False, **limits),
    "circuit": lambda **limits: Circuit(HELD, floating=True, **limits),
    "neural": lambda **limits: Neural(HELD, gain=1e-3, bias=0.1, **limits),
}


def same(got: Any, wanted: Any) -> None:
    assert (got.converged, got.iterations) == (wanted.converged, wanted.iterations)
    for name, values in wanted.fields.items():
        np.testing.assert_array_equal(got.fields[name], values, strict=True)


def go(program: Program, folder: Path | None = None, **how: Any) -> Any:
    return run(program, GRAPH, kernels="reference", checkpoint=folder, **how)


@pytest.mark.parametrize("name", MAKERS)
def test_a_higher_max_iter_goes_on(name: str, tmp_path: Path) -> None:
    make, more = MAKERS[name], {} if name == "cdlp" else {"tol": 0.0}
    go(make(max_iter=2, **more), tmp_path)
    got = go(make(max_iter=5, **more), tmp_path, resume=True)
    assert got.before > 0
    same(got, go(make(max_iter=5, **more)))
    again = go(make(max_iter=5, **more), tmp_path, resume=True)
    assert again.before == again.iterations
    same(again, go(make(max_iter=5, **more)))


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("cdlp", "katz", "hits")])
def test_a_lower_tol_goes_on(name: str, tmp_path: Path) -> None:
    make, lower = MAKERS[name], 1e-3 if name == "heat" else 1e-7  # heat takes thousands of steps
    first = go(make(tol=1e-2), tmp_path)
    assert first.converged
    got = go(make(tol=lower), tmp_path, resume=True)
    assert got.before == first.iterations < got.iterations
    same(got, go(make(tol=lower)))


def test_one_that_pushes_residuals_goes_on(tmp_path: Path) -> None:
    make = lambda most: PageRank(tol=1e-9, max_iter=most, weight=False)  # noqa: E731
    go(make(4), tmp_path, mode="async")
    got = go(make(1000), tmp_path, resume=True, mode="async")
    assert got.before == 4
    np.testing.assert_allclose(got.fields["rank"], go(make(1000), mode="async").fields["rank"], rtol=1e-6)
    go(PageRank(tol=1e-3, max_iter=4, weight=False), tmp_path, mode="async")
    lower = go(PageRank(tol=1e-6, max_iter=9, weight=False), tmp_path, resume=True, mode="async")
    assert lower.before == 0, "what is pushed depends on tol: it begins anew"


def test_one_with_a_course_of_its_own_goes_on(tmp_path: Path) -> None:
    graph = in_memory(tangle(directed=False, core=20, tail=3, count=70))
    how = {"kernels": "reference", "checkpoint": tmp_path}
    make = lambda most: ChebyshevPageRank(tol=1e-9, max_iter=most, weight=False)  # noqa: E731
    run(make(3), graph, **how)
    got = run(make(9), graph, resume=True, **how)
    assert got.before == 3
    same(got, run(make(9), graph, kernels="reference"))


def test_a_run_that_was_cut_off_goes_on_with_higher_limits_and_not_with_lower_ones(tmp_path: Path) -> None:
    with Session(GRAPH, kernels="reference") as session:
        steps = session.steps(CDLP(8), Checkpoints(tmp_path, 2))
        for _ in range(3):
            next(steps)
        steps.close()
    with pytest.raises(InputError, match="its max_iter was 8, here it is 5, and only a higher one goes on"):
        go(CDLP(5), tmp_path, resume=True)
    with pytest.raises(InputError, match="holds checkpoints of a run that did not end"):
        go(CDLP(8), tmp_path)
    got = go(CDLP(12), tmp_path, resume=True)
    assert got.before == 2
    same(got, go(CDLP(12)))


def test_where_a_run_has_ended_another_one_begins(tmp_path: Path) -> None:
    go(CDLP(3), tmp_path)
    same(go(CDLP(2), tmp_path), go(CDLP(2)))
    checkpoints = Checkpoints(tmp_path, resume=True)
    assert checkpoints.folder.numbers() == [2]
    with Session(GRAPH, kernels="reference") as session, checkpoints:
        same(session.run(CDLP(1), checkpoints), go(CDLP(1)))
        assert checkpoints.notes[0].startswith(
            f"{tmp_path / 'checkpoint-0000000002.penstock'} is of a run that has ended"
        )
        assert checkpoints.finish().endswith("after iteration 1: --resume with a higher --max-iter goes on from it")
    go(BFS(SOURCE), tmp_path, resume=True)
    assert list(tmp_path.iterdir()) == [], "a search has no limits: nothing stays"


def test_on_the_command_line_in_a_run_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on_disk(EDGES, tmp_path / "g.h5")
    command = ["run", "cdlp", str(tmp_path / "g.h5"), "--run-dir", str(tmp_path / "run"), "--checkpoint", "kept"]
    command += ["--output", "a.npy", "--max-iter"]
    assert cli.run_command([*command, "2"]) == 0
    kept = "keeps the state after iteration 2: --resume with a higher --max-iter goes on from it"
    assert kept in capsys.readouterr().err
    assert cli.run_command([*command, "4", "--resume"]) == 2
    assert "a.npy exists already; --force replaces it" in capsys.readouterr().err
    assert cli.run_command([*command, "4", "--resume", "--force"]) == 0
    assert "after iteration 2" in capsys.readouterr().err
    assert np.array_equal(np.load(tmp_path / "run" / "a.npy"), go(CDLP(4)).fields["label"])
    assert (tmp_path / "run" / "earlier-1" / "metrics.jsonl").exists()
