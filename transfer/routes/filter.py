"""Route `filter`: partitions are brought whole, as far as their wanted chunks go.

Owns the bringing of missing chunks into the place that the cache keeps for the partition, or else into a slab: from
disk to a host, which needs no further copy; over a link to a device with memory of its own. Refuses more partitions
than a slab holds. HyTGraph's ExpTM-filter; reading only the chunks that hold wanted edges is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.staging.fetch import PendingFetch
from penstock.transfer.staging.in_flight import Transfer, blank_record
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.values.task import Demand, Ints, Task, TaskRecord
from penstock.transfer.values.view import View

Arrays = tuple[NDArray[Any], NDArray[Any] | None]

name = "filter"
kinds = frozenset({"host", "emulated", "cuda"})
staged = True


@dataclass(frozen=True, slots=True)
class WantedChunks:
    """What to bring: `chunks` of partitions first..last (inclusive); the record to fill."""

    first: int
    last: int
    chunks: Ints
    with_weights: bool
    record: TaskRecord


def start(task: Task, demand: Demand, stage: PartitionDirectory) -> Transfer | None:
    """Start bringing what a task lacks; None when it needs a slab and none is free."""
    first, last = task.partitions[0], task.partitions[-1]
    chunks = stage.wanted(demand, first, last)
    return bring(WantedChunks(first, last, chunks, demand.with_weights, blank_record(task, demand, stage)), stage)


def bring(wanted: WantedChunks, stage: PartitionDirectory) -> Transfer | None:
    """Start bringing chunks to where the stage's device reads them; None when that needs a slab and none is free."""
    if stage.kept(wanted.first, wanted.last):
        return _into_cache(wanted, stage)
    return _into_slab(wanted, stage)


def _into_cache(wanted: WantedChunks, stage: PartitionDirectory) -> Transfer | None:
    first, last, with_weights = wanted.first, wanted.last, wanted.with_weights
    view = _view(wanted, stage, stage.placed(first, last + 1 - first, with_weights))
    absent = stage.missing(wanted.chunks, with_weights)
    joined = _flying(stage, first, last, with_weights)
    for flight in joined:
        absent = np.setdiff1d(absent, flight.chunks)
    view.record.hits = len(wanted.chunks) - len(absent)
    own = None
    if len(absent):
        own = _fetch(stage, absent, view)
        if own is None:
            return None
        assert stage.cache is not None
        own.into(stage.cache, stage.key, with_weights, stage.entries(first, last))
    for flight in joined:
        flight.join()
    return Transfer(view, own, joined)


def _flying(stage: PartitionDirectory, first: int, last: int, with_weights: bool) -> tuple[PendingFetch, ...]:
    """Return the flights of other tasks into these partitions.

    One without weights is waited for here when weights are wanted: its chunks are then decoded again.
    """
    assert stage.cache is not None
    found: dict[int, PendingFetch] = {}
    for entry in stage.entries(first, last):
        for flight in list(stage.cache.flights.get(entry, ())):
            if with_weights and not flight.with_weights:
                flight.land()
            else:
                found[id(flight)] = flight
    return tuple(found.values())


def _into_slab(wanted: WantedChunks, stage: PartitionDirectory) -> Transfer | None:
    first, last = wanted.first, wanted.last
    edges = int(stage.table.e1[last] - stage.table.e0[first])
    if stage.slabs is None or edges > stage.slabs.edges:
        room = 0 if stage.slabs is None else stage.slabs.edges
        raise RuntimeError(f"partitions {first}..{last} hold {edges} edges, a slab {room}")
    slab = stage.slabs.take(wanted.with_weights)
    if slab is None:
        return None
    try:
        weights = None if slab.weights is None else slab.weights[:edges]
        view = _view(wanted, stage, (slab.neighbors[:edges], weights))
        flight = _fetch(stage, wanted.chunks, view)
    except BaseException:
        stage.slabs.give(slab)
        raise
    if flight is None:
        stage.slabs.give(slab)
        return None
    parcel = Transfer(view, flight)
    parcel.holds(stage.slabs, slab)
    return parcel


def _fetch(stage: PartitionDirectory, chunks: Ints, view: View) -> PendingFetch | None:
    assert stage.reader is not None
    ticket = stage.reader.fetch(stage.adjacency, chunks, view.e0, view.neighbors, view.weights)
    return None if ticket is None else PendingFetch(ticket, chunks)


def _view(wanted: WantedChunks, stage: PartitionDirectory, arrays: Arrays) -> View:
    table = stage.table
    edges = int(table.e0[wanted.first]), int(table.e1[wanted.last])
    rows = int(table.v0[wanted.first]), int(table.v1[wanted.last])
    return View(*edges, *rows, *arrays, wanted.record)
