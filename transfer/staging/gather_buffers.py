"""Gather buffers: page-locked host memory for gathered edges until they are copied, and the threads that gather.

Owns a fixed number of buffers, each as long as a device's slab, and a pool of threads. A pack is handed out again once
the device has passed the event of its copy. Refuses a pack given back twice.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.storage.base.slot_pool import RangePool
from penstock.storage.base.threads import ThreadPool
from penstock.storage.base.timeline import Timeline, Work
from penstock.transfer.devices.device import Device, DeviceArray, Event
from penstock.transfer.staging.gather import ActiveRows, BufferPlace, CompactedLayout, GatherSource, Target, gather_rows
from penstock.transfer.staging.slab_pool import Slab
from penstock.transfer.values.task import Partition, TaskRecord
from penstock.transfer.values.view import View

MOST_THREADS = 8
"""More threads do not gather faster: a few saturate the host's memory (DESIGN section 1)."""


T = TypeVar("T")
Gather = Future[float]
"""A thread's work under way."""


@dataclass(frozen=True, slots=True)
class GatherBuffer:
    """One buffer: `words` of the vertex type for offsets, rows and neighbors; `weights` beside them."""

    number: int
    words: NDArray[Any]
    weights: NDArray[Any] | None

    def target(self, layout: CompactedLayout) -> Target:
        """Return where the rows of a task are gathered."""
        return *layout.slices(self.words), None if self.weights is None else self.weights[: layout.edges]

    def copies(self, layout: CompactedLayout, slab: Slab) -> list[tuple[DeviceArray, NDArray[Any]]]:
        """Return what is copied to a slab then: (target, source)."""
        pairs = [(slab.neighbors[: layout.words], self.words[: layout.words])]
        if self.weights is not None and slab.weights is not None:
            pairs.append((slab.weights[: layout.edges], self.weights[: layout.edges]))
        return pairs


def view_of(layout: CompactedLayout, slab: Slab, bounds: tuple[int, int], record: TaskRecord) -> View:
    """Return the view of gathered rows in a slab; bounds: the first of these rows, and behind the last."""
    offsets, rows, neighbors = layout.slices(slab.neighbors)
    weights = None if slab.weights is None else slab.weights[: layout.edges]
    return View(0, layout.edges, *bounds, neighbors, weights, record, rows=rows, offsets=offsets)


class GatherBuffers:
    """`count` packs of `edges` items each for a device, and `threads` that fill them; memory comes when first needed.

    types: of vertices, and of weights where there are any. timeline: takes every gathering, a track for each thread.
    """

    timeline: Timeline | None = None

    def __init__(
        self,
        device: Device,
        count: int,
        edges: int,
        types: tuple[DTypeLike, DTypeLike | None],
        threads: int = 1,
    ) -> None:
        self.edges = edges
        self._threads = max(1, min(MOST_THREADS, threads))
        self._device = device
        self._types = np.dtype(types[0]), None if types[1] is None else np.dtype(types[1])
        self._slots = RangePool(count)
        self._words: dict[int, NDArray[Any]] = {}
        self._weights: dict[int, NDArray[Any]] = {}
        self._leaving: deque[tuple[Event, GatherBuffer]] = deque()
        self._pool: ThreadPool | None = None

    @property
    def free(self) -> int:
        """Buffers that are free: not in use, and read by no copy."""
        return self._slots.free

    def take(self, with_weights: bool) -> GatherBuffer | None:
        """Take a free pack, waiting for a copy if one is all that is missing; None when all are being filled."""
        while self._leaving and (self._slots.free == 0 or self._device.done(self._leaving[0][0])):
            event, pack = self._leaving.popleft()
            self._device.wait(event)
            self._slots.give(pack.number)
        number = self._slots.take(1)
        if number is None:
            return None
        vertex_dtype, weight_dtype = self._types
        try:
            if number not in self._words:
                self._words[number] = self._device.host_array(self.edges, vertex_dtype)
            if with_weights and weight_dtype is not None and number not in self._weights:
                self._weights[number] = self._device.host_array(self.edges, weight_dtype)
        except BaseException:
            self._slots.give(number)
            raise
        return GatherBuffer(number, self._words[number], self._weights[number] if with_weights else None)

    def give(self, pack: GatherBuffer, event: Event = None) -> None:
        """Give a pack back; with an event: once the device has passed it."""
        if event is None:
            self._slots.give(pack.number)
        else:
            self._leaving.append((event, pack))

    def gathering(
        self, rows: ActiveRows, part: Partition, source: GatherSource, place: BufferPlace, target: Target
    ) -> Callable[[], float]:
        """Return the gathering of one partition (`gather_rows`), to be called by any thread: returns its seconds."""

        def work() -> float:
            began = time.perf_counter()
            gather_rows(rows, part, source, place, target)
            seconds = time.perf_counter() - began
            if self.timeline is not None:
                what = Work(items=place.a1 - place.a0, first=part.number, parts=1)
                self.timeline.add(self.timeline.here("gather"), "gather", began, seconds, what)
            return seconds

        return work

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Let a thread do some gathering."""
        if self._pool is None:
            self._pool = ThreadPool(self._threads, "penstock-gather")
        return self._pool.submit(work)

    def close(self) -> None:
        """Wait for copies and threads, and release the buffers."""
        while self._leaving:
            event, pack = self._leaving.popleft()
            self._device.wait(event)
            self._slots.give(pack.number)
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        for array in (*self._words.values(), *self._weights.values()):
            self._device.unregister(array)
        self._words.clear()
        self._weights.clear()
