"""What it costs to bring a partition by each route: HyTGraph's model and the measured one.

Owns both formulas, as pure functions over arrays with one entry per partition; transfer/cost_model.md
derives them. Refuses nothing: its callers check rates and counts. `published` is HyTGraph's
Algorithm 1 with its constants; `measured` gives seconds on each resource, so that a plan can
balance the resources.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.values.rates import LINE_BYTES, Rates

Floats = NDArray[np.float64]
_Some = Floats | np.float64

RESOURCES = ("disk", "decode", "gather", "link", "kernel", "unpack")
DISK, DECODE, GATHER, LINK, KERNEL, UNPACK = range(6)

REQUESTS = 256  # HyTGraph's MR: outstanding memory requests in one round trip
REQUEST_BYTES = 128  # its m: bytes of one request
GAMMA = 0.625  # its gamma: what of a zero-copy round trip the active share does not change
ALPHA = 0.8  # compaction must beat filter by this factor
BETA = 0.4  # and zero-copy by this one
BLOCK_BYTES = 512  # of a run of lines, where packed blocks are read in place
INDEX_BYTES = 8  # d2: one entry of a compacted index


class Cost(NamedTuple):
    """Seconds on each resource, in the order of RESOURCES; the resources work at the same time."""

    disk: float = 0.0
    decode: float = 0.0
    gather: float = 0.0
    link: float = 0.0
    kernel: float = 0.0
    unpack: float = 0.0

    @property
    def busiest(self) -> float:
        """Seconds of the resource that works longest."""
        return max(self)


@dataclass(frozen=True, slots=True)
class Counts:
    """What the models ask of each partition: arrays of shape (p,), all float64.

    `edges` E and `active_edges` a, `active_vertices` A, `lines` L (128-byte lines of the active
    rows over every edge array read); `read_edges`: those a kernel is expected to read (fewer than
    a where pulls leave early); `disk_bytes`, `decode_bytes`: still to be read from disk, and what
    they decode to; `edge_bytes` is d, bytes per edge over all arrays read. `copied_bytes`: what copying a partition
    brings, its wanted chunks that are not on the device yet; None for all of its edges. `unpacked_edges`: what a device
    unpacks of a partition that it holds, or that is copied, packed, and `block_bytes` what it reads of one over the
    link where it unpacks only wanted blocks; None for plain edges. `plain_disk_bytes`, `plain_decode_bytes`: what
    reading in place takes of the disk instead, where packed and plain edges are stored apart; None where they are not.
    """

    edges: Floats
    active_edges: Floats
    active_vertices: Floats
    lines: Floats
    read_edges: Floats
    disk_bytes: Floats
    decode_bytes: Floats
    edge_bytes: int
    copied_bytes: Floats | None = None
    unpacked_edges: Floats | None = None
    block_bytes: Floats | None = None
    plain_disk_bytes: Floats | None = None
    plain_decode_bytes: Floats | None = None


def published(counts: Counts) -> dict[str, Floats]:
    """Return, by route name, HyTGraph's transfer times in round trips (RTT = 1), float64[p].

    A partition without edges costs nothing by any route.
    """
    moved = counts.active_edges * counts.edge_bytes + counts.active_vertices * INDEX_BYTES
    share = counts.active_edges / np.maximum(counts.edges, 1.0)
    trip = GAMMA + (1.0 - GAMMA) * share
    return {
        "filter": _round_trips(counts.edges * counts.edge_bytes),
        "compaction": _round_trips(moved),
        "zero-copy": np.ceil(counts.lines / REQUESTS) * trip,
    }


def published_routes(counts: Counts, served: tuple[str, ...]) -> NDArray[np.str_]:
    """Return the route that HyTGraph's Algorithm 1 takes for each partition, as an array of names.

    Routes that do not serve the device are passed over: they count as taking forever.
    """
    times = published(counts).items()
    full, packed, in_place = (t if name in served else np.full_like(t, np.inf) for name, t in times)
    compact = (packed < ALPHA * full) & (packed < BETA * in_place)
    return np.where(compact, "compaction", np.where(full < in_place, "filter", "zero-copy"))


def _round_trips(size: Floats) -> Floats:
    return np.ceil(size / (REQUEST_BYTES * REQUESTS))


def measured(counts: Counts, rates: Rates, together: int = 1) -> dict[str, Floats]:
    """Return, by route name, seconds as float64[p, 6] in the order of RESOURCES.

    `together`: partitions that share a copy, and with it the copy's latency, where they are copied whole. Every route
    but `resident` also carries the disk and decode seconds of what the host cache lacks.
    """
    full = counts.edges * counts.edge_bytes if counts.copied_bytes is None else counts.copied_bytes
    moved = counts.active_edges * counts.edge_bytes + counts.active_vertices * INDEX_BYTES
    runs = np.maximum(counts.active_vertices, 1.0)
    run_bytes = counts.active_edges * counts.edge_bytes / runs
    base = np.zeros((len(counts.edges), len(RESOURCES)))
    base[:, DISK] = counts.disk_bytes / rates.disk_bytes
    base[:, DECODE] = counts.decode_bytes / rates.decode_bytes
    rows = rates.kernel_latency + counts.active_vertices / rates.kernel_rows
    base[:, KERNEL] = counts.read_edges / rates.kernel_edges + (counts.read_edges > 0) * rows
    resident = base.copy()
    resident[:, [DISK, DECODE]] = 0.0
    compacted, in_place = base.copy(), base.copy()
    if counts.unpacked_edges is not None:
        unpacked = counts.unpacked_edges
        base[:, UNPACK] = resident[:, UNPACK] = (unpacked > 0) * rates.unpack_latency + unpacked / rates.unpack_edges
    filtered = base.copy()
    filtered[:, LINK] = copy_seconds(full, rates, together)
    compacted[:, GATHER] = moved / rates.gather_bytes
    compacted[:, LINK] = copy_seconds(moved, rates)
    if counts.plain_disk_bytes is not None and counts.plain_decode_bytes is not None:
        in_place[:, DISK] = counts.plain_disk_bytes / rates.disk_bytes
        in_place[:, DECODE] = counts.plain_decode_bytes / rates.decode_bytes
    in_place[:, LINK] = line_seconds(counts.lines, counts.active_vertices, run_bytes, rates)
    found = {
        "resident": resident,
        "filter": filtered,
        "compaction": compacted,
        "zero-copy": in_place,
    }
    if counts.block_bytes is not None:
        blocks = found["blocks"] = filtered.copy()
        blocks[:, LINK] = rates.line_seconds(counts.block_bytes / LINE_BYTES, np.float64(BLOCK_BYTES))
    return found


def copy_seconds(size: Floats, rates: Rates, together: int = 1) -> Floats:
    """Return the seconds of copying `size` bytes over the link, `together` of them at once; nothing takes no time."""
    return np.asarray((size > 0) * (rates.copy_latency / together) + size / rates.copy_bytes, dtype=np.float64)


def line_seconds(lines: _Some, rows: _Some, run_bytes: _Some, rates: Rates) -> Floats:
    """Return the seconds of one kernel each that reads `lines` lines of `rows` active rows in place.

    Arrays of shape (p,) or (), as is the answer; `run_bytes` as in `Rates.line_seconds`.
    """
    read = rates.line_seconds(lines, run_bytes) + rows / rates.line_rows
    return np.asarray(read + (lines > 0) * rates.line_latency, dtype=np.float64)
