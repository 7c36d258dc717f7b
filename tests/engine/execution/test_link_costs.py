"""What the direction rule is told of a link."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from penstock.engine import Graph
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.resources import link_stream
from penstock.engine.resources.direction_cost import LinkCosts
from penstock.engine.session import Session
from penstock.transfer.devices.emulated import EmulatedDevice
from penstock.transfer.planning.host_budget import HostBudget
from support.graphs import on_disk, skewed
from support.oracles import EdgeList
from support.small_host import dividing

EDGES = EdgeList(2000, *skewed(2000, 20000, 5), None, True)
OPTIONS = {"device": "emulated", "threads": 1, "tuning": {"link_rate": 1e9, "feedback": False}}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[LinkCosts]:
    """Every link that a run is told of."""
    links, found = list[LinkCosts](), link_stream.link_costs_of

    def link_of(*asked: Any) -> LinkCosts:
        links.append(found(*asked))
        return links[-1]

    monkeypatch.setattr(link_stream, "link_costs_of", link_of)
    return links


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """20,000 edges in chunks of 64."""
    return on_disk(EDGES, tmp_path / "g.h5")


@pytest.mark.parametrize(("memory", "head"), [(1000, 0), (70_000, 8)])
def test_what_is_on_the_device(told: list[LinkCosts], graph: Graph, memory: int, head: int) -> None:
    with Session(graph, device_edge_memory=memory, partition_bytes=1024, **OPTIONS) as session:
        session.run(BFS(1000))
    assert told
    assert {(link.head, link.edge_bytes, link.glance) for link in told} == {(head, 4, EmulatedDevice.glance)}
    sides = [side for link in told for side in (link.push, link.pull)]
    assert {side.chunks for side in sides} == {313}
    assert min(side.fetch_seconds for side in sides) >= 0.0
    fetches = [link.push.fetch_seconds + link.pull.fetch_seconds for link in told]
    assert fetches[-1] < fetches[0]  # what was read stays in host memory
    held = sum(max(side.here for side in kind) for kind in (sides[::2], sides[1::2])) * 80_000
    assert 0 <= held <= memory


@pytest.mark.parametrize(
    ("route", "packed", "taken"),
    [
        ("zero-copy", "auto", ("zero-copy",)),
        ("filter", "auto", ("filter",)),
        ("auto", "auto", ("filter", "zero-copy")),
        ("auto", "never", ("filter", "compaction", "zero-copy")),
    ],
)
def test_only_routes_that_may_be_taken_count(
    told: list[LinkCosts], graph: Graph, route: str, packed: str, taken: tuple[str, ...]
) -> None:
    given = {"device_edge_memory": 20_000, "partition_bytes": 1024, "route": route, "packed": packed}
    with Session(graph, **given, **OPTIONS) as session:
        session.run(BFS(1000))
    assert told
    assert all(set(taken) <= set(link.routes) for link in told)
    assert route == "auto" or {link.routes for link in told} == {taken}


@pytest.mark.parametrize("packed", ["auto", "never"])
def test_packed_edges_cost_fewer_bytes_and_come_from_disk_once(
    told: list[LinkCosts], tmp_path: Path, packed: str
) -> None:
    """Once every payload is in host memory nothing is read, though plain edges beside them were never wanted."""
    graph = on_disk(EDGES, tmp_path / "g.h5", chunk_edges=2048)
    given = {"device_edge_memory": 60_000, "partition_bytes": 8192, "route": "filter", "packed": packed}
    with Session(graph, **given, **OPTIONS) as session:
        programs = PageRank(tol=0, max_iter=1), BFS(1000)
        session.prepare(*programs)
        for program in programs:
            session.run(program)
    sides = [side for link in told for side in (link.push, link.pull)]
    assert all(side.copied < 0.8 if packed == "auto" else side.copied == 1.0 for side in sides)
    assert {link.pull.fetch_seconds for link in told} == {0.0}  # a sweep has brought them


def test_what_the_host_lacks_is_read_from_disk(
    told: list[LinkCosts], graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that keeps 40 of the 626 chunks, and a device that keeps others: what neither has takes time."""
    dividing(monkeypatch, lambda *_: HostBudget(64, 4, 40, 2, False, 4))
    with Session(graph, device_edge_memory=20_000, partition_bytes=256, **OPTIONS) as session:
        session.run(BFS(1000))
    assert told
    adjacency = graph.into
    assert adjacency is not None
    everything = float(adjacency.chunk_bytes(False).sum()) / told[0].rates.disk_bytes
    everything = max(everything, 80_000 / told[0].rates.decode_bytes)
    for side in [link.pull for link in told]:
        assert (1 - side.here) * (1 - 40 / 313) * everything <= side.fetch_seconds * (1 + 1e-9)
        assert side.fetch_seconds <= (1 - side.here) * everything


def test_on_the_cores_a_search_reads_one_adjacency_where_a_push_would_read_the_other_for_few_rows(
    tmp_path: Path,
) -> None:
    """The last pushes of a search have few vertices, which lie in many chunks; what pulls have read is in memory."""
    vertices = 4000
    edges = EdgeList(vertices, *skewed(vertices, 80_000, 5), None, True)
    graph = on_disk(edges, tmp_path / "wide.h5", chunk_edges=256)
    assert graph.into is not None
    with Session(graph, tuning={"feedback": False}) as session:
        result = session.run(BFS(0))
    read = {
        way: sum(t.chunks_read for r in result.records for t in r.tasks if t.direction == way) for way in ("out", "in")
    }
    assert read["in"] > graph.into.chunks / 2
    assert read["out"] < graph.out.chunks / 4
