"""Route `resident`: the edges are where the device reads them; nothing moves.

The view is over in-memory arrays, over a run of the cache or, where the cache holds packed edges, over a slab. Refuses
a plan that is older than the cache: a view over chunks that are gone would be a wrong answer.
"""

from __future__ import annotations

from penstock.transfer.staging.in_flight import Transfer
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.unpacked import fetch_packed
from penstock.transfer.values.task import Demand, Task

name = "resident"
kinds = frozenset({"host", "emulated", "cuda"})
uses_slabs = False


def start(task: Task, demand: Demand, directory: PartitionDirectory) -> Transfer | None:
    """Return the transfer of a task all of whose wanted chunks are here; packed ones are unpacked into a slab."""
    request, with_weights = directory.task_request(task, demand), demand.with_weights
    first, last = request.first, request.last
    if directory.in_memory:
        neighbors, weights = directory.whole_arrays(with_weights)
        edges = slice(request.e0, request.e1)
        return request.transfer((neighbors[edges], None if weights is None else weights[edges]))
    here = request.cached or (directory.pieces is not None and bool((directory.starts[first : last + 1] >= 0).all()))
    if not here or len(directory.missing(request.chunks, with_weights)):
        raise RuntimeError(
            f"the plan takes partitions {first}..{last} ({demand.direction}) for resident but they are not: "
            "make a new plan after every change of the cache"
        )
    if directory.unpacks:
        return fetch_packed(task, demand, directory)
    request.record.hits = len(request.chunks)
    return request.transfer(directory.cached_arrays(first, last + 1 - first, with_weights))
