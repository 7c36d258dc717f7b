"""Heat, circuits and neural networks: physics that must hold, what is refused, both precisions, routes over a link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph, Program, Session, from_edges, run
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.programs.circuit import Circuit
from penstock.engine.programs.heat import Heat
from penstock.engine.programs.neural import Neural
from penstock.storage.base.errors import InputError
from support import simulation_oracles as right
from support.catalogue_oracles import near
from support.covering import covering
from support.graphs import in_memory, on_disk
from support.oracles import EdgeList
from support.program_cases import CASES, tangle
from support.simulation_oracles import HELD

SLOW = {"kernels": "reference"}
NAMES = ("heat", "circuit", "neural")


def network(ends: Any, weights: Any = None, *, directed: bool = False) -> Graph:
    """A graph of a few edges."""
    sources, targets = np.array(ends).T
    weights = None if weights is None else np.array(weights)
    return in_memory(EdgeList(int(max(sources.max(), targets.max())) + 1, sources, targets, weights, directed))


SIMULATED = {"device": "emulated", "kernels": "cuda"}
simulator = pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu")
CHAIN = [(0, 1), (1, 2), (2, 3)]
HALF = {0: 1.0, 1: 2.0}


def test_heat_is_conserved_and_spreads_evenly() -> None:
    """With the default step, from one hot vertex; loops and directions change nothing."""
    graph = network([*CHAIN, (3, 0), (1, 1)], directed=True)
    result = run("heat", graph, initial={2: 8.0}, tol=1e-12, **SLOW)
    assert result.converged
    near(result.fields["temperature"], np.full(4, 2.0))
    first, last = result.measures["time"]
    assert first == 1 / 4, "half of the inverse of 2: two edges, and a loop that moves nothing"
    assert last == pytest.approx(first * (result.iterations - 2)), "two are sums of conductances"
    some = run("heat", graph, initial={2: 8.0}, tol=0, max_iter=3, **SLOW)
    assert (some.iterations, some.converged) == (5, False)
    assert some.fields["temperature"].sum() == pytest.approx(8.0)


KERNELS = {"reference": SLOW} | ({"simulated": SIMULATED} if seam.SIMULATED else {})


@covering("kernels, directed, precision", KERNELS, (True, False), ("single", "double"), strength=1)
def test_self_loops_carry_nothing_however_large(kernels: str, directed: bool, precision: str) -> None:
    """They bound no time step, round nothing away, and are no part of what must balance.

    Compiled kernels meet small ones in `CASES`.
    """
    way = KERNELS[kernels]
    plain = network([*CHAIN, (3, 0)], [1.0, 2.0, 4.0, 1.0], directed=directed)
    looped = network([*CHAIN, (3, 0), (1, 1), (2, 2)], [1.0, 2.0, 4.0, 1.0, 1e12, 3.0], directed=directed)
    given = {"initial": {2: 8.0}, "precision": precision, "max_iter": 20, "tol": 0}
    for more in ({}, {"time_step": 1 / 6}):
        wanted, found = (run("heat", graph, **given, **more, **way) for graph in (plain, looped))
        np.testing.assert_array_equal(found.fields["temperature"], wanted.fields["temperature"])
        assert found.measures == wanted.measures
    with pytest.raises(InputError, match="largest sum of conductances at a vertex, 6;"):
        run("heat", looped, **given, time_step=0.17, **way)
    given = {"fixed": {0: 7.0, 3: 0.0}, "precision": precision, "tol": 1e-6}
    wanted, found = (run("circuit", graph, **given, **way) for graph in (plain, looped))
    np.testing.assert_array_equal(found.fields["potential"], wanted.fields["potential"])


def test_a_vertex_with_nothing_but_a_self_loop_keeps_its_heat() -> None:
    graph = network([(0, 0), (1, 1), (2, 2)], [1.0, 5.0, np.inf])
    found = run("heat", graph, initial={0: 3.0, 2: 4.0}, **SLOW)
    assert found.fields["temperature"].tolist() == [3.0, 0.0, 4.0]


def test_heat_follows_the_exponential_of_the_laplacian() -> None:
    edges = tangle(directed=False, core=14, tail=6, count=40)
    values, vectors = np.linalg.eigh(right.laplacian(edges))
    first = np.zeros(edges.vertices)
    first[3] = 1.0
    exact = vectors @ (np.exp(-values * 1e-3) * (vectors.T @ first))
    found = run("heat", in_memory(edges), initial={3: 1.0}, time_step=2e-6, tol=0, max_iter=500, **SLOW)
    np.testing.assert_allclose(found.fields["temperature"], exact, atol=2e-4)


def test_heat_between_fixed_temperatures_rests_where_a_circuit_does() -> None:
    graph, fixed = network(CHAIN, [1.0, 2.0, 4.0]), {0: 7.0, 3: 0.0}
    rest = run("heat", graph, fixed=fixed, ambient=3.0, tol=1e-13, max_iter=10_000, **SLOW).fields["temperature"]
    near(rest, [7.0, 3.0, 1.0, 0.0])
    near(run("circuit", graph, fixed=fixed, **SLOW).fields["potential"], rest)


def test_the_largest_stable_step_is_told() -> None:
    graph = network(CHAIN, [1.0, 2.0, 4.0])
    with pytest.raises(InputError, match=r"time step 0.17 is not stable .* at most 0.166665, .* largest sum .* 6;"):
        run("heat", graph, initial={0: 1.0}, time_step=0.17, **SLOW)
    for fixed, step in (({}, 1 / 6), ({2: 0.0}, 1 / 4)):  # a fixed temperature is not stepped
        found = run("heat", graph, initial={0: 1.0}, fixed=fixed, time_step=step, **SLOW).fields["temperature"]
        assert found.min() >= 0
        assert found.max() <= 1


def test_a_cube_of_resistors() -> None:
    """One ohm an edge: 5/6 across the diagonal; potentials are linear in what is fixed."""
    ends = [(u, u | 1 << bit) for u in range(8) for bit in range(3) if not u >> bit & 1]
    found = run("circuit", network(ends), fixed={0: 5.0, 7: 0.0}, **SLOW)
    potential = found.fields["potential"]
    assert sum(5.0 - potential[[1, 2, 4]]) == pytest.approx(5.0 / (5 / 6))
    assert found.converged
    assert found.measures["residual"][-1] <= 1e-8


def test_a_grid_takes_few_iterations() -> None:
    """Jacobi's sweeps would be thousands: their number grows with the square of the side."""
    side = 20
    places = np.arange(side * side).reshape(side, side)
    across, down = (places[:, :-1], places[:, 1:]), (places[:-1], places[1:])
    sources, targets = (np.concatenate([one.ravel(), two.ravel()]) for one, two in zip(across, down, strict=True))
    weights = np.random.default_rng(1).integers(2, 9, len(sources), np.uint8)
    edges, fixed = EdgeList(side * side, sources, targets, weights, False), {0: 1.0, side * side - 1: 0.0}
    result = run("circuit", in_memory(edges), fixed=fixed, tol=1e-10)
    assert result.iterations < 180
    np.testing.assert_allclose(result.fields["potential"], right.potentials(edges, fixed), atol=1e-8)


def test_potentials_that_are_not_determined() -> None:
    """Refused by default, with a way out; an edge that conducts nothing is no path."""
    graph = network([(0, 1), (1, 2), (3, 4)], [1.0, 0.0, 1.0])
    with pytest.raises(InputError, match=r"vertex 2 and 2 others have no path .*fixed.*floating=True"):
        run("circuit", graph, fixed={0: 2.0}, **SLOW)
    result = run("circuit", graph, fixed={0: 2.0}, floating=True, **SLOW)
    np.testing.assert_array_equal(result.fields["potential"], [2.0, 2.0, -np.inf, -np.inf, -np.inf])
    assert result.columns()["potential"][1].tolist() == [True, True, False, False, False]
    assert result.top(2) == [(0, 2.0), (1, 2.0)]
    determined = run("circuit", graph, fixed={0: 2.0, 2: 5.0, 3: 1.0}, **SLOW)
    near(determined.fields["potential"], [2.0, 2.0, 5.0, 1.0, 1.0])


def test_nothing_to_solve() -> None:
    everything = np.array([3.0, 1.0, 2.0, 5.0])
    found = run("circuit", network(CHAIN), fixed=everything, **SLOW)
    assert found.fields["potential"].tolist() == everything.tolist()
    assert run("circuit", network(CHAIN), fixed={1: 0.0}, **SLOW).fields["potential"].tolist() == [0.0] * 4
    assert not run("circuit", network(CHAIN), fixed={0: 0.0, 3: 1.0}, max_iter=1, **SLOW).converged


def test_a_network_that_computes_exclusive_or() -> None:
    """Feed-forward, with a neuron that is always on: exact after two iterations, and done one later."""
    ends = [(0, 3), (1, 3), (2, 3), (0, 4), (1, 4), (2, 4), (3, 5), (4, 5), (2, 5)]
    graph = network(ends, [20.0, 20.0, -10.0, -20.0, -20.0, 30.0, 20.0, 20.0, -30.0], directed=True)
    for one in (0, 1):
        for other in (0, 1):
            result = run("neural", graph, inputs={0: one, 1: other, 2: 1}, **SLOW)
            assert result.fields["activation"][5] == pytest.approx(one ^ other, abs=1e-4)
            assert (result.iterations, result.converged) == (3, True)
            exact = run("neural", graph, inputs={0: one, 1: other, 2: 1}, tol=0, max_iter=2, **SLOW)
            assert np.array_equal(exact.fields["activation"], result.fields["activation"])


def test_hyperbolic_tangent_and_a_network_without_rest() -> None:
    """Two neurons that inhibit themselves through each other never rest, and the run says so."""
    ends, weights = [(0, 1), (1, 2), (2, 1)], [3.0, 9.0, -9.0]
    result = run("neural", network(ends, weights, directed=True), inputs={0: 0.5}, function="tanh", max_iter=40, **SLOW)
    assert (result.iterations, result.converged) == (40, False)
    calm = run("neural", network(ends, [3.0, 0.4, -0.4], directed=True), inputs={0: 0.5}, function="tanh", **SLOW)
    assert calm.converged
    _, one, two = calm.fields["activation"]
    assert one == pytest.approx(np.tanh(1.5 - 0.4 * two), abs=1e-5)
    assert two == pytest.approx(np.tanh(0.4 * one), abs=1e-5)


SINGLE: dict[str, Callable[[], Program]] = {
    "heat": lambda: Heat({3: 5.0}, {18: -1.0}, time_step=7e-6, max_iter=12, tol=0),
    "circuit": lambda: Circuit(HELD, tol=1e-6, floating=True),
    "neural": lambda: Neural(HELD, gain=1e-3, bias=0.1),
}


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *((name, SLOW) for name in NAMES),
        *(pytest.param(name, SIMULATED, marks=simulator) for name in NAMES),
        pytest.param("circuit", {}, marks=pytest.mark.full),
        ("neural", {}),
    ],
)
def test_single_precision(name: str, way: dict[str, Any]) -> None:
    """Of compiled kernels a function of libm; sums are those of PageRank in `engine/program/test_precision.py`."""
    graph = in_memory(tangle(directed=True, core=14, tail=6, count=40))
    (found,) = run(SINGLE[name](), graph, precision="single", **way).fields.values()
    (wanted,) = run(CASES[name][0](), graph, **SLOW).fields.values()
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@covering("route, name", ("auto", "filter", "compaction", "zero-copy", "resident"), NAMES, strength=1)
def test_over_a_link(route: str, name: str, tmp_path: Path) -> None:
    """Edges that the device does not keep, by every route."""
    edges = tangle(directed=True)
    graph = on_disk(edges, tmp_path / "g.h5", chunk_edges=32)
    room = {} if route == "resident" else {"device_edge_memory": 1 << 12}
    with Session(graph, device="emulated", partition_bytes=512, route=route, **room) as session:
        make, check = CASES[name]
        check(edges, session.run(make()).fields)


@pytest.mark.parametrize("name", NAMES)
def test_ids_of_the_user(name: str) -> None:
    """Values go to the vertices that the input calls so, from a mapping, also a long one, and from an array."""
    ids = np.arange(200, dtype=np.uint64) * np.uint64(7) + np.uint64(5)
    graph = from_edges(ids[:-1], ids[1:], undirected=True, renumber=True)
    given = {int(one): float(one % 3) for one in ids[::-2]}
    option = {"heat": "initial", "circuit": "fixed", "neural": "inputs"}[name]
    found = run(name, graph, **{option: given}, max_iter=2, **SLOW)
    array = np.array([given.get(int(one), np.nan) for one in found.ids])
    (values,), (others,) = (
        result.fields.values() for result in (found, run(name, graph, **{option: array}, max_iter=2, **SLOW))
    )
    assert np.array_equal(values, others)
    if name != "heat":
        assert np.array_equal(values[~np.isnan(array)], array[~np.isnan(array)])


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("heat", {}, "give some vertices one with initial, or fixed"),
        ("heat", {"initial": {0: 1.0}, "time_step": 0.0}, "time_step is 0.0; it must be a number above 0"),
        ("heat", {"initial": {9: 1.0}}, "vertex 9 is not in the graph"),
        ("heat", {"initial": {0: np.nan}}, "initial of vertex 0 is nan; it must be a finite number"),
        ("heat", {"fixed": np.array([np.inf, 0, 0, 0])}, "fixed of vertex 0 is .*inf"),
        ("heat", {"initial": "hot"}, "initial 'hot' is no mapping"),
        ("circuit", {"fixed": {}}, "needs a fixed potential"),
        ("circuit", {"fixed": {0: "5"}}, "fixed of vertex 0 is '5'"),
        ("circuit", {"fixed": {0: 1e200}}, "currents outgrew the numbers of the run after 1 iterations"),
        ("neural", {"inputs": {}}, "needs inputs"),
        ("neural", {"inputs": {0: 1.0}, "function": "relu"}, "function is 'relu'; it must be sigmoid or tanh"),
        ("neural", {"inputs": {0: 1.0}, "gain": -1.0}, "gain is -1.0"),
    ],
)
def test_what_is_refused(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(name, network(CHAIN), **parameters, **SLOW)


@pytest.mark.parametrize(("name", "option"), [("heat", "initial"), ("circuit", "fixed")])
def test_conductances_that_are_none(name: str, option: str) -> None:
    """Negative ones, and such as add up to infinity; without weights each edge conducts 1."""
    for weights, message in (([1.0, -2.0, 1.0], "smallest weight is -2"), ([1.0, 1e308, 1.5e308], "add up to inf")):
        with pytest.raises(InputError, match=message):
            run(name, network(CHAIN, weights), **{option: {0: 1.0}}, **SLOW)
    (negative,) = run(name, network(CHAIN, [1.0, -2.0, 1.0]), **{option: HALF}, weight=False, **SLOW).fields.values()
    (plain,) = run(name, network(CHAIN), **{option: HALF}, **SLOW).fields.values()
    assert np.array_equal(negative, plain)
