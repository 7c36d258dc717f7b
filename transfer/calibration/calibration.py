"""What was measured of a machine, and the rates that follow: one value, kept as one JSON object; the copy probe.

Owns the way from raw tables to `Rates`, for any number of threads and any disk, and the form in which it is stored.
Refuses facts that it did not write: damaged, foreign or newer ones are one InputError with the reason.

Copies across the link are measured by size, over any Device, then one latency and one rate are fitted to them. A size
is only tried when the time of the one before allows it; kernels are launched by engine/calibration/calibrate.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.hardware_info import fingerprint
from penstock.storage.base.measurement import LEAST_SECONDS, RateSample, TimeBudget
from penstock.transfer.devices.device import Device
from penstock.transfer.values.rates import LINE_BYTES, SECTOR_BYTES, TASK_SECONDS, Rates

FORMAT = 2
MARK = "penstock_rates"
Samples = tuple[RateSample, ...]
NEW_FILE = ", new file"
"""After the name of a disk of which a file was measured that had just been written: it may be faster than old ones."""
LEARNT = {"kernel_rows", "line_latency", "line_rows"}  # rates that a run finds out, and no probe measures
THREADED = {"decode": "decode_bytes", "gather": "gather_bytes", "kernel": "kernel_edges", "sweep": "sweep_edges"}
"""Tables whose `at` is a number of threads, and the rate that each gives."""


@dataclass(frozen=True)
class Calibration:
    """One machine's measured rates.

    machine: facts by name, whose fingerprint names the file. threads: how many the rates are for. tables: samples by
    name: copy, lines, launch and those in THREADED ("kernel" of a GPU has one sample, at 0). disks: samples by reads in
    flight, for every disk that was measured, by its name. missing: what was not measured, and why.
    """

    machine: Mapping[str, Any]
    date: str
    quick: bool
    seconds: float
    threads: int
    rates: Rates
    tables: Mapping[str, Samples]
    disks: Mapping[str, Samples] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that stand for the machine."""
        return fingerprint(self.machine)

    def at(self, threads: int, disk: str | None = None) -> Rates:
        """Return the rates of a run with so many threads, reading from a disk of that name if it was measured."""
        changed: dict[str, Any] = {}
        if threads != self.threads:
            for table, name in THREADED.items():
                samples = self.tables.get(table, ())
                if samples and samples[0].at > 0:
                    changed[name] = with_threads(samples, threads)
        for name in () if disk is None else (disk + NEW_FILE, disk):
            if samples := self.disks.get(name, ()):
                changed["disk_bytes"] = in_flight_rate(samples)
        return replace(self.rates, **changed)

    def facts(self) -> dict[str, Any]:
        """Return it as JSON has it; a rate that is infinite (the host has no link) is null."""
        rates = {f.name: getattr(self.rates, f.name) for f in fields(Rates) if f.name not in LEARNT}
        return {
            MARK: FORMAT,
            "machine": dict(self.machine),
            "date": self.date,
            "quick": self.quick,
            "seconds": self.seconds,
            "threads": self.threads,
            "rates": {name: None if value == math.inf else value for name, value in rates.items()},
            "tables": {name: [asdict(sample) for sample in rows] for name, rows in self.tables.items()},
            "disks": {name: [asdict(sample) for sample in rows] for name, rows in self.disks.items()},
            "missing": dict(self.missing),
        }

    @classmethod
    def of(cls, facts: Any) -> Calibration:
        """Make it of facts that were stored. Raises InputError with what is missing."""
        if not isinstance(facts, Mapping) or MARK not in facts:
            raise InputError("these are no rates of Penstock's")
        if facts[MARK] != FORMAT:
            raise InputError(f"these rates are of format {facts[MARK]!r}, and this version reads format {FORMAT}")
        try:
            return cls(
                machine=dict(facts["machine"]),
                date=str(facts["date"]),
                quick=bool(facts["quick"]),
                seconds=float(facts["seconds"]),
                threads=int(facts["threads"]),
                rates=_rates(facts["rates"], int(facts["threads"])),
                tables={str(name): _samples(rows) for name, rows in facts["tables"].items()},
                disks={str(name): _samples(rows) for name, rows in facts["disks"].items()},
                missing={str(name): str(why) for name, why in facts["missing"].items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(f"these rates are damaged ({type(error).__name__}: {error})") from error


def _rates(stored: Mapping[str, Any], threads: int) -> Rates:
    stored = {"sweep_edges": Rates.host(threads).sweep_edges, **stored}  # older ones lack it
    known = {entry.name for entry in fields(Rates)} - LEARNT
    if unknown := sorted(set(stored) - known):
        raise ValueError(f"unknown rates {', '.join(unknown)}")
    if absent := sorted(known - set(stored)):
        raise ValueError(f"no {', '.join(absent)}")
    given: dict[str, Any] = {name: math.inf if value is None else value for name, value in stored.items()}
    runs = tuple((float(size), float(rate)) for size, rate in given.pop("line_runs"))
    return Rates(line_runs=runs, **{name: float(value) for name, value in given.items()})


def _samples(rows: Iterable[Mapping[str, Any]]) -> Samples:
    return tuple(RateSample(int(row["at"]), float(row["amount"]), float(row["seconds"])) for row in rows)


def derive(base: Rates, tables: Mapping[str, Samples], disk: Samples, threads: int) -> Rates:
    """Return `base` with every rate that was measured in the place of its own; `threads`: those of a run."""
    found: dict[str, Any] = {}
    if copies := tables.get("copy"):
        found["copy_latency"], found["copy_bytes"] = fit_copy_rate(copies)
    if lines := tables.get("lines"):
        found["line_runs"] = tuple((float(sample.at), sample.rate) for sample in lines)
        found["sector_rate"] = min(lines, key=lambda sample: abs(sample.at - SECTOR_BYTES)).rate
        found["line_rate"] = max(sample.rate for sample in lines if sample.at >= min(LINE_BYTES, lines[-1].at))
    if launches := tables.get("launch"):
        found["kernel_latency"] = 1.0 / fastest(launches)
    if unpacked := tables.get("unpack"):
        launch, found["unpack_edges"] = fit_copy_rate(unpacked)
        found["unpack_latency"] = TASK_SECONDS + launch
    for table, name in THREADED.items():
        if samples := tables.get(table):
            found[name] = with_threads(samples, threads)
    if disk:
        found["disk_bytes"] = in_flight_rate(disk)
    return replace(base, **found)


def fastest(samples: Sequence[RateSample]) -> float:
    """Return the highest rate among samples."""
    return max(sample.rate for sample in samples)


def in_flight_rate(samples: Sequence[RateSample]) -> float:
    """Return the rate with the most reads in flight: as many as a reader has, where that was measured."""
    return max(samples, key=lambda sample: sample.at).rate


def with_threads(samples: Sequence[RateSample], threads: int) -> float:
    """Return the highest rate that at most so many threads reach (that of the fewest, if all took more).

    One sample at 0 stands for any number: what was measured does not run on the host's threads.
    """
    allowed = [sample.rate for sample in samples if sample.at <= threads]
    return max(allowed) if allowed else samples[0].rate


COPY_SIZES = tuple(1 << power for power in range(16, 31, 2))
"""64 KiB to 1 GiB."""
REPEATS = 7


def copy_rates(
    device: Device, target: Any, source: NDArray[np.uint8], seconds: float, clock: TimeBudget
) -> tuple[RateSample, ...]:
    """Copy the first bytes of `source` to `target`, size by size, for `seconds` in all; the best time of each size.

    source, target: uint8, page-locked host memory and the device's; sizes that do not fit them are left out. `at` and
    the amount of a sample are bytes. Time is the device's own, from events around the copy.
    """
    stream, until = device.stream(), clock.until(seconds)
    rows: list[RateSample] = []
    for size in COPY_SIZES:
        if size > len(source):
            break
        expected = 2 * rows[-1].seconds * size / rows[-1].at if rows else 0.0
        if rows and clock.now() + expected > until:
            break
        _copy(device, target[:size], source[:size], stream)  # untimed: pages are touched
        best, repeats = float("inf"), 0
        while repeats < REPEATS and (not repeats or clock.now() + best < until):
            best = min(best, _copy(device, target[:size], source[:size], stream))
            repeats += 1
        rows.append(RateSample(size, size, best))
    return tuple(rows)


def _copy(device: Device, target: Any, source: NDArray[np.uint8], stream: Any) -> float:
    began = device.event(stream)
    device.copy_in(target, source, stream)
    ended = device.event(stream)
    device.wait(ended)
    return max(LEAST_SECONDS, device.seconds(began, ended))


def fit_copy_rate(samples: Sequence[RateSample]) -> tuple[float, float]:
    """Return (latency in seconds, amount per second) such that latency + amount / rate is near every sample's time.

    Least squares of the relative errors, so that small sizes settle the latency and large ones the rate; the latency is
    never negative. Times that do not grow with the amount give the fastest rate seen, and no latency.
    """
    amounts = np.array([sample.amount for sample in samples], dtype=np.float64)
    times = np.array([max(sample.seconds, LEAST_SECONDS) for sample in samples], dtype=np.float64)
    rows = np.stack([1.0 / times, amounts / times], axis=1)
    latency, each = 0.0, 0.0
    if len(samples) > 1:
        scale = np.array([1.0, max(amounts.max(), 1.0)])
        solution = np.linalg.lstsq(rows / scale, np.ones(len(rows)), rcond=None)[0] / scale
        latency, each = float(solution[0]), float(solution[1])
    if latency < 0 or len(samples) == 1:
        latency, each = 0.0, float(rows[:, 1].sum() / (rows[:, 1] @ rows[:, 1]))
    if each <= 0:
        return 0.0, max(sample.rate for sample in samples)
    return latency, 1.0 / each
