"""A part of a sweep: partitions in order, each once, with and without unpacking."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from penstock.storage.format.graph import Graph
from penstock.storage.read import sweep_probe
from penstock.storage.read.reader import Reader
from penstock.storage.read.sweep_probe import SweepProbe
from support.graphs import on_disk, shape

CHUNK = 64


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setattr(sweep_probe, "PARTITION_BYTES", 3 * CHUNK * 4)
    return on_disk(shape("skewed"), tmp_path / "g.h5", chunk_edges=CHUNK)


@pytest.mark.parametrize("payloads", [False, True])
def test_every_partition_is_read_once(graph: Graph, *, payloads: bool) -> None:
    probe = SweepProbe(graph.out, payloads=payloads)
    assert probe.partitions == -(-graph.out.chunks // 3) > sweep_probe.AHEAD
    reads = [read for number in range(probe.partitions) for read in probe.reads(number, 1)]
    with Reader(graph, decode_threads=1) as reader:
        sample = probe.run(reader, 2, 60.0)
        assert sample.amount == reader.bytes_read == sum(read.length for read in reads)
        assert sample.at == reader.threads


def test_the_partition_after_the_last_is_the_first(graph: Graph) -> None:
    probe = SweepProbe(graph.out)
    assert probe.chunks(probe.partitions).tolist() == probe.chunks(0).tolist() == [0, 1, 2]
    assert probe.chunks(probe.partitions - 1)[-1] == graph.out.chunks - 1


def test_one_partition_is_read_however_short_the_time(graph: Graph) -> None:
    probe = SweepProbe(graph.out)
    with Reader(graph, decode_threads=1) as reader:
        assert probe.run(reader, 1, 0.0).amount == sum(read.length for read in probe.reads(1, 1))


def test_payloads_of_unknown_size_are_refused(graph: Graph) -> None:
    assert graph.out.neighbors is not None
    object.__setattr__(graph.out.neighbors, "payload_words", None)
    with pytest.raises(ValueError, match="out-edges"):
        SweepProbe(graph.out, payloads=True)


def test_the_slabs_hold_what_was_read_last(graph: Graph) -> None:
    probe = SweepProbe(graph.out)
    with Reader(graph, decode_threads=1) as reader:
        probe.run(reader, 0, 0.0)
        expected = np.empty(3 * CHUNK, graph.out.neighbor_dtype)
        reader.fetch(graph.out, np.arange(3), 0, expected).result()
    assert any(np.array_equal(slab[: 3 * CHUNK], expected) for slab in probe._slabs)
