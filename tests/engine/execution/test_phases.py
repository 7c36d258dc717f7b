"""Programs of phases, and what a program may say about whole rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from penstock.engine import Field, Program, run
from penstock.engine.program.program import check, has_phases, needs_rows
from penstock.engine.programs.betweenness import Betweenness
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.programs.hits import HITS
from penstock.engine.programs.triangles import LCC
from penstock.engine.session import Session
from penstock.engine.state.records import PhaseRecord
from penstock.storage.base.errors import InputError
from support.graphs import in_memory
from support.oracles import EdgeList
from support.program_cases import CASES, tangle

PATH = EdgeList(4, np.array([0, 1, 2]), np.array([1, 2, 3]))


class Count(Program):
    """One sweep: in-neighbors, added to what `seen` held; `mine` is the phase's own."""

    seen = Field(np.int64)
    mine = Field(np.int64, fill=5)
    combine = "sum"
    everywhere = True
    max_iter = 1

    def edge():
        return 1

    def vertex(seen, mine, incoming):
        return seen + incoming, mine + seen


class Twice(Program):
    """Counts twice, and looks at the field in between."""

    seen = Field(np.int64, fill=10)

    def phases(self, graph: Any, state: dict[str, Any]) -> Iterator[Program]:
        yield Count()
        self.between = state["seen"].tolist()
        state["seen"][0] = 100
        yield Count()


@pytest.mark.parametrize(
    "way",
    [{}, {"kernels": "reference"}, {"mode": "async"}, {"device": "emulated", "kernels": "cuda"}],
)
def test_phases_share_the_programs_fields(way: dict[str, Any]) -> None:
    program = Twice()
    result = run(program, in_memory(PATH), **way)
    assert program.between == [10, 11, 11, 11]
    assert {name: values.tolist() for name, values in result.fields.items()} == {"seen": [100, 12, 12, 12]}
    assert len(result.records) == 2
    assert result.converged


def test_a_field_declared_differently_in_a_phase_is_refused() -> None:
    program = type("Twice", (Twice,), {"seen": Field(np.float64)})()
    with pytest.raises(InputError, match=r"field 'seen' is int64 \(\) in a phase and float64 \(\) in its program"):
        run(program, in_memory(PATH))


def test_kinds_of_programs() -> None:
    assert (has_phases(HITS()), has_phases(BFS(1))) == (True, False)
    assert [needs_rows(program) for program in (CDLP(), LCC(), CollaborativeFiltering(), BFS(1))] == [True] * 3 + [
        False
    ]


def test_degrees_against_edges_need_in_edges() -> None:
    """What a vertex sends against its edges is its in-degree, which a graph of out-edges does not hold."""

    class Shares(Program):
        share = Field(np.float64)
        combine = "sum"
        along = "in"
        everywhere = True
        max_iter = 1

        def edge(degree):
            return 1.0 / degree

        def vertex(incoming):
            return incoming

    for way in ({"kernels": "reference"}, {"kernels": "reference", "direction": "push"}):
        assert run(Shares(), in_memory(PATH), **way).fields["share"].tolist() == [1, 1, 1, 0]
    with pytest.raises(InputError, match=r"asks for in-degrees.*direction=\"both\""):
        run(Shares(), in_memory(PATH, both=False))
    with pytest.raises(InputError, match=r"push needs in-edges.*direction=\"pull\""):
        run(Count2(), in_memory(PATH, both=False), direction="push")


class Count2(Count):
    """Against the edges."""

    along = "in"


@pytest.mark.parametrize(
    ("base", "changes", "message"),
    [
        (BFS, {"along": "back"}, "'back'; it must be one of out, in, both"),
        (CDLP, {"everywhere": False}, "everywhere = True"),
        (CDLP, {"vertex": None}, r"no vertex\(\)"),
        (CDLP, {"edge": lambda degree: degree}, "reads 'degree'"),
        (CDLP, {"cond": lambda label: label}, r"has cond\(\)"),
        (LCC, {"edge": lambda lcc: lcc}, r"either edge\(\) or corner\(\)"),
        (LCC, {"combine": "min"}, "must be sum"),
        (LCC, {"corner": lambda neighbors: neighbors}, "reads 'neighbors'"),
    ],
)
def test_mistakes_are_named(base: type[Program], changes: dict[str, Any], message: str) -> None:
    program = type(base.__name__, (base,), changes)(*([1] if base is BFS else []))
    with pytest.raises(InputError, match=message):
        check(program)


NAMES = {
    "betweenness": ["source 1 of 2, forward", "source 1 of 2, backward", "source 2 of 2, forward"],
    "closeness": ["source 1 of 3", "source 2 of 3", "source 3 of 3"],
    "hits": ["round 1, authorities", "round 1, hubs", "round 2, authorities"],
    "pagerank": ["weights of out-edges", "ranks"],
    "php": ["weights of out-edges", "spreading"],
    "adsorption": ["weights of in-edges", "spreading"],
    "circuit": ["grounded nodes", "self-loops", "conductances", "first currents", "conjugate gradients"],
    "heat": ["self-loops", "conductances", "steps"],
    "coloring": ["turns, window 1", "colors, window 1"],
    "scc": ["trimming, forward", "trimming, backward", "largest component, forward"],
}
"""The first phases of each program of phases that walks edges of `tangle`, by their names."""


def test_every_program_of_phases_names_them() -> None:
    edges = tangle(directed=True, weights="uint8", core=24, tail=4, count=90)
    graph = in_memory(edges)
    found = {}
    for name, (make, _) in CASES.items():
        program = make().form(graph, "auto")
        if not has_phases(program):
            continue
        steps = Session(graph, kernels="reference").steps(program)
        phases = [record.phase for record in steps]
        told = dict.fromkeys((phase.number, phase.name) for phase in phases)
        found[name] = [phase for _, phase in told][: len(NAMES.get(name, ()))]
        assert all(phase.count is None or phase.number < phase.count for phase in phases), name
        assert len({number for number, _ in told}) == len(told), name
    assert {name: found[name] for name in NAMES} == NAMES


def test_records_of_one_call_have_their_phase() -> None:
    path = EdgeList(30, np.arange(29), np.arange(1, 30))
    with Session(in_memory(path)) as session:
        result = session.run(Betweenness([0], raw=True))
        assert next(record.phase for record in result.records) == PhaseRecord(0, "source 1 of 1, forward", 2)
        assert {record.phase.number for record in result.records if record.phase} == {0, 1}
        assert result.records[0].summary()["phase_name"] == "source 1 of 1, forward"
        assert "phase" not in session.run(BFS(0)).records[0].summary()
