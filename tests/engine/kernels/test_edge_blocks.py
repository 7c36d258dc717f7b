"""Programs give on a list the answers that they give on rows: in memory, from disk, behind a link, on every device."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from penstock.engine import run
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.programs.bfs import BFS
from penstock.engine.session import Session
from penstock.storage.base.errors import InputError
from penstock.storage.convert.convert import convert
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import LIST_BLOCK
from support.covering import covering
from support.graphs import ArraySource, shape, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import CASES, ROWS, check, program_of, tangle
from support.small_host import small_memory

SIMULATED: dict[str, Any] = {"device": "emulated", "kernels": "cuda"}
REFERENCE: dict[str, Any] = {"kernels": "reference"}
KERNELS: dict[str, dict[str, Any]] = {"cores": {}, "reference": REFERENCE} | (
    {"simulated": SIMULATED} if seam.SIMULATED else {}
)
simulated = pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu")


def small(directed: bool) -> EdgeList:
    return tangle(directed=directed, core=24, tail=6, count=70)


def listed(edges: EdgeList) -> Graph:
    return Graph.from_list(
        edges.sources, edges.targets, edges.weights, vertices=edges.vertices, directed=edges.directed
    )


def on_disk(edges: EdgeList, path: Path, *, counted: bool = True) -> Graph:
    """A list with chunks of one block; counted: with degrees."""
    options = ConvertOptions(layout="list", threads=1, undirected=not edges.directed, renumber=False)
    with mock.patch("penstock.storage.convert.list_writer.CHUNK_EDGES", LIST_BLOCK):
        convert(ArraySource("edges", edges), path, options)
    graph = Graph.open(path)
    if not counted and graph.listed is not None:
        object.__setattr__(graph.listed, "degrees", {})
    return graph


@covering("name, directed", [name for name in CASES if name not in ROWS], (True, False), strength=1)
def test_every_program_by_the_definition(name: str, directed: bool) -> None:
    edges = small(directed)
    make, verify = CASES[name]
    verify(edges, run(make(), listed(edges), **REFERENCE).fields)


@pytest.mark.parametrize(
    ("name", "directed"),
    [
        ("bfs", True),
        ("bfs", False),
        ("hits", True),
        pytest.param("hits", False, marks=pytest.mark.full),
        *(pytest.param(*row, marks=pytest.mark.full) for row in product(("pagerank", "kcore"), (True, False))),
    ],
)
def test_kernels_of_the_cores(name: str, directed: bool) -> None:
    """With the edges, against them, both ways, and of undirected edges."""
    edges = tangle(directed=directed)
    make, verify = CASES[name]
    verify(edges, run(make(), listed(edges)).fields)


@simulated
@pytest.mark.parametrize("name", ["bfs", "pagerank", "kcore", "hits"])
@pytest.mark.parametrize("directed", [True, False])
def test_kernels_of_a_gpu(name: str, directed: bool) -> None:
    edges = small(directed)
    make, verify = CASES[name]
    verify(edges, run(make(), listed(edges), **SIMULATED).fields)


SHAPES = ("one-loop", "isolated", "loops", "parallel", "star-in")


@covering("name, kind, kernels, directed", ("bfs", "sssp", "sweeps", "wcc"), SHAPES, KERNELS, (True, False))
def test_shapes(name: str, kind: str, kernels: str, directed: bool) -> None:
    edges = shape(kind, directed=directed, weights="uint8")
    check(name, edges, run(program_of(name, edges), listed(edges), **KERNELS[kernels]).fields)


def many_blocks(*, ordered: bool = False) -> EdgeList:
    """Nine blocks of edges; ordered: by source."""
    ends = skewed(3000, 9 * LIST_BLOCK - 100, 4)
    ends = ends[:, np.argsort(ends[0], kind="stable")] if ordered else ends
    return weighed(EdgeList(3000, ends[0], ends[1], None, True), "uint8")


FED: list[dict[str, Any]] = [{}, {"device": "emulated", "device_edge_memory": 5 * 9 * LIST_BLOCK}]


@pytest.mark.parametrize("options", FED, ids=["disk", "link"])
@pytest.mark.parametrize("name", ["bfs", "sssp", "sweeps", "wcc"])
def test_edges_that_have_to_come(
    name: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From disk, where memory keeps two of nine chunks; over a link; degrees counted in a pass of their own."""
    small_memory(monkeypatch, LIST_BLOCK, 3, 2)
    edges = many_blocks()
    graph = on_disk(edges, tmp_path / "list.h5", counted=name != "sweeps")
    check(name, edges, run(program_of(name, edges), graph, **options).fields)


@simulated
@pytest.mark.parametrize("name", ["bfs", "wcc"])
def test_edges_that_come_to_a_gpu(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_memory(monkeypatch, LIST_BLOCK, 3, 2)
    edges = many_blocks(ordered=True)
    graph = on_disk(edges, tmp_path / "list.h5")
    check(name, edges, run(program_of(name, edges), graph, **FED[1] | SIMULATED).fields)


def test_blocks_without_an_active_source_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path in order: an iteration needs the chunk of its vertex."""
    small_memory(monkeypatch, LIST_BLOCK, 3, 2)
    ends = np.stack([np.arange(4 * LIST_BLOCK), np.arange(1, 4 * LIST_BLOCK + 1)])
    edges = EdgeList(4 * LIST_BLOCK + 1, ends[0], ends[1], None, True)
    graph = on_disk(edges, tmp_path / "list.h5")
    with Session(graph) as session:
        steps = session.steps(BFS(LIST_BLOCK + 5))
        tasks = [task for _ in range(3) for task in next(steps).tasks]
        steps.close()
    assert {task.partitions for task in tasks} == {(1,)}
    assert sum(task.chunks_read + task.hits for task in tasks) == 3


@pytest.mark.parametrize("name", ROWS)
def test_programs_on_whole_rows_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"works on whole rows; sort it: penstock convert GRAPH\.h5 SORTED\.h5"):
        run(CASES[name][0](), listed(tangle(directed=True)))


@pytest.mark.parametrize(
    ("options", "way_out"),
    [
        ({"direction": "pull"}, "leave out --direction pull"),
        ({"device": "emulated", "route": "compaction"}, "use --route auto"),
        ({"device": "emulated", "tuning": {"local_rounds": 1}}, "leave out local_rounds"),
        ({"tuning": {"layers": 2}}, "leave layers out"),
    ],
)
def test_options_that_need_rows_are_refused(options: dict[str, Any], way_out: str) -> None:
    with pytest.raises(InputError, match=way_out):
        Session(listed(tangle(directed=True)), **options)
