"""What sharing a sweep between several ranks costs: what ranks of a host share, and what they exchange.

Pure: numbers in, values out. Lux (VLDB 2017, section 6) adds up loading, computing and transfers of a part in the same
way; its transfers are one link a GPU, here a ring of ranks. `PaperRanks` makes a session forecast one of them.

Whether cores are worth a rank beside GPUs: as in Garaph (USENIX ATC 2017, equation 3) both sides work at the same time,
and the best division lets them end together. GPUs alone exchange over NCCL; a rank of cores makes all of them exchange
by way of host memory, which is slower by two orders of magnitude: that, more than the cores, decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from penstock.engine.program.program import Program, author_function, message_dtype
from penstock.engine.ranks.communicator import Communicator

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.resources.direction import Direction
    from penstock.transfer.values.rates import Rates


@dataclass(frozen=True)
class RankLink:
    """What carries values between ranks: bytes per second that a rank receives, seconds of a message."""

    bytes_per_second: float
    latency: float


HOST_MPI = RankLink(bytes_per_second=4.4e9, latency=3e-6)
"""Between CPU ranks of one host, slices of arrays of 2 to 128 MiB with MPICH: 4.3 to 5.0 GB/s, 64 B in 2 to 3.5 us."""
VERTEX_RATE = 2.6e8
"""Vertices a second and thread for which a sweep computes a message and a value: 16 ms for 4.2 M (PageRank)."""
SCATTERED, PACKED = 0.68, 0.38
"""Of the edges that a sweep walks in a second over grouped messages: those over messages as ids have them (0.075 and
0.110 s), and those that the kernel decodes, too (0.2 s; decisions/sweeps.md)."""

ROWS, TRIANGLES = 4.0, 20.0
"""How many times as long as a plain pull an edge takes on the cores where a vertex sorts all its messages (cdlp 3.7),
and where rows are intersected (R-MAT 16 and 18: 8 and 39)."""


def vertex_seconds(vertices: int, threads: int) -> float:
    """Seconds in which a sweep computes messages and values of vertices: of all, unless ranks have values of theirs."""
    return vertices / (VERTEX_RATE * max(1, threads))


def rates_of_rank(rates: Rates, ranks: int) -> Rates:
    """The rates of one of so many ranks on a host, which divide its disk and its cores; rates: of the whole host."""
    return replace(
        rates,
        disk_bytes=rates.disk_bytes / ranks,
        decode_bytes=rates.decode_bytes / ranks,
        gather_bytes=rates.gather_bytes / ranks,
        kernel_edges=rates.kernel_edges / ranks,
        kernel_rows=rates.kernel_rows / ranks,
        sweep_edges=rates.sweep_edges / ranks,
    )


def exchange_seconds(nbytes: int, ranks: int, link: RankLink) -> float:
    """Seconds until every rank has all slices of an array of so many bytes.

    A ring: ranks - 1 messages, each of one slice (Thakur, Rabenseifner and Gropp, 2005).
    """
    return (ranks - 1) * (link.latency + nbytes / ranks / link.bytes_per_second)


def exchanged_bytes(program: Program, direction: Direction, vertices: int, vertex_bytes: int) -> int:
    """Bytes of the arrays that ranks hand out slices of, in a sweep in which every vertex has a message.

    A pull hands out what it found; a push exchanges parts before, and by windows nothing else. Of union-find every rank
    hands out its slice of a forest twice, of triangles every vertex' count.
    """
    if program.combine == "union":
        return 2 * vertices * vertex_bytes
    message = message_dtype(program, np.dtype(f"uint{8 * vertex_bytes}")).itemsize
    once = message * int(np.prod(program.message_shape)) * vertices
    return once if direction == "pull" or author_function(program, "corner") is not None else 2 * once


@dataclass
class PaperRanks(Communicator):
    """The first of so many ranks that all have its options. Refuses what only runs need: there is nobody to ask."""

    size: int
    rank: int = 0

    def gather_numbers(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return these numbers once for every rank."""
        return np.stack([numbers] * self.size)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError("ranks on paper forecast a run, and cannot take part in one")

    gather_slices = exchange_slices = wait = abort = _refuse


GAIN = 1.05
"""How many times as fast a sweep has to be with the cores."""
BETWEEN_GPUS = RankLink(bytes_per_second=200e9, latency=3e-5)
"""NCCL between H200s of one host: 128 MiB gathered in 0.34 ms (DESIGN section 1). A slower one changes little here."""
BY_HOST = RankLink((256 << 20) / 0.375, latency=1e-4)
"""Between GPUs and cores: the host's, and for each message a copy out and one in that are waited for."""
STEPS = 40


@dataclass(frozen=True)
class SharedSweep:
    """A sweep that ranks share.

    edges: how many. link_bytes: of an edge, over a link. decode_bytes: of an edge that comes from disk, decoded; 0
    where host memory holds all. disk_bytes: of all that come from disk. exchanged: bytes of the arrays handed out.
    """

    edges: int
    link_bytes: float
    exchanged: int
    disk_bytes: float = 0.0
    decode_bytes: float = 0.0


@dataclass(frozen=True)
class CoRun:
    """Seconds of a sweep on the GPUs alone, and with the cores; share: of the edges that the cores then have."""

    alone: float
    beside: float
    share: float

    @property
    def pays(self) -> bool:
        """Whether the cores make it faster by more than GAIN says."""
        return self.alone > GAIN * self.beside


def co_run(work: SharedSweep, gpus: int, gpu: Rates, room: float, cores: Rates) -> CoRun:
    """Predict both. gpu: rates of each of so many GPUs. room: bytes of edges that stay on each. cores: their rates."""

    def on_gpus(edges: float) -> float:
        each = edges / gpus
        brought = max(0.0, each * work.link_bytes - room)
        return max(each / gpu.kernel_edges, brought / gpu.copy_bytes)

    def on_cores(edges: float) -> float:
        return max(edges / cores.kernel_edges, edges * work.decode_bytes / cores.decode_bytes)

    disk = work.disk_bytes / gpu.disk_bytes
    low, high = 0.0, 1.0  # the longer the cores' share, the sooner the GPUs are done
    for _ in range(STEPS):
        share = (low + high) / 2
        low, high = (share, high) if on_cores(share * work.edges) < on_gpus((1 - share) * work.edges) else (low, share)
    alone = max(disk, on_gpus(work.edges)) + exchange_seconds(work.exchanged, gpus, BETWEEN_GPUS)
    beside = max(disk, on_gpus((1 - low) * work.edges), on_cores(low * work.edges))
    staged = 2 * work.exchanged / gpu.copy_bytes
    return CoRun(alone, beside + staged + exchange_seconds(work.exchanged, gpus + 1, BY_HOST), low)
