"""How a device's edge budget is divided: partition size, slabs, and resident places.

Owns the arithmetic, as a pure function. What the slabs leave is a cache of partitions; where everything fits there
are no slabs and every partition has its place. Where not even two slabs of one chunk fit there are none either, and
edges are read in place, in host memory. Refuses such a budget for routes that need slabs, and one that state exceeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.storage.base.budget import format_bytes, too_small
from penstock.storage.base.errors import InputError

if TYPE_CHECKING:
    from penstock.storage.format.graph import Adjacency

SLABS = (3, 2)
SLAB_SHARE = 0.25
COPY_BYTES = 32 << 20
"""What a slab should hold: smaller copies do not reach the link's rate, so a small device gives most of its budget."""
CACHED = ("auto", "resident")
"""Routes under which edges stay on the device; the others, when forced, bring them again each time."""
WITHOUT = "--route auto or zero-copy, which need none"


@dataclass(frozen=True, slots=True)
class DeviceBudget:
    """partition_edges: whole chunks. slabs of `combine` partitions each; slots: places of the cache, all if `whole`.

    No slabs, and not `whole`: every edge is read in place. staged_bytes: of the slabs. words: of packed edges, those of
    the cache of pieces; slabs are then buffers of pieces on their way, beside `plain_slabs` that these are unpacked to.
    """

    partition_edges: int
    slabs: int
    slots: int
    whole: bool
    combine: int = 1
    words: int = 0
    plain_slabs: int = 0
    staged_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DeviceBudgetRequest:
    """What the user asked for: neighbor bytes of a partition, partitions of a copy, a route, whether edges may stay.

    device_memory: bytes of the device in all, `fixed` of them taken (state, index), where edges get what is left; None
    where the user said how much edges get.
    """

    partition_bytes: int
    combine: int = 1
    route: str = "auto"
    stay: bool = True
    device_memory: int | None = None
    fixed: int = 0

    @property
    def cached(self) -> bool:
        """Whether edges stay on the device between iterations."""
        return self.stay and self.route in CACHED


def divide_device_budget(
    edge_memory: int, sizes: Sequence[Adjacency], wish: DeviceBudgetRequest, *, weights: bool
) -> DeviceBudget:
    """Divide `edge_memory` bytes of a device over the adjacencies that a run reads; InputError if it cannot work.

    Partitions shrink first, then the partitions of one copy, then the slabs; at last `auto` does without them.
    """
    each = max((size.edge_bytes(weights) for size in sizes), default=4)
    chunk = max((size.chunk_edges for size in sizes), default=1)
    steps = max(1, wish.partition_bytes // (chunk * max((size.edge_bytes(False) for size in sizes), default=4)))
    total = sum(size.edges for size in sizes)
    if total * each <= edge_memory and wish.cached:
        return DeviceBudget(steps * chunk, 0, _entries(sizes, steps * chunk), whole=True)
    if wish.route == "resident":
        raise InputError(
            f"route resident needs all {format_bytes(total * each)} of edges on the device, and "
            f"--device-edge-memory is {format_bytes(edge_memory)}: raise it, or use --route auto"
        )
    least = SLABS[-1] * chunk * each
    if wish.route == "zero-copy" or (wish.route == "auto" and edge_memory < least):
        if wish.device_memory is not None and wish.fixed > wish.device_memory:
            raise _too_small(edge_memory, 0, wish)
        return DeviceBudget(steps * chunk, 0, 0, whole=False)
    part = staging_bytes(edge_memory, wish, chunk * each) if wish.cached else edge_memory
    for slabs, combine, edges in _shrinking(wish.combine, steps, chunk):
        taken = slabs * combine * edges * each
        if taken <= (edge_memory if taken == least else part):
            slots = max(0, (edge_memory - taken) // (edges * each)) if wish.cached else 0
            slots = min(slots, max(1, _entries(sizes, edges)) - 1)
            return DeviceBudget(edges, slabs, slots, False, combine, staged_bytes=taken)
    raise _too_small(edge_memory, least, wish)


def _too_small(edge_memory: int, least: int, wish: DeviceBudgetRequest) -> InputError:
    """Why a budget cannot work, and the smallest that can: of the memory that was given, or came of the device."""
    slabs = f"{SLABS[-1]} slabs of one chunk take {format_bytes(least)}"
    if wish.device_memory is None:
        return InputError(
            f"--device-edge-memory {format_bytes(edge_memory)} is too small: {slabs}; give at least that, or use "
            f"{WITHOUT}"
        )
    why = f"vertex state and index take {format_bytes(wish.fixed)}{f', and {slabs}' if least else ''}"
    otherwise = f", or use {WITHOUT}" if least and wish.fixed <= wish.device_memory else ""
    return too_small("--device-memory", wish.device_memory, why, wish.fixed + least, otherwise)


def staging_bytes(edge_memory: int, wish: DeviceBudgetRequest, chunk_bytes: int) -> int:
    """What of a budget goes to slabs, where edges may stay as well: a quarter, or as much as good copies need."""
    copies = SLABS[0] * min(COPY_BYTES, wish.combine * wish.partition_bytes)
    return max(min(edge_memory, copies), least_staging_bytes(edge_memory, chunk_bytes))


def least_staging_bytes(edge_memory: int, chunk_bytes: int) -> int:
    """What of a budget is left to slabs where row prefixes may take the rest: searches that have them copy little."""
    return max(int(edge_memory * SLAB_SHARE), min(edge_memory, SLABS[-1] * chunk_bytes))


def _shrinking(combine: int, steps: int, chunk: int) -> Iterator[tuple[int, int, int]]:
    """(slabs, partitions of a slab, edges of a partition), from what was asked for down to the least that works."""
    while steps > 1:
        yield SLABS[0], combine, steps * chunk
        steps //= 2
    while combine > 1:
        yield SLABS[0], combine, chunk
        combine //= 2
    for slabs in SLABS:
        yield slabs, 1, chunk


def _entries(sizes: Sequence[Adjacency], step: int) -> int:
    return sum(-(-size.edges // step) for size in sizes)
