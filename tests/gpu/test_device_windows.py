"""On a real GPU: values of vertices that come in pages, in address space of which only these have memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph, Program, Session
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.table import PROGRAMS
from penstock.engine.programs.wcc import WCCByLabels
from penstock.storage.base.errors import RunError
from penstock.storage.format.row_pages import PAGE_ROWS
from penstock.transfer.devices.cuda import CudaDevice, count
from support.graphs import write
from support.oracles import EdgeList
from support.paged_graphs import assert_equal, in_two_parts

pytestmark = pytest.mark.skipif(not count(), reason="needs a CUDA device")

VERTICES, WINDOW = 24 * PAGE_ROWS - 1000, 5 * PAGE_ROWS
SOURCE = 3
DEVICE = {"device": "cuda:0", "device_memory": 168 << 20, "threads": 2}
MAKERS: dict[str, Callable[[], Program]] = {
    "pagerank": lambda: PageRank(tol=0, max_iter=3, weight=None),
    "bfs": lambda: BFS(SOURCE),
    "sssp": lambda: SSSP(SOURCE),
    "labels": WCCByLabels,
    "harmonic": lambda: PROGRAMS["harmonic"](source=SOURCE, weight=False),
    "hits": lambda: PROGRAMS["hits"](max_iter=2),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Six pages of a GPU, in five windows that begin inside of them."""
    random = np.random.default_rng(1)
    ends = random.integers(0, VERTICES, (2, VERTICES), dtype=np.uint32)
    edges = EdgeList(VERTICES, ends[0], ends[1], random.integers(1, 9, VERTICES).astype(np.uint8), directed=True)
    path = tmp_path_factory.mktemp("pages") / "g.h5"
    write(edges, path, both=True, window_vertices=WINDOW)
    return Graph.open(path)


def answer(graph: Graph, program: Program, **options: Any) -> tuple[dict[str, Any], int, int]:
    for adjacency in graph.adjacencies:
        adjacency.drop_index()
    with Session(graph, **options) as session:
        result = session.run(program)
        fields = {name: np.array(values[:]) for name, values in result.fields.items()}
        return fields, max(record.windows for record in result.records), sum(one.value_bytes for one in result.records)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("host_memory", [None, 190 << 20])
def test_answers_are_those_of_the_cores(name: str, host_memory: int | None, graph: Graph) -> None:
    """host_memory: of which values take more."""
    wanted, _, _ = answer(graph, MAKERS[name](), device="cpu")
    found, windows, moved = answer(graph, MAKERS[name](), host_memory=host_memory, **DEVICE)
    assert windows == 5
    assert moved > VERTICES
    assert_equal(found, wanted)


@pytest.mark.parametrize("name", ["pagerank", "bfs"])
def test_pulls_give_the_same_answers(name: str, graph: Graph) -> None:
    """By windows of sources; or by one, where nothing of these is read."""
    wanted, _, _ = answer(graph, MAKERS[name](), device="cpu")
    found, windows, _ = answer(graph, MAKERS[name](), direction="pull", **DEVICE)
    assert windows == {"pagerank": 5, "bfs": 1}[name]
    assert_equal(found, wanted)


@pytest.mark.parametrize("place", [DEVICE, {"device": "cuda:0"}, {"device": "cpu"}])
@pytest.mark.parametrize("name", ["bfs", "hits"])
def test_a_run_goes_on_from_its_checkpoint_wherever_values_are(
    name: str, place: dict[str, Any], graph: Graph, tmp_path: Path
) -> None:
    wanted, _, _ = answer(graph, MAKERS[name](), device="cpu")
    parts = [(nullcontext(list[int]()), options) for options in (DEVICE, place)]
    found, _ = in_two_parts(graph, MAKERS[name], tmp_path / "kept", parts)
    assert_equal(found, wanted)


def test_reserved_address_space_takes_memory_where_it_is_backed() -> None:
    device = CudaDevice(0)
    space, rows = device.reserved(10 * device.grain, np.uint8), device.grain
    assert space.nbytes == 0
    for first in (0, 3):
        space.back(first * rows, (first + 2) * rows)
    assert space.nbytes == 4 * rows
    space.values[3 * rows : 5 * rows] = 7
    assert int(space.values[3 * rows : 5 * rows].sum(dtype=np.int64)) == 14 * rows
    device.finish()
    space.forget(3 * rows, 5 * rows)
    assert space.nbytes == 2 * rows
    space.back(3 * rows, 5 * rows)
    device.close()


def test_reserved_memory_goes_when_the_kernels_that_use_it_are_done() -> None:
    device = CudaDevice(0)
    space = device.reserved(1 << 27, np.int64)
    space.back(0, 1 << 27)
    for _ in range(50):
        space.values += 1  # longer than it takes to give the memory back
    del space
    device.finish()
    device.close()


def test_more_than_the_device_has_is_said() -> None:
    device = CudaDevice(0)
    count_ = (1 << 43) // 8
    space = device.reserved(count_, np.int64)
    with pytest.raises(RunError, match="lower --device-memory"):
        space.back(0, count_)
    device.close()
