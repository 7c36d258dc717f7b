"""Every program of the catalogue, however it is run, gives the answer of its independent verifier.

The four oldest programs have test_parity.py, with every way on every shape. Here each program meets a tangle of a graph
(loops, parallel edges, vertices apart, a long tail), directed and undirected, in memory and on disk with room for a
quarter of its edges, plain Python and compiled, pushed and pulled. Kernels are compiled once for all of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from inspect import isabstract, signature
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from penstock.engine import Program, Session, run
from penstock.engine.api import make
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.planning.requirements import whose_functions
from penstock.engine.programs.adsorption import Adsorption
from penstock.engine.programs.betweenness import Betweenness
from penstock.engine.programs.catalogue import CATALOGUE
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.collaborative import CollaborativeFiltering, predicted
from penstock.engine.programs.hits import HITS
from penstock.engine.programs.katz import Katz
from penstock.engine.programs.kcore import KCore
from penstock.engine.programs.php import PHP
from penstock.engine.programs.table import PROGRAMS, info_of, named
from penstock.engine.programs.widest import WidestPath
from penstock.engine.state import row_blocks
from penstock.storage.base.errors import InputError
from penstock.transfer.planning import host_budget as transfer_layout
from support import catalogue_oracles as right
from support.catalogue_oracles import OTHER, SOURCE, check_widest, near
from support.covering import covering
from support.graphs import in_memory, on_disk, shape, skewed, weighed
from support.oracles import EdgeList, check_pagerank
from support.program_cases import CASES, ROWS, Fields, tangle
from support.simulation_oracles import HELD

SWEEPS = (
    "pagerank",
    "katz",
    "eigenvector",
    "php",
    "adsorption",
    "hits",
    "widest",
    "bfs",
    "heat",
    "circuit",
    "neural",
    "distances",
)
"""Programs whose compiled kernels also meet others of their kind, here or in test_parity.py: two ways are enough."""

WAYS: dict[str, Fields] = {
    "reference, pushed": {"kernels": "reference", "direction": "push"},
    "reference, pulled": {"kernels": "reference", "direction": "pull"},
    "compiled": {},
    "pulled": {"direction": "pull"},
    "pushed": {"direction": "push"},
    "synchronous": {"mode": "sync"},
}


def can_be(name: str, way: str, directed: bool) -> bool:
    return not (name in SWEEPS and way in ("pushed", "synchronous")) and not (name in ROWS and "push" in way)


def gives_the_answer(name: str, way: str, directed: bool) -> None:
    make, check = CASES[name]
    edges = tangle(directed=directed)
    check(edges, run(make(), in_memory(edges), **WAYS[way]).fields)


@covering("name, way, directed", CASES, [*WAYS][:3], (True, False), where=can_be)
def test_every_way_gives_the_answer(name: str, way: str, directed: bool) -> None:
    gives_the_answer(name, way, directed)


@covering("name, way, directed", CASES, [*WAYS][3:], (True, False), where=can_be, strength=1)
def test_each_program_in_another_way_on_the_cores(name: str, way: str, directed: bool) -> None:
    """In one of several by default, where the reference takes all directions and `auto` takes what suits the graph."""
    gives_the_answer(name, way, directed)


def test_classes_say_whether_their_functions_go_by_ranges() -> None:
    """Each itself: what a class derives from says nothing of the functions that it replaces."""
    modules = [sys.modules[kind.__module__] for kind in PROGRAMS.values()]
    named = {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    kinds = {base for kind in named if issubclass(kind, Program) for base in kind.__mro__ if not isabstract(base)}
    for kind in (kind for kind in kinds if kind.__module__.startswith("penstock.engine.programs.")):
        program = issubclass(kind, Program)
        made = kind.__new__(kind if program else type(kind.__name__, (kind, Program), {"by_ranges": True}))
        for one in whose_functions(made) if made.by_ranges else ():
            assert "by_ranges" in vars(one), f"{one.__name__}, of {kind.__name__}, does not say by_ranges"


@pytest.mark.parametrize("directed", [True, False])
def test_tight_memory_gives_the_answer(directed: bool, tmp_path: Path) -> None:
    """On disk, with a quarter of the edges cached, partitions that cut rows, strips and blocks of a few edges."""
    edges = tangle(directed=directed)
    graph = on_disk(edges, tmp_path / "g.h5", chunk_edges=16)

    def divide(budget: Any, sizes: Any, *, with_weights: bool) -> Any:
        least = budget.fixed + transfer_layout.reader_bytes(budget, 1)
        total = sum(size.edge_bytes(with_weights) * size.edges for size in sizes)
        return transfer_layout.divide_host_budget(
            replace(budget, host_memory=least + total // 4), sizes, with_weights=with_weights
        )

    with (
        mock.patch("penstock.engine.resources.memory_plan.divide_host_budget", divide),
        mock.patch("penstock.engine.execution.triangles.strip_edges", return_value=40),
        mock.patch(
            "penstock.engine.execution.whole_rows.block_capacity",
            lambda indexes, most: row_blocks.block_capacity(indexes, 64),
        ),
        mock.patch(
            "penstock.engine.execution.triangles.block_capacity",
            lambda indexes, most: row_blocks.block_capacity(indexes, 64),
        ),
        Session(graph, partition_bytes=200) as session,
    ):
        for name in ("coreness", "scc", "betweenness", *ROWS):
            make, check = CASES[name]
            check(edges, session.run(make()).fields)


@pytest.mark.parametrize("kind", ["empty", "one-loop", "isolated", "star"])
def test_small_shapes(kind: str) -> None:
    """Nothing, next to nothing, and one vertex that all others point to, of a size for slow verifiers."""
    star = EdgeList(60, np.arange(59), np.full(59, 59), None, directed=True)
    edges = weighed(star, "uint8") if kind == "star" else shape(kind, weights="uint8")
    from_sources = {"bfs", "reachability", "widest", "php", "adsorption", "betweenness", "harmonic", "distances"} | {
        *("heat", "circuit", "neural")
    }
    with Session(in_memory(edges)) as session:
        for name in CASES.keys() - from_sources:
            make, check = CASES[name]
            if (kind, name) not in (("isolated", "hits"), ("star", "eigenvector")):
                check(edges, session.run(make()).fields)


def test_without_in_edges() -> None:
    """A graph that stores out-edges only: against them means to pull along them, and whole rows are refused."""
    edges = tangle(directed=True)
    graph = in_memory(edges, both=False)
    for name in (
        "coreness",
        "mis",
        "scc",
        "hits",
        "degrees",
        "strength",
        "betweenness",
        "msf",
        "bridges",
        "articulation",
        "diameter",
    ):
        make, check = CASES[name]
        check(edges, run(make(), graph).fields)
    for name in ROWS:
        with pytest.raises(InputError, match=r"in-edges too.*direction=\"both\""):
            run(CASES[name][0](), graph)


def test_float_weights() -> None:
    edges = tangle(directed=True, weights="float64")
    check_widest(edges, run(WidestPath(SOURCE), in_memory(edges), kernels="reference").fields)


@pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu")
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_simulated_gpu(name: str, directed: bool) -> None:
    make, check = CASES[name]
    edges = tangle(directed=directed, core=14, tail=6, count=40)
    check(edges, run(make(), in_memory(edges), device="emulated", kernels="cuda").fields)


FROM = {"source": SOURCE}
BY_WEIGHT: dict[str, Fields] = {
    "sssp": FROM,
    "widest": FROM,
    "distances": FROM,
    "pagerank": {},
    "personalized_pagerank": FROM,
    "katz": {"alpha": 1e-4},
    "eigenvector": {},
    "hits": {},
    "php": FROM,
    "adsorption": FROM,
    "closeness": FROM,
    "harmonic": {"k": 3},
    "louvain": {},
    "leiden": {},
    "msf": {},
    "heat": {"initial": HELD, "max_iter": 3},
    "circuit": {"fixed": HELD, "floating": True},
    "neural": {"inputs": HELD, "gain": 1e-3},
    "strength": {},
    "fastrp": {},
}
"""Every program that has a parameter `weight`, with what else it needs."""


@pytest.mark.parametrize("name", BY_WEIGHT)
def test_weights_count_unless_they_are_switched_off(name: str) -> None:
    """One rule: those of the graph by default; switched off, the answer is that of the graph without weights."""
    edges, asked = tangle(directed=True, core=14, tail=6, count=40), BY_WEIGHT[name] | {"kernels": "reference"}
    heavy, light = in_memory(edges), in_memory(replace(edges, weights=None))
    by_default, plain = run(name, heavy, **asked), run(name, light, **asked)
    assert (by_default.weighted, plain.weighted) == (True, False)
    assert not all(np.array_equal(by_default.fields[field], plain.fields[field]) for field in plain.fields)
    for weight in (True, "length"):
        found = run(name, heavy, weight=weight, **asked)
        assert all(np.array_equal(found.fields[field], values) for field, values in by_default.fields.items())
    for weight in (False, None):
        found = run(name, heavy, weight=weight, **asked)
        assert not found.weighted
        assert all(np.array_equal(found.fields[field], values) for field, values in plain.fields.items())
    for wrong, message in (("no", "the text 'no'"), (3, "weight is 3")):
        with pytest.raises(InputError, match=message):
            run(name, heavy, weight=wrong, **asked)


def test_every_program_that_reads_weights_has_the_parameter() -> None:
    """All but `cf`, whose weights are the ratings."""
    takes = {name for name, kind in PROGRAMS.items() if "weight" in signature(kind).parameters}
    assert takes == BY_WEIGHT.keys() == {info.name for info in CATALOGUE if info.weighted}
    reads = {name for name in takes if make(PROGRAMS[name], BY_WEIGHT[name]).needs_weights}
    assert reads == takes
    refuses = {name for name, kind in PROGRAMS.items() if kind.needs_weights} - takes
    assert refuses == {"cf"} == {info.name for info in CATALOGUE if info.needs_weights}


def test_programs_are_found_by_the_names_that_other_libraries_give_them() -> None:
    words = [word for info in CATALOGUE for word in (info.name, *info.aliases)]
    assert len(words) == len(set(words))
    for info in CATALOGUE:
        assert all(info_of(word) is info for word in (info.name, *info.aliases, info.name.upper().replace("_", "-")))
    assert named("connected_components") is PROGRAMS["wcc"]
    assert info_of("walktrap") is None
    for name, program in (("single_source_shortest_path", "bfs"), ("multi_source_dijkstra", "sssp")):
        assert named(name) is PROGRAMS[program], "what networkx computes: by hops, and from the nearest source"


def ratings(*, directed: bool = False) -> EdgeList:
    """9 users, 12 items, 60 ratings of 1 to 5; directed: from users to items."""
    random = np.random.default_rng(3)
    pairs = random.permutation(9 * 12)[:60]
    return EdgeList(21, pairs // 12, 9 + pairs % 12, random.integers(1, 6, 60).astype(np.uint8), directed)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("way", [{"kernels": "reference"}, {}, {"partition_bytes": 64}])
def test_collaborative_filtering(way: Fields, directed: bool, tmp_path: Path) -> None:
    """The same descent as the dense one; and on disk, where partitions cut rows."""
    edges = ratings(directed=directed)
    graph = on_disk(edges, tmp_path / "g.h5", chunk_edges=16) if "partition_bytes" in way else in_memory(edges)
    program = CollaborativeFiltering(rank=3, max_iter=8, regularization=2.0, rate=0.3, momentum=0.5)
    result = run(program, graph, **way)
    first = np.zeros((21, 4))
    first[:, :3] = np.random.default_rng(0).normal(0.0, 0.1, (21, 3))
    vectors, errors = right.factorize(ratings(), first, 8, rate=0.3, momentum=0.5, regularization=2.0)
    near(result.fields["vector"], vectors)
    near(result.measures["rmse"], errors)
    assert errors[-1] < errors[0] * 0.9
    pairs = np.array([[0, 9], [8, 20]])
    wanted = [float(vectors[u, :3] @ vectors[i, :3] + vectors[u, 3] + vectors[i, 3]) for u, i in pairs]
    near(predicted(result, pairs), np.array(wanted) + edges.weights.mean())
    columns = list(result.columns())
    assert columns == ["vertex", "vector_0", "vector_1", "vector_2", "vector_3"]


def test_ratings_are_refused_where_they_are_none() -> None:
    with pytest.raises(InputError, match="needs ratings"):
        run(CollaborativeFiltering(), in_memory(replace(tangle(directed=False), weights=None)))


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_betweenness_is_scaled_as_networkx_scales(directed: bool, normalized: bool) -> None:
    """All sources, and the very sample that networkx draws."""
    ends = np.unique(np.sort(skewed(16, 40, 2), axis=0), axis=1)
    ends = ends[:, ends[0] != ends[1]]
    graph = (nx.DiGraph if directed else nx.Graph)(list(zip(*ends.tolist(), strict=True)))
    graph.add_nodes_from(range(16))
    drawn = Random(5).sample(list(graph.nodes()), 6)
    with Session(in_memory(EdgeList(16, ends[0], ends[1], None, directed))) as session:
        for ours, theirs in (({}, {}), ({"source": drawn}, {"k": 6, "seed": 5}), ({"k": 16}, {})):
            found = session.run(Betweenness(normalized=normalized, **ours)).fields["betweenness"]
            wanted = nx.betweenness_centrality(graph, normalized=normalized, **theirs)
            near(found, [wanted[v] for v in range(16)])
        sample = session.run(Betweenness(k=6, seed=1, raw=True)).fields["betweenness"]
        assert np.array_equal(sample, session.run(Betweenness(k=6, seed=1, raw=True)).fields["betweenness"])


SIMULATOR = pytest.param(
    {"device": "emulated", "kernels": "cuda"},
    marks=pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu"),
)


@pytest.mark.parametrize("way", [{"kernels": "reference"}, {}, SIMULATOR])
@pytest.mark.parametrize("directed", [True, False])
def test_personalized_pagerank_by_name(directed: bool, way: Fields) -> None:
    edges = tangle(directed=directed, core=14, tail=6, count=40)
    home = np.zeros(edges.vertices)
    home[[SOURCE, OTHER]] = 1.0
    asked = {"source": [SOURCE, OTHER], "alpha": 0.6, "tol": 1e-12}
    rank = run("personalized_pagerank", in_memory(edges), **asked, **way).fields["rank"]
    check_pagerank(edges, rank, damping=0.6, personalization=home, weighted=True)


def test_the_default_damping_of_php() -> None:
    edges = tangle(directed=True, core=14, tail=6, count=40)
    found = run(PHP(SOURCE, tol=1e-12), in_memory(edges), kernels="reference").fields["php"]
    near(found, right.penalized_hitting(edges, SOURCE, 0.8))


def test_what_does_not_converge_says_so() -> None:
    edges = tangle(directed=True)
    graph = in_memory(edges)
    assert run(Katz(alpha=1e-4), graph).converged
    for program in (Katz(alpha=0.9, max_iter=20), HITS(max_iter=2), PHP(SOURCE, max_iter=2)):
        assert not run(program, graph).converged


@pytest.mark.parametrize("weights", [np.array([5, -2, 7], np.float32), np.array([5, 2, 7], np.uint8)])
def test_paths_that_count_edges(weights: Any) -> None:
    """`weight=None` is networkx's; it runs where weights are negative, too."""
    graph = in_memory(EdgeList(3, np.array([0, 1, 0]), np.array([1, 2, 2]), weights, True))
    found = run("sssp", graph, source=0, weight=None, kernels="reference")
    assert found.to_dict() == {0: 0, 1: 1, 2: 1}
    assert found.fields["distance"].dtype == np.uint32
    assert run("sssp", in_memory(EdgeList(3, *np.array([[0, 1], [1, 2]]), None, True)), source=0).to_dict()[2] == 2


def test_paths_from_the_nearest_of_several() -> None:
    edges = tangle(directed=True)
    graph = in_memory(edges)
    found, one, other = (run("sssp", graph, source=s).fields["distance"] for s in ([SOURCE, OTHER], SOURCE, OTHER))
    np.testing.assert_array_equal(found, np.minimum(one, other))


def test_katz_that_grows_without_end_says_so() -> None:
    """The bound that it names is that of the matrix: a clique of 5 has the eigenvalue 4."""
    ends = np.array([(u, v) for u in range(5) for v in range(5) if u < v]).T
    graph = in_memory(EdgeList(5, ends[0], ends[1], None, False))
    with pytest.raises(InputError, match=r"alpha 0.3 is too large for this graph: .* eigenvalue, here about 0.25$"):
        run(Katz(alpha=0.3, max_iter=10_000), graph)
    assert run(Katz(alpha=0.24, max_iter=10_000), graph).converged


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Katz(alpha=-1), "alpha is -1"),
        (lambda: PHP(1, damping=1.0), r"damping is 1.0; .* in \[0, 1\)"),
        (lambda: Adsorption(1, alpha=2.0), "alpha is 2.0"),
        (lambda: KCore(-1), "k is -1"),
        (lambda: Betweenness(source=1, k=2), "source or k"),
        (lambda: Betweenness(k=0), "k is 0"),
        (lambda: CDLP(max_iter=-1), "max_iter is -1"),
        (lambda: CollaborativeFiltering(rank=0), "rank is 0"),
    ],
)
def test_bad_parameters_are_named(make: Callable[[], Program], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
