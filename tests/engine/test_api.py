"""The front door: programs by name, parameters as users name them, and what a slip of the pen is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from penstock.engine import Field, Graph, Program, from_edges, run
from penstock.engine.api import make
from penstock.engine.programs.table import PROGRAMS
from penstock.storage.base.errors import InputError

CHAIN = Graph.from_arrays([0, 1, 2, 3, 3], [1, 2, 3])


def test_any_program_takes_max_iter() -> None:
    found = run("bfs", CHAIN, source=0, max_iter=2, kernels="reference")
    assert (found.to_dict(), found.iterations, found.converged) == ({0: 0, 1: 1, 2: 2}, 2, False)
    assert make(PROGRAMS["pagerank"], {"max_iter": 7}).max_iter == 7
    with pytest.raises(InputError, match="Betweenness: got an unexpected keyword argument 'max_iter'"):
        make(PROGRAMS["betweenness"], {"max_iter": 7})


class Quiet(Program):
    """Phases that nobody from outside can limit."""

    seen = Field(np.int64)

    def phases(self, graph: Any, state: Any, first: int = 0) -> Iterator[Program]:
        return iter(())


class Rounds(Quiet):
    """Names the limit, in a function inside one of its own."""

    def phases(self, graph: Any, state: Any, first: int = 0) -> Iterator[Program]:
        return (self for _ in range(2) for _ in range(self.max_iter))


class Limited(Quiet):
    @property
    def rounds(self) -> int:
        return 2 * self.max_iter


class Fixed(Quiet):
    @staticmethod
    def limit(program: Program) -> None:
        program.max_iter = 3


@pytest.mark.parametrize("program", [Rounds, Limited, Fixed, type("Heir", (Rounds,), {})])
def test_phases_that_name_the_limit_take_it(program: type[Program]) -> None:
    assert make(program, {"max_iter": 3}).max_iter == 3


def test_phases_that_do_not_name_the_limit_refuse_it() -> None:
    with pytest.raises(InputError, match="Quiet: got an unexpected keyword argument 'max_iter'"):
        make(Quiet, {"max_iter": 3})


def test_sources_may_be_numpys() -> None:
    for source in (np.int64(0), np.array([0]), [np.uint32(0)]):
        assert len(run("bfs", CHAIN, source=source, kernels="reference").to_dict()) == 4
        assert make(PROGRAMS["personalized_pagerank"], {"source": source}).personalization == {0: 1.0}


def test_sources_may_be_names() -> None:
    named = from_edges(["a", "b"], ["b", "c"])
    assert run("php", named, source="b", kernels="reference").to_dict()["b"] == 1.0
    sided = from_edges([1, 1], [1, 9], bipartite=True)
    assert run("php", sided, source="source:1", kernels="reference").to_dict()["source:1"] == 1.0


@pytest.mark.parametrize(
    ("program", "options", "message"),
    [
        ("bfs", {}, "BFS: missing a required argument: 'source'; its parameters are: source"),
        ("bfs", {"source": 0, "hostmemory": "1GiB"}, r"'hostmemory' \(did you mean host_memory\?\)"),
        ("pagerank", {"dampin": 0.9}, r"'dampin' \(did you mean damping\?\); its parameters are: damping"),
        ("pagerank", {"zzz": 0.9}, "unexpected keyword argument 'zzz'; its"),
        ("pagerank", {"damping": 0.5, "alpha": 0.9}, "damping 0.5 and alpha 0.9 are two names of one number"),
        ("php", {"source": 0, "damping": 0.5, "alpha": 0.9}, "damping 0.5 and alpha 0.9 are two names"),
        ("pagerank", {"personalization": [0, 1]}, r"personalization \[0, 1\] is no mapping; write {id: weight}"),
        ("pagerank", {"tol": "abc"}, "PageRank: tol is 'abc'; it must be a number"),
        ("betweenness", {"normalized": "no"}, "Betweenness: normalized is 'no'; it must be True or False"),
        ("php", {"source": [0, 1]}, r"source is \[0, 1\]; php is the nearness to one vertex"),
        ("pagerang", {}, r"no program 'pagerang' \(did you mean pagerank\?\); choose one of adsorption"),
        ("qqq", {}, "no program 'qqq'; choose one of adsorption"),
    ],
)
def test_what_is_not_understood_is_named(program: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(program, CHAIN, kernels="reference", **options)


def test_one_name_of_the_damping_is_enough() -> None:
    assert make(PROGRAMS["pagerank"], {"alpha": 0.9}).damping == 0.9  # type: ignore[attr-defined]
    assert make(PROGRAMS["php"], {"source": 0, "damping": 0.5, "alpha": 0.5}).damping == 0.5  # type: ignore[attr-defined]


@pytest.mark.parametrize("program", ["bfs", "sssp", "adsorption", "personalized_pagerank", "betweenness"])
@pytest.mark.parametrize("source", [1.5, [1, 2.5], np.float64(1), b"7"])
def test_a_source_that_is_no_id_is_named(program: str, source: Any) -> None:
    with pytest.raises(InputError, match="is not a vertex id or a list of them; an id is a whole number"):
        run(program, CHAIN, source=source, kernels="reference")


def test_a_graph_of_another_library_is_refused_with_the_way_out() -> None:
    with pytest.raises(InputError, match=r"networkx.classes.digraph.DiGraph.*backend=\"penstock\".*from_networkx\(G"):
        run("pagerank", nx.DiGraph([(0, 1)]))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"graph is a scipy.*from_scipy"):
        run("pagerank", scipy.sparse.eye_array(3).tocsr())
    for other in (None, 7, np.zeros((2, 2))):
        with pytest.raises(InputError, match="from_edges, from_table and from_scipy"):
            run("pagerank", other)  # type: ignore[arg-type]


def test_a_graph_in_the_place_of_the_program_is_refused_with_the_order_of_both() -> None:
    with pytest.raises(InputError, match="Graph is not a program; give run a program first, then the graph"):
        run(CHAIN, "bfs")  # type: ignore[arg-type]


class Told(Program):
    """A parameter without an annotation: its default says what it is."""

    level = Field(np.uint32)

    def __init__(self, depth=3, label=None):  # type: ignore[no-untyped-def]
        self.depth, self.label = depth, label

    def edge(level, depth):  # type: ignore[no-untyped-def]
        return min(level + 1, depth)

    def vertex(level, incoming):  # type: ignore[no-untyped-def]
        return min(level, incoming)


def test_a_text_for_a_number_is_told_by_its_value() -> None:
    with pytest.raises(InputError, match="Told: depth is 'abc'; it must be a number"):
        run(Told, CHAIN, depth="abc")
    program = Told()
    program.depth = "abc"
    with pytest.raises(InputError, match=r"Told.edge \(.*\) reads 'depth', which is 'abc'; it must be a number"):
        run(program, CHAIN)


def test_the_door_shows_what_a_user_calls() -> None:
    import penstock.engine

    assert dir(penstock.engine) == sorted(penstock.engine.__all__)
    for name in dir(penstock.engine):
        assert getattr(penstock.engine, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        penstock.engine.nothing  # noqa: B018


def test_a_graph_shows_itself_in_a_line() -> None:
    assert repr(CHAIN) == "<Graph in memory: 4 vertices, 3 edges (directed), out-adjacency, no weights>"
    both = from_edges([0, 1], [1, 2], np.array([3, 4], np.uint8), direction="both")
    assert repr(both) == "<Graph in memory: 3 vertices, 2 edges (directed), out and in-adjacency, weights uint8>"
