"""Route `filter`: the wanted chunks of whole partitions, in one copy.

HyTGraph's ExpTM-filter; reading only the chunks with wanted edges is an addition. So is that edges may travel packed.
"""

from __future__ import annotations

from penstock.transfer.staging.fetch import fetch
from penstock.transfer.staging.in_flight import Transfer
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.unpacked import fetch_packed
from penstock.transfer.values.task import Demand, Task

name = "filter"
kinds = frozenset({"host", "emulated", "cuda"})
uses_slabs = True


def start(task: Task, demand: Demand, directory: PartitionDirectory) -> Transfer | None:
    """Start bringing what a task lacks; None when it needs a slab and none is free."""
    if directory.unpacks:
        return fetch_packed(task, demand, directory)
    return fetch(directory.task_request(task, demand), directory)
