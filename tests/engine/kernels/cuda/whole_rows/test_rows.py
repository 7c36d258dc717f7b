"""A GPU's kernels for whole rows, under numba's simulator: the programs' answers, and the sorting that they need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from penstock.engine import Session, run
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.kernels.cuda.whole_rows import sort
from penstock.engine.kernels.cuda.whole_rows.launch_rows import CudaRowKernels
from penstock.engine.kernels.shared_functions import sort_in_place
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.state import row_blocks
from penstock.engine.state.row_blocks import RowBlock
from penstock.storage.format.index import from_offsets
from penstock.transfer.devices.emulated import EmulatedDevice
from support import catalogue_oracles as right
from support.catalogue_oracles import near
from support.graphs import in_memory, on_disk, shape, skewed
from support.oracles import EdgeList
from support.program_cases import CASES, ROWS

DEVICE: dict[str, Any] = {"device": "emulated", "kernels": "cuda"}
simulated = pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu")


def hub(*, directed: bool) -> EdgeList:
    """30 vertices: one with all others for neighbors, loops, parallel edges, edges both ways, and some without any."""
    spokes = np.stack([np.full(26, 7), np.arange(26)])
    ends = np.concatenate([skewed(26, 45, 3), spokes, spokes[::-1, ::3]], axis=1)
    return EdgeList(30, ends[0], ends[1], None, directed)


@contextmanager
def small_blocks() -> Iterator[None]:
    """Blocks of one long row or several short ones, and strips of a few edges."""
    with (
        mock.patch("penstock.engine.execution.triangles.strip_edges", return_value=30),
        mock.patch(
            "penstock.engine.execution.whole_rows.block_capacity",
            lambda indexes, most: row_blocks.block_capacity(indexes, 40),
        ),
        mock.patch(
            "penstock.engine.execution.triangles.block_capacity",
            lambda indexes, most: row_blocks.block_capacity(indexes, 40),
        ),
    ):
        yield


@simulated
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("route", ["filter", "zero-copy", "auto"])
def test_rows_in_blocks_and_strips(route: str, directed: bool, tmp_path: Path) -> None:
    """On disk, with room for some of the edges, which come by every route; rows are longer than a tile."""
    edges = hub(directed=directed)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=16)
    options = {"route": route, "device_edge_memory": 400, "partition_bytes": 128}
    with small_blocks(), Session(graph, **DEVICE, **options) as session:
        for name in ROWS if route == "auto" else ROWS[1:2]:
            make, check = CASES[name]
            result = session.run(make())
            check(edges, result.fields)
            tasks = [task for record in result.records for task in record.tasks if task.kernel_seconds]  # and not ahead
            read = [task.lines_read for task in tasks if task.route == "zero-copy"]
            assert all(read)
            assert read or route != "zero-copy"


@simulated
def test_they_run_on_the_device_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody asked for a device, as other programs do."""
    device = EmulatedDevice()
    monkeypatch.setattr("penstock.engine.session.device_of", lambda config: device)
    edges = shape("loops")
    with Session(in_memory(edges), kernels="cuda") as session:
        CASES["cdlp"][1](edges, session.run(CDLP()).fields)
    assert device.bytes_in > 0


@simulated
@pytest.mark.parametrize("kind", ["one-loop", "isolated", "loops", "parallel"])
def test_small_shapes(kind: str) -> None:
    for directed in (True, False):
        edges = shape(kind, directed=directed)
        with Session(in_memory(edges), **DEVICE) as session:
            for name in ROWS:
                make, check = CASES[name]
                check(edges, session.run(make()).fields)


@simulated
@pytest.mark.parametrize("directed", [True, False])
def test_vectors(directed: bool, tmp_path: Path) -> None:
    """The same descent as the dense one, with rows that partitions and tiles cut, and vectors longer than a piece."""
    random = np.random.default_rng(3)
    pairs = random.permutation(4 * 9)[:30]
    edges = EdgeList(13, pairs // 9, 4 + pairs % 9, random.integers(1, 6, 30).astype(np.uint8), directed)
    graph = on_disk(edges, tmp_path / "g.h5", chunk_edges=16)
    program = CollaborativeFiltering(rank=3, max_iter=3, regularization=2.0, rate=0.3, momentum=0.5)
    result = run(program, graph, **DEVICE, partition_bytes=64, device_edge_memory=300)
    first = np.zeros((13, 4))
    first[:, :3] = np.random.default_rng(0).normal(0.0, 0.1, (13, 3))
    both = EdgeList(13, edges.sources, edges.targets, edges.weights, False)
    vectors, errors = right.factorize(both, first, 3, rate=0.3, momentum=0.5, regularization=2.0)
    near(result.fields["vector"], vectors)
    near(result.program.rmse, errors)


@simulated
@pytest.mark.parametrize("sides", [1, 2])
def test_rows_of_any_length_are_sorted(sides: int) -> None:
    """Each by itself: short ones with their neighbors, long ones in chunks and merges, of one walk and of two."""
    random = np.random.default_rng(sides)
    lengths = [0, 3, 8, 9, 0, 1, 16, 2, 17, 33, 0, 0, 5, 75, 8, 0]
    parts = [np.array(lengths)] if sides == 1 else [np.array(lengths) // 2, np.array(lengths) - np.array(lengths) // 2]
    indexes = tuple(from_offsets(np.concatenate([[0], np.cumsum(part)])) for part in parts)
    kernels = CudaRowKernels(CDLP(), np.dtype(np.uint32), False, EmulatedDevice(), {})
    for first, last in ((0, 16), (8, 14)):
        ends = np.concatenate([[0], np.cumsum(lengths[first:last])])
        buffer = random.integers(0, 50, ends[-1]).astype(np.uint32)
        wanted = np.concatenate([np.sort(buffer[a:b]) for a, b in pairwise(ends)])
        kernels._sort(RowBlock(first, last, indexes), buffer)
        np.testing.assert_array_equal(buffer, wanted)


@given(st.integers(0, 400), st.randoms(use_true_random=False))
@example(seam.TILE, None)
@example(2 * seam.TILE + 1, None)
@settings(max_examples=25)
def test_the_merges_sort_any_number(count: int, random: Any) -> None:
    """The networks' comparisons one after another, without a device: chunks by themselves, then far and near steps."""
    values = [count - at for at in range(count)] if random is None else [random.randrange(60) for _ in range(count)]
    wanted, tile = sorted(values), seam.TILE
    for begin in range(0, count, tile):
        values[begin : begin + tile] = sorted(values[begin : begin + tile])
    for run_shift, gap_shift in sort.merges(count):
        run, gap = 1 << run_shift, 1 << gap_shift
        for at in range(count):
            if at & gap == 0:
                partner = at ^ (2 * gap - 1) if gap == run else at | gap
                if partner < count and values[partner] < values[at]:
                    values[at], values[partner] = values[partner], values[at]
        if gap == tile:
            for begin in range(0, count, tile):
                values[begin : begin + tile] = sorted(values[begin : begin + tile])
    assert values == wanted


@given(st.lists(st.floats(allow_nan=True, width=32), max_size=40))
@example([float("nan"), 1.0, float("nan"), -1.0])
@example([3.0, 2.0, 1.0])
def test_an_authors_sort(values: list[float]) -> None:
    """Heapsort as NumPy sorts, NaNs last."""
    array = np.array(values, dtype=np.float32)
    wanted = np.sort(array)
    sort_in_place(array)
    np.testing.assert_array_equal(array, wanted)
