"""Whether the cores of a host are worth a rank beside its GPUs: seconds of a sweep without them and with them.

Pure: numbers in, values out. As in Garaph (USENIX ATC 2017, equation 3) both sides work at the same time, and the best
division lets them end together. GPUs alone exchange over NCCL; a rank of cores makes all of them exchange by way of
host memory, which is slower by two orders of magnitude: that, more than the cores, decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.planning.rank_forecast import RankLink, exchange_seconds

if TYPE_CHECKING:
    from penstock.transfer.values.rates import Rates

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
