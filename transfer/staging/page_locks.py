"""Which chunks of a host cache are page-locked: runs of them, locked when their edges have arrived.

Memory that the reading threads have written is locked 15 times faster than new memory, and what no one wants is never
touched. A copy to the device must stay within one locked run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.slot_pool import ALIGNMENT
from penstock.storage.read.partition_cache import PartitionCache
from penstock.transfer.devices.device import Device
from penstock.transfer.values.task import Ints


class PageLocks:
    """The locked chunks of a cache that has a place for every partition, each adjacency apart.

    host: locks memory, and releases it when it is closed. Of packed edges, a piece is locked whole when a chunk of it
    is first wanted.
    """

    def __init__(self, host: Device, cache: PartitionCache) -> None:
        self._host, self.cache = host, cache
        self._runs: dict[tuple[str, bool], NDArray[np.int32]] = {
            (direction, weights): np.zeros(len(cache.held(direction)), dtype=np.int32)
            for direction in cache.extents
            for weights in (False, True)
        }
        self._count = 0

    def lock(self, direction: str, chunks: Ints, with_weights: bool) -> None:
        """Lock these chunks, ascending, where they are not locked yet; their edges are in place."""
        if self.cache.tables:
            firsts, runs = self.cache.tables[direction].firsts, self._runs[direction, False]
            for number in np.unique(np.searchsorted(firsts, chunks[runs[chunks] == 0], side="right") - 1).tolist():
                piece = self.cache.arrays(direction, number, 1, False)[0]
                runs[firsts[number] : firsts[number + 1]] = self._register(piece)
            return
        neighbors, weights = self.cache.adjacency(direction)
        self._lock(direction, False, neighbors, chunks)
        if with_weights and weights is not None:
            self._lock(direction, True, weights, chunks)

    def _lock(self, direction: str, of_weights: bool, array: NDArray[np.generic], chunks: Ints) -> None:
        runs, step = self._runs[direction, of_weights], self.cache.extents[direction].chunk_edges
        for run in consecutive(chunks[runs[chunks] == 0]):
            if step * array.itemsize % ALIGNMENT:  # chunks share pages: all of them at once
                runs[:] = self._register(array)
                return
            runs[run] = self._register(array[int(run[0]) * step : (int(run[-1]) + 1) * step])

    def _register(self, array: NDArray[np.generic]) -> int:
        """Lock a run; returns its number, from 1."""
        self._host.register(array)
        self._count += 1
        return self._count

    def lock_all(self, direction: str, with_weights: bool) -> None:
        """Lock what is left of an adjacency, all of whose edges are in place."""
        self.lock(direction, np.arange(len(self.cache.held(direction))), with_weights)

    def copies(self, direction: str, chunks: Ints, with_weights: bool) -> list[Ints]:
        """Split locked chunks, ascending, into what one copy may bring: neighbors that were locked together."""
        kinds = [self._runs[direction, of_weights] for of_weights in (False, True)[: 1 + with_weights]]
        first, last = chunks[[0, -1]] if len(chunks) else (0, -2)
        if last - first + 1 == len(chunks) and all(runs[first] == runs[last] for runs in kinds):
            return [chunks]  # as nearly always: many small operations otherwise
        return consecutive(chunks, np.any([np.diff(runs[chunks]) != 0 for runs in kinds], axis=0))


def consecutive(chunks: Ints, ends: NDArray[np.bool_] | None = None) -> list[Ints]:
    """Split ascending numbers into runs of neighbors; ends: where a run ends besides, bool[len(chunks) - 1]."""
    if not len(chunks):
        return []
    if ends is None and int(chunks[-1]) - int(chunks[0]) + 1 == len(chunks):
        return [chunks]
    gaps = np.diff(chunks) != 1
    return np.split(chunks, np.flatnonzero(gaps if ends is None else gaps | ends) + 1)
