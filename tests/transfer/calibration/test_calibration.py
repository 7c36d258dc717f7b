"""From tables to rates, for threads and disks; stored and read again; refused when it is not ours."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.base.measurement import RateSample, TimeBudget
from penstock.tools.base.output import plain
from penstock.transfer.calibration.calibration import (
    COPY_SIZES,
    MARK,
    NEW_FILE,
    REPEATS,
    Calibration,
    copy_rates,
    derive,
    fit_copy_rate,
)
from penstock.transfer.devices import emulated
from penstock.transfer.devices.emulated import EmulatedDevice
from penstock.transfer.values.rates import Rates
from support.fakes import SleepingClock

TABLES = {
    "copy": tuple(RateSample(size, size, 1e-5 + size / 50e9) for size in (1 << 16, 1 << 20, 1 << 24)),
    "lines": (RateSample(32, 700, 1e-6), RateSample(128, 400, 1e-6), RateSample(8192, 410, 1e-6)),
    "launch": (RateSample(32, 32, 32 * 4e-6),),
    "kernel": (RateSample(0, 50, 1e-9),),
    "decode": (RateSample(1, 3, 1e-9), RateSample(2, 6, 1e-9), RateSample(4, 5, 1e-9)),
    "gather": (RateSample(1, 10, 1e-9), RateSample(2, 20, 1e-9), RateSample(4, 38, 1e-9)),
}
DISK = (RateSample(1, 1e9, 1.0), RateSample(8, 3e9, 1.0))


def made(**changes: Any) -> Calibration:
    given = Calibration(
        machine={"processor": "p", "cores": 4, "device": {"kind": "cuda"}},
        date="2026-11-21T00:00:00+00:00",
        quick=True,
        seconds=1.25,
        threads=4,
        rates=derive(Rates.pcie5(4), TABLES, DISK, 4),
        tables=TABLES,
        disks={"259:1": DISK},
        missing={"x": "no time left"},
    )
    return replace(given, **changes)


def test_every_table_gives_its_rate() -> None:
    rates = made().rates
    assert rates.copy_bytes == pytest.approx(50e9)
    assert rates.copy_latency == pytest.approx(1e-5)
    assert [length for length, _ in rates.line_runs] == [32.0, 128.0, 8192.0]
    assert [rate for _, rate in rates.line_runs] == pytest.approx([700e6, 400e6, 410e6])
    assert (rates.sector_rate, rates.line_rate) == (pytest.approx(700e6), pytest.approx(410e6))
    assert rates.kernel_latency == pytest.approx(4e-6)
    assert rates.kernel_edges == pytest.approx(50e9)
    assert rates.decode_bytes == pytest.approx(6e9)  # two threads do better than four
    assert rates.gather_bytes == pytest.approx(38e9)
    assert rates.disk_bytes == pytest.approx(3e9)


def test_what_was_not_measured_stays_as_it_is() -> None:
    assert derive(Rates.pcie5(2), {}, (), 2) == Rates.pcie5(2)
    assert derive(Rates.host(2), {"gather": TABLES["gather"]}, (), 2) == replace(
        Rates.host(2), gather_bytes=TABLES["gather"][1].rate
    )


def test_a_run_with_fewer_threads_gets_what_they_do() -> None:
    known = made()
    assert known.at(4) == known.rates
    assert known.at(1).decode_bytes == pytest.approx(3e9)
    assert known.at(3).gather_bytes == pytest.approx(20e9)
    assert known.at(1).kernel_edges == known.rates.kernel_edges  # a GPU's does not run on them
    assert known.at(1).copy_bytes == known.rates.copy_bytes


def test_a_disk_that_was_measured_has_its_own_rate() -> None:
    known = made(disks={"259:1": DISK, "0:42": (RateSample(4, 5e8, 1.0),)})
    assert known.at(4, "0:42").disk_bytes == pytest.approx(5e8)
    assert known.at(4, "9:9") == known.at(4)


def test_what_a_graph_file_gave_goes_before_a_new_file() -> None:
    new, old = RateSample(24, 3.3e9, 1.0), RateSample(24, 1.6e9, 1.0)
    known = made(disks={f"1:1{NEW_FILE}": (new,), f"2:2{NEW_FILE}": (new,), "2:2": (old,)})
    assert known.at(4, "1:1").disk_bytes == pytest.approx(3.3e9)
    assert known.at(4, "2:2").disk_bytes == pytest.approx(1.6e9)


def test_the_rate_with_the_most_reads_in_flight_counts() -> None:
    samples = (RateSample(24, 2e9, 1.0), RateSample(1, 3e9, 1.0))
    assert made(disks={"1:1": samples}).at(4, "1:1").disk_bytes == pytest.approx(2e9)
    assert made(disks={"1:1": ()}).at(4, "1:1") == made().at(4)


@pytest.mark.parametrize("base", [Rates.pcie5(4), Rates.host(4)])
def test_it_is_the_same_after_a_trip_through_json(base: Rates) -> None:
    known = made(rates=base)
    assert Calibration.of(json.loads(json.dumps(plain(known.facts()), allow_nan=False))) == known


@pytest.mark.parametrize("facts", [None, [], "x", {}, {"vertices": 3}])
def test_foreign_facts_are_refused(facts: Any) -> None:
    with pytest.raises(InputError, match="no rates of Penstock"):
        Calibration.of(facts)


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(InputError, match="format 99"):
        Calibration.of({MARK: 99})


BAD: dict[str, list[Any]] = {
    "machine": [None, 3],
    "seconds": [None, "soon", [3]],
    "threads": [None, "four", float("inf"), {}],
    "rates": [None, 3, [], {"disk_bytes": 1.0}],
    "tables": [None, [3], {"copy": 3}, {"copy": [{"at": 1}]}, {"copy": [{"at": "x", "amount": 1, "seconds": 1}]}],
    "disks": [None, 7, {"0:1": [None]}],
    "missing": [None, [3]],
}


def test_rates_from_before_sweeps_were_measured_are_read() -> None:
    facts = json.loads(json.dumps(plain(made().facts())))
    del facts["rates"]["sweep_edges"]
    assert Calibration.of(facts).rates.sweep_edges == Rates.host(facts["threads"]).sweep_edges


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD.items() for value in values])
def test_damaged_facts_are_refused(name: str, value: Any) -> None:
    facts = json.loads(json.dumps(plain(made().facts())))
    with pytest.raises(InputError, match="damaged"):
        Calibration.of(facts | {name: value})


@pytest.mark.parametrize("name", ["date", "quick", *BAD])
def test_every_fact_is_needed(name: str) -> None:
    facts = json.loads(json.dumps(plain(made().facts())))
    del facts[name]
    with pytest.raises(InputError, match=name):
        Calibration.of(facts)


@pytest.mark.parametrize("change", [{"disk_bytes": 0}, {"copy_bytes": -1}, {"speed": 3}, {"line_runs": [[1, 2, 3]]}])
def test_rates_that_cannot_be_are_refused(change: dict[str, Any]) -> None:
    facts = json.loads(json.dumps(plain(made().facts())))
    facts["rates"] |= change
    with pytest.raises(InputError):
        Calibration.of(facts)


def test_a_rate_too_few_is_refused() -> None:
    facts = json.loads(json.dumps(plain(made().facts())))
    del facts["rates"]["gather_bytes"]
    with pytest.raises(InputError, match="gather_bytes"):
        Calibration.of(facts)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SleepingClock:
    made = SleepingClock()
    monkeypatch.setattr(emulated, "time", made)
    return made


def copies(device: EmulatedDevice, size: int, seconds: float, clock: TimeBudget) -> tuple[RateSample, ...]:
    return copy_rates(device, device.array(size, np.uint8), device.host_array(size, np.uint8), seconds, clock)


def test_the_emulated_link_is_found(world: SleepingClock) -> None:
    device = EmulatedDevice(link_bytes=50e6)
    rows = copies(device, 1 << 20, 10.0, TimeBudget(None, world.perf_counter))
    assert [row.at for row in rows] == [1 << 16, 1 << 18, 1 << 20]
    latency, rate = fit_copy_rate(rows)
    assert rate == pytest.approx(50e6)
    assert latency == pytest.approx(0.0, abs=1e-9)
    assert device.bytes_in == sum(COPY_SIZES[:3]) * (REPEATS + 1)


def test_a_size_that_would_take_too_long_is_not_tried(world: SleepingClock) -> None:
    """At 1 MB/s 64 KiB take 66 ms, eight times; 256 KiB would take half a second each."""
    rows = copies(EmulatedDevice(link_bytes=1e6), 1 << 20, 0.9, TimeBudget(None, world.perf_counter))
    assert [row.at for row in rows] == [1 << 16]
    assert world.now < 0.9


def test_the_clock_ends_before_the_share(world: SleepingClock) -> None:
    rows = copies(EmulatedDevice(link_bytes=1e6), 1 << 20, 60.0, TimeBudget(0.3, world.perf_counter))
    assert [row.at for row in rows] == [1 << 16]
    assert world.now < 0.4


@pytest.mark.parametrize(("latency", "rate"), [(8e-6, 55e9), (0.0, 12e9), (50e-6, 3e9)])
def test_the_fit_gives_back_latency_and_rate(latency: float, rate: float) -> None:
    rows = [RateSample(size, size, latency + size / rate) for size in COPY_SIZES]
    assert fit_copy_rate(rows) == pytest.approx((latency, rate), rel=1e-6, abs=1e-12)


def test_the_fit_of_measured_copies() -> None:
    """An H200's: 7, 40, 52.9, 54.9 and 55.6 GB/s; no modeled time is further off than the 64 KiB one."""
    rows = [
        RateSample(size, size, size / rate)
        for size, rate in [(1 << 16, 7e9), (1 << 20, 40e9), (8 << 20, 52.9e9), (32 << 20, 54.9e9), (1 << 30, 55.6e9)]
    ]
    latency, rate = fit_copy_rate(rows)
    assert 5e-6 < latency < 9e-6
    assert 53e9 < rate < 57e9
    assert all(abs(latency + row.amount / rate - row.seconds) < 0.05 * row.seconds for row in rows[1:])


def test_latency_is_never_negative() -> None:
    latency, rate = fit_copy_rate([RateSample(1, 100, 1.0), RateSample(2, 1000, 20.0)])
    assert latency == 0.0
    assert 50 < rate < 100


def test_few_or_flat_samples_still_give_a_rate() -> None:
    assert fit_copy_rate([RateSample(1, 100, 2.0)]) == (0.0, pytest.approx(50.0))
    assert fit_copy_rate([RateSample(1, 100, 2.0), RateSample(2, 200, 1.0)]) == (0.0, pytest.approx(200.0))
