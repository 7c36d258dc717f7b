"""Route `filter`: partitions are brought whole, as far as their wanted chunks go.

Owns the reading of missing chunks into the place that the cache keeps for the partition, or else into a slab.
On the host a decoded partition needs no further copy. Refuses more partitions than a slab holds. HyTGraph's
ExpTM-filter; reading only the chunks that hold wanted edges is ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.flight import Flight
from penstock.transfer.parcel import Parcel, blank_record
from penstock.transfer.stage import Stage
from penstock.transfer.task import Demand, Ints, Task
from penstock.transfer.view import View

Arrays = tuple[NDArray[Any], NDArray[Any] | None]

name = "filter"
kinds = frozenset({"host", "emulated", "cuda"})


def start(task: Task, demand: Demand, stage: Stage) -> Parcel | None:
    """Start reading what a task lacks; None when it needs a slab and none is free."""
    first, last = task.partitions[0], task.partitions[-1]
    if stage.kept(first, last):
        return _into_cache(task, demand, stage)
    return _into_slab(task, demand, stage)


def _into_cache(task: Task, demand: Demand, stage: Stage) -> Parcel:
    first, last, with_weights = task.partitions[0], task.partitions[-1], demand.with_weights
    view = _view(task, demand, stage, stage.placed(first, last + 1 - first, with_weights))
    chunks = stage.wanted(demand, first, last)
    absent = stage.missing(chunks, with_weights)
    joined = _flying(stage, first, last, with_weights)
    for flight in joined:
        absent = np.setdiff1d(absent, flight.chunks)
    view.record.hits = len(chunks) - len(absent)
    own = _fetch(stage, absent, view) if len(absent) else None
    if own is not None:
        assert stage.cache is not None
        own.into(stage.cache, stage.key, with_weights, stage.entries(first, last))
    for flight in joined:
        flight.join()
    return Parcel(view, own, joined)


def _flying(stage: Stage, first: int, last: int, with_weights: bool) -> tuple[Flight, ...]:
    """Return the flights of other tasks into these partitions.

    One without weights is waited for here when weights are wanted: its chunks are then decoded again.
    """
    assert stage.cache is not None
    found: dict[int, Flight] = {}
    for entry in stage.entries(first, last):
        for flight in list(stage.cache.flights.get(entry, ())):
            if with_weights and not flight.with_weights:
                flight.land()
            else:
                found[id(flight)] = flight
    return tuple(found.values())


def _into_slab(task: Task, demand: Demand, stage: Stage) -> Parcel | None:
    first, last = task.partitions[0], task.partitions[-1]
    edges = int(stage.table.e1[last] - stage.table.e0[first])
    if stage.slabs is None or edges > stage.slabs.edges:
        room = 0 if stage.slabs is None else stage.slabs.edges
        raise RuntimeError(f"partitions {first}..{last} hold {edges} edges, a slab {room}")
    slab = stage.slabs.take(demand.with_weights)
    if slab is None:
        return None
    try:
        weights = None if slab.weights is None else slab.weights[:edges]
        view = _view(task, demand, stage, (slab.neighbors[:edges], weights))
        parcel = Parcel(view, _fetch(stage, stage.wanted(demand, first, last), view))
    except BaseException:
        stage.slabs.give(slab)
        raise
    parcel.holds(stage.slabs, slab)
    return parcel


def _fetch(stage: Stage, chunks: Ints, view: View) -> Flight:
    assert stage.reader is not None
    ticket = stage.reader.fetch(stage.adjacency, chunks, view.e0, view.neighbors, view.weights)
    return Flight(ticket, chunks)


def _view(task: Task, demand: Demand, stage: Stage, arrays: Arrays) -> View:
    first, last, table = task.partitions[0], task.partitions[-1], stage.table
    edges = int(table.e0[first]), int(table.e1[last])
    rows = int(table.v0[first]), int(table.v1[last])
    return View(stage.layout, stage.direction, *edges, *rows, *arrays, blank_record(task, demand, stage))
