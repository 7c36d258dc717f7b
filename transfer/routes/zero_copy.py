"""Route `zero-copy`: kernels read the active rows in page-locked host memory, line by line, over the link.

Owns the view over host memory as the device sees it. Nothing is copied and no slab is held; what crosses the link are
the 128-byte lines of active rows, in ascending order because the frontier is. EMOGI's idea (Min et al., VLDB 2020).
"""

from __future__ import annotations

from penstock.transfer.link import LinkReader
from penstock.transfer.parcel import Parcel, blank_record
from penstock.transfer.stage import Stage
from penstock.transfer.task import Demand, Task
from penstock.transfer.view import View

name = "zero-copy"
kinds = frozenset({"emulated", "cuda"})
LINE_BYTES = 128


def start(task: Task, demand: Demand, stage: Stage) -> Parcel:
    """Return the parcel of consecutive partitions that are read in place."""
    if not isinstance(stage.reader, LinkReader):
        raise RuntimeError("zero-copy reads host memory over a link, and this pipeline has none")
    first, last, table = task.partitions[0], task.partitions[-1], stage.table
    e0, e1 = int(table.e0[first]), int(table.e1[last])
    neighbors, weights = stage.reader.in_place(stage.adjacency, demand.with_weights)
    record = blank_record(task, demand, stage)
    record.bytes_link = record.lines * LINE_BYTES
    rows = int(table.v0[first]), int(table.v1[last])
    arrays = neighbors[e0:e1], None if weights is None else weights[e0:e1]
    return Parcel(View(stage.layout, stage.direction, e0, e1, *rows, *arrays, record))
