"""What the records of an iteration say about the rates: a prediction is compared with what happened, and corrected.

Owns the comparison of every task's predicted seconds with its measured ones, a damped factor for each rate, and the
rates of the next iteration. Seconds of a resource are what it would take alone: summed over threads and divided by
their number; of the disk, the time in which anything was read. Refuses to wait for a device: what its events say is
taken when they have passed. HyTGraph calibrates its constants once; correcting them during the run is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Protocol

from penstock.transfer.cost import KERNEL, LINK, RESOURCES, Cost
from penstock.transfer.device import Device
from penstock.transfer.rates import Rates
from penstock.transfer.task import TaskRecord

Sums = list[tuple[float, float]]
"""Predicted and measured seconds of each of QUANTITIES."""

QUANTITIES = (*RESOURCES, "lines")
"""What has a factor of its own: every resource, and apart from copies what is read in place over the link."""
LINES = len(RESOURCES)
CLIP = 4.0
"""A factor lies between 1/CLIP and CLIP: what is further off is not a rate that is wrong by a little."""
KERNEL_CLIP = 16.0
"""The same for kernels, whose rate is that of a plain sweep and not of the program."""
PRIOR_SECONDS = 1e-3
"""The given rates weigh as much as an observation of so many seconds."""
FORGET = 0.9
"""What is not observed in an iteration keeps so much of its past, so that a route once too slow is tried again."""


class Disk(Protocol):
    """What tells how long a disk was at work (storage/reader.py)."""

    @property
    def busy_seconds(self) -> float:
        """Return the seconds so far in which at least one read was under way."""


@dataclass(frozen=True, slots=True)
class Threads:
    """How many threads decode, and how many gather, at once."""

    decode: int = 1
    gather: int = 1


class Feedback:
    """Predicted and measured seconds, remembered, and what they make of `rates`.

    corrects: whether `begin` returns corrected rates or those given; measuring goes on either way. disk: None where
    every edge is in memory. One thread uses it, for one walk at a time.
    """

    def __init__(self, rates: Rates, threads: Threads, disk: Disk | None = None, *, corrects: bool = True) -> None:
        self.given = rates
        self._threads, self._disk, self._corrects = threads, disk, corrects
        self._sums: Sums = [(0.0, 0.0)] * len(QUANTITIES)
        self._factors = [1.0] * len(QUANTITIES)
        self._rates = rates
        self._noted: list[TaskRecord] = []
        self._noted_share = 0.0
        self._busy = 0.0

    @property
    def factors(self) -> dict[str, float]:
        """By what the seconds of each quantity are multiplied now."""
        return dict(zip(QUANTITIES, self._factors, strict=True))

    def begin(self, device: Device) -> Rates:
        """Learn from the walk before, and return the rates for the next one, which begins now."""
        self.settle(device)
        if self._disk is not None:
            self._busy = self._disk.busy_seconds
        return self._rates

    def note(self, records: Sequence[TaskRecord]) -> None:
        """Take the records of a walk whose views have all been used; events may still be to come."""
        total = sum(record.disk_seconds for record in records)
        busy = 0.0 if self._disk is None else self._disk.busy_seconds - self._busy
        self._noted, self._noted_share = list(records), busy / total if total > 0 else 0.0

    def settle(self, device: Device) -> None:
        """Complete the records that were noted, as far as the device has come, and learn from them."""
        noted, self._noted = self._noted, []
        if not noted:
            return
        for record in noted:
            take_times(record, device)
            record.measured = measured(record, self._threads, self._noted_share)
        if not self._corrects:
            return
        new = [(before / by, after) for (before, after), by in zip(observed(noted), self._factors, strict=True)]
        self._remember(remembered(self._sums, new))

    def forget_kernels(self) -> None:
        """Begin anew with the kernels: another program has others."""
        self._remember([(0.0, 0.0) if at == KERNEL else pair for at, pair in enumerate(self._sums)])

    def inherit(self, other: Feedback) -> None:
        """Take over what another has learnt from the same rates."""
        self._remember(other._sums)

    def _remember(self, sums: Sums) -> None:
        self._sums = sums
        self._factors = factors(self._sums)
        self._rates = corrected(self.given, self._factors)


def take_times(record: TaskRecord, device: Device) -> None:
    """Add to a record the seconds between its events; those that the device has not passed are dropped."""
    spans, record.spans = record.spans, ()
    kernels = [span for span in spans if span[0] == KERNEL and device.done(span[2])]
    if kernels:
        record.kernel_seconds = sum(device.seconds(first, last) for _, first, last in kernels)
    copies = [span for span in spans if span[0] == LINK and device.done(span[2])]
    record.link_seconds += sum(device.seconds(first, last) for _, first, last in copies)


def measured(record: TaskRecord, threads: Threads, disk_share: float = 1.0) -> Cost:
    """Return what a task took of each resource, in the terms of its prediction.

    disk_share: seconds in which the disk was at work over the seconds summed over its reads, in the task's walk. Where
    a kernel reads over the link in place and no device says how long the link was busy, the kernel's seconds
    are those of whichever of the two was predicted to take longer.
    """
    link, kernel = record.link_seconds, record.kernel_seconds / (1 + record.local_rounds)
    predicted = record.predicted
    if record.route == "zero-copy" and not link and predicted is not None and predicted.link > predicted.kernel:
        link, kernel = kernel, 0.0
    return Cost(
        record.disk_seconds * disk_share,
        record.decode_seconds / threads.decode,
        record.gather_seconds / threads.gather,
        link,
        kernel,
    )


def observed(records: Iterable[TaskRecord]) -> Sums:
    """Add up, for each quantity, predicted and measured seconds, where there are both."""
    sums = [(0.0, 0.0)] * len(QUANTITIES)
    for record in records:
        if record.predicted is None or record.measured is None:
            continue
        for at, (before, after) in enumerate(zip(record.predicted.seconds, record.measured.seconds, strict=True)):
            if before > 0 and after > 0:
                quantity = LINES if at == LINK and record.route == "zero-copy" else at
                sums[quantity] = sums[quantity][0] + before, sums[quantity][1] + after
    return sums


def remembered(past: Sums, new: Sums) -> Sums:
    """Return the sums after an iteration: half of a quantity's past stays where as much of it is new.

    Time is seconds, not iterations: a thousand tiny frontiers outweigh nothing.
    """
    found = []
    for (before, after), (more, took) in zip(past, new, strict=True):
        stays = 0.5 ** min(more / max(before, 1e-12), 60.0) if more else FORGET
        found.append((before * stays + more, after * stays + took))
    return found


def factors(sums: Sums) -> list[float]:
    """Return measured over predicted seconds of each quantity, damped by the prior and clipped."""
    ratios = ((after + PRIOR_SECONDS) / (before + PRIOR_SECONDS) for before, after in sums)
    clips = (KERNEL_CLIP if quantity == KERNEL else CLIP for quantity in range(len(QUANTITIES)))
    return [min(max(ratio, 1 / clip), clip) for ratio, clip in zip(ratios, clips, strict=True)]


def corrected(rates: Rates, factor: Sequence[float]) -> Rates:
    """Return the rates by which everything takes `factor` (one for each of QUANTITIES) times as long."""
    disk, decode, gather, copy, kernel, lines = factor
    return replace(
        rates,
        disk_bytes=rates.disk_bytes / disk,
        decode_bytes=rates.decode_bytes / decode,
        gather_bytes=rates.gather_bytes / gather,
        copy_bytes=rates.copy_bytes / copy,
        copy_latency=rates.copy_latency * copy,
        line_rate=rates.line_rate / lines,
        sector_rate=rates.sector_rate / lines,
        kernel_edges=rates.kernel_edges / kernel,
        kernel_latency=rates.kernel_latency * kernel,
        line_runs=tuple((length, rate / lines) for length, rate in rates.line_runs),
    )


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How well the tasks of one route were predicted, on the resource that was to be the busiest of each.

    median_error: median over the tasks of |predicted - measured| / measured; seconds are sums.
    """

    tasks: int
    median_error: float
    predicted_seconds: float
    measured_seconds: float


def accuracy(records: Iterable[TaskRecord]) -> dict[str, Accuracy]:
    """Return, by route, how well tasks were predicted; routes of which nothing was measured are left out."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        if record.predicted is None or record.measured is None:
            continue
        before, after = record.predicted.seconds, record.measured.seconds
        busiest = max(range(len(RESOURCES)), key=lambda at: before[at])
        if before[busiest] > 0 and after[busiest] > 0:
            pairs.setdefault(record.route, []).append((before[busiest], after[busiest]))
    return {
        route: Accuracy(
            len(found),
            median(abs(before - after) / after for before, after in found),
            sum(before for before, _ in found),
            sum(after for _, after in found),
        )
        for route, found in pairs.items()
    }
