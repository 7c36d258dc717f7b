"""How a device's edge budget is divided: partition size, slabs, and places that stay resident.

Owns the arithmetic, as a pure function. What the slabs leave is a cache of partitions; where everything fits there
are no slabs and every partition has its place. Refuses a budget that does not hold three slabs of one chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.storage.budget import format_bytes
from penstock.storage.errors import InputError
from penstock.transfer.layout import AdjacencySize

SLABS = 3
SLAB_SHARE = 0.25
CACHED = ("auto", "resident")
"""Routes under which edges stay on the device; the others, when forced, bring them anew each time."""


@dataclass(frozen=True, slots=True)
class Share:
    """partition_edges: whole chunks. slabs hold one partition each; slots: places of the cache, all if `whole`."""

    partition_edges: int
    slabs: int
    slots: int
    whole: bool


def share(
    edge_memory: int, sizes: Sequence[AdjacencySize], partition_bytes: int, route: str, *, weights: bool
) -> Share:
    """Divide `edge_memory` bytes of a device over the adjacencies that a run reads; InputError if it cannot work."""
    each = max((size.neighbor_bytes + size.weight_bytes * weights for size in sizes), default=4)
    chunk = max((size.chunk_edges for size in sizes), default=1)
    steps = max(1, partition_bytes // (chunk * max((size.neighbor_bytes for size in sizes), default=4)))
    total = sum(size.edges for size in sizes)
    if total * each <= edge_memory and route in CACHED:
        return Share(steps * chunk, 0, _entries(sizes, steps * chunk), whole=True)
    if route == "resident":
        raise InputError(
            f"route resident needs all {format_bytes(total * each)} of edges on the device, and "
            f"--device-edge-memory is {format_bytes(edge_memory)}: raise it, or use --route auto"
        )
    if route == "zero-copy":
        return Share(steps * chunk, 0, 0, whole=False)
    part = SLAB_SHARE if route in CACHED else 1.0
    while steps > 1 and SLABS * steps * chunk * each > edge_memory * part:
        steps //= 2
    slab = steps * chunk * each
    slots = max(0, edge_memory // slab - SLABS) if route in CACHED else 0
    if SLABS * slab > edge_memory:
        raise InputError(
            f"--device-edge-memory {format_bytes(edge_memory)} is too small: {SLABS} slabs of one chunk take "
            f"{format_bytes(SLABS * slab)}; give at least that, or use --route zero-copy"
        )
    return Share(steps * chunk, SLABS, min(slots, _entries(sizes, steps * chunk) - 1), whole=False)


def _entries(sizes: Sequence[AdjacencySize], step: int) -> int:
    return sum(-(-size.edges // step) for size in sizes)
