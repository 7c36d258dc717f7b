"""The rows of some vertices as an adjacency of their own: their chunks, and an index in which others are empty."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from penstock.storage.base.errors import RunError
from penstock.storage.format.graph import Adjacency
from penstock.storage.read.reader import Reader
from support.faults import flip_bit
from support.graphs import in_memory, on_disk, shape, weighed

EDGES = weighed(shape("skewed"), "uint8")
CHUNK = 32


def _edges_of(whole: Adjacency, v0: int, v1: int) -> slice:
    return slice(*whole.index().starts(v0, v1 + 1)[[0, -1]].tolist())


@pytest.mark.parametrize(("v0", "v1"), [(0, 3), (5, 40), (40, 40), (17, EDGES.vertices), (0, EDGES.vertices)])
def test_a_part_holds_the_edges_of_its_rows(tmp_path: Path, v0: int, v1: int) -> None:
    stored, arrays = on_disk(EDGES, tmp_path / "graph.h5", chunk_edges=CHUNK), in_memory(EDGES).out.arrays
    assert arrays is not None
    part, here = stored.out.of_rows(v0, v1), _edges_of(stored.out, v0, v1)
    assert here.stop - here.start <= part.edges <= here.stop - here.start + 2 * CHUNK
    neighbors, weights = np.empty(part.edges, part.neighbor_dtype), np.empty(part.edges, np.uint8)
    with Reader(stored.with_adjacencies(part, part), decode_threads=1) as reader:
        reader.fetch_all(part, neighbors, weights)
    own = slice(*part.index().starts(v0, v1 + 1)[[0, -1]].tolist())
    assert neighbors[own].tolist() == arrays[0][here].tolist()
    assert arrays[1] is not None
    assert weights[own].tolist() == arrays[1][here].tolist()
    words = part.payload_words(False)
    assert words is not None
    assert len(words) == part.chunks == len(part.chunk_bytes(True))


def test_a_part_of_a_graph_in_memory_has_its_arrays_in_place() -> None:
    out = in_memory(EDGES).out
    part, here = out.of_rows(5, 40), _edges_of(out, 5, 40)
    assert out.arrays is not None
    assert part.arrays is not None
    own = slice(*part.index().starts(5, 41)[[0, -1]].tolist())
    assert np.shares_memory(part.arrays[0], out.arrays[0])
    assert part.arrays[0][own].tolist() == out.arrays[0][here].tolist()


def test_a_damaged_chunk_has_the_number_that_it_has_in_the_file(tmp_path: Path) -> None:
    graph = on_disk(EDGES, tmp_path / "graph.h5", chunk_edges=CHUNK)
    part = graph.out.of_rows(40, EDGES.vertices)
    assert graph.out.neighbors is not None
    assert part.neighbors is not None
    number = graph.out.chunks - part.chunks + 1
    flip_bit(tmp_path / "graph.h5", int(part.neighbors.offsets[1]) + 5)
    with pytest.raises(RunError, match=f"chunk {number} of out/neighbors"):
        list(part.neighbors.load([1]))
