"""HyperBall: registers as plain HyperLogLog has them, estimates beside exact distances, measures, both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.engine import Field, Program, Session, run
from penstock.engine.kernels.reference.rows import _merged
from penstock.engine.programs.hyperball import HyperBall, effective_diameter, registers_of
from penstock.storage.base.errors import BudgetError, InputError
from penstock.storage.format.graph import Graph
from support import catalogue_oracles as right
from support.graphs import in_memory
from support.oracles import EdgeList
from support.program_cases import tangle


class Kept(Program):
    """Two hands of registers that merge as HyperBall's do."""

    held = Field(np.uint64, shape=(2,))
    combine = "merge"
    message_shape = (2,)
    everywhere = True
    max_iter = 1

    def edge(message, held):  # type: ignore[no-untyped-def]
        for k in range(2):
            message[k] = held[k]

    def merge(one, other):  # type: ignore[no-untyped-def]
        return one | other

    def vertex(held, incoming):  # type: ignore[no-untyped-def]
        for k in range(2):
            held[k] |= incoming[k]
        return held


class Bare(HyperBall):
    """With its registers for an answer."""

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return {"registers": state["registers"].view(np.uint8)}


@pytest.mark.parametrize("way", [{"kernels": "reference"}, {}, {"device": "emulated", "kernels": "cuda"}])
def test_registers_are_those_of_plain_counters(way: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit by bit, on every kind of kernels."""
    edges = tangle(directed=True, core=14, tail=6, count=40)
    monkeypatch.setattr("penstock.engine.programs.hyperball.HyperBall.finish", Bare.finish)
    found = run(HyperBall(log2m=4, seed=3), in_memory(edges), **way).fields["registers"]
    np.testing.assert_array_equal(found, right.hyperball(edges, 4, 3)[0][-1])


def test_vectors_are_merged_as_their_numbers_are() -> None:
    """Also by a function that compares two of them."""
    for merge in (np.maximum, max):
        np.testing.assert_array_equal(_merged(merge, np.array([1, 5]), np.array([3, 2])), [3, 5])


def pairs_within(edges: EdgeList) -> NDArray[np.int64]:
    """Pairs of vertices within each distance, by searches from all."""
    distances = right.distances(edges, weighted=False)
    return np.array([(distances <= t).sum() for t in range(int(distances[np.isfinite(distances)].max()) + 1)])


@pytest.mark.parametrize("directed", [True, False])
def test_estimates_are_as_near_as_they_say(directed: bool) -> None:
    edges = tangle(directed=directed)
    result = run(HyperBall(log2m=10), in_memory(edges))
    error, exact = result.measures["standard_error"][0], pairs_within(edges)
    assert error == pytest.approx(1.04 / 32)
    harmonic, closeness = right.harmonic(edges), right.closeness(edges, range(edges.vertices))
    for got, wanted in ((result.fields["harmonic"], harmonic), (result.fields["closeness"], closeness)):
        assert np.abs(got - wanted).max() <= 3 * error * wanted.max()
    reaching = np.isfinite(right.distances(edges, weighted=False)).sum(axis=0)
    assert np.abs(result.fields["reachable"] / reaching - 1).max() <= 3 * error
    pairs = np.array(result.measures["neighborhood"])
    assert len(pairs) == len(exact)
    assert np.abs(pairs / exact - 1).max() <= 3 * error
    assert result.measures["diameter_at_least"] == [len(exact) - 1]
    steps = np.arange(1, len(exact))
    average = (np.diff(exact) * steps).sum() / np.diff(exact).sum()
    assert result.measures["average_distance"][0] == pytest.approx(average, rel=3 * error)
    assert result.measures["effective_diameter"][0] == pytest.approx(effective_diameter(exact.astype(float)), rel=0.1)


def test_the_other_direction_needs_no_in_edges() -> None:
    edges = tangle(directed=True, core=14, tail=6, count=40)
    ahead = run(HyperBall(log2m=4, reverse=True), in_memory(edges, both=False))
    back = run(HyperBall(log2m=4), in_memory(edges.reversed()))
    for name, values in ahead.fields.items():
        np.testing.assert_array_equal(values, back.fields[name])
    with pytest.raises(InputError, match=r"in-edges too.*direction=\"both\""):
        run(HyperBall(), in_memory(edges, both=False))


def test_fewer_steps_and_other_seeds() -> None:
    with Session(in_memory(tangle(directed=False)), kernels="reference") as session:
        first, all_of_it, other = (session.run(HyperBall(4, **how)) for how in ({"max_iter": 2}, {}, {"seed": 1}))
    assert (first.converged, all_of_it.converged) == (False, True)
    assert first.measures["neighborhood"] == all_of_it.measures["neighborhood"][:3]
    assert not np.array_equal(all_of_it.fields["harmonic"], other.fields["harmonic"])


def test_effective_diameters() -> None:
    assert effective_diameter(np.array([4.0, 10.0])) == pytest.approx(5 / 6)
    assert effective_diameter(np.array([10.0])) == 0
    assert effective_diameter(np.array([1.0, 5.0, 9.0, 10.0])) == 2


def test_registers_of_hashes() -> None:
    hashes = np.array([0b1_0101, 0b100_0000, 5, 1 << 63], np.uint64)
    place, value = registers_of(hashes, 4)
    assert (place.tolist(), value.tolist()) == ([5, 0, 5, 0], [1, 3, 48, 48])


def test_too_little_memory_is_refused_with_the_sum() -> None:
    with pytest.raises(BudgetError, match=r"give host_memory="):
        run(HyperBall(log2m=12), in_memory(EdgeList(5000, *np.zeros((2, 1), int), None, True)), host_memory=1 << 24)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"merge": None}, "has no merge"),
        ({"combine": "sum"}, "has merge.. and combine = 'sum'"),
        ({"held": Field(np.float64, shape=(2,))}, "messages of float64; it combines np.uint64"),
        ({"held": Field(np.uint32, shape=(2,))}, "messages of uint32"),
    ],
)
def test_programs_that_cannot_merge(changes: dict[str, Any], message: str) -> None:
    wrong = type("Wrong", (Kept,), changes)
    with pytest.raises(InputError, match=message):
        run(wrong(), in_memory(tangle(directed=True)), kernels="reference")
