"""Where slabs come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray
from penstock.transfer.devices.device import Device
from penstock.transfer.devices.emulated import EmulatedDevice
from penstock.transfer.staging.slab_pool import SlabPool


@pytest.mark.parametrize(("device", "way"), [(Device(1), "host_array"), (EmulatedDevice("e", 1, 1 << 20), "array")])
def test_a_host_gives_what_may_be_page_locked(device: Device, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU reads slabs of its host in place: memory that is not page-locked is an illegal address there."""
    given: list[NDArray[Any]] = []

    def array(count: int, dtype: DTypeLike) -> NDArray[Any]:
        given.append(np.zeros(count, dtype))
        return given[-1]

    monkeypatch.setattr(device, way, array)
    slab = SlabPool(device, 1, 64, np.uint32, None).take(with_weights=False)
    assert slab is not None
    assert np.shares_memory(slab.neighbors, given[0])
