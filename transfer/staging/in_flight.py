"""A parcel: one task under way, from its start until the consumer has done with its view.

Owns what the task holds (a slab, flights) and returns it exactly once, whatever happened. Refuses nothing.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from penstock.transfer.staging.fetch import PendingFetch, TransferStats
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.slab_pool import Slab, Slabs
from penstock.transfer.values.cost import LINK
from penstock.transfer.values.task import Demand, Task, TaskRecord
from penstock.transfer.values.view import View


class Transfer:
    """A view whose edges may still be on their way.

    `own`: the flight that this task started and accounts for; `joined`: flights of other tasks that it needs.
    """

    def __init__(self, view: View, own: PendingFetch | None = None, joined: tuple[PendingFetch, ...] = ()) -> None:
        self._view = view
        self._own = own
        self._flights = [*joined, own] if own is not None else list(joined)
        self._slab: tuple[Slabs, Slab] | None = None

    @property
    def arrays(self) -> tuple[Any, Any]:
        """Where the edges will be: the view's neighbors and weights; not to be read before `view`."""
        return self._view.neighbors, self._view.weights

    @property
    def reads(self) -> bool:
        """Whether it waits for the disk."""
        return bool(self._flights)

    def holds(self, slabs: Slabs, slab: Slab) -> None:
        """Take charge of a slab."""
        self._slab = (slabs, slab)

    def ready(self) -> bool:
        """Return whether `view` would not wait; asking starts the copy that has to follow a read that is over."""
        return all(flight.done() for flight in self._flights)

    def view(self) -> View:
        """Wait for the edges, complete the record, and return the view; raises what went wrong."""
        record = self._view.record
        begin = time.perf_counter() if self._flights else 0.0
        for flight in self._flights:
            arrived = flight.land()
            if flight is self._own:
                if isinstance(arrived, TransferStats):
                    record.bytes_link += arrived.bytes
                    record.bytes_disk += arrived.bytes_disk
                    record.chunks_read += arrived.chunks
                    record.hits += arrived.hits
                    record.spans += ((LINK, *arrived.span),)
                else:
                    record.bytes_disk += arrived.bytes
                    record.chunks_read += len(flight.chunks)
                record.disk_seconds += arrived.read_seconds
                record.decode_seconds += arrived.decode_seconds
        if self._flights:
            record.wait_seconds = time.perf_counter() - begin
        return self._view

    def release(self) -> None:
        """Give everything back, cancelling what has not arrived; more than once does no harm."""
        flights, self._flights = self._flights, []
        slab, self._slab = self._slab, None
        try:
            for flight in flights:
                flight.drop()
        finally:
            if slab is not None:
                slab[0].give(slab[1])


def blank_record(task: Task, demand: Demand, stage: PartitionDirectory) -> TaskRecord:
    """Return the record of a task that starts: what it is about, nothing done yet."""
    first, last = task.partitions[0], task.partitions[-1]
    edges = stage.table.lengths if demand.whole else demand.active_edges
    part = slice(first, last + 1)
    record = TaskRecord(task.route, demand.direction, task.partitions, predicted=task.cost)
    record.edges, record.lines = int(edges[part].sum()), int(demand.lines[part].sum())
    record.wanted = int(np.count_nonzero(edges[part]))
    record.rows = record.wanted if demand.whole else int(demand.active_vertices[part].sum())
    return record
