"""Graphs of benchmarks: the same in memory as on disk."""

from pathlib import Path

import numpy as np
import pytest
from penstock.storage.format.graph import Graph
from penstock.storage.read import reader
from penstock.tools import cli
from penstock.tools.bench import system
from penstock.tools.bench.system import in_memory


@pytest.mark.parametrize("options", [["--undirected"], ["--direction", "both"], ["--direction", "both", "--weights"]])
def test_a_graph_is_the_same_in_memory(tmp_path: Path, options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BATCH_CHUNKS", 1)
    text, path = tmp_path / "edges.txt", tmp_path / "graph.h5"
    edges = ["10 20", "10 30", "30 20", "40 40"]
    text.write_text("\n".join(f"{edge} 7" if "--weights" in options else edge for edge in edges))
    assert cli.run_command(["convert", str(text), str(path), "--renumber", "--quiet", *options]) == 0
    disk = Graph.open(path)
    here = in_memory(disk)
    assert (here.vertices, here.edges, here.directed) == (disk.vertices, disk.edges, disk.directed)
    assert here.weight_dtype == disk.weight_dtype
    ids = here.original_ids()
    assert ids is not None
    assert ids.tolist() == [10, 20, 30, 40]
    for one, other in ((here.out, disk.out), (here.into, disk.into)):
        assert one is not None
        assert other is not None
        assert one.arrays is not None
        assert other.neighbors is not None
        assert np.array_equal(one.arrays[0], np.concatenate(list(other.neighbors.load())))
        assert one.index().starts(0, 5).tolist() == other.index().starts(0, 5).tolist()
        if other.weights is not None:
            assert np.array_equal(one.arrays[1], np.concatenate(list(other.weights.load())))
    assert in_memory(here) is here


def test_what_does_not_fit_stays_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "g.h5"
    assert cli.run_command(["generate", "rmat", "--scale", "6", "--output", str(path), "-q"]) == 0
    disk = Graph.open(path)
    monkeypatch.setattr(system, "default_host_memory", lambda: 4 * disk.edges - 1)
    assert in_memory(disk) is disk
    monkeypatch.setattr(system, "default_host_memory", lambda: 4 * disk.edges)
    assert in_memory(disk).out.arrays is not None
