"""Route `blocks`: kernels unpack the blocks that active rows touch from page-locked host memory, over the link.

What crosses the link are the payloads of these blocks of 256 edges. They are unpacked to their places in a slab, of
which kernels read only active rows. It is zero-copy of packed edges; long rows travel in fewer bytes than plain ones.
"""

from __future__ import annotations

from penstock.transfer.staging.in_flight import Transfer
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.unpacked import read_blocks
from penstock.transfer.values.task import Demand, Task

name = "blocks"
kinds = frozenset({"emulated", "cuda"})
uses_slabs = False


def start(task: Task, demand: Demand, directory: PartitionDirectory) -> Transfer | None:
    """Return the transfer of partitions that are unpacked in place; None while the host has no room for them."""
    return read_blocks(task, demand, directory)
