"""The probe of decoding: whole chunks are decoded as many times as there is time; the comparison of encodings."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np
import pytest
from penstock.storage.base.errors import RunError
from penstock.storage.base.measurement import RateSample, TimeBudget, doublings
from penstock.storage.encoding.codec import Decoder
from penstock.storage.format.graph import Graph
from penstock.storage.read import probes
from penstock.storage.read.probes import (
    SweepProbe,
    compare_encodings,
    decode_rates,
    graph_neighbors,
    made_chunks,
    stored_chunks,
    sweep_seconds,
)
from penstock.storage.read.reader import Reader
from support.graph_files import Rows, write_rows
from support.graphs import on_disk, shape

ITEMS = 1 << 12


def test_made_chunks_are_sorted_rows() -> None:
    (chunk,) = made_chunks(1, ITEMS)
    out = np.empty(chunk.items, chunk.kind)
    chunk.decode(Decoder(), out)
    rows = out.reshape(-1, 16).astype(np.int64)
    assert len(out) == ITEMS
    assert (np.diff(rows, axis=1) >= 0).all()
    assert len(np.unique(out)) > ITEMS // 2


def test_a_graphs_own_chunks_are_read(tmp_path: Path) -> None:
    graph = on_disk(shape("skewed"), tmp_path / "g.h5", chunk_edges=64)
    chunks = stored_chunks(graph, 3)
    assert len(chunks) == 3
    out = np.empty(chunks[0].items, chunks[0].kind)
    chunks[0].decode(Decoder(), out)
    assert graph.out.neighbors is not None
    assert out.tolist() == next(graph.out.neighbors.load([0])).tolist()


def test_damage_is_found_as_in_a_run(tmp_path: Path) -> None:
    graph = on_disk(shape("skewed"), tmp_path / "g.h5", chunk_edges=64)
    frames = graph.out.neighbors
    assert frames is not None
    frames.checksums[0] ^= np.uint64(1)
    with pytest.raises(RunError, match="checksum"):
        decode_rates(stored_chunks(graph, 1), [1], 0.0, TimeBudget())


def test_a_graph_in_memory_has_no_chunks_to_decode() -> None:
    assert stored_chunks(Graph.from_arrays([0, 1], np.array([0], np.uint32)), 4) == []


def test_every_thread_decodes_while_its_share_lasts() -> None:
    ticks = count()
    clock = TimeBudget(None, lambda: float(next(ticks)))
    rows = decode_rates(made_chunks(2, ITEMS), [1, 2], 10.0, clock)
    assert [row.at for row in rows] == [1, 2]
    for row in rows:
        assert row.amount >= row.at * ITEMS * 4
        assert row.amount % (ITEMS * 4) == 0
        assert row.seconds > 0


def test_no_time_left_ends_the_table() -> None:
    assert [row.at for row in decode_rates(made_chunks(1, ITEMS), [1, 2, 4], 0.01, TimeBudget(0.0))] == [1]


def test_rates_and_thread_counts() -> None:
    assert RateSample(1, 100, 0.5).rate == 200
    assert RateSample(1, 1, 0.0).rate < float("inf")
    assert [doublings(n) for n in (1, 2, 3, 16)] == [(1,), (1, 2), (1, 2, 3), (1, 2, 4, 8, 16)]


CHUNK = 64


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setattr(probes, "PARTITION_BYTES", 3 * CHUNK * 4)
    return on_disk(shape("skewed"), tmp_path / "g.h5", chunk_edges=CHUNK)


@pytest.mark.parametrize("payloads", [False, True])
def test_every_partition_is_read_once(graph: Graph, *, payloads: bool) -> None:
    probe = SweepProbe(graph.out, payloads=payloads)
    assert probe.partitions == -(-graph.out.chunks // 3) > probes.AHEAD
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


def test_every_candidate_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "_LEAST_SECONDS", 0.0)
    random = np.random.default_rng(0)
    rows = [np.sort(random.integers(0, 1 << 20, 64)) for _ in range(5000)]
    ids = np.concatenate(rows).astype(np.uint32)
    found = list(compare_encodings("random", ids))
    assert tuple((row.encoding, row.level) for row in found) == probes.CANDIDATES
    for row in found:
        assert row.graph == "random"
        assert 0 < row.bytes_per_edge < 4.5
        assert row.decode_bytes_per_second > 0
        assert row.encode_bytes_per_second > 0
        assert (row.payload_bytes_per_second is None) == (row.encoding != "packed")
    plain, packed = found[0], found[3]
    assert packed.bytes_per_edge < plain.bytes_per_edge
    assert packed.payload_bytes_per_edge is not None
    assert packed.bytes_per_edge < packed.payload_bytes_per_edge * 1.01
    assert packed.payload_bytes_per_second is not None
    assert packed.payload_bytes_per_second > 0


def test_a_sweep_takes_as_long_as_its_slower_half() -> None:
    assert sweep_seconds(3.0, 4, 1e9, 2) == pytest.approx(2.0)
    assert sweep_seconds(3.0, 4, 1e9, 16) == pytest.approx(1.0)


def test_neighbors_of_a_graph_in_a_file_and_in_memory(tmp_path: Path) -> None:
    rows = Rows(1, 3000)
    graph = Graph.open(write_rows(tmp_path / "g.h5", rows))
    assert np.array_equal(graph_neighbors(graph), rows.neighbors)
    memory = Graph.from_arrays(rows.offsets, rows.neighbors)
    assert np.array_equal(graph_neighbors(memory), rows.neighbors)
