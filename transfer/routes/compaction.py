"""Route `compaction`: threads gather the active rows of several partitions into one buffer, which travels as one copy.

The view has an index of its own. Where the host does not hold every edge, the wanted chunks are brought there first.
Pushes only: a pull reads few edges of many rows. Refuses what does not fit a slab; the plan lets that travel whole.
HyTGraph's ExpTM-compaction, Subway's idea (EuroSys 2020).
"""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np
from penstock.storage.base.errors import RunError
from penstock.transfer.devices.device import Event
from penstock.transfer.staging.gather import ActiveRows, CompactedLayout, GatherSource, compacted_layout, count_rows
from penstock.transfer.staging.gather_buffers import Gather, GatherBuffer, view_of
from penstock.transfer.staging.in_flight import Transfer, all_or_none
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.slab_pool import Slab
from penstock.transfer.values.task import Demand, Ints, Task, TaskRecord
from penstock.transfer.values.view import View

name = "compaction"


def start(task: Task, demand: Demand, directory: PartitionDirectory) -> Transfer | None:
    """Start gathering; None while there is no slab, no pack, or no host memory for the chunks."""
    staging = directory.staging
    first, last = task.partitions[0], task.partitions[-1]
    numbers = np.flatnonzero(demand.wanted[first : last + 1]) + first
    rows = ActiveRows(demand.marks, directory.adjacency.index().arrays())
    if demand.whole:
        counts = np.array([count_rows(rows, directory.table[int(number)]) for number in numbers], dtype=np.int64)
        plan = compacted_layout(*counts.reshape(-1, 2).T)
    else:
        plan = compacted_layout(demand.active_vertices[numbers], demand.active_edges[numbers])
    if plan.words > staging.packs.edges:
        raise RuntimeError(f"partitions {first}..{last} take {plan.words} words, a slab has {staging.packs.edges}")
    record = directory.record(task, demand)
    held = _hold(numbers, demand, directory, record)
    if held is None:
        return None
    room = None
    try:
        room = staging.take_room(demand.with_weights)
    finally:
        if room is None:
            for host in held:
                host.release()
    return None if room is None else Compacted((numbers, plan, rows), held, room, record, directory)


def _hold(numbers: Ints, demand: Demand, directory: PartitionDirectory, record: TaskRecord) -> list[Transfer] | None:
    """Start bringing these partitions to host memory, unless it holds them; None while it has no room for all."""
    link, weighted = directory.staging.link, demand.with_weights
    if link.pinned(directory.adjacency, weighted) is not None:
        return []
    wanted = ((number, number, directory.wanted(demand, number, number)) for number in numbers.tolist())
    return all_or_none(link.hold(directory.request(*part, weighted, record)) for part in wanted)


class Compacted(Transfer):
    """A task being gathered: host memory, then threads, then one copy, each as soon as the one before is done."""

    def __init__(
        self,
        what: tuple[Ints, CompactedLayout, ActiveRows],
        held: list[Transfer],
        room: tuple[GatherBuffer, Slab],
        record: TaskRecord,
        directory: PartitionDirectory,
    ) -> None:
        self._numbers, self._plan, self._rows = what
        self._held = held
        self._pack, self._room = room
        self._record, self._directory, self._link = record, directory, directory.staging.link
        self._gathers: list[Gather] = []
        self._copied: Event = None
        self._targets_free = self._link.after()
        table = directory.table
        bounds = int(table.v0[self._numbers[0]]), int(table.v1[self._numbers[-1]])
        super().__init__(view_of(self._plan, self._room, bounds, record), slab=self._room, advances=True)
        self._advance()

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
        self._directory.staging.device.follow(self._copied)
        return self._view

    def _send(self) -> None:
        """Once: wait for the disk and the threads, let the host's memory go, and start the copy."""
        if self._copied is not None:
            return
        for host in self._held:
            host.view()
        self._advance()
        self._record.gather_seconds = sum(gather.result() for gather in self._gathers)
        for host in self._held:
            host.release()
        self._held.clear()
        copies = self._pack.copies(self._plan, self._room)
        self._copied = self._link.copy_async(self._record, copies, self._targets_free)

    def _advance(self) -> None:
        """Start the threads once the edges of every partition are in host memory."""
        if self._gathers or not all(host.ready() for host in self._held):
            return
        packs, pack, plan = self._directory.staging.packs, self._pack, self._plan
        target = pack.target(plan)
        pinned = self._link.pinned(self._directory.adjacency, pack.weights is not None)
        for at, number in enumerate(self._numbers.tolist()):
            part = self._directory.table[number]
            source = GatherSource(*self._held[at].arrays, part.e0) if pinned is None else GatherSource(*pinned, 0)
            self._gathers.append(packs.submit(packs.gathering(self._rows, part, source, plan.place(at), target)))

    def release(self) -> None:
        """Wait for the threads, and give everything back; more than once does no harm."""
        if self._released:
            return
        for gather in self._gathers:
            if not gather.cancel():
                gather.exception()
        for host in self._held:
            host.release()
        self._directory.staging.packs.give(self._pack, self._copied)
        super().release()
