"""NCCL between ranks, against a loopback of it: threads as ranks, NumPy memory as that of their GPUs."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from penstock.engine.ranks import nccl
from penstock.engine.ranks.communicator import broadcast
from penstock.engine.ranks.nccl import NcclCommunicator, unusable
from penstock.storage.base.errors import RunError
from support.thread_ranks import PATIENCE_SECONDS, ThreadRanks, on_ranks


class OnGpu(np.ndarray):
    """A NumPy array that says where it lies as CuPy's do."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)


def on_gpu(values: Any, dtype: Any = None) -> OnGpu:
    return np.ascontiguousarray(values, dtype=dtype).view(OnGpu)


class Gpu:
    """What the communicator needs of a GPU; each rank has one of its own unless `shared`."""

    def __init__(self, rank: int, *, shared: bool = False) -> None:
        self.name, self.address = f"cuda:{rank}", "same" if shared else f"bus {rank}"

    def array(self, count: int, dtype: Any) -> OnGpu:
        return on_gpu(np.zeros(count, dtype=dtype))

    def copy_within(self, target: OnGpu, source: OnGpu, stream: None) -> None:
        assert target.nbytes == source.nbytes
        target[...] = source

    def use(self) -> None: ...

    def finish(self) -> None: ...


class Loopback:
    """The part of `cupy.cuda.nccl` that is used: bytes go from thread to thread when a group of calls ends."""

    NCCL_UINT8 = 1
    available = True
    bytes_meet = True  # CuPy 14; before, numbers

    class NcclError(RuntimeError):
        pass

    def __init__(self, size: int) -> None:
        self._barrier = threading.Barrier(size, timeout=PATIENCE_SECONDS)
        self._parts: dict[tuple[int, int], deque[bytes]] = {}
        self._open = threading.local()
        self.calls: list[tuple[Any, ...]] = []
        self.failure: Exception | None = None

    def get_version(self) -> int:
        return 22809

    def get_unique_id(self) -> bytes | tuple[int, ...]:
        return bytes(range(128)) if self.bytes_meet else tuple(range(-64, 64))

    def groupStart(self) -> None:  # noqa: N802 - CuPy's name
        self._open.calls = []

    def groupEnd(self) -> None:  # noqa: N802 - CuPy's name
        calls, self._open.calls = self._open.calls, None
        for rank, way, at, size, other in calls:
            if way == "send":
                self._parts.setdefault((rank, other), deque()).append(ctypes.string_at(at, size))
        self._barrier.wait()
        for rank, way, at, size, other in calls:
            if way == "recv":
                part = self._parts[other, rank].popleft()
                assert len(part) == size
                ctypes.memmove(at, part, size)
        self._barrier.wait()

    def NcclCommunicator(self, size: int, meeting: bytes | tuple[int, ...], rank: int) -> Any:  # noqa: N802 - CuPy's name
        assert meeting == self.get_unique_id()
        self._barrier.wait()
        return _World(self, size, rank)


class _World:
    def __init__(self, nccl: Loopback, size: int, rank: int) -> None:
        self._nccl, self.size, self.rank = nccl, size, rank

    def send(self, at: int, size: int, kind: int, other: int, stream: int) -> None:
        self._grouped("send", at, size, kind, other, stream)

    def recv(self, at: int, size: int, kind: int, other: int, stream: int) -> None:
        self._grouped("recv", at, size, kind, other, stream)

    def _grouped(self, way: str, at: int, size: int, kind: int, other: int, stream: int) -> None:
        if self._nccl.failure is not None:
            raise self._nccl.failure
        assert (kind, stream) == (Loopback.NCCL_UINT8, 0)
        assert size > 0
        assert other != self.rank
        self._nccl.calls.append((way, self.rank, other, size))
        self._nccl._open.calls.append((self.rank, way, at, size, other))

    def allGather(self, sent: int, found: int, size: int, kind: int, stream: int) -> None:  # noqa: N802 - CuPy's name
        self._nccl.calls.append(("all", self.rank, size))
        part = ctypes.string_at(sent, size)
        self._nccl.groupStart()
        others = [other for other in range(self.size) if other != self.rank]
        self._nccl._open.calls += [(self.rank, "send", sent, size, other) for other in others]
        self._nccl._open.calls += [(self.rank, "recv", found + other * size, size, other) for other in others]
        self._nccl.groupEnd()
        ctypes.memmove(found + self.rank * size, part, size)

    def destroy(self) -> None:
        self._nccl.calls.append(("destroy", self.rank))

    def abort(self) -> None:
        self._nccl.calls.append(("abort", self.rank))


@pytest.fixture
def loopback(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Loopback]:
    """Puts a loopback of so many ranks in the place of NCCL."""

    def place(size: int) -> Loopback:
        made = Loopback(size)
        monkeypatch.setattr(nccl, "_library", lambda: made)
        return made

    return place


def communicators(size: int, work: Callable[[NcclCommunicator], Any]) -> list[Any]:
    return on_ranks(size, lambda ranks: work(NcclCommunicator(ranks, Gpu(ranks.rank))))


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.float64])
def test_every_verb_moves_what_its_words_say(
    loopback: Callable[[int], Loopback], size: int, dtype: type[np.generic]
) -> None:
    loopback(size)
    bounds = np.array([0, 3, 3, 8])[: size + 1]
    wholes = [np.arange(8 * 2).reshape(8, 2).astype(dtype) + 50 * rank for rank in range(size)]
    slices = [slice(*pair) for pair in pairwise(bounds.tolist())]

    def work(world: NcclCommunicator) -> None:
        mine = wholes[world.rank]
        whole = on_gpu(mine.copy())
        world.gather_slices(whole, bounds)
        for rank, here in enumerate(slices):
            np.testing.assert_array_equal(whole[here], wholes[rank][here])
        here = slices[world.rank]
        found = on_gpu(np.zeros((size, here.stop - here.start, 2)), dtype)
        world.exchange_slices(on_gpu(mine), bounds, found)
        np.testing.assert_array_equal(found, [one[here] for one in wholes])
        last = on_gpu(mine.copy())
        broadcast(world, last, size - 1)
        np.testing.assert_array_equal(last, wholes[-1])
        world.close()
        world.close()

    communicators(size, work)


@pytest.mark.parametrize(("failed", "way"), [(False, "destroy"), (True, "abort")])
def test_a_rank_that_failed_leaves_without_others(loopback: Callable[[int], Loopback], failed: bool, way: str) -> None:
    """`ncclCommDestroy` waits for the other ranks, which wait for this one."""
    seen = loopback(2)

    def work(world: NcclCommunicator) -> None:
        world.close(failed=failed and world.rank == 1)

    communicators(2, work)
    assert {call for call in seen.calls if call[0] in ("abort", "destroy")} == {("destroy", 0), (way, 1)}


@pytest.mark.parametrize("as_bytes", [True, False])
def test_ranks_meet_by_what_this_release_of_cupy_gives(loopback: Callable[[int], Loopback], as_bytes: bool) -> None:
    loopback(2).bytes_meet = as_bytes
    assert communicators(2, lambda world: world.size) == [2, 2]


def test_small_equal_slices_are_one_call_and_others_a_group(loopback: Callable[[int], Loopback]) -> None:
    seen, large = loopback(2), nccl.MOST_AT_ONCE

    def work(world: NcclCommunicator) -> None:
        whole = on_gpu(np.zeros(6, dtype=np.uint32))
        world.gather_slices(whole, np.array([0, 3, 6]))
        world.gather_slices(whole, np.array([0, 2, 6]))
        world.gather_slices(whole, np.array([0, 0, 0]))
        world.gather_slices(on_gpu(np.zeros(2 * large, dtype=np.uint32)), np.array([0, large, 2 * large]))

    communicators(2, work)
    of_first = [call for call in seen.calls if call[1] == 0][3:]  # those before connect the GPUs
    assert of_first == [
        *[("all", 0, 12), ("send", 0, 1, 8), ("recv", 0, 1, 16), ("all", 0, 0)],
        *[("send", 0, 1, 4 * large), ("recv", 0, 1, 4 * large)],
    ]


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (Loopback.NcclError("NCCL_ERROR_SYSTEM_ERROR: no socket"), "NCCL failed: NCCL_ERROR_SYSTEM_ERROR: no socket"),
        (KeyError(6), "NCCL failed: error code 6"),
    ],
)
def test_an_error_names_rank_and_device_and_lets_nobody_wait(
    loopback: Callable[[int], Loopback], failure: Exception, words: str
) -> None:
    seen = loopback(2)

    def work(world: NcclCommunicator) -> None:
        seen.failure = failure
        with pytest.raises(RunError, match=f"rank {world.rank} on cuda:{world.rank}: {words}"):
            world.gather_slices(on_gpu(np.zeros(6)), np.array([0, 2, 6]))
        world.close()

    communicators(2, work)
    assert sorted(call for call in seen.calls if call[0] in ("abort", "destroy")) == [("abort", 0), ("abort", 1)]


@pytest.mark.parametrize(
    ("devices", "library", "words"),
    [
        ([Gpu(0), Gpu(1)], True, None),
        ([Gpu(0), Gpu(1)], False, "rank 0 finds no NCCL: pip install"),
        ([Gpu(0, shared=True), Gpu(1, shared=True)], True, "ranks 0 and 1 share one GPU"),
    ],
)
def test_why_ranks_cannot_use_it(
    loopback: Callable[[int], Loopback],
    monkeypatch: pytest.MonkeyPatch,
    devices: list[Any],
    library: bool,
    words: str | None,
) -> None:
    loopback(2)
    if not library:
        monkeypatch.setattr(nccl, "_library", lambda: None)

    def work(ranks: ThreadRanks) -> str | None:
        return unusable(ranks, devices[ranks.rank])

    for found in on_ranks(2, work):
        assert found == words if words is None else (found or "").startswith(words)
