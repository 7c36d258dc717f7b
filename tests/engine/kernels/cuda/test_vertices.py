"""Globals of a GPU are added up in a fixed order, and a sweep sends ahead for the next one where that is the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from penstock.engine import run
from penstock.engine.kernels.cuda import device_functions, vertices
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.kernels.cuda.launch import CudaKernels
from penstock.engine.program.program import Field, Program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.pagerank_forms import ResidualPageRank
from penstock.engine.programs.sssp import SSSP, WideSSSP
from penstock.engine.session import Session
from penstock.storage.format.graph import Graph
from support.graphs import in_memory, shape

pytestmark = pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu")

DEVICE: dict[str, Any] = {"device": "emulated", "kernels": "cuda"}


class Own(PageRank):
    """A form of its own."""

    def form(self, graph: Graph, mode: str) -> Program:
        return self


class Fading(Own):
    """What is sent changes from sweep to sweep by what the program itself does."""

    def send(rank, degree, damping):  # type: ignore[no-untyped-def,override]
        return damping * rank / degree if degree > 0 else rank

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        self.damping = 0.9 * self.damping
        return False


class Spread(Own):
    """What is sent depends on a Global of the sweep before."""

    def send(rank, degree, dangling):  # type: ignore[no-untyped-def,override]
        return (rank + dangling / 10) / degree if degree > 0 else rank


class Paired(Own):
    """Reads a small vector of ones of every vertex."""

    pair = Field(np.float64, fill=1, shape=(2,), constant=True, output=False)

    def send(rank, degree, pair):  # type: ignore[no-untyped-def,override]
        return rank / degree / pair[1] if degree > 0 else rank

    def vertex(incoming, dangling, base_rank, damping, vertices, pair):  # type: ignore[no-untyped-def,override]
        return pair[0] * base_rank + damping * (pair[1] * incoming + dangling / vertices)


def launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fills with the names of what is launched."""
    names: list[str] = []
    before = CudaKernels._call

    def noted(kernels: CudaKernels, kernel: Any, *arguments: Any) -> None:
        made = kernel[0] if isinstance(kernel, tuple) else kernel
        names.append(made.__name__.removeprefix("make_"))
        before(kernels, kernel, *arguments)

    monkeypatch.setattr(CudaKernels, "_call", noted)
    return names


@pytest.mark.parametrize(("kind", "sends"), [(PageRank, 1), (Fading, 3), (Spread, 3)])
def test_a_sweep_sends_for_the_next_one(kind: Any, sends: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, names = in_memory(shape("sparse")), launches(monkeypatch)
    with Session(graph, **DEVICE) as session:
        first = session.run(kind(tol=0, max_iter=3)).fields["rank"]
        assert [names.count(name) for name in ("send", "pull", "apply")] == [sends, 3, 3]
        again = session.run(kind(tol=0, max_iter=3)).fields["rank"]
        assert [names.count(name) for name in ("send", "pull", "apply")] == [2 * sends, 6, 6]
    monkeypatch.setattr(vertices, "steady", lambda program, author: None)
    answer = run(kind(tol=0, max_iter=3), graph, **DEVICE).fields["rank"]
    assert names.count("send") == 2 * sends + 3
    assert np.array_equal(first, answer)
    assert np.array_equal(again, answer)


def test_a_constant_vector_is_a_field_too() -> None:
    graph = in_memory(shape("sparse"))
    paired, plain = (run(kind(tol=0, max_iter=2), graph, **DEVICE).fields["rank"] for kind in (Paired, Own))
    assert np.array_equal(paired, plain)


@pytest.mark.parametrize(
    ("program", "names"), [(PageRank(), []), (Fading(), ["damping"]), (ResidualPageRank(), None), (BFS(0), None)]
)
def test_what_is_sent_ahead(program: Program, names: list[str] | None) -> None:
    author = CudaKernels(program, np.dtype(np.uint32), False, None, {}).author
    steady = vertices.steady(program, author)
    assert (None if steady is None else [author.scalars[at] for at in steady]) == names


def test_shares_are_folded_by_kind() -> None:
    """Of any number of rows; what is no number stays visible in a smallest or largest, as on the host."""
    author: Any = SimpleNamespace(partial_start=np.array([0, np.inf, -np.inf]), totals=("all", "least", "most"))
    fold = vertices.make_fold(author)
    for rows in (0, 1, seam.BLOCK, 3 * seam.BLOCK + 1):
        shares = np.random.default_rng(rows).integers(-99, 99, (rows, 3)).astype(np.float64)
        told = np.zeros((1, 3))
        fold(1, shares, told)
        least, most = shares[:, 1].min(initial=np.inf), shares[:, 2].max(initial=-np.inf)
        assert told.tolist() == [[shares[:, 0].sum(), least, most]]
    shares[seam.BLOCK + 1] = np.nan
    fold(1, shares, told)
    assert np.isnan(told).all()


def test_no_program_is_needed_to_add_nothing_up() -> None:
    author: Any = SimpleNamespace(partial_start=np.zeros(0), totals=())
    assert (vertices.starts_of(author), vertices.kinds_of(author)) == ((0.0,), (vertices.SUM,))


@pytest.mark.parametrize("many", [0, 99], ids=["by lines", "word by word"])
@pytest.mark.parametrize("program", [BFS(0), SSSP(0, delta=20), WideSSSP(0)], ids=lambda one: type(one).__name__)
@pytest.mark.usefixtures("unfused")
def test_bitmaps_are_walked_in_two_ways(program: Program, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of words with many bits threads take neighboring bits, of others their own word; the last word is not full."""
    monkeypatch.setattr(device_functions, "MANY_BITS", many)
    monkeypatch.setattr(CudaKernels, "can_fuse", lambda kernels, frontier: False)
    graph = in_memory(shape("skewed", directed=False, weights="uint8"))
    answer, host = run(program, graph, **DEVICE), run(program, graph, device="cpu")
    for name, values in host.fields.items():
        assert np.array_equal(answer.fields[name], values), name
