"""Route `compaction`: threads gather the active rows of several partitions into one buffer, which travels as one copy.

Owns the gathering's beginning and end, and the view with an index of its own that comes of it. Where the host does not
hold every edge, the wanted chunks are brought there first. Pushes only: a pull reads few edges of many rows. Refuses
what does not fit a slab; the plan lets that travel whole. HyTGraph's ExpTM-compaction, Subway's idea (EuroSys 2020).
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import numpy as np
from penstock.storage.base.errors import RunError
from penstock.transfer.routes.filter import WantedChunks
from penstock.transfer.staging.compacted_layout import CompactedLayout, compacted_layout
from penstock.transfer.staging.gather import ActiveRows, GatherSource, count_rows
from penstock.transfer.staging.gather_buffers import Gather, GatherBuffer
from penstock.transfer.staging.host_to_device import Link, LinkReader
from penstock.transfer.staging.in_flight import Transfer, blank_record
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.slab_pool import Slab
from penstock.transfer.staging.staged_reader import StagedReader
from penstock.transfer.values.cost import LINK
from penstock.transfer.values.task import Demand, Ints, Task, TaskRecord
from penstock.transfer.values.view import View

name = "compaction"
kinds = frozenset({"emulated", "cuda"})
staged = True


def start(task: Task, demand: Demand, stage: PartitionDirectory) -> Transfer | None:
    """Start gathering; None while there is no slab, no pack, or no host memory for the chunks."""
    assert stage.packs is not None
    assert stage.slabs is not None
    first, last = task.partitions[0], task.partitions[-1]
    numbers = np.flatnonzero(demand.wanted[first : last + 1]) + first
    rows = ActiveRows(demand.marks, stage.adjacency.index().arrays())
    plan = _planned(numbers, demand, stage, rows)
    if plan.words > stage.packs.edges:
        raise RuntimeError(f"partitions {first}..{last} take {plan.words} words, a slab has {stage.packs.edges}")
    sources = _sources(numbers, demand, stage)
    if sources is None:
        return None
    pack = slab = None
    try:
        pack = stage.packs.take(demand.with_weights)
        slab = None if pack is None else stage.slabs.take(demand.with_weights)
    finally:
        if slab is None:
            for source in sources:
                source.release()
            if pack is not None:
                stage.packs.give(pack)
    if pack is None or slab is None:
        return None
    return Compacted((numbers, plan, rows), sources, (pack, slab), blank_record(task, demand, stage), stage)


def _planned(numbers: Ints, demand: Demand, stage: PartitionDirectory, rows: ActiveRows) -> CompactedLayout:
    if not demand.whole:
        return compacted_layout(demand.active_vertices[numbers], demand.active_edges[numbers])
    counts = np.array([count_rows(rows, stage.table[int(number)]) for number in numbers], dtype=np.int64)
    return compacted_layout(*counts.reshape(-1, 2).T)


def _sources(numbers: Ints, demand: Demand, stage: PartitionDirectory) -> list[Transfer] | None:
    """The host's parcels of these partitions, none where all edges are there; None while it has no room for them."""
    if isinstance(stage.reader, LinkReader):
        return []
    assert isinstance(stage.reader, StagedReader)
    assert stage.source is not None
    found: list[Transfer] = []
    for number in numbers.tolist():
        record = TaskRecord("filter", stage.direction, (number,))
        wanted = WantedChunks(number, number, stage.wanted(demand, number, number), demand.with_weights, record)
        parcel = stage.reader.shelf.bring(wanted, stage.source)
        if parcel is None:
            for other in found:
                other.release()
            return None
        found.append(parcel)
    return found


class Compacted(Transfer):
    """A task being gathered: host parcels, then threads, then one copy, each as soon as the one before is done."""

    def __init__(
        self,
        what: tuple[Ints, CompactedLayout, ActiveRows],
        sources: list[Transfer],
        room: tuple[GatherBuffer, Slab],
        record: TaskRecord,
        stage: PartitionDirectory,
    ) -> None:
        self._numbers, self._plan, self._rows = what
        self._sources = sources
        self._pack, slab = room
        self._record, self._stage = record, stage
        self._gathers: list[Gather] = []
        self._copied: Any = None
        assert isinstance(stage.reader, Link)
        self._free: Any = stage.reader.after()
        super().__init__(self._shape(slab))
        assert stage.slabs is not None
        self.holds(stage.slabs, slab)
        self._given: bool = False
        self._advance()

    def _shape(self, slab: Slab) -> View:
        """The view that will be."""
        table, plan = self._stage.table, self._plan
        offsets, rows, neighbors = plan.slices(slab.neighbors)
        weights = None if slab.weights is None else slab.weights[: plan.edges]
        bounds = int(table.v0[self._numbers[0]]), int(table.v1[self._numbers[-1]])
        return View(
            0, plan.edges, *bounds, neighbors, weights, self._record,
            rows=rows, offsets=offsets,
        )  # fmt: skip

    def ready(self) -> bool:
        """Return whether `view` would not wait for the disk or the threads; starts what may follow on them."""
        self._advance()
        over = bool(self._gathers) and all(gather.done() for gather in self._gathers)
        if over:
            with suppress(RunError):  # a disk that failed fails again in `view`
                self._send()
        return over

    def view(self) -> View:
        """Wait for the gathering, start the copy, and return the view; kernels are ordered behind the copy."""
        began = time.perf_counter()
        self._send()
        self._record.wait_seconds = time.perf_counter() - began
        self._stage.device.follow(self._copied)
        return self._view

    def _send(self) -> None:
        """Once: wait for the disk and the threads, let the host's memory go, and start the copy."""
        if self._copied is not None:
            return
        for theirs in [source.view().record for source in self._sources]:
            self._record.bytes_disk += theirs.bytes_disk
            self._record.chunks_read += theirs.chunks_read
            self._record.hits += theirs.hits
            self._record.disk_seconds += theirs.disk_seconds
            self._record.decode_seconds += theirs.decode_seconds
        self._advance()
        self._record.gather_seconds = sum(gather.result() for gather in self._gathers)
        for source in self._sources:
            source.release()
        self._sources.clear()
        self._copy()

    def _copy(self) -> None:
        view, plan, pack = self._view, self._plan, self._pack
        reader = self._stage.reader
        assert isinstance(reader, LinkReader | StagedReader)
        assert self._slab is not None
        pairs = [(self._slab[1].neighbors[: plan.words], pack.words[: plan.words])]
        if pack.weights is not None and view.weights is not None:
            pairs.append((view.weights, pack.weights[: plan.edges]))
        size, (began, self._copied) = reader.carry(pairs, follow=False, free=self._free)
        self._record.bytes_link += size
        self._record.spans += ((LINK, began, self._copied),)

    def _advance(self) -> None:
        """Start the threads once every host parcel is there."""
        if self._gathers or not all(source.ready() for source in self._sources):
            return
        packs = self._stage.packs
        assert packs is not None
        pack, plan = self._pack, self._plan
        weights = None if pack.weights is None else pack.weights[: plan.edges]
        target = (*plan.slices(pack.words), weights)
        for at, number in enumerate(self._numbers.tolist()):
            part = self._stage.table[number]
            work = packs.gathering(self._rows, part, self._edges(at, part), plan.place(at), target)
            self._gathers.append(packs.submit(work))

    def _edges(self, at: int, part: Any) -> GatherSource:
        """Where the edges of the task's partition `at` lie in host memory."""
        if self._sources:
            return GatherSource(*self._sources[at].arrays, part.e0)
        reader = self._stage.reader
        assert isinstance(reader, LinkReader)
        neighbors, weights = reader.host_arrays(self._stage.adjacency, self._pack.weights is not None)
        return GatherSource(neighbors, weights, 0)

    def release(self) -> None:
        """Wait for the threads, and give everything back; more than once does no harm."""
        if self._given:
            return
        self._given = True
        packs = self._stage.packs
        assert packs is not None
        for gather in self._gathers:
            if not gather.cancel():
                gather.exception()
        for source in self._sources:
            source.release()
        packs.give(self._pack, self._copied)
        super().release()
