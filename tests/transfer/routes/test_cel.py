"""Bundles: marked rows go into as few packs as hold them, whatever their number, and arrive as they are."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.read.partition_cache import PartitionCache
from penstock.transfer.devices.emulated import EmulatedDevice
from penstock.transfer.routes import cel
from penstock.transfer.staging.gather import ActiveRows, count_rows
from penstock.transfer.staging.gather_buffers import GatherBuffers
from penstock.transfer.staging.link_reader import LinkReader
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.slab_pool import SlabPool
from penstock.transfer.staging.staging import Staging
from penstock.transfer.values.cost import Cost
from penstock.transfer.values.options import TransferOptions
from penstock.transfer.values.task import Demand, Task
from support.graphs import in_memory, skewed, weighed
from support.oracles import EdgeList

PARTITION, CHUNK = 64, 32
PACKS = 2


def directory_of(room: int) -> tuple[PartitionDirectory, EmulatedDevice]:
    """A graph with a row that is longer than a partition, behind a link; packs and slabs of `room` items."""
    hub = np.stack([np.full(150, 11), np.arange(150) % 80])
    edges = weighed(EdgeList(80, *np.concatenate([skewed(80, 350, 3), hub], axis=1)), "uint8")
    graph, device = in_memory(edges), EmulatedDevice()
    adjacency = graph.out
    dtypes = graph.vertex_dtype, graph.weight_dtype
    source = LinkReader(device, {"out": adjacency.arrays})
    staging = Staging(
        device, source, PartitionCache([adjacency], PARTITION, room=0), TransferOptions(PARTITION), dtypes
    )
    staging.slabs, staging.packs = SlabPool(device, PACKS, room, *dtypes), GatherBuffers(device, PACKS, room, dtypes)
    return PartitionDirectory(_Chunked(adjacency), "out", staging), device


class _Chunked:
    """An adjacency with smaller chunks."""

    chunk_edges = CHUNK

    def __init__(self, adjacency: Any) -> None:
        self._adjacency = adjacency

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adjacency, name)


def demand_of(directory: PartitionDirectory, chosen: Any) -> Demand:
    words = np.zeros(2, np.uint64)
    np.bitwise_or.at(words, chosen >> 6, np.uint64(1) << (chosen & 63).astype(np.uint64))
    rows = ActiveRows(words, directory.adjacency.index().arrays())
    counts = np.array([count_rows(rows, directory.table[k]) for k in range(len(directory.table))], np.int64).T
    none = np.zeros(len(directory.table), np.int64)
    return Demand("out", *counts, none, none.astype(float), None, with_weights=True, marks=words)


@given(room=st.integers(4, 400), seed=st.integers(0, 99), share=st.sampled_from([0.02, 0.3, 1.0]))
def test_every_marked_row_travels_once(room: int, seed: int, share: float) -> None:
    directory, device = directory_of(room)
    chosen = np.flatnonzero(np.random.default_rng(seed).random(80) < share)
    demand = demand_of(directory, chosen)
    found = cel.bundles(demand, directory)
    assert all(bundle.plan.words <= room for bundle in found)
    for one, other in itertools.pairwise(found):
        first = other.plan.place(0)
        assert one.plan.words + first.a1 + 2 * first.r1 > room
    demand.marks[:] = 0  # somebody else writes there now
    arrived: list[tuple[int, int, int]] = []
    for bundle in found:
        transfer = cel.start(bundle, demand, directory)
        view = transfer.view()
        assert view.record.edges == view.offsets[-1] == view.e1
        for i, row in enumerate(view.rows.tolist()):
            span = slice(int(view.offsets[i]), int(view.offsets[i + 1]))
            arrived += [(row, *pair) for pair in zip(view.neighbors[span], view.weights[span], strict=True)]
        transfer.release()
        transfer.release()
    neighbors, weights = directory.adjacency.arrays
    starts = directory.adjacency.index().starts(0, 81)
    wanted = [(v, neighbors[e], weights[e]) for v in chosen.tolist() for e in range(starts[v], starts[v + 1])]
    assert arrived == wanted
    assert device.bytes_in == sum(bundle.plan.words * 4 + bundle.plan.edges for bundle in found)
    assert directory.staging.slabs.free == PACKS


def test_waits_for_room_and_takes_none_in_vain() -> None:
    directory, _ = directory_of(200)
    demand = demand_of(directory, np.arange(80))
    found = cel.bundles(demand, directory)
    assert len(found) > PACKS
    transfers = [cel.start(bundle, demand, directory) for bundle in found[: PACKS + 1]]
    assert transfers[PACKS] is None
    transfers[0].release()
    assert cel.start(found[PACKS], demand, directory) is not None


def test_a_plan_has_only_carriers() -> None:
    directory, _ = directory_of(200)
    with pytest.raises(RuntimeError, match="carriers go by filter"):
        cel.start(Task("cel", (0,), Cost()), demand_of(directory, np.arange(3)), directory)
