"""The emulated link counts what it carries, takes the time it would take, and keeps its ceiling."""

from __future__ import annotations

import time

import numpy as np
import pytest
from penstock.storage.base.errors import RunError
from penstock.transfer.devices.emulated import EmulatedDevice


def test_copies_are_counted_both_ways():
    device = EmulatedDevice()
    target = device.array(100, np.uint32)
    device.copy_in(target, np.arange(100, dtype=np.uint32), device.stream())
    back = np.zeros(100, dtype=np.uint32)
    device.copy_out(back, target, device.stream())
    assert back.tolist() == list(range(100))
    assert (device.bytes_in, device.bytes_out) == (400, 400)


def test_the_ceiling_holds_and_memory_comes_back():
    device = EmulatedDevice(memory_bytes=1000)
    first = device.array(900, np.uint8)
    with pytest.raises(RunError, match="--device-memory"):
        device.array(200, np.uint8)
    device.free(first)
    device.array(1000, np.uint8)


def test_arrays_that_nobody_has_are_not_counted():
    device = EmulatedDevice(memory_bytes=1000)
    for _ in range(5):
        device.array(900, np.uint8)
    assert device.used_bytes <= 900


def test_a_rate_takes_its_time():
    device = EmulatedDevice(link_bytes=1e6)
    target = device.array(50_000, np.uint8)
    began = time.perf_counter()
    device.copy_in(target, np.zeros(50_000, dtype=np.uint8), None)
    event = device.event(None)
    assert not device.done(event)
    device.wait(event)
    assert time.perf_counter() - began >= 0.049
