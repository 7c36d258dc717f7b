"""Ranks that have a GPU each, over NCCL: what they say to each other passes from GPU to GPU.

The only file that imports NCCL, by way of CuPy, which looks for the library of the package nvidia-nccl-cu13, and then
for that of the system. All is moved as bytes: no verb adds up, so that answers do not depend on NCCL's order of sums.
Everything runs on the default stream, in order with kernels, and holds no memory of Penstock's; NCCL keeps buffers of
its own, some 10 MiB to a few 100 MiB a GPU, outside the ceiling of the device.
"""

from __future__ import annotations

import importlib.util
import platform
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.ranks.communicator import ArrayRanks, item_bytes, number_of
from penstock.storage.base.errors import RunError

if TYPE_CHECKING:
    from penstock.engine.ranks.communicator import Communicator
    from penstock.transfer.devices.device import Device, DeviceArray

INSTALL = 'pip install "nvidia-nccl-cu13>=2.27.7,<3"'
OLDEST = 2_07_00
"""NCCL's number of its version 2.7, the first with `send` and `recv`."""
DEFAULT_STREAM = 0
MOST_AT_ONCE = 1 << 16
"""Bytes of a rank up to which slices go by NCCL's all-gather: 128 MiB take it 5.4 ms between two H200s, whose sends and
receives take 0.7 ms."""
Ints = NDArray[np.int64]


def unusable(ranks: Communicator, gpu: Device) -> str | None:
    """Why these ranks cannot use NCCL, the same sentence in all of them; None where they can.

    All ranks call it, each with the GPU that it computes on.
    """
    where = number_of([platform.node(), gpu.address])
    every = ranks.gather_numbers(np.array([_library() is not None, where], dtype=np.uint64))
    for rank, (has_nccl, place) in enumerate(every.tolist()):
        if not has_nccl:
            return f"rank {rank} finds no NCCL: {INSTALL}"
        first = every[:, 1].tolist().index(place)
        if first != rank:
            return f"ranks {first} and {rank} share one GPU"
    return None


def _library() -> Any:
    """CuPy's module of NCCL; None where there is no NCCL, or an old one."""
    if importlib.util.find_spec("cupy") is None:
        return None
    with warnings.catch_warnings():  # CuPy's own, of a library that it does not find
        warnings.simplefilter("ignore")
        from cupy.cuda import nccl
    return nccl if getattr(nccl, "available", False) and nccl.get_version() >= OLDEST else None


class NcclCommunicator(ArrayRanks):
    """The verbs of `ArrayRanks` between GPUs, of which no two ranks have the same.

    Parameters
    ----------
    ranks : Communicator
        Hands out what NCCL needs to meet. All its ranks make such a communicator, where `unusable` is None.
    device : Device
        This rank's GPU.
    """

    def __init__(self, ranks: Communicator, device: Device) -> None:
        self.rank, self.size = ranks.rank, ranks.size
        self._device, self._nccl = device, _library()
        self._world: Any = None
        device.use()
        with self._errors_named():
            here = self._nccl.get_unique_id()  # rank 0's counts: bytes, before CuPy 14 a tuple of signed numbers
            meeting = np.frombuffer(bytes(number & 255 for number in here), dtype=np.uint8)
            meeting = ranks.gather_numbers(meeting)[0]
            word = meeting.tobytes() if isinstance(here, bytes) else tuple(meeting.view(np.int8).tolist())
            self._world = self._nccl.NcclCommunicator(self.size, word, self.rank)
        # NCCL connects a pair of GPUs when they first meet, which takes it 0.1 s and more: now
        first, last = (self._device.array(self.size, np.uint64) for _ in range(2))
        self.gather_slices(first, np.arange(self.size + 1))
        self.exchange_slices(first, np.arange(self.size + 1), last)
        self._device.finish()

    def gather_slices(self, whole: DeviceArray, bounds: Ints) -> None:
        """Fill `whole` with every rank's slice of it; rank r has items bounds[r] to bounds[r + 1] - 1."""
        at, size = _at(whole) + bounds * item_bytes(whole), np.diff(bounds) * item_bytes(whole)
        own, nbytes = int(at[self.rank]), int(size[self.rank])
        if nbytes <= MOST_AT_ONCE and (size == nbytes).all():
            with self._errors_named():
                self._world.allGather(own, int(at[0]), nbytes, self._nccl.NCCL_UINT8, DEFAULT_STREAM)
            return
        self._swap([(own, nbytes)] * self.size, [*zip(at[:-1].tolist(), size.tolist(), strict=True)])

    def exchange_slices(self, whole: DeviceArray, bounds: Ints, found: DeviceArray) -> None:
        """Fill `found`, shape (size, items of this rank's slice, ...), with what every rank has in that slice."""
        at, size = _at(whole) + bounds * item_bytes(whole), np.diff(bounds) * item_bytes(whole)
        own = int(size[self.rank])
        if own:
            mine = whole[int(bounds[self.rank]) : int(bounds[self.rank + 1])]
            self._device.copy_within(found[self.rank : self.rank + 1], mine, None)
        places = [(_at(found) + rank * own, own) for rank in range(self.size)]
        self._swap([*zip(at[:-1].tolist(), size.tolist(), strict=True)], places)

    def close(self, *, failed: bool = False) -> None:
        """Leave NCCL, after what runs on the device; again: no effect.

        failed: of NCCL's two ways, the one that does not wait for other ranks; `ncclCommDestroy` does.
        """
        world, self._world = self._world, None
        if world is not None and failed:
            world.abort()
        elif world is not None:
            self._device.finish()
            with self._errors_named():
                world.destroy()

    def _swap(self, sent: Sequence[tuple[int, int]], received: Sequence[tuple[int, int]]) -> None:
        """Exchange bytes with every other rank at once: for each, where those lie that it gets, and where its go."""
        with self._errors_named(), _grouped(self._nccl.groupStart, self._nccl.groupEnd):
            for step in range(1, self.size):
                to, of = (self.rank + step) % self.size, (self.rank - step) % self.size
                for say, (at, nbytes), other in (
                    (self._world.send, sent[to], to),
                    (self._world.recv, received[of], of),
                ):
                    if nbytes:
                        say(at, nbytes, self._nccl.NCCL_UINT8, other, DEFAULT_STREAM)

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        """Raise RunError that names rank and device where NCCL fails; CuPy has no words for its newest codes."""
        try:
            yield
        except (self._nccl.NcclError, KeyError) as error:
            if self._world is not None:
                self._world.abort()  # kernels that wait for others would hold up the end of this process
                self._world = None
            cause = f"error code {error}" if isinstance(error, KeyError) else str(error)
            raise RunError(
                f"rank {self.rank} on {self._device.name}: NCCL failed: {cause}; set NCCL_DEBUG=INFO to make it "
                "say more, or run on one GPU, with --device"
            ) from error


@contextmanager
def _grouped(start: Callable[[], None], end: Callable[[], None]) -> Iterator[None]:
    """Calls that NCCL begins together, so that none waits for another."""
    start()
    try:
        yield
    finally:
        end()


def _at(array: DeviceArray) -> int:
    """Where an array begins in the memory of the device."""
    return int(array.data.ptr)
