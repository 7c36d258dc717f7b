"""Ranks over MPI: the only file that imports mpi4py, which starts MPI when it is imported.

MPI moves an array between processes of a host in small cells, for each of which both must be at work at the same time.
So arrays pass there through memory that all ranks see (`HostWindow`), a piece at a time, written once and read by every
rank: ranks meet once a piece. A rank has two halves, used in turn: who writes to one again has met the others since,
after they had read it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from mpi4py import MPI
from penstock.engine.ranks.communicator import Communicator, bytes_of, item_bytes
from penstock.storage.base.atomic import remove_debris
from penstock.storage.base.budget import mapped_files

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

PAUSE_SECONDS = 0.005
"""Between two looks of a rank that waits for others."""
_SEGMENT = "/dev/shm/mpich_shm_"
"""How the name of the memory begins that MPICH lets the ranks of a host share."""

WINDOW_BYTES = 8 << 20
"""Of all ranks of a host together, so that what is written is read from the processor's cache."""
LEAST_BYTES = 1 << 16
"""Of the longest part, from which on ranks exchange it here."""
LINE = 64


def rank_bytes(size: int) -> int:
    """Bytes of the window that each of so many ranks writes to: two halves, of whole lines for each rank."""
    return 2 * size * max(LINE, WINDOW_BYTES // (2 * size * size) // LINE * LINE)


class HostWindow:
    """The window, as one rank has it.

    parts: what each rank writes to, uint8 (rank_bytes,). meet: returns once all ranks have called it; what they wrote
    before is then seen. Every method is collective.
    """

    def __init__(self, rank: int, parts: Sequence[Bytes], meet: Callable[[], None]) -> None:
        self._rank, self._meet, self._turn = rank, meet, 0
        self._halves = [(part[: len(part) // 2], part[len(part) // 2 :]) for part in parts]
        self._piece = len(parts[0]) // 2

    def gather(self, found: Sequence[NDArray[Any]]) -> None:
        """Fill found[r] with what rank r has there; what this one has is in its place."""
        places = [bytes_of(array) for array in found]
        part = places[self._rank]
        for first in range(0, max(map(len, places)), self._piece):
            here = part[first : first + self._piece]
            self._next()[self._rank][: len(here)] = here
            self._meet()
            for rank, place in self._others(places):
                there = place[first : first + self._piece]
                there[:] = self._now[rank][: len(there)]

    def exchange(self, ours: Sequence[NDArray[Any]], found: NDArray[Any]) -> None:
        """Fill found[r] with what rank r has for this one; ours: what this rank has for each, of any lengths."""
        parts, places = [bytes_of(array) for array in ours], [bytes_of(array) for array in found]
        places[self._rank][:] = parts[self._rank]
        each = self._piece // len(parts)
        for first in range(0, max(map(len, parts)), each):
            mine = self._next()[self._rank]
            for rank, part in self._others(parts):
                here = part[first : first + each]
                mine[rank * each : rank * each + len(here)] = here
            self._meet()
            for rank, place in self._others(places):
                there = place[first : first + each]
                there[:] = self._now[rank][self._rank * each :][: len(there)]

    def _next(self) -> list[Bytes]:
        """The halves of all ranks that are used now."""
        self._turn ^= 1
        return self._now

    @property
    def _now(self) -> list[Bytes]:
        return [halves[self._turn] for halves in self._halves]

    def _others(self, parts: Sequence[Bytes]) -> list[tuple[int, Bytes]]:
        return [(rank, part) for rank, part in enumerate(parts) if rank != self._rank]


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
            window.gather([whole[first:last] for first, last in pairwise(bounds)])
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
