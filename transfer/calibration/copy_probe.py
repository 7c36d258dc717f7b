"""How fast copies cross the link: measured by size, then one latency and one rate fitted to the measurements.

Owns the copy probe over any Device, and the fit. Refuses to launch kernels (engine/calibration/calibrate.py does) and
to run past its share of time: a size is only tried when the time of the one before allows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.measurement import LEAST_SECONDS, RateSample, TimeBudget
from penstock.transfer.devices.device import Device

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
