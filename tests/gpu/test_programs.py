"""Every program of the catalogue gives the answer on a GPU that the host gives (tests/engine/programs)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from penstock.engine import Field, Program, run
from penstock.engine.kernels.cuda.whole_rows.launch_rows import CudaRowKernels
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.closeness import Closeness, Harmonic
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.programs.from_each import FromEach
from penstock.engine.programs.katz import Katz
from penstock.engine.programs.leiden import Leiden
from penstock.engine.programs.louvain import Louvain
from penstock.engine.programs.pagerank import PPR, ChebyshevPageRank
from penstock.engine.programs.table import PROGRAMS
from penstock.engine.session import Session
from penstock.engine.state import row_blocks
from penstock.engine.state.row_blocks import RowBlock
from penstock.storage.base.errors import RunError
from penstock.storage.format.index import from_offsets
from penstock.transfer.devices.cuda import CudaDevice
from support.graphs import on_disk, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import CASES

pytestmark = pytest.mark.gpu

MORE: dict[str, Callable[[], Program]] = {
    "personalized_pagerank": lambda: PPR(3),
    "katz": lambda: Katz(alpha=1e-5),
    "louvain": lambda: Louvain(tol=0.01),
    "leiden": lambda: Leiden(tol=0.01),
    "cf": lambda: CollaborativeFiltering(rank=9, max_iter=4),
}
"""Programs that have no case, or another one."""
MAKERS = {name: make for name, (make, _) in CASES.items()} | MORE
TOGETHER: dict[str, Callable[[], Program]] = {
    "distances together": lambda: FromEach(list(range(40)), weight=False),
    "closeness together": lambda: Closeness(k=70, weight=False),
    "harmonic together": lambda: Harmonic(list(range(10)), weight=False),
}
"""Searches by hops that run together."""
ON_ROWS = ("cdlp", "louvain", "leiden", "triangles", "trussness", "lcc", "cf", "hyperball", "fastrp")
"""Programs on whole rows."""
ELSEWHERE = {"sssp", "pagerank", "wcc"}
"""In test_device.py, against their checkers; PageRank there counts each edge as 1."""


def test_none_is_left_out() -> None:
    assert MAKERS.keys() | ELSEWHERE == PROGRAMS.keys()


def equal(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        if values.dtype == np.float32:  # sums of a few values near 0, in another order
            np.testing.assert_allclose(ours[name], values, rtol=1e-5, atol=2e-6, err_msg=name)
        elif values.dtype.kind == "f":
            np.testing.assert_allclose(ours[name], values, rtol=1e-6, atol=1e-9, err_msg=name)
        else:
            np.testing.assert_array_equal(ours[name], values, err_msg=name)


@pytest.mark.parametrize(
    "way",
    [
        {},
        {"direction": "push"},
        {"direction": "pull"},
        {"mode": "sync"},
        {"route": "filter", "device_edge_memory": 1 << 16},
        {"route": "zero-copy", "device_edge_memory": 1 << 16},
        {"device_edge_memory": 1 << 18},
        {"device_edge_memory": 1 << 12},  # no slab fits: all is read in place
    ],
)
@pytest.mark.parametrize("directed", [True, False])
def test_the_hosts_answer(directed: bool, way: dict[str, Any], tmp_path: Path) -> None:
    edges = weighed(EdgeList(3000, *skewed(3000, 30_000, 5), None, directed), "uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=1 << 10)
    makers = TOGETHER | MAKERS
    if not directed:
        makers["chebyshev"] = lambda: ChebyshevPageRank(weight=False)
    with (
        Session(graph, device="cuda:0", partition_bytes=1 << 13, **way) as session,
        Session(graph, device="cpu") as host,
    ):
        for make in makers.values():
            equal(session.run(make()).fields, host.run(make()).fields)


@pytest.mark.parametrize("route", ["auto", "filter", "zero-copy"])
@pytest.mark.parametrize("directed", [True, False])
def test_whole_rows_in_blocks_and_strips(directed: bool, route: str, tmp_path: Path) -> None:
    """Blocks of rows and strips that hold a part of the graph each; the longest row takes a block for itself."""
    edges = weighed(EdgeList(3000, *skewed(3000, 60_000, 5), None, directed), "uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=1 << 10)
    with (
        mock.patch("penstock.engine.execution.triangles.strip_edges", return_value=20_000),
        mock.patch(
            "penstock.engine.execution.whole_rows.block_capacity",
            lambda indexes, most: row_blocks.block_capacity(indexes, 5000),
        ),
        mock.patch(
            "penstock.engine.execution.triangles.block_capacity",
            lambda indexes, most: row_blocks.block_capacity(indexes, 5000),
        ),
        Session(graph, device="cuda:0", partition_bytes=1 << 13, route=route, device_edge_memory=1 << 17) as session,
        Session(graph, device="cpu") as host,
    ):
        for name in ON_ROWS:
            equal(session.run(MAKERS[name]()).fields, host.run(MAKERS[name]()).fields)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64, np.float64, np.int16])
def test_rows_of_any_length_are_sorted(dtype: type[np.generic]) -> None:
    class Typed(CDLP):
        message = dtype

    random = np.random.default_rng(3)
    lengths = np.concatenate(
        [random.integers(0, 60, 5000), [1023, 1024, 1025, 0, 2047, 2048, 2049, 4097, 300_001, 5, 0]]
    )
    random.shuffle(lengths)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    index, device = from_offsets(ends), CudaDevice(0)
    kernels = CudaRowKernels(Typed(), np.dtype(np.uint32), False, device, {})
    kernels.use()
    values = random.integers(-30_000 if np.dtype(dtype).kind != "u" else 0, 30_000, ends[-1]).astype(dtype)
    buffer = device.to_device(values)
    kernels._sort(RowBlock(0, len(lengths), (index,)), buffer)
    found = device.to_host(buffer)
    for first, last in pairwise(ends):
        np.testing.assert_array_equal(found[first:last], np.sort(values[first:last]))
    kernels.close()
    device.close()


class Spoiled(Program):
    """Values that are no numbers from the first iteration on, and so change for ever."""

    x = Field(np.float64, fill=1.0)
    combine = "sum"

    def edge(x):  # type: ignore[no-untyped-def]
        return x

    def vertex(x, incoming):  # type: ignore[no-untyped-def]
        return incoming * np.nan


def test_what_is_no_number_is_found_on_the_device(tmp_path: Path) -> None:
    graph = on_disk(EdgeList(500, *skewed(500, 4000, 5), None, False), tmp_path / "graph.h5", chunk_edges=1 << 10)
    with pytest.raises(RunError, match=r"are no numbers \(NaN\) after 64 iterations"):
        run(Spoiled(), graph, device="cuda:0")


class Unsorted(CDLP):
    """Labels that the author turns over before sorting them, so that the engine's sorting is of no use."""

    def vertex(label, incoming):  # type: ignore[no-untyped-def]
        for at in range(len(incoming)):
            incoming[at] ^= 21
        incoming.sort()
        return incoming[len(incoming) >> 1] ^ 21 if len(incoming) > 0 else label


def test_an_authors_own_sort(tmp_path: Path) -> None:
    edges = EdgeList(500, *skewed(500, 4000, 5), None, False)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=1 << 10)
    equal(run(Unsorted(3), graph, device="cuda:0").fields, run(Unsorted(3), graph, device="cpu").fields)
