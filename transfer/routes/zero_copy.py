"""Route `zero-copy`: kernels read the active rows in page-locked host memory, line by line, over the link.

Nothing is copied and no slab is held; what crosses the link are the 128-byte lines of active rows, in ascending order
because the frontier is. EMOGI's idea (Min et al., VLDB 2020). Where the host does not hold every edge, the wanted
chunks are brought there first, and stay until the kernels are done.
"""

from __future__ import annotations

from penstock.transfer.staging.in_flight import Transfer
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.values.rates import LINE_BYTES
from penstock.transfer.values.task import Demand, Task

name = "zero-copy"
kinds = frozenset({"emulated", "cuda"})
uses_slabs = False


def start(task: Task, demand: Demand, directory: PartitionDirectory) -> Transfer | None:
    """Return the transfer of partitions that are read in place; None while the host has no slab for them."""
    request = directory.task_request(task, demand)
    request.record.bytes_link = request.record.lines * LINE_BYTES
    return directory.staging.link.in_place(request)
