"""The comparison of encodings measures every candidate on real chunks and computes sweeps as it says."""

from pathlib import Path

import numpy as np
import pytest
from penstock.storage.format.graph import Graph
from penstock.storage.read import probes
from penstock.storage.read.probes import compare_encodings, graph_neighbors, sweep_seconds
from support.graph_files import Rows, write_rows


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
