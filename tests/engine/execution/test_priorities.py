"""The width of buckets as a table: narrow where edges are many, wide where they are few, or as it was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Session
from penstock.engine.execution import priorities
from penstock.engine.execution.priorities import BucketWidth, bucket_width
from penstock.engine.programs.sssp import SSSP
from penstock.storage.format.graph import Graph
from support.graphs import on_disk, skewed, weighed
from support.oracles import EdgeList
from support.small_host import CHUNK, small_memory

EDGES = 1 << 20


def widths(bucket: BucketWidth, works: list[int]) -> list[float]:
    """The width after buckets with so many edges."""
    found = []
    for work in works:
        bucket.work += work
        bucket.limit_above(0.0)
        found.append(bucket.width)
    return found


def test_a_chosen_width_stays_and_limits_are_its_multiples() -> None:
    bucket = bucket_width(4.0, 0.0, EDGES, linked=True)
    assert (bucket.width, bucket.limit_above(0.0), bucket.limit_above(46.0)) == (4.0, 4.0, 48.0)
    assert widths(bucket, [EDGES, EDGES, 1]) == [4.0, 4.0, 4.0]


def test_without_buckets_everything_is_due() -> None:
    assert bucket_width(0.0, 0.0, EDGES, linked=False).limit_above(3.0) == np.inf


@pytest.mark.parametrize(
    ("usual", "linked", "widest", "first"),
    [(32.0, False, 32.0, 1.0), (32.0, True, 32.0, 1.0), (256.0, True, 32.0, 32.0), (1024.0, True, 128.0, 128.0)],
    ids=["dense", "dense, linked", "grid, linked", "road, linked"],
)
def test_sparse_graphs_begin_with_the_widest(usual: float, linked: bool, widest: float, first: float) -> None:
    bucket = bucket_width(usual, 1.0, EDGES, linked)
    assert (bucket.widest, bucket.narrowest, bucket.width) == (widest, 1.0, first)


def test_it_widens_where_work_shrinks_and_stays_narrow_where_it_grows() -> None:
    bucket = bucket_width(32.0, 1.0, EDGES, linked=False)
    assert widths(bucket, [1, 30, 30_000, 300_000, 450_000]) == [2.0, 4.0, 1.0, 1.0, 1.0]
    assert widths(bucket, [100_000, 40_000, 20_000, 10_000, 5_000, 2_000]) == [2.0, 4.0, 8.0, 16.0, 32.0, 32.0]


def test_a_limit_moved_elsewhere_is_nothing_to_learn_from() -> None:
    bucket = bucket_width(32.0, 1.0, EDGES, linked=False)
    bucket.work = EDGES
    bucket.forget()
    assert widths(bucket, [0]) == [2.0]


def test_an_empty_bucket_is_nothing_to_learn_from() -> None:
    """What held nothing, because a bound was too low, leaves the width and what is known of the bucket before."""
    bucket = bucket_width(32.0, 1.0, EDGES, linked=False)
    widths(bucket, [1, 30])
    before, known = bucket.width, bucket.density
    assert bucket.limit_above(1e6, empty=True) == 1e6 + before
    assert (bucket.width, bucket.density) == (before, known)
    assert bucket.limit_above(1e6) == 1e6 + 2 * before


def test_limits_are_above_the_lowest_priority_even_where_a_width_is_too_small_for_it() -> None:
    bucket = bucket_width(1e-9, 1e-9, EDGES, linked=False)
    assert bucket.limit_above(1e12) > 1e12


@pytest.mark.parametrize(("delta", "fixed"), [(None, False), (5.0, True)])
def test_sssp_leaves_the_width_to_the_run_unless_it_was_given(delta: float | None, fixed: bool) -> None:
    graph = Graph.from_arrays(np.array([0, 1, 2, 2]), np.array([1, 2], np.uint32), np.array([2, 60], np.uint8))
    program = SSSP(0, delta=delta)
    program.start(graph, {"distance": np.zeros(3, np.uint32)})
    assert program.narrowest_bucket == (0.0 if fixed else 2.0)


@pytest.mark.parametrize(
    ("options", "narrow"),
    [({"device": "cpu"}, True), ({}, False), ({"device": "emulated", "device_edge_memory": 2000}, True)],
    ids=["in memory", "from disk, on cores", "over a link"],
)
def test_iterations_from_disk_keep_wide_buckets(
    options: dict[str, Any], narrow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On cores; each reads most chunks, however few edges it relaxes."""
    found: list[float] = []
    monkeypatch.setattr(priorities, "bucket_width", lambda *given: found.append(given[1]) or bucket_width(*given))
    edges = weighed(EdgeList(200, *skewed(200, 2000, 5), None, False), "uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=CHUNK)
    if not options:
        small_memory(monkeypatch, CHUNK, 2, 3)
    with Session(graph, **{"device": "cpu", "partition_bytes": 4 * CHUNK} | options) as session:
        session.run(SSSP(3))
    assert (found[-1] > 0) == narrow
