"""Searches that run together give what searches one after another give, wherever they run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from penstock.engine import Graph, Program, Session, run
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.planning.requirements import RunSetting, planned
from penstock.engine.programs import shared_searches
from penstock.engine.programs.closeness import Closeness, Harmonic
from penstock.engine.programs.from_each import FromEach
from penstock.engine.programs.shared_searches import DEEPEST, SharedLevels, Together, numbers_of, shared
from penstock.engine.resources.config import Config
from penstock.storage.base.errors import BudgetError, InputError
from support import catalogue_oracles as right
from support.graphs import in_memory, on_disk, skewed
from support.oracles import EdgeList, shortest_distances

VERTICES = 60
SOURCES = [int(one) for one in np.random.default_rng(5).permutation(VERTICES)[:40]]
LARGEST = 2**32 - 1

MAKERS: dict[str, Callable[[], Program]] = {
    "distances": lambda: FromEach(SOURCES, weight=False),
    "near": lambda: FromEach(SOURCES[:9], cutoff=2.5),
    "closeness": lambda: Closeness(k=20),
    "harmonic": lambda: Harmonic(SOURCES[:10]),
    "all": Harmonic,
}
WAYS: list[dict[str, Any]] = [
    {"kernels": "reference", "direction": "push"},
    {"kernels": "reference", "direction": "pull"},
    {},
    {"direction": "push"},
    {"direction": "pull"},
    pytest.param(
        {"device": "emulated", "kernels": "cuda"},
        marks=pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu"),
    ),
]


def edges_of(*, directed: bool, vertices: int = VERTICES) -> EdgeList:
    """With vertices apart, loops and parallel edges."""
    return EdgeList(vertices, *skewed(vertices, 4 * vertices, 3), None, directed)


def levels_from(edges: EdgeList, source: int, cutoff: float = np.inf) -> list[int]:
    return [LARGEST if one is None or one > cutoff else int(one) for one in shortest_distances(edges, source)]


def check(name: str, edges: EdgeList, fields: dict[str, Any]) -> None:
    """What the verifiers find, which search from one vertex after another."""
    if name in ("distances", "near"):
        sources, cutoff = (SOURCES, np.inf) if name == "distances" else (SOURCES[:9], 2.5)
        assert list(fields) == [f"distance_{one}" for one in sources]
        for one in sources:
            assert fields[f"distance_{one}"].dtype == np.uint32
            assert fields[f"distance_{one}"].tolist() == levels_from(edges, one, cutoff), one
    elif name == "closeness":
        drawn = np.random.default_rng(0).choice(edges.vertices, 20, replace=False)
        np.testing.assert_allclose(fields["closeness"], right.closeness(edges, drawn.tolist()), rtol=1e-9)
    else:
        wanted = right.harmonic(edges)
        if name == "harmonic":
            wanted[np.setdiff1d(np.arange(edges.vertices), SOURCES[:10])] = -np.inf
        np.testing.assert_allclose(fields["harmonic"], wanted, rtol=1e-9)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("directed", [True, False])
def test_every_way_gives_the_answer(directed: bool, way: dict[str, Any]) -> None:
    edges = edges_of(directed=directed)
    graph = in_memory(edges)
    for name, make in MAKERS.items() if way.get("device") is None else list(MAKERS.items())[1:4]:
        check(name, edges, run(make(), graph, **way).fields)


def test_against_edges_of_which_only_out_edges_are_stored() -> None:
    edges = edges_of(directed=True)
    check("harmonic", edges, run(MAKERS["harmonic"](), in_memory(edges, both=False)).fields)


def test_phases_are_batches_of_searches_and_what_is_left_over() -> None:
    class Some(Together, Program):
        together = 64

    def turns(count: int, *, tries: int = 0, apart: tuple[int, int] | None = None) -> list[tuple[int, int]]:
        made = Some()
        made.tries, made.apart = tries, apart
        found = list(made.turns(count))
        assert [one[0] for one in found] == list(range(made.turn_count(count)))
        assert list(made.turns(count, 2)) == found[2:]
        return [one[1:] for one in found]

    def alone(first: int, last: int) -> list[tuple[int, int]]:
        return [(one, one + 1) for one in range(first, last)]

    assert turns(0) == []
    assert turns(7) == alone(0, 7)
    assert turns(8) == [(0, 8)]
    assert turns(8, tries=1) == alone(0, 8)
    assert turns(66) == [(0, 64), *alone(64, 66)]
    assert turns(66, tries=1) == [(0, 1), (1, 65), (65, 66)]
    assert turns(140) == [(0, 64), (64, 128), (128, 140)]
    assert turns(140, tries=1) == [(0, 1), (1, 65), (65, 129), (129, 140)]
    assert turns(68, apart=(1, 0)) == [(0, 64), *alone(0, 68)]
    assert turns(136, apart=(3, 128)) == [(0, 64), (64, 128), (128, 136), *alone(128, 136)]
    assert turns(136, tries=1, apart=(1, 1)) == alone(0, 136)
    assert Some().turn_name(1, 140) == "sources 65 to 128 of 140"
    assert Some().turn_name(0, 3) == "source 1 of 3"


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_numbers_of_their_digits(dtype: type) -> None:
    bits = 8 * np.dtype(dtype).itemsize
    wanted = np.random.default_rng(1).integers(0, 256, (50, bits))
    digits = [((wanted >> place & 1).astype(dtype) << np.arange(bits, dtype=dtype)).sum(axis=1, dtype=dtype)
              for place in range(8)]  # fmt: skip
    assert np.array_equal(numbers_of(digits), wanted)


@pytest.mark.parametrize("beyond", [0, 1, 40])
def test_deeper_than_digits_reach_is_searched_one_by_one(beyond: int) -> None:
    """On a path; 255 steps are counted."""
    length = DEEPEST + 1 + beyond
    edges = EdgeList(length, np.arange(length - 1), np.arange(1, length), None, False)
    graph, sources = in_memory(edges), [0, *range(100, 109)]
    with mock.patch.object(shared_searches, "SPARSE", 0), Session(graph) as session:
        found = session.run(FromEach(sources))
        names = [record.phase.name for record in found.records if record.phase is not None]
        near = session.run(Closeness(sources))
    for one in sources:
        assert np.array_equal(found.fields[f"distance_{one}"], np.abs(np.arange(length) - one))
    assert list(dict.fromkeys(names))[:2] == (
        ["sources 1 to 10 of 10"] if not beyond else ["sources 1 to 10 of 10", "source 1 of 10"]
    )
    np.testing.assert_allclose(near.fields["closeness"][sources], right.closeness(edges, range(length))[sources])


@pytest.mark.parametrize("length", [shared_searches.LONG, shared_searches.LONG + 1])
def test_where_edges_are_few_the_first_search_tells_whether_others_are_shared(length: int) -> None:
    """On a path, from its end."""
    edges, sources = EdgeList(length, np.arange(length - 1), np.arange(1, length), None, False), range(10)
    for name, program in (("distances", FromEach(list(sources))), ("closeness", Closeness(list(sources)))):
        found = run(program, in_memory(edges), kernels="reference")
        names = list(dict.fromkeys(record.phase.name for record in found.records if record.phase is not None))
        shares = length == shared_searches.LONG
        assert names[:2] == ["source 1 of 10", "sources 2 to 10 of 10" if shares else "source 2 of 10"]
        if name == "distances":
            for one in sources:
                assert np.array_equal(found.fields[f"distance_{one}"], np.abs(np.arange(length) - one))


@pytest.mark.parametrize("name", ["distances", "closeness"])
def test_fewer_together_where_memory_is_short(name: str) -> None:
    """Down to one by one, which takes what it took; the refusal names the least budget of that."""
    edges = edges_of(directed=False, vertices=100_000)
    graph = in_memory(edges)
    found: dict[int, int] = {}
    for budget in range(1, 90):
        setting = RunSetting(Config.of(host_memory=budget << 20))
        try:
            made = planned(graph, MAKERS[name](), setting)[0]
        except BudgetError as error:
            least = error.least_mib
            continue
        assert isinstance(made, Together)
        found.setdefault(made.together, budget)
    assert list(found) == sorted(found)
    assert set(found) == {1, 32, 64}
    assert found[1] == least


@pytest.mark.parametrize("name", ["distances", "closeness", "all"])
def test_a_run_goes_on_from_any_iteration(name: str, tmp_path: Path) -> None:
    edges = edges_of(directed=False)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=16)
    with mock.patch.object(shared_searches.Together, "together", 16), Session(graph, kernels="reference") as session:
        iterations = len(session.run(MAKERS[name]()).records)
        for stop in range(2, iterations, iterations // 3):
            folder = tmp_path / f"{name}-{stop}"
            steps = session.steps(MAKERS[name](), Checkpoints(folder, 1))
            for _ in range(stop):
                next(steps)
            steps.close()
            found = session.run(MAKERS[name](), Checkpoints(folder, 1, resume=True))
            check(name, edges, found.fields)


def test_small_memory_on_disk(tmp_path: Path) -> None:
    edges = edges_of(directed=True)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=16)
    with Session(graph, partition_bytes=200, device_edge_memory=None) as session:
        for name, make in MAKERS.items():
            check(name, edges, session.run(make()).fields)


def test_what_suffices_is_refused_where_it_is_not_asked() -> None:
    def suffices(incoming: Any) -> bool:
        return bool(incoming)

    for word in ("early_exit", "everywhere"):
        kind: Any = type("Hasty", (SharedLevels,), {word: True, "active": None, "suffices": suffices})
        with pytest.raises(InputError, match=r"Hasty has suffices\(\), which is asked after each message of a pull"):
            run(kind([0]), in_memory(edges_of(directed=True)))


def test_a_pull_leaves_rows_early() -> None:
    """Of a vertex with many neighbors only as many are asked as tell it all: the reference counts them."""
    kind = shared(SharedLevels, 64)
    hub = 40
    sources, targets = np.repeat(np.arange(hub), 2), np.tile([hub, hub + 1], hub)
    graph: Graph = in_memory(EdgeList(hub + 2, sources, targets, None, False))
    from penstock.engine.kernels.reference.vertex import ReferenceKernels

    asked = []
    messages_of = ReferenceKernels._messages_of

    def counting(self: Any, *given: Any) -> Any:
        send = messages_of(self, *given)
        return lambda e, u, v, degree: (asked.append(v), send(e, u, v, degree))[1]

    with mock.patch.object(ReferenceKernels, "_messages_of", counting):
        run(kind([hub]), graph, kernels="reference", direction="pull")
    assert asked.count(hub + 1) == 1
