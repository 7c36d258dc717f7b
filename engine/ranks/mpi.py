"""Ranks over MPI: the only file that imports mpi4py, which starts MPI when it is imported."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from mpi4py import MPI
from penstock.engine.ranks.communicator import Communicator, bytes_of, item_bytes
from penstock.engine.ranks.host_window import LEAST_BYTES, HostWindow, rank_bytes
from penstock.storage.base.atomic import remove_debris
from penstock.storage.base.budget import mapped_files

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAUSE_SECONDS = 0.005
"""Between two looks of a rank that waits for others."""
_SEGMENT = "/dev/shm/mpich_shm_"
"""How the name of the memory begins that MPICH lets the ranks of a host share."""


class MpiCommunicator(Communicator):
    """All processes that mpiexec, or srun, started together. Those of one host exchange arrays through its memory."""

    def __init__(self) -> None:
        self._world = MPI.COMM_WORLD
        self.rank: int = self._world.rank
        self.size: int = self._world.size
        self._window = self._host_window()

    def _host_window(self) -> HostWindow | None:
        """What all ranks write to, if they are on one host."""
        here = cast(MPI.Intracomm, self._world.Split_type(MPI.COMM_TYPE_SHARED))
        _unlink_segments(here)
        if self.size == 1 or here.size < self.size:
            here.Free()
            return None
        memory = MPI.Win.Allocate_shared(rank_bytes(self.size), comm=here)
        memory.Lock_all()

        def meet() -> None:
            memory.Sync()
            here.Barrier()
            memory.Sync()

        parts = [np.frombuffer(memory.Shared_query(rank)[0], np.uint8) for rank in range(self.size)]
        return HostWindow(self.rank, parts, meet)

    def _through(self, longest: int) -> HostWindow | None:
        """What parts go through of which the longest has so many bytes, which all ranks know; None: MPI."""
        return self._window if longest >= LEAST_BYTES else None

    def gather_numbers(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return every rank's few numbers, of one shape: shape (size, *shape)."""
        found = np.empty((self.size, *numbers.shape), dtype=numbers.dtype)
        if window := self._through(numbers.nbytes):
            found[self.rank] = numbers
            window.gather(list(found))
            return found
        self._world.Allgather(bytes_of(np.ascontiguousarray(numbers)), bytes_of(found))
        return found

    def gather_slices(self, whole: NDArray[Any], bounds: NDArray[np.int64]) -> None:
        """Fill `whole` with every rank's slice of it; rank r has items bounds[r] to bounds[r + 1] - 1."""
        at = bounds * item_bytes(whole)
        if window := self._through(int(np.diff(at).max())):
            window.gather(np.split(whole, bounds[1:-1]))
            return
        self._world.Allgatherv(MPI.IN_PLACE, [bytes_of(whole), (np.diff(at), at[:-1]), MPI.BYTE])

    def exchange_slices(self, whole: NDArray[Any], bounds: NDArray[np.int64], found: NDArray[Any]) -> None:
        """Fill `found`, shape (size, items of this rank's slice, ...), with what every rank has in that slice."""
        at = bounds * item_bytes(whole)
        sizes = np.diff(at)
        if window := self._through(int(sizes.max())):
            window.exchange(np.split(whole, bounds[1:-1]), found)
            return
        each, places = np.repeat(sizes[self.rank], self.size), sizes[self.rank] * np.arange(self.size)
        self._world.Alltoallv(
            [bytes_of(whole), (sizes, at[:-1]), MPI.BYTE], [bytes_of(found), (each, places), MPI.BYTE]
        )

    def wait(self) -> None:
        """Return once all ranks are here; meanwhile sleep."""
        here = self._world.Ibarrier()
        while not here.Test():
            time.sleep(PAUSE_SECONDS)

    def abort(self, code: int) -> None:
        """End the processes of all ranks, with this exit code."""
        self._world.Abort(code)


def _unlink_segments(here: MPI.Intracomm) -> None:
    """Remove the names of MPICH's memory that all ranks of the host have mapped, which is of this job.

    It then ends with the ranks; MPICH removes it at the end of a rank, which one that is killed does not reach.
    """
    for name in set.intersection(*here.allgather(mapped_files(_SEGMENT))):
        remove_debris(Path(name))
