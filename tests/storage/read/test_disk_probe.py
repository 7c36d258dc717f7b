"""The probe of the disk counts what was read, each block once, past the page cache, and ends in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.format import direct_io
from penstock.storage.format.direct_io import OpenFile
from penstock.storage.format.graph import Graph
from penstock.storage.format.read_plan import PAGE, ReadRange, plan_reads
from penstock.storage.read.disk_probe import (
    DiskBlocks,
    DiskProbe,
    direct_files,
    edge_stretches,
    spread,
    whole_file,
    write_probe_file,
)
from support.graphs import on_disk, shape

KIB = 1 << 10


@pytest.fixture
def probe(tmp_path: Path) -> Path:
    done: list[int] = []
    path = tmp_path / "probe"
    assert write_probe_file(path, 3 << 20, done.append) > 0
    assert done == [1 << 20, 2 << 20, 3 << 20]
    assert path.stat().st_size == 3 << 20
    return path


@pytest.fixture
def disk(probe: Path) -> Iterator[DiskProbe]:
    try:
        with direct_files([OpenFile(probe)]) as files:
            yield DiskProbe(files, 3 * 128 * KIB)
    except InputError:
        pytest.skip("no direct reads in this file system")


def test_blocks_cover_stretches_in_turns_of_the_files() -> None:
    blocks = DiskBlocks([ReadRange(1, 8192, 16384, 15000, ()), ReadRange(0, 4096, 8192, 8192, ())], 8192)
    assert list(blocks) == [
        ReadRange(1, 8192, 8192, 8192, ()),
        ReadRange(0, 4096, 8192, 8192, ()),
        ReadRange(1, 16384, 8192, 6808, ()),
    ]
    assert blocks.nbytes == 15000 + 8192
    assert len(DiskBlocks([], PAGE)) == 0


def test_a_spread_order_has_runs() -> None:
    order = spread(10, 4, 1)
    assert sorted(order) == list(range(10))
    firsts = [at for at in range(10) if at == 0 or order[at] != order[at - 1] + 1]
    assert {int(order[at]) for at in firsts} <= {0, 4, 8}
    assert spread(10, 4, 1).tolist() == order.tolist()
    assert any(spread(100, 1, seed).tolist() != list(range(100)) for seed in range(3))


@pytest.mark.parametrize("in_flight", [1, 3])
def test_each_block_is_read_once(disk: DiskProbe, in_flight: int) -> None:
    blocks = DiskBlocks([whole_file(0, 3 << 20)], 128 * KIB)
    rate = disk.rate(blocks, spread(len(blocks), 1, 1)[:16], in_flight, 60.0)
    assert (rate.amount, rate.at) == (2 << 20, in_flight)


def test_no_read_begins_when_time_is_up(disk: DiskProbe) -> None:
    blocks = DiskBlocks([whole_file(0, 3 << 20)], 128 * KIB)
    assert disk.rate(blocks, np.arange(len(blocks)), 2, 0.0).amount == 0


def test_blocks_of_the_probe_differ(probe: Path) -> None:
    data = probe.read_bytes()
    assert data[: 1 << 20] != data[1 << 20 : 2 << 20]


def test_a_file_system_without_direct_reads_is_refused(probe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, flags: int) -> int:
        raise OSError(22, "Invalid argument")

    held = OpenFile(probe)
    monkeypatch.setattr(direct_io.os, "open", refuse)
    with pytest.raises(InputError, match=r"no direct reads.*--folder"), direct_files([held]):
        pass


def test_a_file_that_was_cut_short_is_an_error(disk: DiskProbe, probe: Path) -> None:
    with probe.open("r+b") as file:
        file.truncate(1 << 20)
    with pytest.raises(RunError, match="cut short"):
        disk.rate(DiskBlocks([whole_file(0, 3 << 20)], 128 * KIB), np.arange(24), 2, 60.0)


@pytest.mark.parametrize("stripes", [0, 2])
def test_the_stretches_of_a_graph_hold_its_frames(tmp_path: Path, stripes: int) -> None:
    folders = tuple(tmp_path / str(number) for number in range(stripes))
    for folder in folders:
        folder.mkdir()
    graph = on_disk(shape("skewed", weights="uint16"), tmp_path / "g.h5", stripes=folders)
    stretches = edge_stretches(graph)
    assert {stretch.shard for stretch in stretches} == (set(range(1, stripes + 1)) if stripes else {0})
    for adjacency in graph.adjacencies:
        for frames in (adjacency.neighbors, adjacency.weights):
            assert frames is not None
            for shard, offset, length in zip(frames.shard, frames.offsets, frames.lengths, strict=True):
                assert any(
                    stretch.shard == shard
                    and stretch.start <= offset
                    and offset + length <= stretch.start + stretch.needed
                    for stretch in stretches
                )


def test_a_graph_in_memory_has_no_stretches() -> None:
    assert edge_stretches(Graph.from_arrays([0, 1], np.array([0], np.uint32))) == []


def test_stretches_are_merged_as_reads_are(tmp_path: Path) -> None:
    graph = on_disk(shape("skewed", weights="uint16"), tmp_path / "g.h5")
    arrays = [frames for a in graph.adjacencies for frames in (a.neighbors, a.weights) if frames is not None]
    places = (np.concatenate([getattr(frames, name) for frames in arrays]) for name in ("shard", "offsets", "lengths"))
    assert edge_stretches(graph) == [replace(read, members=()) for read in plan_reads(*places, most_bytes=1 << 62)]
