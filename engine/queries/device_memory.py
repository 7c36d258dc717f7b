"""How the memory of a device, and of the host beside it, is divided for walks: kept rows, slabs, walkers at once.

Pure functions: numbers in, values out. A batch of walkers has its walks on the device until all have ended. Where all
rows fit beside a good many walkers, nothing is swept. Else every batch sweeps the rows that are not kept about once a
step, so that bytes over the link go with the square of what is not kept, over the number of walkers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.engine.queries.walk_memory import (
    BLOCK_BYTES,
    SLAB_BYTES,
    TIMES,
    WalkMemory,
    WalkMemoryRequest,
    block_bytes,
    block_walks,
    refusal,
)
from penstock.storage.base.budget import format_bytes, too_small
from penstock.transfer.planning.host_budget import reader_bytes

WHOLE_BATCH_BYTES = 512 << 20
"""Walks of a batch where all rows are kept: so many walkers keep any device busy."""
MANY = 1 << 14
"""Walkers for whom there must be room beside all rows; fewer leave a device idle."""
ROUNDING = 32 << 10
"""What arrays take more than their items, each being a few hundred bytes longer, and small ones."""
CHOICES = ((8, False), (4, False), (1, False), (1, True))
"""Reads in flight, and whether they are one frame each, best first."""


@dataclass(frozen=True)
class DeviceWalkRequest:
    """What a device has for walks, in bytes.

    memory: all that may be allocated on it; edge_memory: what edges may take of that, None for no limit of its own.
    fixed: index and sources. walker_bytes: of a walker, its walk included.
    """

    memory: int
    edge_memory: int | None
    fixed: int
    walker_bytes: int


def divide_device_walks(host: WalkMemoryRequest, device: DeviceWalkRequest) -> WalkMemory:
    """Divide both. Raises BudgetError where either is too small."""
    each = host.neighbor_bytes + host.sum_bytes
    left = device.memory - device.fixed
    room = left if device.edge_memory is None else min(left, device.edge_memory)
    whole = host.edges * each
    if whole <= room and left - whole >= min(host.walks, MANY) * device.walker_bytes:
        most = min(left - whole, 2 * WHOLE_BATCH_BYTES) // device.walker_bytes
        sets = 2 if most >= 2 * min(host.walks, MANY) else 1
        batch = _even(host.walks, most // sets)
        return _beside(host, batch, (host.edges, 0), min(sets, -(-host.walks // batch)))
    return _beside(host, *_swept(host, device, left, room))


def _swept(host: WalkMemoryRequest, device: DeviceWalkRequest, left: int, room: int) -> tuple[int, tuple[int, int]]:
    """Of a graph whose rows do not all fit: slabs first, then walkers and kept rows so that least is carried."""
    each = host.neighbor_bytes + host.sum_bytes
    least = 2 * host.longest * each
    in_place = room < least and _kept_beside(host)
    if room < least and left >= least and not in_place:
        why = f"two slabs of the longest row take {format_bytes(least)}"
        otherwise = ", or a --host-memory that holds all edges, which are then read in place"
        raise too_small("--device-edge-memory", room, why, least, otherwise)
    needed = device.walker_bytes + (0 if in_place else least)
    if left < needed:
        rows = f"a walk and two slabs of the longest row {format_bytes(needed)}"
        why = f"index and sources take {format_bytes(device.fixed)}, {rows}"
        raise too_small("--device-memory", device.memory, why, device.fixed + needed)
    if in_place:
        return _even(host.walks, left // device.walker_bytes), (0, 0)
    size = min(SLAB_BYTES, room // 8, max(0, host.host.host_memory - host.host.fixed) // 16)
    slab = max(host.longest, host.whole_chunks(size, each))
    after, edges = left - 2 * slab * each, room - 2 * slab * each
    kept = max(2 * after - host.edges * each, after - host.walks * device.walker_bytes)
    kept = max(0, min(kept, edges, after - device.walker_bytes))
    batch = _even(host.walks, (after - kept) // device.walker_bytes)
    return batch, (min(kept // each, host.edges), slab)


def _kept_beside(host: WalkMemoryRequest) -> bool:
    """Whether the host has room for all rows beside reading."""
    slabs = 2 * max(host.longest, host.whole_chunks(SLAB_BYTES, host.slab_bytes)) * host.slab_bytes
    taken = reader_bytes(host.host, 1) + slabs + block_bytes(host, 1) + host.edges * host.kept_bytes
    return host.in_memory or host.host.fixed + 2 * taken <= host.host.host_memory


def _even(walks: int, most: int) -> int:
    """Walkers of equal batches of at most so many; the last one sweeps as often as a full one."""
    return -(-walks // -(-walks // max(1, most)))


def _beside(host: WalkMemoryRequest, batch: int, placed: tuple[int, int], sets: int = 1) -> WalkMemory:
    """What the host does for the device: blocks of walks, reading, slabs; the rest keeps rows that it has not.

    placed: edges that the device keeps, and those of a slab there.
    """
    left = host.host.host_memory - host.host.fixed
    block = min(batch, block_walks(host, min(BLOCK_BYTES, max(0, left) // 16 // TIMES)))
    kept, staged = placed
    given = WalkMemory(0, 0, host.longest, batch, block, device_edges=kept, device_slab_edges=staged, sets=sets)
    if host.in_memory:
        taken = host.edges * host.kept_bytes + block_bytes(host, block)
        if taken > left:
            raise refusal(host, host.edges * host.kept_bytes + block_bytes(host, 1))
        return replace(given, kept_edges=host.edges)
    size = min(SLAB_BYTES, left // 16, host.edges * host.slab_bytes)
    slab = staged or max(host.longest, host.whole_chunks(size, host.slab_bytes))
    for reads, one_by_one in CHOICES:
        taken = reader_bytes(host.host, reads, one_by_one=one_by_one) + 2 * slab * host.slab_bytes
        rest = left - taken - block_bytes(host, block)
        if rest >= (left // 2 if reads > 1 else 0):
            here = 0 if kept == host.edges else rest // host.kept_bytes
            return replace(given, slab_edges=slab, kept_edges=here, reads=reads, one_by_one=one_by_one)
    raise refusal(host, taken + block_bytes(host, 1))
