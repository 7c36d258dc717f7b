"""Route `zero-copy`: kernels read the active rows in page-locked host memory, line by line, over the link.

Owns the view over host memory as the device sees it. Nothing is copied and no slab is held; what crosses the link are
the 128-byte lines of active rows, in ascending order because the frontier is. EMOGI's idea (Min et al., VLDB 2020).
Where the host does not hold every edge, the wanted chunks are brought there first, and stay until the kernels are done.
"""

from __future__ import annotations

from typing import Any

from penstock.transfer.devices.device import Device
from penstock.transfer.routes.filter import WantedChunks
from penstock.transfer.staging.host_to_device import LinkReader
from penstock.transfer.staging.in_flight import Transfer, blank_record
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.staged_reader import StagedInPlace, StagedReader
from penstock.transfer.values.cost import LINK
from penstock.transfer.values.task import Demand, Task, TaskRecord
from penstock.transfer.values.view import View

name = "zero-copy"
kinds = frozenset({"emulated", "cuda"})
staged = False
LINE_BYTES = 128


def start(task: Task, demand: Demand, stage: PartitionDirectory) -> Transfer | None:
    """Return the parcel of consecutive partitions that are read in place; None while the host has no slab for them."""
    first, last, table = task.partitions[0], task.partitions[-1], stage.table
    e0, e1 = int(table.e0[first]), int(table.e1[last])
    rows = int(table.v0[first]), int(table.v1[last])
    record = blank_record(task, demand, stage)
    record.bytes_link = record.lines * LINE_BYTES

    def view(neighbors: Any, weights: Any) -> View:
        return View(e0, e1, *rows, neighbors, weights, record)

    if isinstance(stage.reader, LinkReader):
        neighbors, weights = stage.reader.in_place(stage.adjacency, demand.with_weights)
        shown = view(neighbors[e0:e1], None if weights is None else weights[e0:e1])
        return OverLink(Transfer(shown), stage.device)
    if not isinstance(stage.reader, StagedReader) or stage.source is None:
        raise RuntimeError("zero-copy reads host memory over a link, and this pipeline has none")
    chunks = stage.wanted(demand, first, last)
    theirs = TaskRecord("filter", stage.direction, task.partitions)
    host = stage.reader.shelf.bring(WantedChunks(first, last, chunks, demand.with_weights, theirs), stage.source)
    if host is None:
        return None
    mapped = [None if array is None else stage.device.mapped(array) for array in host.arrays]
    return OverLink(StagedInPlace(stage.reader.shelf, stage.device, host, view(*mapped)), stage.device)


class OverLink(Transfer):
    """A parcel whose view kernels read over the link: one that is modelled is busy from its handing over on.

    A kernel and its reading take as long as the longer of the two; the parcel is released when both are over.
    """

    def __init__(self, parcel: Transfer, device: Device) -> None:
        self._parcel, self._device = parcel, device
        self._until: Any = None

    def ready(self) -> bool:
        """Return whether `view` would not wait."""
        return self._parcel.ready()

    def view(self) -> View:
        """Wait for the host's chunks, and let the link begin."""
        view = self._parcel.view()
        span = self._device.reading(view.record.bytes_link)
        if span is not None:
            self._until = span[1]
            view.record.spans += ((LINK, *span),)
        return view

    def release(self) -> None:
        """Give everything back, once the link is through; more than once does no harm."""
        until, self._until = self._until, None
        if until is not None:
            self._device.wait(until)
        self._parcel.release()
