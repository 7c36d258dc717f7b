"""Places in the order of falling degree classes, written over ids and back; and runs of a session that use them."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
from penstock.engine import Session
from penstock.engine.kernels.host import group_sources
from penstock.engine.kernels.host.group_sources import group, ungroup, widen
from penstock.engine.kernels.host.jit import use_workers
from penstock.engine.kernels.host.launch import kernel_index
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.katz import Katz
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.resources import host_resources
from penstock.engine.state.grouped_sources import GroupedSources, place_bytes
from penstock.storage.format.index import from_degrees
from support.graphs import on_disk, shape

VERTICES = 200_000


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages of small graphs are grouped too, whether it pays or not."""
    monkeypatch.setattr(host_resources, "LEAST_VERTICES", 0)
    monkeypatch.setattr(group_sources, "GAIN", np.inf)


def scattered(hubs_first: bool) -> tuple[np.ndarray, np.ndarray]:
    """Degrees, and the neighbors of as many edges, most of which are a few hubs; hubs in front, or anywhere."""
    random = np.random.default_rng(1)
    names = np.arange(VERTICES) if hubs_first else random.permutation(VERTICES)
    neighbors = names[(VERTICES * random.random(3_000_000) ** 4).astype(np.int64)].astype(np.uint32)
    return np.bincount(neighbors, minlength=VERTICES), neighbors


@pytest.mark.parametrize("threads", [1, 2])
def test_places_fall_by_degree_class_and_ids_come_back(threads: int) -> None:
    use_workers(2)
    degrees, neighbors = scattered(hubs_first=False)
    groups, ids = GroupedSources(len(neighbors)), neighbors.copy()
    group(
        groups,
        neighbors,
        (0, len(neighbors)),
        kernel_index(from_degrees(VERTICES, lambda: [degrees])),
        VERTICES,
        threads,
    )
    assert groups.places is not None
    assert groups.span == (0, len(neighbors))
    classes = np.array([int(degree).bit_length() for degree in degrees])
    assert np.array_equal(np.argsort(groups.places), np.argsort(-classes, kind="stable"))
    assert np.array_equal(neighbors, groups.places[ids])
    ungroup(groups, threads)
    assert np.array_equal(neighbors, ids)
    assert (groups.neighbors, groups.mixed) == (None, False)


@pytest.mark.parametrize(
    ("spans", "last"),
    [
        ([(100, 900), (500, 2000), (700, 1000)], (100, 2000)),
        ([(100, 900), (0, 300)], (0, 900)),
        ([(100, 900), (900, 1500)], (900, 1500)),
        ([(100, 900), (2000, 2500)], (2000, 2500)),
    ],
)
def test_what_is_owned_later_gets_places_too(
    spans: list[tuple[int, int]], last: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_sources, "GAIN", np.inf)
    use_workers(2)
    ids = np.random.default_rng(2).integers(0, 500, 3000).astype(np.uint32)
    index = kernel_index(from_degrees(500, lambda: [np.bincount(ids, minlength=500)]))
    groups, neighbors = GroupedSources(len(ids)), ids.copy()
    group(groups, neighbors, spans[0], index, 500, 2)
    for span in spans[1:]:
        widen(groups, neighbors, span, 2)
    assert groups.span == last
    assert groups.places is not None
    here = slice(*last)
    assert np.array_equal(neighbors[here], groups.places[ids[here]])
    outside = np.setdiff1d(np.arange(len(ids)), np.arange(*last))
    assert np.array_equal(neighbors[outside], ids[outside])
    ungroup(groups, 2)
    assert np.array_equal(neighbors, ids)


def test_hubs_that_lie_together_already_are_left_alone() -> None:
    use_workers(2)
    degrees, neighbors = scattered(hubs_first=True)
    groups, ids = GroupedSources(len(neighbors)), neighbors.copy()
    group(groups, neighbors, (0, len(neighbors)), kernel_index(from_degrees(VERTICES, lambda: [degrees])), VERTICES, 2)
    assert (groups.pays, groups.places, groups.neighbors) == (False, None, None)
    assert np.array_equal(neighbors, ids)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weights", [None, "uint8"])
def test_runs_in_one_session_find_ids_or_places(tmp_path: Path, directed: bool, weights: str | None) -> None:
    graph = on_disk(shape("skewed", directed=directed, weights=weights), tmp_path / "g.h5")
    programs = [BFS(3), PageRank(tol=0, max_iter=9), BFS(3), Katz(max_iter=9), PageRank(tol=0, max_iter=2), BFS(5)]
    grouped = []
    with Session(graph, device="cpu") as together:
        for program in programs:
            result = together.run(program)
            with Session(graph, device="cpu") as alone, pytest.MonkeyPatch.context() as patch:
                patch.setattr(host_resources, "LEAST_VERTICES", 1 << 60)
                expected = alone.run(program)
            for name, values in expected.fields.items():
                assert np.array_equal(result.fields[name], values), (program, name)
            assert together._equipment is not None
            grouped.append(any(one.neighbors is not None for one in together._equipment.groups.values()))
    assert grouped == [False, True, False, True, False, False]


@pytest.mark.usefixtures("always")
def test_edges_that_were_half_written_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    graph = on_disk(shape("skewed"), tmp_path / "g.h5")
    with Session(graph, device="cpu") as session:
        expected = session.run(PageRank(tol=0, max_iter=9)).fields["rank"].copy()
        session.run(BFS(3))
        with monkeypatch.context() as patch:
            patch.setattr(group_sources, "_translate", interrupted)
            with pytest.raises(KeyboardInterrupt):
                session.run(PageRank(tol=0, max_iter=9))
        assert session._equipment is not None
        assert session._equipment.mixed
        assert np.array_equal(session.run(PageRank(tol=0, max_iter=9)).fields["rank"], expected)
        assert not session._equipment.mixed


@pytest.mark.usefixtures("always")
def test_a_budget_without_room_for_places_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = on_disk(shape("skewed"), tmp_path / "g.h5")
    with Session(graph, device="cpu", host_memory="1GiB") as session:
        session.run(PageRank(tol=0, max_iter=9))
        assert session._equipment is not None
        spare = session.spare_bytes
        assert list(session._equipment.groups) == ["in"]
    monkeypatch.setattr(host_resources, "place_bytes", lambda *sizes: spare + place_bytes(*sizes) + 1)
    with Session(graph, device="cpu", host_memory="1GiB") as session:
        session.run(PageRank(tol=0, max_iter=9))
        assert session._equipment is not None
        assert not session._equipment.groups


@pytest.mark.usefixtures("always")
def test_a_cache_whose_edges_hold_places_goes_when_it_is_dropped(tmp_path: Path) -> None:
    graph = on_disk(shape("skewed"), tmp_path / "g.h5")
    gc.collect()
    gc.disable()
    try:
        with Session(graph, device="cpu") as session:
            session.run(PageRank(tol=0, max_iter=9))
            assert session._equipment is not None
            groups = weakref.ref(session._equipment.groups["in"])
            assert groups().neighbors is not None  # type: ignore[union-attr]
            next(session.walk(length=2).blocks())
            assert groups() is None
    finally:
        gc.enable()
