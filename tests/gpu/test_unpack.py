"""On a real device payloads are decoded as on the host, on a stream of their own; forged ones neither harm nor pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.engine.kernels.packed.unpackers import unpacker_of
from penstock.storage.base.errors import RunError
from penstock.storage.encoding.payload import BLOCK
from penstock.transfer.devices.cuda import CudaDevice
from penstock.transfer.devices.device import UnpackRequest
from support.payloads import Store, decoded, forged, rows, store_of

pytestmark = pytest.mark.gpu
CHUNK = 1 << 18


@pytest.fixture
def device() -> Iterator[CudaDevice]:
    made = CudaDevice(0)
    yield made
    made.close()


def checked(store: Store, device: CudaDevice, **ways: Any) -> Any:
    unpacker = unpacker_of(device)
    found = decoded(store, unpacker, device, **ways)
    unpacker.check()
    return found


def differences(rng: np.random.Generator, width: int, dtype: Any) -> NDArray[Any]:
    """Ids whose differences have at most so many bits, with now and then a far one."""
    steps = rng.integers(0, 1 << width, 3 * CHUNK + 1000, np.uint64)
    ids = np.cumsum(steps) & np.uint64(0xFFFFFFFF if dtype is np.uint32 else (1 << 62) - 1)
    far = rng.random(len(ids)) < 0.03
    ids[far] = rng.integers(0, 1 << (32 if dtype is np.uint32 else 62), int(far.sum()), np.uint64)
    return ids.astype(dtype)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_every_width(device: CudaDevice, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    for width in range(33):
        store = store_of(differences(rng, width, dtype), CHUNK)
        assert (checked(store, device) == store.items).all(), width


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_values(device: CudaDevice, dtype: Any) -> None:
    rng = np.random.default_rng(2)
    for bits in range(1, 8 * np.dtype(dtype).itemsize + 1):
        values = rng.integers(0, 1 << bits, 2 * CHUNK + 77, np.uint64).astype(dtype)
        values[:: 1 + rng.integers(40, 400)] = np.iinfo(dtype).max
        store = store_of(values, CHUNK, values=True)
        assert (checked(store, device) == values).all(), bits


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("chunk", [CHUNK, 1 << 12, 1 << 20, 5000, 64])
def test_rows_of_a_graph(device: CudaDevice, chunk: int, dtype: Any) -> None:
    """All chunks, those in the middle alone, and the wanted blocks of all."""
    rng = np.random.default_rng(chunk)
    edges = min(2_500_001, 3000 * chunk)
    store = store_of(rows(rng, edges, 1 << 22, 24, dtype) | dtype(1 << 30), chunk)
    assert (checked(store, device) == store.items).all()
    middle = store.chunks // 3, 2 * store.chunks // 3
    assert (checked(store, device, chunks=middle) == store.items[middle[0] * chunk : middle[1] * chunk]).all()
    for share in (0.0, 0.001, 0.1, 0.9):
        mask = rng.random(-(-edges // BLOCK)) < share
        found = checked(store, device, marks=store.all_marks(mask))
        asked = mask[np.arange(edges) // BLOCK]
        assert (found[asked] == store.items[asked]).all()
        assert chunk % BLOCK or (found[~asked] == 1).all()


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
@pytest.mark.parametrize("in_place", [False, True])
def test_page_locked_memory_is_read_in_place(device: CudaDevice, in_place: bool, dtype: Any) -> None:
    """The whole store, from a word that does not begin a line."""
    store = store_of(rows(np.random.default_rng(3), 5 * CHUNK, 1 << 22, 24, dtype), CHUNK)
    held = device.host_array(len(store.words) + 5, np.uint32)
    held[5:] = store.words
    mask = np.random.default_rng(4).random(5 * CHUNK // BLOCK) < 0.05
    out = device.to_device(np.ones(5 * CHUNK, dtype))
    request = UnpackRequest(
        device.mapped(held)[5:], 0, device.to_device(store.starts), 0, store.chunks, CHUNK, 5 * CHUNK, out, 0,
        store.limit, False, device.to_device(store.all_marks(mask)), in_place,
    )  # fmt: skip
    unpacker, stream = unpacker_of(device), device.stream()
    unpacker.unpack(request, stream)
    device.wait(device.event(stream))
    unpacker.check()
    assert (device.to_host(out) == np.where(np.repeat(mask, BLOCK), store.items, 1)).all()


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_forged_payloads(device: CudaDevice, dtype: Any) -> None:
    """Words changed anywhere: nothing is written elsewhere, no id is too large, and the device lives on."""
    rng = np.random.default_rng(5)
    store = store_of(rows(rng, CHUNK + 999, 1 << 20, 24, dtype), CHUNK)
    head = 4 + 5 * (CHUNK // BLOCK)
    for _ in range(100):
        broken = store
        for at in rng.integers(0, head if rng.random() < 0.7 else len(store.words), 3).tolist():
            broken = forged(broken, at, int(rng.choice([0, 33, 1 << 20, 0xFFFFFFFF, int(rng.integers(0, 1 << 32))])))
        assert (decoded(broken, unpacker_of(device), device) < store.limit).all()
    assert (checked(store, device) == store.items).all()


def test_a_forged_payload_is_refused(device: CudaDevice) -> None:
    store = store_of(rows(np.random.default_rng(6), 2 * CHUNK, 1 << 20, 24, np.uint32), CHUNK)
    unpacker = unpacker_of(device)
    found = decoded(forged(store, int(store.starts[1]), 7), unpacker, device)
    assert (found == np.where(np.arange(2 * CHUNK) < CHUNK, store.items, 0)).all()
    with pytest.raises(RunError, match="packed edges of chunk 1 are malformed"):
        unpacker.check()
