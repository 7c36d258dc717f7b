"""Route `resident`: the edges are where the device reads them; nothing moves.

Owns the view over in-memory arrays or over a run of the cache. Refuses a plan that is older than the cache:
a view over chunks that are gone would be a wrong answer.
"""

from __future__ import annotations

from penstock.transfer.staging.in_flight import Transfer, blank_record
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.values.task import Demand, Task
from penstock.transfer.values.view import View

name = "resident"
kinds = frozenset({"host", "emulated", "cuda"})
staged = False


def start(task: Task, demand: Demand, stage: PartitionDirectory) -> Transfer:
    """Return the parcel of a task all of whose wanted chunks are here."""
    first, last = task.partitions[0], task.partitions[-1]
    table, record = stage.table, blank_record(task, demand, stage)
    e0, e1 = int(table.e0[first]), int(table.e1[last])
    if stage.in_memory:
        whole, all_weights = stage.whole_arrays(demand.with_weights)
        neighbors = whole[e0:e1]
        weights = None if all_weights is None else all_weights[e0:e1]
    else:
        chunks = stage.wanted(demand, first, last)
        if not stage.kept(first, last) or len(stage.missing(chunks, demand.with_weights)):
            raise RuntimeError(
                f"the plan takes partitions {first}..{last} ({demand.direction}) for resident but they are not: "
                "make a new plan after every change of the cache"
            )
        record.hits = len(chunks)
        neighbors, weights = stage.placed(first, last + 1 - first, demand.with_weights)
    rows = int(table.v0[first]), int(table.v1[last])
    return Transfer(View(e0, e1, *rows, neighbors, weights, record))
