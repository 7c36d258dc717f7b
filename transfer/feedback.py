"""What the records of an iteration say about the rates: a prediction is compared with what happened, and corrected.

Owns the memory of both: a damped factor for each rate, a law for the kernels of each kind (`fit.py`), and the rates of
the next iteration. Seconds of a resource are what it would take alone: summed over threads and divided by their number;
of the disk, the time in which anything was read. Refuses to wait for a device: what its events say is taken when they
have passed. HyTGraph calibrates its constants once; correcting them during the run is ours.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from penstock.transfer.cost import KERNEL, LINK, RESOURCES, Cost
from penstock.transfer.device import Device
from penstock.transfer.fit import Fit, Law
from penstock.transfer.rates import Rates
from penstock.transfer.stamps import Stamps
from penstock.transfer.task import TaskRecord

Sums = list[tuple[float, float]]
"""Predicted and measured seconds of each of QUANTITIES."""

QUANTITIES = (*RESOURCES, "lines")
"""What has a factor of its own: every resource, and apart from copies what is read in place over the link. That of the
kernels stays 1: they have laws of their own."""
LINES = len(RESOURCES)
CLIP = 64.0
"""A factor lies between 1/CLIP and CLIP: what is further off is not a rate that is wrong."""
PRIOR_SECONDS = 1e-3
"""The given rates weigh as much as an observation of so many seconds."""
PAUSE = 4e-5
"""Seconds between two copies, up to which the second took them to start: 14 us on an H200, of 152 for 8 MB."""
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
    every edge is in memory. One thread uses it, for one walk at a time. stamps: told of every walk's work over a link.
    """

    stamps: Stamps | None = None

    def __init__(self, rates: Rates, threads: Threads, disk: Disk | None = None, *, corrects: bool = True) -> None:
        self.given = rates
        self._threads, self._disk, self._corrects = threads, disk, corrects
        self._sums: Sums = [(0.0, 0.0)] * len(QUANTITIES)
        self._factors = [1.0] * len(QUANTITIES)
        self._fits: dict[tuple[Hashable, Hashable], Fit] = {}
        self._program: Hashable = None
        self._law = Law(rates.kernel_latency)
        self._fit: Fit | None = None
        self._rates = rates
        self._noted: list[TaskRecord] = []
        self._noted_share = 0.0
        self._busy = 0.0
        self._walks = 0

    @property
    def factors(self) -> dict[str, float]:
        """By what the seconds of each quantity are multiplied now; the kernels' are a matter of `kernels`."""
        return dict(zip(QUANTITIES, self._factors, strict=True))

    @property
    def kernels(self) -> dict[Hashable, Law]:
        """What was learnt of the kernels of this program, by the kind of walk."""
        return {kind: fit.law for (program, kind), fit in self._fits.items() if program == self._program}

    def begin(self, device: Device, kind: Hashable = None) -> Rates:
        """Learn from the walk before, and return the rates for the next one, which begins now.

        kind: of walk; those of one kind have kernels that take alike (a direction, many edges or few).
        """
        self.settle(device)
        if self._disk is not None:
            self._busy = self._disk.busy_seconds
        given = Law(self.given.kernel_latency)
        self._fit = self._fits.setdefault((self._program, kind), Fit(given)) if self._corrects else None
        law = given if self._fit is None else self._fit.law
        if law != self._law:
            self._law = law
            self._rates = self._corrected()
        return self._rates

    def note(self, records: Sequence[TaskRecord]) -> None:
        """Take the records of a walk whose views have all been used; events may still be to come."""
        total = sum(record.disk_seconds for record in records)
        busy = 0.0 if self._disk is None else self._disk.busy_seconds - self._busy
        self._noted, self._noted_share = list(records), busy / total if total > 0 else 0.0
        self._walks += 1
        for record in records:
            record.walk = self._walks
        if self.stamps is not None:
            self.stamps.note(self._noted)

    def settle(self, device: Device) -> None:
        """Complete the records that were noted, as far as the device has come, and learn from them."""
        noted, self._noted = self._noted, []
        if not noted:
            return
        starts = gaps(noted, device)
        for record, start in zip(noted, starts, strict=True):
            take_times(record, device)
            record.measured = measured(record, self._threads, self._noted_share, start)
        if self._fit is None:
            return
        for task in launches(noted, self._law):
            self._fit.saw(*task)
        self._fit.learn()
        new = [(before / by, after) for (before, after), by in zip(observed(noted), self._factors, strict=True)]
        self._remember(remembered(self._sums, new))

    def turn_to(self, program: Hashable) -> None:
        """Go on with what is known of the kernels of another program; of a new one that is nothing."""
        self._program = program

    def inherit(self, other: Feedback) -> None:
        """Take over what another has learnt from the same rates."""
        self._fits = other._fits
        self._program = other._program
        self._remember(other._sums)

    def _remember(self, sums: Sums) -> None:
        self._sums = sums
        found = factors(sums)
        if found != self._factors:
            self._factors = found
            self._rates = self._corrected()

    def _corrected(self) -> Rates:
        law = self._law
        return replace(
            corrected(self.given, self._factors),
            kernel_edges=self.given.kernel_edges / law.slope,
            kernel_latency=law.launch,
            kernel_rows=1.0 / law.row if law.row > 0 else float("inf"),
        )


def gaps(records: Sequence[TaskRecord], device: Device) -> list[float]:
    """Return, for each record, the seconds that the link stood still before its copy, right behind another's.

    What starting a copy takes is not between its events. A longer pause is nothing that the link needed.
    """
    found, before = [], None
    for record in records:
        copies = [span for span in record.spans if span[0] == LINK and device.done(span[2])]
        pause = device.seconds(before, copies[0][1]) if before is not None and copies else 0.0
        found.append(pause if 0 < pause < PAUSE else 0.0)
        before = copies[-1][2] if copies else None
    return found


def take_times(record: TaskRecord, device: Device) -> None:
    """Add to a record the seconds between its events; those that the device has not passed are dropped."""
    spans, record.spans = record.spans, ()
    kernels = [span for span in spans if span[0] == KERNEL and device.done(span[2])]
    if kernels:
        record.kernel_seconds = sum(device.seconds(first, last) for _, first, last in kernels)
    copies = [span for span in spans if span[0] == LINK and device.done(span[2])]
    record.link_seconds += sum(device.seconds(first, last) for _, first, last in copies)


def measured(record: TaskRecord, threads: Threads, disk_share: float = 1.0, gap: float = 0.0) -> Cost:
    """Return what a task took of each resource, in the terms of its prediction.

    disk_share: seconds in which the disk was at work over the seconds summed over its reads, in the task's walk. gap:
    what the link took to start the copy besides (`gaps`). Where
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
        link + gap,
        kernel,
    )


def observed(records: Iterable[TaskRecord]) -> Sums:
    """Add up, for each quantity but the kernels, predicted and measured seconds, where there are both."""
    sums = [(0.0, 0.0)] * len(QUANTITIES)
    for record in records:
        if record.predicted is None or record.measured is None:
            continue
        for at, (before, after) in enumerate(zip(record.predicted.seconds, record.measured.seconds, strict=True)):
            if at != KERNEL and before > 0 and after > 0:
                quantity = LINES if at == LINK and record.route == "zero-copy" else at
                sums[quantity] = sums[quantity][0] + before, sums[quantity][1] + after
    return sums


def launches(records: Iterable[TaskRecord], law: Law) -> list[tuple[float, float, float]]:
    """Return rows, what the given rates said of the edges, and seconds of every kernel that was predicted and measured.

    law: by which it was predicted.
    """
    return [
        (
            float(record.rows),
            max(0.0, record.predicted.kernel - law.launch - law.row * record.rows) / law.slope,
            record.measured.kernel,
        )
        for record in records
        if record.predicted is not None and record.measured is not None
        if record.predicted.kernel > 0 and record.measured.kernel > 0
    ]


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
    return [min(max(ratio, 1 / CLIP), CLIP) for ratio in ratios]


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
