"""Corrections of the rates from the records of an iteration: predictions are compared with measured seconds.

Owns the memory of both: a damped factor for each rate, a law for the kernels of each kind (`kernel_cost_fit.py`), and
the rates of the next iteration. Seconds of a resource are what it would take alone: summed over threads and divided by
their number; of the disk, the time in which anything was read. Refuses to wait for a device: what its events say is
taken when they have passed. HyTGraph calibrates its constants once; correcting them during the run is ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, starmap
from typing import TYPE_CHECKING

from penstock.transfer.calibration.kernel_cost_fit import CostFit, CostLaw
from penstock.transfer.devices.device import Device
from penstock.transfer.devices.timestamps import DeviceTimestamps
from penstock.transfer.planning.carriers import Carriers
from penstock.transfer.values.cost import KERNEL, LINK, RESOURCES, UNPACK, Cost
from penstock.transfer.values.rates import Rates
from penstock.transfer.values.task import TaskRecord

if TYPE_CHECKING:
    from penstock.storage.read.reader import Reader

Sums = list[tuple[float, float]]
"""Predicted and measured seconds of each of QUANTITIES."""

QUANTITIES = RESOURCES
"""What has a factor of its own. That of the kernels stays 1, and what is read in place over the link is not the link's:
both have laws of their own."""
CLIP = 64.0
"""A factor is limited to 1/CLIP to CLIP: a larger error is not due to a wrong rate."""
PRIOR_SECONDS = 1e-3
"""The given rates weigh as much as an observation of so many seconds."""
SLOWER = 1.25
"""Times what was predicted of the link, up to which it explains the seconds of a kernel that reads over it."""
PAUSE = 4e-5
"""Seconds between two copies, up to which the second took them to start: 14 us on an H200, of 152 for 8 MB."""
FORGET = 0.9
"""What is not observed in an iteration keeps so much of its past, so that a route once too slow is tried again."""


Fits = tuple[CostFit, CostFit]
"""What is learnt of the kernels of a program and a kind of walk: by their work, and by what they read in place."""


@dataclass(frozen=True)
class Basis:
    """What predicts a walk's tasks: the laws of kernel and lines, `fits` where they are learnt, the factors."""

    fits: Fits | None
    kernel: CostLaw
    lines: CostLaw
    factors: Sequence[float]


@dataclass(frozen=True)
class Walked:
    """A walk that is over on the host: its records, how busy the disk was in it, and what predicted it."""

    records: list[TaskRecord]
    disk_share: float
    basis: Basis

    def passed(self, device: Device) -> bool:
        """Whether the device has come to its end as well.

        Kernels run in the order of the records, each behind its copy: when the last has passed, so have all.
        """
        spans = next((record.spans for record in reversed(self.records) if record.spans), ())
        return all(device.done(last) for _, _, last in spans)


class Feedback:
    """Predicted and measured seconds, remembered, and what they make of `rates`.

    corrects: whether `begin` returns corrected rates or those given; measuring goes on either way. disk: None where
    every edge is in memory. One thread uses it, for one walk at a time. stamps: gets every walk's work over a link.
    """

    stamps: DeviceTimestamps | None = None

    def __init__(
        self, rates: Rates, threads: tuple[int, int], disk: Reader | None = None, *, corrects: bool = True
    ) -> None:
        self.given = rates
        self._threads, self._disk, self._corrects = threads, disk, corrects
        self._sums: Sums = [(0.0, 0.0)] * len(QUANTITIES)
        self._factors = [1.0] * len(QUANTITIES)
        self._fits: dict[tuple[Hashable, Hashable], Fits] = {}
        self._program: Hashable = None
        self._carriers: dict[Hashable, Carriers] = {}
        self._begun = self._given = self._basis_of(None)
        self._last: dict[tuple[Hashable, Hashable], tuple[Basis, Rates]] = {}
        self._noted: deque[Walked] = deque()
        self._busy = 0.0
        self._walks = 0

    @property
    def factors(self) -> dict[str, float]:
        """By what the seconds of each quantity are multiplied now; for kernels see `kernels` and `lines`."""
        return dict(zip(QUANTITIES, self._factors, strict=True))

    @property
    def kernels(self) -> dict[Hashable, CostLaw]:
        """What was learnt of the kernels of this program, by the kind of walk."""
        return {kind: kernel.law for (program, kind), (kernel, _) in self._fits.items() if program == self._program}

    @property
    def lines(self) -> dict[Hashable, CostLaw]:
        """The same of what they read in place over the link."""
        return {kind: lines.law for (program, kind), (_, lines) in self._fits.items() if program == self._program}

    def begin(self, device: Device, kind: Hashable = None) -> Rates:
        """Learn from the walks before, and return the rates for the next one, which begins now.

        kind: of walk; those of one kind have kernels that take alike (a direction, many edges or few).
        """
        self.settle(device)
        key = self._program, kind
        if self._corrects and key not in self._fits:
            given = CostLaw(self.given.kernel_latency)
            self._fits[key] = CostFit(given), CostFit(given)
        self._begun = self._basis_of(self._fits.get(key))
        basis, rates = self._last.get(key, (self._given, self.given))
        if basis != self._begun:
            begun = self._begun
            rates = corrected(self.given, begun.factors, begun.kernel, begun.lines)
            self._last[key] = self._begun, rates
        return rates

    def _basis_of(self, fits: Fits | None) -> Basis:
        if fits is None:
            return Basis(None, CostLaw(self.given.kernel_latency), CostLaw(self.given.line_latency), self._factors)
        return Basis(fits, fits[0].law, fits[1].law, self._factors)

    def watch(self) -> Basis:
        """Count what the disk does as of the walk that begins now, for `note`, and return what predicts that walk."""
        if self._disk is not None:
            self._busy = self._disk.busy_seconds
        return self._begun

    def note(self, records: Sequence[TaskRecord], basis: Basis | None = None) -> None:
        """Take the records of a walk whose views have all been used; events may still be to come.

        basis: what held when it was planned, None for what holds now.
        """
        total = sum(record.disk_seconds for record in records)
        busy = 0.0 if self._disk is None else self._disk.busy_seconds - self._busy
        self._noted.append(Walked(list(records), busy / total if total > 0 else 0.0, basis or self._begun))
        self._walks += 1
        for record in records:
            record.walk = self._walks
        if self._disk is not None:
            self._busy = self._disk.busy_seconds  # what another device's walk brings from now on is not this one's
        if self.stamps is not None:
            self.stamps.note(self._noted[-1].records)

    def settle(self, device: Device) -> None:
        """Complete the records of walks that the device has passed, in their order, and learn from them."""
        while self._noted and self._noted[0].passed(device):
            self._learn(self._noted.popleft(), device)

    def _learn(self, walked: Walked, device: Device) -> None:
        noted, basis = walked.records, walked.basis
        for record, start in zip(noted, take_times(noted, device), strict=True):
            record.measured = measured(record, self._threads, walked.disk_share, start)
        if basis.fits is None:
            return
        for fit, law, at in zip(basis.fits, (basis.kernel, basis.lines), (KERNEL, LINK), strict=True):
            fit.learn(launches(noted, law, at))
        new = [(before / by, after) for (before, after), by in zip(observed(noted), basis.factors, strict=True)]
        self._remember(remembered(self._sums, new))

    def turn_to(self, program: Hashable) -> None:
        """Go on with what is known of the kernels of another program; of a new one that is nothing."""
        self._program = program

    @property
    def carriers(self) -> Carriers:
        """What is known of carriers in runs of this program."""
        return self._carriers.setdefault(self._program, Carriers())

    def inherit(self, other: Feedback) -> None:
        """Take over what another has learnt from the same rates."""
        self._fits, self._carriers = other._fits, other._carriers
        self._program = other._program
        self._remember(other._sums)

    def _remember(self, sums: Sums) -> None:
        self._sums, self._factors = sums, factors(sums)


def _rate(seconds: float) -> float:
    return 1.0 / seconds if seconds > 0 else float("inf")


def take_times(records: Sequence[TaskRecord], device: Device) -> list[float]:
    """Add to records the seconds between their events, all of which the device has passed.

    Returns, for each record, the seconds that the link stood still before its copy, right behind another's: what
    starting a copy takes is not between its events. A longer pause is nothing that the link needed.
    """
    copies = [[event for at, *events in record.spans if at == LINK for event in events] for record in records]
    seconds = list(starmap(device.seconds, pairwise(chain(*copies))))
    found, position, behind = [], 0, False
    for record, events in zip(records, copies, strict=True):
        pause = seconds[position - 1] if events and behind else 0.0
        found.append(pause if 0 < pause < PAUSE else 0.0)
        record.link_seconds += sum(seconds[position : position + len(events) : 2])
        kernels = [device.seconds(first, last) for at, first, last in record.spans if at == KERNEL]
        if kernels:
            record.kernel_seconds = sum(kernels)
        record.unpack_seconds += sum(device.seconds(first, last) for at, first, last in record.spans if at == UNPACK)
        position, behind, record.spans = position + len(events), bool(events), ()
    return found


def measured(record: TaskRecord, threads: tuple[int, int], disk_share: float = 1.0, gap: float = 0.0) -> Cost:
    """Return what a task took of each resource, in the terms of its prediction.

    threads: how many decode, and how many gather, at once. disk_share: seconds in which the disk was at work over the
    seconds summed over its reads, in the task's walk. gap: what the link took to start the copy besides (`take_times`).
    Where a kernel reads over the link in place and no device reports how long the link was busy, the kernel's seconds
    are those of whichever was predicted to take longer, and the link's where that explains them: else a kernel once
    thought slow would never be tried apart from it.
    """
    link, walked = record.link_seconds, record.edges + record.resent
    kernel = record.kernel_seconds * (1 - record.resent / max(1, walked))
    predicted = record.predicted if record.route == "zero-copy" and not link else None
    if predicted is not None and (predicted.link > predicted.kernel or kernel <= SLOWER * predicted.link):
        link, kernel = kernel, 0.0
    return Cost(
        record.disk_seconds * disk_share,
        record.decode_seconds / threads[0],
        record.gather_seconds / threads[1],
        link + gap,
        kernel,
        record.unpack_seconds,
    )


def observed(records: Iterable[TaskRecord]) -> Sums:
    """Add up, for each quantity that has a factor, predicted and measured seconds, where there are both."""
    sums = [(0.0, 0.0)] * len(QUANTITIES)
    for record in records:
        if record.predicted is None or record.measured is None:
            continue
        for at, (before, after) in enumerate(zip(record.predicted, record.measured, strict=True)):
            by_law = at in (KERNEL, UNPACK) or (at == LINK and record.route == "zero-copy")
            if not by_law and before > 0 and after > 0:
                sums[at] = sums[at][0] + before, sums[at][1] + after
    return sums


def launches(records: Iterable[TaskRecord], law: CostLaw, at: int = KERNEL) -> list[tuple[float, float, float]]:
    """Return rows, what the given rates said of the work, and seconds of every kernel that was predicted and measured.

    law: by which it was predicted. at: KERNEL, for the edges that it walks, or LINK, for lines that it reads in place.
    """
    found = []
    for record in records:
        if record.predicted is None or record.measured is None or (at == LINK and record.route != "zero-copy"):
            continue
        before, after = record.predicted[at], record.measured[at]
        if before > 0 and after > 0:
            base = max(0.0, before - law.launch - law.row * record.rows) / law.slope
            found.append((float(record.rows), base, after))
    return found


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


def corrected(rates: Rates, factor: Sequence[float], kernel: CostLaw, lines: CostLaw) -> Rates:
    """Return the rates by which everything takes `factor` (one for each of QUANTITIES) times as long.

    Kernels, and what they read in place, take what their laws say. What unpacks is not corrected: its latency is mostly
    the host's, who has a task more to start, and not between events.
    """
    disk, decode, gather, copy, *_ = factor
    return replace(
        rates,
        disk_bytes=rates.disk_bytes / disk,
        decode_bytes=rates.decode_bytes / decode,
        gather_bytes=rates.gather_bytes / gather,
        copy_bytes=rates.copy_bytes / copy,
        copy_latency=rates.copy_latency * copy,
        kernel_edges=rates.kernel_edges / kernel.slope,
        kernel_latency=kernel.launch,
        kernel_rows=_rate(kernel.row),
        line_rate=rates.line_rate / lines.slope,
        sector_rate=rates.sector_rate / lines.slope,
        line_runs=tuple((length, rate / lines.slope) for length, rate in rates.line_runs),
        line_latency=lines.launch,
        line_rows=_rate(lines.row),
    )
