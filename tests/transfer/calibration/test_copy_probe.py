"""Copies are measured by size within their share of time, and the fit finds the link behind them."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.storage.base.measurement import RateSample, TimeBudget
from penstock.transfer.calibration.copy_probe import COPY_SIZES, REPEATS, copy_rates, fit_copy_rate
from penstock.transfer.devices import emulated
from penstock.transfer.devices.emulated import EmulatedDevice
from support.fakes import SleepingClock


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
