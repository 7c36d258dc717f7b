"""Where slabs come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray
from penstock.engine.resources.host_edge_source import PinnedHost
from penstock.transfer.devices.emulated import EmulatedDevice
from penstock.transfer.staging.slab_pool import SlabPool


@pytest.mark.parametrize(("pinned", "way"), [(True, "host_array"), (False, "array")])
def test_the_host_of_a_gpu_gives_what_is_page_locked(pinned: bool, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU reads slabs of its host in place: memory that is not page-locked is an illegal address there."""
    device = EmulatedDevice("e", 1, 1 << 20)
    given: list[NDArray[Any]] = []

    def array(count: int, dtype: DTypeLike) -> NDArray[Any]:
        given.append(np.zeros(count, dtype))
        return given[-1]

    monkeypatch.setattr(device, way, array)
    owner = PinnedHost(device, 1) if pinned else device
    slab = SlabPool(owner, 1, 64, np.uint32, None).take(with_weights=False)
    assert slab is not None
    assert np.shares_memory(slab.neighbors, given[0])
