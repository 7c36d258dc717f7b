"""Route `zero-copy`: kernels read the active rows in page-locked host memory, line by line, over the link.

Owns the view over host memory as the device sees it. Nothing is copied and no slab is held; what crosses the link are
the 128-byte lines of active rows, in ascending order because the frontier is. EMOGI's idea (Min et al., VLDB 2020).
Where the host does not hold every edge, the wanted chunks are brought there first, and stay until the kernels are done.
"""

from __future__ import annotations

from typing import Any

from penstock.transfer.link import LinkReader
from penstock.transfer.parcel import Parcel, blank_record
from penstock.transfer.relay import InPlace, Relay
from penstock.transfer.routes.filter import Wanted
from penstock.transfer.stage import Stage
from penstock.transfer.task import Demand, Task, TaskRecord
from penstock.transfer.view import View

name = "zero-copy"
kinds = frozenset({"emulated", "cuda"})
LINE_BYTES = 128


def start(task: Task, demand: Demand, stage: Stage) -> Parcel | None:
    """Return the parcel of consecutive partitions that are read in place; None while the host has no slab for them."""
    first, last, table = task.partitions[0], task.partitions[-1], stage.table
    e0, e1 = int(table.e0[first]), int(table.e1[last])
    rows = int(table.v0[first]), int(table.v1[last])
    record = blank_record(task, demand, stage)
    record.bytes_link = record.lines * LINE_BYTES

    def view(neighbors: Any, weights: Any) -> View:
        return View(stage.layout, stage.direction, e0, e1, *rows, neighbors, weights, record)

    if isinstance(stage.reader, LinkReader):
        neighbors, weights = stage.reader.in_place(stage.adjacency, demand.with_weights)
        return Parcel(view(neighbors[e0:e1], None if weights is None else weights[e0:e1]))
    if not isinstance(stage.reader, Relay) or stage.source is None:
        raise RuntimeError("zero-copy reads host memory over a link, and this pipeline has none")
    chunks = stage.wanted(demand, first, last)
    theirs = TaskRecord("filter", stage.direction, task.partitions)
    host = stage.reader.shelf.bring(Wanted(first, last, chunks, demand.with_weights, theirs), stage.source)
    if host is None:
        return None
    mapped = [None if array is None else stage.device.mapped(array) for array in host.arrays]
    return InPlace(stage.reader.shelf, stage.device, host, view(*mapped))
