"""Where the edges of an iteration are stored, and which partitions the host cache should keep.

Owns the choice: partitions are kept by value per byte, which for slots of one size is how much of
them was wanted lately. `age` measures time by the volume that was wanted: use halves with each
graph's worth of chunks. So on a cyclic sweep no partition ever has more than twice the use of
another, and `choose` replaces a kept partition only by one with more than twice its use: sweeps
larger than the cache keep what they have and hit by cache / graph, where plain LRU never
hits. Refuses to drop what is pinned.

On a device behind a link use is counted in traffic instead: what a partition's wanted rows cost by the cheaper of a
copy and reading in place, over its size (`traffic`). Before the first iteration `prior` estimates which edge ranges
save most per byte held: those with many short rows, each of which costs a line however few of its bytes are wanted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.values.rates import LINE_BYTES

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SWAP = 2.0
DENSE = 0.5
"""Share of a slot's bytes that must be wanted for a partition to be brought whole, and so to stay on a device."""


@dataclass(frozen=True, slots=True)
class Residency:
    """Where one iteration's edges are stored: arrays of shape (p,), one item per partition.

    `resident`: every wanted chunk is in the device's reach. `places`: position in the cache arena
    (in edges) of a partition that is kept there, else -1: it passes through a slab. `disk_bytes`:
    compressed bytes still to be read; `decode_bytes`: what they decode to. `edge_bytes`: d, bytes
    of an edge over all arrays read. `whole`: the entire adjacency is here in one array, and the
    arrays above are not to be looked at. `host_places`: as `places`, in the host's cache, where a device behind a link
    is fed from a host that does not hold every edge; None where it does. `lacking_bytes`: decoded bytes of the wanted
    chunks that are not here, which is what a copy brings; None where nothing is copied. unpacked_edges: of edges that
    travel and stay packed, those that the device unpacks when it uses a partition, and block_bytes: the bytes of the
    payloads of the wanted blocks; None for plain edges. plain_disk_bytes, plain_decode_bytes: as disk_bytes and
    decode_bytes, for the plain edges that host memory holds beside packed ones and kernels read in place; None where
    there are none.
    """

    resident: Bools
    places: Ints
    disk_bytes: Ints
    decode_bytes: Ints
    edge_bytes: int
    whole: bool = False
    host_places: Ints | None = None
    lacking_bytes: Ints | None = None
    unpacked_edges: Ints | None = None
    block_bytes: Ints | None = None
    plain_disk_bytes: Ints | None = None
    plain_decode_bytes: Ints | None = None


def age(use: Floats, wanted: Floats, entries: slice, total: int) -> Floats:
    """Return the use of every entry after an iteration that wanted chunks of one adjacency.

    `wanted`: chunks wanted of each entry in `entries`; `total`: chunks of that adjacency.
    """
    aged = use * 0.5 ** (float(wanted.sum()) / max(total, 1))
    aged[entries] += wanted
    return np.asarray(aged, dtype=np.float64)


def traffic(sizes: Ints, lines: Ints, wanted: Bools, places: Ints | int) -> Floats:
    """Return what bringing every partition would move, as a share of its place, float64[p]; 0 where nothing is wanted.

    sizes: bytes of each partition; places: bytes of a place, or of each.
    """
    moved = np.minimum(sizes, lines * LINE_BYTES)
    return np.asarray(np.where(wanted, moved / np.maximum(1, places), 0.0), dtype=np.float64)


def prior(edges: Ints, rows: Ints, edge_bytes: int) -> Floats:
    """Return the lines moved per line held when every row of a partition is wanted once, float64[p].

    Rounded to quarters: smaller differences are not worth breaking up runs of neighboring partitions.
    """
    held = np.maximum(1, edges * edge_bytes) / LINE_BYTES
    return np.asarray(np.round(4 * (1.0 + rows / held)) / 4, dtype=np.float64)


def choose(use: Floats, kept: Bools, wanted: Bools, pinned: Bools, free: int, sizes: Ints) -> tuple[Ints, Ints]:
    """Return the entries that lose their place and those that get one; all arrays given have one item per entry.

    Only wanted entries are admitted (they are read anyway), the most used first: into what is `free`, of which each
    takes its size, then in place of unpinned kept ones whose use is less than half of theirs. One that finds no room
    where the evicted were stays without a place.
    """
    outside = np.flatnonzero(wanted & ~kept)
    outside = outside[np.argsort(-use[outside], kind="stable")]
    fits = np.cumsum(sizes[outside]) <= free
    fill, rest = outside[fits], outside[~fits]
    inside = np.flatnonzero(kept & ~pinned)
    inside = inside[np.argsort(use[inside], kind="stable")]
    pairs = min(len(rest), len(inside))
    swaps = int(np.count_nonzero(use[rest[:pairs]] > SWAP * use[inside[:pairs]]))
    return np.sort(inside[:swaps]), np.sort(np.append(fill, rest[:swaps]))
