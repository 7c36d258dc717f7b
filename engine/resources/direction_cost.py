"""Predicted seconds of a push and of a pull over a link, for programs whose pulls stop early.

A push brings the active rows. A pull looks at every vertex, reads the row prefixes of the unvisited ones on the device
(`row_prefix_cache.py`), and asks the link for what comes after them, where no prefix held an active neighbor: a short
request for each row at least, and a row without an active neighbor is read to its end. How many such rows there are is
predicted from the degrees: every edge that has been explored so far led to any one vertex by chance, in proportion to
its in-edges, so a row of k is unvisited still with a chance of y^k, y being the unexplored share of the edges; and
each of its edges comes from the frontier with the chance d that an unexplored edge does, for what was explored before
has made its target visited. The degree-biased mean field of random graphs (Newman, Strogatz, Watts, Phys. Rev. E 64,
2001), held to the number of vertices that are in fact unvisited, which graphs with neighborhoods (grids, roads) have
far more of.

Owns the estimates, as pure functions, and the sample of the degrees; `situations.py` gets the rest from the edge
streams. Decides nothing, refuses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from penstock.engine.state.state import Frontier
from penstock.storage.format.index import Index
from penstock.transfer.devices.cuda import CudaDevice
from penstock.transfer.planning.plan import GATHER_GAIN
from penstock.transfer.values.cost import INDEX_BYTES
from penstock.transfer.values.rates import LINE_BYTES, SECTOR_BYTES, Rates

Floats = NDArray[np.float64]

BLOCKS = 64
BLOCK_ROWS = 512
EXACT = 64  # degrees below this have a bin of their own, those above share one with all up to twice as many
PLAN_SECONDS = 3e-4  # counting what is wanted, and the plan, for which the host waits


@dataclass(frozen=True, slots=True)
class DegreeSample:
    """How many rows have how many edges: `rows` rows of `length` edges on average, float64[bins] both; 0 has no bin.

    empty: rows without edges.
    """

    length: Floats
    rows: Floats
    empty: float


@dataclass(frozen=True, slots=True)
class DirectionSide:
    """One direction's adjacency, in so many chunks: which share of its edges is on the device.

    fetch_seconds: of bringing all that host and device lack from disk; 0 where the host holds every edge. copied: bytes
    that copies bring over those of the plain edges, less than 1 where these travel packed. rows_seconds: of bringing
    the rows that a device lacks.
    """

    chunks: int
    here: float = 0.0
    fetch_seconds: float = 0.0
    copied: float = 1.0
    rows_seconds: float = 0.0

    def touched(self, rows: float) -> float:
        """The share of the chunks in which so many rows lie that may be anywhere."""
        return -math.expm1(-rows / self.chunks)


@dataclass(frozen=True, slots=True)
class LinkCosts:
    """The costs of the link, and what its device holds.

    edge_bytes: of an edge. degrees: of the rows that are pulled. routes: those that may be taken ("compaction" only
    serves pushes). head: edges of each row on the device (`row_prefix_cache.py`). at_once: whether a push would read
    every active row over the link, resident or not (`EdgeStream.slight`). glance: as of a device.
    """

    rates: Rates
    edge_bytes: int
    degrees: DegreeSample
    push: DirectionSide
    pull: DirectionSide
    routes: tuple[str, ...] = ("filter", "compaction", "zero-copy")
    head: int = 0
    at_once: bool = False
    glance: float = CudaDevice.glance


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search has come: vertices and edges in all; what is unvisited and unexplored, the frontier included."""

    vertices: int
    edges: int
    unvisited: int
    unexplored: int


@dataclass(frozen=True, slots=True)
class LinkReading:
    """What a pull reads: rows and edges on the device first, then rows, edges and short requests behind them."""

    head_edges: float
    rows: float
    edges: float
    requests: float


def own_part(progress: Progress, frontier: Frontier, rows: float, edges: float) -> tuple[Progress, Frontier]:
    """The same for a rank that has these shares of the rows and of the edges; rows of others are empty there."""
    others = progress.vertices * (1.0 - rows)
    return (
        replace(
            progress,
            edges=int(progress.edges * edges),
            unvisited=int(progress.unvisited * rows + others),
            unexplored=int(progress.unexplored * edges),
        ),
        replace(frontier, vertices=int(frontier.vertices * rows), edges=max(1, int(frontier.edges * edges))),
    )


def sample_degrees(index: Index) -> DegreeSample:
    """The degrees of an adjacency, from at most BLOCKS blocks of BLOCK_ROWS rows at equal distances."""
    vertices = index.vertices
    if vertices <= BLOCKS * BLOCK_ROWS:
        degrees = index.degrees(0, vertices)
    else:
        firsts = np.linspace(0, vertices - BLOCK_ROWS, BLOCKS).astype(np.int64).tolist()
        degrees = np.concatenate([index.degrees(first, first + BLOCK_ROWS) for first in firsts])
    scale = vertices / max(1, len(degrees))
    some = degrees[degrees > 0]
    powers = np.frexp(some.astype(np.float64))[1] + EXACT  # 64..127 have power 7, and so on
    bins = np.where(some < EXACT, some, powers)
    rows = np.bincount(bins).astype(np.float64)
    edges = np.bincount(bins, weights=some)
    there = rows > 0
    return DegreeSample(edges[there] / rows[there], rows[there] * scale, (len(degrees) - len(some)) * scale)


def reading(link: LinkCosts, progress: Progress, frontier: Frontier) -> LinkReading:
    """What a pull would read."""
    length, known = link.degrees.length, link.degrees.rows
    unexplored = max(progress.unexplored, frontier.edges, 1)
    rows = known * np.power(min(1.0, unexplored / max(1, progress.edges)), length)
    left = progress.unvisited - frontier.vertices - link.degrees.empty
    rows = np.minimum(known, rows * max(1.0, left / max(1e-9, float(rows.sum()))))
    share = max(frontier.edges, 1) / unexplored  # a frontier without edges would be divided by
    missing = math.log1p(-min(share, 1.0 - 1e-9))  # logarithm of the chance that an edge is idle
    active = -math.expm1(missing)
    in_head = np.minimum(length, link.head)
    behind = np.where(length > link.head, rows * np.exp(missing * in_head), 0.0)
    edges = behind * -np.expm1(missing * (length - in_head)) / active
    requests = behind + (edges - behind) * link.edge_bytes / SECTOR_BYTES
    head_edges = rows * -np.expm1(missing * in_head) / active
    return LinkReading(*(float(np.add.reduce(each)) for each in (head_edges, behind, edges, requests)))


def pull_seconds(link: LinkCosts, progress: Progress, frontier: Frontier) -> float:
    """What a pull would take: kernels on the device, then the longer of the link and the kernels that read over it."""
    rates, read = link.rates, reading(link, progress, frontier)
    in_place = float(rates.line_seconds(np.float64(read.requests), np.float64(SECTOR_BYTES)))
    touched = link.pull.touched(read.rows)
    whole = touched * progress.edges * link.edge_bytes * link.pull.copied / rates.copy_bytes
    over = (1.0 - link.pull.here) * cheapest(link.routes, in_place, whole) + link.pull.rows_seconds
    here = PLAN_SECONDS + _here_seconds(link, progress, read.head_edges)
    return here + max(over, read.edges / rates.kernel_edges, link.pull.fetch_seconds * touched)


def least_pull_seconds(link: LinkCosts, progress: Progress) -> float:
    """What a pull would take that reads no edge: a lower bound of `pull_seconds` that costs little to know."""
    return PLAN_SECONDS + _here_seconds(link, progress, 0.0)


def _here_seconds(link: LinkCosts, progress: Progress, head_edges: float) -> float:
    """What the kernels of a pull take on the device: a look at every vertex, and the heads."""
    rates = link.rates
    return rates.kernel_latency + (progress.vertices * link.glance + head_edges) / rates.kernel_edges


def push_seconds(link: LinkCosts, progress: Progress, frontier: Frontier) -> float:
    """What a push would take: the longer of the link, by whichever route is best, and the kernels."""
    rates, size = link.rates, frontier.edges * link.edge_bytes
    lines = frontier.vertices * (1.0 - link.edge_bytes / LINE_BYTES) + size / LINE_BYTES
    in_place = float(rates.line_seconds(np.float64(lines), np.float64(size / max(1, frontier.vertices))))
    touched = link.push.touched(frontier.vertices)
    meanwhile = max(rates.kernel_latency + frontier.edges / rates.kernel_edges, link.push.fetch_seconds * touched)
    if link.at_once:
        return max(in_place, meanwhile)
    whole = touched * progress.edges * link.edge_bytes * link.push.copied / rates.copy_bytes
    gathered = gather_seconds(rates, size, frontier.vertices)
    over = (1.0 - link.push.here) * cheapest(link.routes, in_place, whole, gathered) + link.push.rows_seconds
    return PLAN_SECONDS + max(over, meanwhile)


def gather_seconds(rates: Rates, size: float, rows: float) -> float:
    """What gathering so many bytes of so many rows, and copying them, takes."""
    return (size + INDEX_BYTES * rows) / min(rates.gather_bytes, rates.copy_bytes)


def cheapest(routes: Sequence[str], in_place: float, whole: float, gathered: float = math.inf) -> float:
    """Seconds by the best of the routes that may be taken; gathering only where the plan would (`plan.py`)."""
    seconds = {"zero-copy": in_place, "blocks": in_place, "filter": whole}
    otherwise = whole if math.isinf(gathered) else math.inf  # what cannot be gathered is copied
    best = min((seconds[route] for route in routes if route in seconds), default=otherwise)
    return gathered if "compaction" in routes and gathered < GATHER_GAIN * best else best
