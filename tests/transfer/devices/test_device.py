"""The host as a device, and slabs."""

import numpy as np
import pytest
from penstock.storage.base.errors import RunError
from penstock.transfer.devices.cuda import CudaDevice
from penstock.transfer.devices.device import Device
from penstock.transfer.devices.emulated import EmulatedDevice
from penstock.transfer.staging.slab_pool import SlabPool


def test_the_host_copies_at_once():
    device: Device = Device("host:1", threads=3)
    target, stream = device.array(4, np.uint32), device.stream()
    before = device.event(stream)
    device.copy_in(target, np.arange(4, dtype=np.uint32), stream)
    after = device.event(stream)
    out = np.zeros(4, np.uint32)
    device.copy_out(out, target, stream)
    device.wait(after)
    assert device.done(after)
    assert device.seconds(before, after) >= 0
    assert out.tolist() == [0, 1, 2, 3]
    assert target.ctypes.data % 4096 == 0


def test_the_ceiling_holds_and_freeing_makes_room():
    device = Device(memory_bytes=100)
    kept = device.array(20, np.uint32)
    with pytest.raises(RunError, match="--host-memory"):
        device.array(6, np.uint32)
    device.free(kept)
    assert device.used_bytes == 0
    device.array(25, np.uint32)
    device.close()
    assert device.used_bytes == 0


def test_slabs_are_allocated_once_and_handed_out_one_to_each():
    slabs = SlabPool(Device(), 2, 10, np.uint32, np.uint8)
    first, second = slabs.take(False), slabs.take(True)
    assert slabs.take(False) is None
    assert first.weights is None
    assert second.weights.dtype == np.uint8
    assert not np.shares_memory(first.neighbors, second.neighbors)
    slabs.give(first)
    assert np.shares_memory(slabs.take(False).neighbors, first.neighbors)
    slabs.give(second)
    with pytest.raises(ValueError, match="not taken"):
        slabs.give(second)


def test_slabs_without_weights_refuse_to_give_them():
    with pytest.raises(ValueError, match="weights"):
        SlabPool(Device(), 1, 10, np.uint32, None).take(True)


@pytest.mark.parametrize("make", [Device, EmulatedDevice])
def test_reserved_address_space_has_memory_where_it_is_backed(make):
    device: Device = make()
    items = 4 * device.grain
    space = device.reserved(items, np.uint8)
    space.back(0, 2 * device.grain)
    space.values[: 2 * device.grain] = 3
    space.forget(0, 2 * device.grain)
    space.back(0, 2 * device.grain)
    space.values[:5] = 4
    assert space.values[:5].tolist() == [4] * 5
    assert space.span(0, device.grain)[1] - space.span(0, device.grain)[0] == device.grain


def test_a_gpu_has_its_own_of_every_verb_of_a_device():
    verbs = {
        name
        for name, value in vars(Device).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, property))
    }
    assert verbs <= vars(CudaDevice).keys()
