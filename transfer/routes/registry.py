"""The routes by name: how each starts a task, and which serve a device.

What copies or reads whole ranges of partitions is here. Gathered rows (`compaction.py`), and what follows a carrier
(`cel.py`), have files of their own. A new route is one function and one line here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from penstock.transfer.routes import cel, compaction
from penstock.transfer.staging.fetch import fetch
from penstock.transfer.staging.in_flight import Transfer
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.unpacked import fetch_packed, read_blocks
from penstock.transfer.values.rates import LINE_BYTES
from penstock.transfer.values.task import Demand, Task


def start_resident(task: Task, demand: Demand, directory: PartitionDirectory) -> Transfer | None:
    """Return the transfer of a task all of whose wanted chunks are where the device reads them; nothing moves.

    The view is over in-memory arrays, over a run of the cache or, where the cache holds packed edges, over a slab into
    which they are unpacked. Refuses a plan that is older than the cache: a view over chunks that are gone would be a
    wrong answer.
    """
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


def start_filter(task: Task, demand: Demand, directory: PartitionDirectory) -> Transfer | None:
    """Start bringing the wanted chunks of whole partitions in one copy; None when it needs a slab and none is free.

    HyTGraph's ExpTM-filter; reading only the chunks with wanted edges is an addition. So is that edges may travel
    packed.
    """
    if directory.unpacks:
        return fetch_packed(task, demand, directory)
    return fetch(directory.task_request(task, demand), directory)


def start_zero_copy(task: Task, demand: Demand, directory: PartitionDirectory) -> Transfer | None:
    """Return the transfer of partitions that kernels read in page-locked host memory; None while it has no slab.

    What crosses the link are the 128-byte lines of active rows, in ascending order because the frontier is. EMOGI's
    idea (Min et al., VLDB 2020). Where the host does not hold every edge, the wanted chunks are brought there first,
    and stay until the kernels are done.
    """
    request = directory.task_request(task, demand)
    request.record.bytes_link = request.record.lines * LINE_BYTES
    return directory.staging.link.in_place(request)


class Route(NamedTuple):
    """How edges reach a device.

    uses_slabs: whether it brings edges into slabs; else kernels read them where they
    are stored. start: starts bringing a task's edges; None when there is no room for them yet.
    """

    uses_slabs: bool
    start: Callable[[Task, Demand, PartitionDirectory], Transfer | None]


ROUTES: dict[str, Route] = {
    "resident": Route(False, start_resident),
    "filter": Route(True, start_filter),
    compaction.name: Route(True, compaction.start),
    "zero-copy": Route(False, start_zero_copy),
    "blocks": Route(False, read_blocks),
    cel.name: Route(True, start_filter),  # its carriers
}
PLAIN = frozenset({"compaction", "zero-copy", "cel"})
"""Routes that read plain edges in host memory."""
PACKED = frozenset({"blocks"})
"""Routes that read packed edges in host memory."""


def serving(*, slabs: bool = True, packed: bool = False, plain: bool = True) -> tuple[str, ...]:
    """Return the names of the routes that serve a device behind a link.

    slabs: whether it has any. packed: whether edges travel packed; rows are then not gathered, and read in place where
    host memory holds them `plain` as well.
    """
    names = [name for name, route in ROUTES.items() if slabs or not route.uses_slabs]
    if not packed:
        return tuple(name for name in names if name not in PACKED)
    return tuple(name for name in names if name not in PLAIN or (plain and name == "zero-copy"))


def in_order(names: Collection[str]) -> list[str]:
    """Return names of routes in the order of the list, each once; what is not in it follows, by name."""
    return [name for name in ROUTES if name in names] + sorted(set(names) - set(ROUTES))
