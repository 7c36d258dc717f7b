"""Every program, however it is run, gives the answer of the independent checkers.

Kernels (plain Python, push, pull), order (synchronous, asynchronous where the
program tolerates it), where edges lie (memory; disk with everything cached, a quarter, 3 %), chunk and
partition sizes, directed and undirected graphs, weights: none of it may show in an answer. Integers
agree to the bit; PageRank agrees within what it says of itself.

Two pipelines to one answer: zarr-python's tests/test_pipeline_parity.py.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.engine import Graph, run
from penstock.engine.programs.sssp import SSSP
from penstock.transfer.planning import host_budget as transfer_layout
from support.covering import covering
from support.graphs import SHAPES, in_memory, on_disk, shape, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import PROGRAMS, check, program_of

Options = dict[str, Any]

WAYS: list[Options] = [
    {"kernels": "reference", "direction": "push"},
    {"kernels": "reference", "direction": "pull"},
    {},
    {"direction": "push"},
    {"direction": "pull"},
    {"mode": "sync"},
    {"mode": "async"},
    {"direction": "push", "mode": "sync"},
    {"threads": 1},
]
SYNCHRONOUS_ONLY = ("bfs", "sweeps")
"""BFS needs its levels; exactly three sweeps are synchronous by their definition."""

TIGHT_WAYS: list[Options] = [
    {"partition_bytes": 256},
    {"partition_bytes": 1500, "direction": "push"},
    {"partition_bytes": 256, "direction": "pull"},
    {"partition_bytes": 700, "mode": "sync"},
    {"partition_bytes": 1, "kernels": "reference"},
]

WEIGHTS = (None, "uint8", "uint32", "float32", "float64")


def ways(name: str, *, patient: bool = True) -> list[Options]:
    """The ways in which a program can be run; `patient`: plain Python too."""
    modes = ("auto", "sync") if name in SYNCHRONOUS_ONLY else ("auto", "sync", "async")
    kernels = ("host", "reference") if patient else ("host",)
    return [way for way in WAYS if way.get("mode", "auto") in modes and way.get("kernels", "host") in kernels]


def trial(name: str, edges: EdgeList, graph: Graph, **options: Any) -> None:
    """Run and check; a wrong answer says how it came about."""
    result = run(program_of(name, edges), graph, **options)
    try:
        check(name, edges, result.fields)
    except AssertionError as error:
        raise AssertionError(f"{name} with {options}: {error}") from None


@contextmanager
def memory_for(share: float) -> Iterator[None]:
    """Give runs what they need at least and, of the edges, room for `share` (at least two slabs).

    A budget in bytes that leaves 3 % of a tiny graph would depend on every overhead; this puts the
    share in where a session divides its budget.
    """

    def divide(budget: Any, sizes: Any, *, with_weights: bool) -> Any:
        least = budget.fixed + transfer_layout.reader_bytes(budget, 1)
        edges = sum(size.edge_bytes(with_weights) * size.edges for size in sizes)
        slabs = max(2 * size.edge_bytes(True) * size.chunk_edges for size in sizes)
        tight = replace(budget, host_memory=least + max(int(share * edges), slabs))
        return transfer_layout.divide_host_budget(tight, sizes, with_weights=with_weights)

    with mock.patch("penstock.engine.resources.memory_plan.divide_host_budget", divide):
        yield


def can_be(name: str, kind: str, directed: bool, weights: str | None, half: int) -> bool:
    """Weights only where they matter."""
    if kind == "empty" and name in ("bfs", "sssp"):
        return False
    return weights is None or (name == "sssp" and (weights == "uint8" or kind in ("skewed", "parallel")))


@covering("name, kind, directed, weights, half", PROGRAMS, SHAPES, (True, False), WEIGHTS, (0, 1), where=can_be)
def test_every_way_gives_the_answer(name: str, kind: str, directed: bool, weights: str | None, half: int) -> None:
    """Every second way, from the first or the second on."""
    edges = shape(kind, directed=directed, weights=weights)
    graph = in_memory(edges)
    patience = {"pagerank": 100, "sweeps": 500}.get(name, 1000)
    for way in ways(name, patient=edges.vertices < patience)[half::2]:
        trial(name, edges, graph, **way)


SHARES = (2.0, 0.25, 0.03)


@covering("name, kind, directed", PROGRAMS, ("skewed", "star-in", "wide"), (True, False))
def test_any_budget_gives_the_answer(name: str, kind: str, directed: bool, tmp_path: Path) -> None:
    """Edges on disk in many small chunks, in memory as far as the share goes.

    Every program in every way on each kind of graph, with another share on each.
    """
    edges = shape(kind, directed=directed, weights="uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=64 if edges.vertices < 1000 else 1024)
    first = ("skewed", "star-in", "wide").index(kind)
    for at, way in enumerate(TIGHT_WAYS if edges.vertices < 1000 else TIGHT_WAYS[:4], first):
        with memory_for(SHARES[at % len(SHARES)]):
            trial(name, edges, graph, **way)


@covering("encoding, name", ["packed", "plain"], PROGRAMS, strength=1)
def test_stripes_and_encodings_do_not_show(name: str, encoding: str, tmp_path: Path) -> None:
    edges = shape("skewed", weights="float32")
    stripes = [tmp_path / "one", tmp_path / "two"]
    for folder in stripes:
        folder.mkdir()
    graph = on_disk(edges, tmp_path / "graph.h5", encoding=encoding, stripes=stripes)
    for way in TIGHT_WAYS[:4]:
        trial(name, edges, graph, **way)


@covering("directed, name", [True, False], PROGRAMS, strength=1)
def test_out_edges_alone_suffice(name: str, directed: bool, tmp_path: Path) -> None:
    """Nothing but push can run where in-edges were not stored."""
    edges = shape("skewed", directed=directed, weights="uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", both=False)
    for way in ({}, {"direction": "push"}):
        trial(name, edges, graph, **way)


def many_chunks() -> EdgeList:
    """Edges enough for several chunks of the real size, skewed, one vertex with a row over two chunks."""
    ends = skewed(30_000, 500_000, 3)
    hub = np.stack([np.full(300_000, 7), np.random.default_rng(4).integers(0, 30_000, 300_000)])
    both = np.concatenate([ends, hub], axis=1)
    return weighed(EdgeList(30_000, both[0], both[1]), "uint8")


@pytest.mark.parametrize("share", [pytest.param(2.0, marks=pytest.mark.full), 0.25])
def test_real_chunks_and_a_long_row(share: float, tmp_path: Path) -> None:
    """0.8 M edges in chunks of the usual size; one row is longer than a partition of one chunk."""
    edges = many_chunks()
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=1 << 18)
    assert graph.out.chunks == 4
    with memory_for(share):
        for name in PROGRAMS:
            for way in ({}, {"direction": "push"}, {"direction": "pull"}) if share < 1 else ({},):
                trial(name, edges, graph, partition_bytes=1 << 20, **way)


BORDERS = (63, 64, 65, 4095, 4096, 4097, 8192, 8193)
"""Sizes at which words and spans of bitmaps are full or one too short."""


@st.composite
def random_graphs(draw: st.DrawFn) -> EdgeList:
    """Any small multigraph; loops, repeats and isolated vertices included."""
    vertices = draw(st.one_of(st.integers(1, 40), st.sampled_from(BORDERS)))
    ends = st.one_of(st.integers(0, vertices - 1), st.integers(max(0, vertices - 3), vertices - 1))
    pairs = draw(st.lists(st.tuples(ends, ends, st.integers(0, 255)), max_size=120))
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 3).T
    weights = draw(st.sampled_from([None, np.uint8, np.float64]))
    return EdgeList(
        vertices,
        columns[0],
        columns[1],
        None if weights is None else columns[2].astype(weights),
        draw(st.booleans()),
    )


@given(
    edges=random_graphs(),
    name=st.sampled_from(PROGRAMS),
    way=st.integers(0, 100),
    chunk_edges=st.sampled_from([8, 32, 64]),
    share=st.sampled_from([2.0, 0.25, 0.03]),
    partition_bytes=st.integers(1, 600),
)
def test_random_graphs(
    edges: EdgeList, name: str, way: int, chunk_edges: int, share: float, partition_bytes: int
) -> None:
    choices = ways(name)
    options = choices[way % len(choices)]
    trial(name, edges, in_memory(edges), **options)
    with tempfile.TemporaryDirectory() as folder, memory_for(share):
        graph = on_disk(edges, Path(folder) / "graph.h5", chunk_edges=chunk_edges)
        trial(name, edges, graph, partition_bytes=partition_bytes, **options)


@pytest.mark.parametrize("way", [way for way in WAYS if way.get("kernels") != "reference"])
def test_distances_beyond_32_bits(way: Options) -> None:
    """Sums that pass 2^32 are counted in 64 bits, and the largest 32-bit weight is no infinity."""
    count = 6
    weights = np.full(count - 1, 2**32 - 1, dtype=np.uint32)
    edges = EdgeList(count + 1, np.arange(count - 1), np.arange(1, count), weights)
    distance = run(SSSP(source=0), in_memory(edges), **way).fields["distance"]
    assert distance[:count].tolist() == [(2**32 - 1) * hops for hops in range(count)]
    assert distance[count] == np.iinfo(distance.dtype).max


def test_integer_answers_are_equal_to_the_bit() -> None:
    """Dtypes too: whatever the way, the arrays are the same bytes."""
    edges = shape("skewed", weights="uint8")
    graph = in_memory(edges)
    for name in ("bfs", "sssp", "wcc"):
        answers = [run(program_of(name, edges), graph, **way).fields for way in ways(name)]
        for other in answers[1:]:
            for field, values in answers[0].items():
                assert values.dtype == other[field].dtype
                assert values.tobytes() == other[field].tobytes()
