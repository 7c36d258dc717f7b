"""A graph on disk that host memory has room for: edges are read when first wanted, once, and locked before they travel.

The device here refuses what CUDA refuses: a copy from host memory that was not locked as one piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.engine.programs.bfs import BFS
from penstock.engine.resources import device_resources
from penstock.engine.session import Session
from penstock.storage.base.errors import RunError
from penstock.storage.read.reader import Reader
from penstock.transfer.devices.emulated import EmulatedDevice
from penstock.transfer.staging.link_reader import LinkReader
from support.covering import covering
from support.graphs import on_disk, shape, skewed
from support.oracles import EdgeList
from support.program_cases import PROGRAMS, check, program_of

CHUNK = 4096
"""Edges of a chunk: their neighbors and weights fill whole pages, as those of real files do."""
EVERYWHERE = ("auto", "filter", "compaction", "zero-copy")


class StrictDevice(EmulatedDevice):
    """Knows what was locked; counts it."""

    def __init__(self) -> None:
        super().__init__(threads=2)
        self.locked: dict[int, int] = {}

    def host_array(self, count: int, dtype: Any) -> NDArray[Any]:
        array = super().host_array(count, dtype)
        self.register(array)
        return array

    def register(self, array: NDArray[Any]) -> None:
        first, last = array.ctypes.data, array.ctypes.data + array.nbytes
        pages = range(first // 4096, -(-last // 4096))
        for start, size in self.locked.items():
            other = range(start // 4096, -(-(start + size) // 4096))
            assert not (array.nbytes and size) or pages.stop <= other.start or other.stop <= pages.start, "locked twice"
        self.locked[first] = array.nbytes

    def unregister(self, array: NDArray[Any]) -> None:
        del self.locked[array.ctypes.data]

    def copy_in(self, target: NDArray[Any], source: NDArray[Any], stream: None) -> None:
        first, last = source.ctypes.data, source.ctypes.data + source.nbytes
        assert any(at <= first and last <= at + size for at, size in self.locked.items()), "not locked as one piece"
        super().copy_in(target, source, stream)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[StrictDevice]:
    strict = StrictDevice()
    monkeypatch.setattr("penstock.engine.session.device_of", lambda config: strict)
    yield strict
    assert not strict.locked


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every chunk that was asked of the disk: its adjacency and number."""
    chunks: list[tuple[str, int]] = []
    fetch = Reader.fetch

    def noting(reader: Reader, adjacency: Any, wanted: Any, *arrays: Any) -> Any:
        chunks.extend((adjacency.direction, int(chunk)) for chunk in wanted)
        return fetch(reader, adjacency, wanted, *arrays)

    monkeypatch.setattr(Reader, "fetch", noting)
    return chunks


@covering("route, name", EVERYWHERE, sorted(PROGRAMS), strength=1)
def test_every_chunk_is_read_once_and_locked_before_it_travels(
    name: str, route: str, device: StrictDevice, asked: list[tuple[str, int]], tmp_path: Path
) -> None:
    edges = shape("wide", weights="uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=CHUNK)
    options: dict[str, Any] = {"device": "emulated", "device_edge_memory": 8 * CHUNK * 5, "partition_bytes": CHUNK * 4}
    with Session(graph, route=route, **options) as session:
        for _ in range(2):
            check(name, edges, session.run(program_of(name, edges)).fields)
    assert len(asked) == len(set(asked))


def test_a_search_reads_what_its_frontiers_touch(
    device: StrictDevice, asked: list[tuple[str, int]], tmp_path: Path
) -> None:
    """From a vertex without out-edges nothing is read; from the end of a path only its row."""
    edges = shape("path")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=16)
    with Session(graph, device="emulated", device_edge_memory=512, direction="push") as session:
        session.run(BFS(source=399))
        assert asked == []
        session.run(BFS(source=398))
        assert asked == [("out", 398 // 16)]


def loader(session: Session) -> LinkReader:
    resources = session._held.equipment
    assert isinstance(resources, device_resources.DeviceResources)
    return resources.host.source


def test_a_complete_adjacency_is_read_as_if_it_had_always_been_in_memory(device: StrictDevice, tmp_path: Path) -> None:
    edges = shape("path")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=16)
    with Session(graph, device="emulated", device_edge_memory=512, direction="push") as session:
        session.run(BFS(source=398))
        assert loader(session).pinned(graph.out, False) is None
        session.run(program_of("sweeps", edges))
        source = loader(session)
        held = source.pinned(graph.out, False)
        assert held is not None
        np.testing.assert_array_equal(held[0], edges.rows[1])
        assert not source.staged
        records = session.run(program_of("sweeps", edges)).records
        assert sum(record.bytes_disk for record in records) == 0


def test_a_chunk_that_cannot_be_read_fails_the_run_and_leaves_nothing_locked(
    device: StrictDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = shape("wide")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=CHUNK)

    def broken(reader: Reader, job: Any, *rest: Any) -> Any:
        raise RunError("the disk is gone")

    monkeypatch.setattr(Reader, "_perform", broken)
    with (
        Session(graph, device="emulated", device_edge_memory=8 * CHUNK * 4) as session,
        pytest.raises(RunError, match="the disk is gone"),
    ):
        session.run(program_of("sweeps", edges))


def test_where_the_device_has_room_for_every_edge_all_are_brought_first(
    device: StrictDevice, asked: list[tuple[str, int]], tmp_path: Path
) -> None:
    edges = shape("wide")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=CHUNK)
    with Session(graph, device="emulated", direction="push") as session:
        records = session.run(program_of("bfs", edges)).records
    assert len(asked) == len(set(asked)) == graph.out.chunks
    assert {task.route for record in records for task in record.tasks} == {"resident"}


def test_row_prefixes_are_filled_by_the_first_pull_and_what_that_moves_is_told(tmp_path: Path) -> None:
    edges = EdgeList(2000, *skewed(2000, 20000, 5), None, True)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=64)
    assert graph.into is not None
    with Session(
        graph, device="emulated", device_edge_memory=70_000, partition_bytes=1024, tuning={"link_rate": 1e9}
    ) as session:
        first, again = (session.run(BFS(1000)).records for _ in range(2))
    filled = [record for record in first if record.filling]
    assert [record.direction for record in filled] == ["pull"]
    record = filled[0]
    assert record.bytes_disk >= sum(task.bytes_disk for task in record.filling) >= graph.into.chunk_bytes(False).sum()
    assert record.summary()["bytes_link"] == sum(task.bytes_link for task in (*record.tasks, *record.filling))
    assert sum(came["edges"] for came in record.by_route().values()) == sum(task.edges for task in record.tasks)
    assert not any(record.filling for record in again)
