"""The link as a reader: chunks come from page-locked host memory to the device, as they come from disk to the host.

Owns the copies of edges to a device with memory of its own, and what of host memory its kernels may read in place. It
has a disk reader's verbs, so that slabs, cache, flights and routes are the same for both; a ticket's `result` does
not wait for the copy but lets the next kernels wait for it. Refuses edges that are not in host memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.devices.device import Device
from penstock.transfer.staging.fetch import TransferStats

Ints = NDArray[np.int64]
Arrays = tuple[NDArray[Any], NDArray[Any] | None]


class CopyHandle:
    """Copies under way; `result` lets kernels launched from now on start after them."""

    def __init__(self, device: Device, carried: TransferStats) -> None:
        self._carried = carried
        self._device = device

    @property
    def done(self) -> bool:
        """Whether the copies are complete."""
        return self._device.done(self._carried.span[1])

    def result(self) -> TransferStats:
        """Order the device's kernels behind the copies; the host does not wait."""
        self._device.follow(self._carried.span[1])
        return self._carried

    def cancel(self) -> None:
        """Wait until nothing is written any more: a copy that has started cannot be stopped."""
        self._device.wait(self._carried.span[1])


class Link:
    """A stream of copies to a device; every copy has an event before and after it.

    free: the event after which targets of what is fetched may be written; None: after all kernels launched so far.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.free: Any = None
        self._stream = device.stream()

    @contextmanager
    def freed(self, event: Any) -> Iterator[None]:
        """Let what is fetched meanwhile be written after the event, whatever was launched behind it."""
        before, self.free = self.free, event
        try:
            yield
        finally:
            self.free = before

    def after(self) -> Any:
        """The event after which the targets of what is fetched now may be written."""
        return self.device.event(None) if self.free is None else self.free

    def carry(
        self, pairs: list[tuple[Any, NDArray[Any]]], *, follow: bool = True, free: Any = None
    ) -> tuple[int, tuple[Any, Any]]:
        """Start copying (target, source) arrays; the bytes, and the events around.

        follow: kernels launched from now on wait for it. free: the event after which the targets may be written, None:
        when every kernel launched so far is done.
        """

        def copy() -> int:
            for target, source in pairs:
                self.device.copy_in(target, source, self._stream)
            return sum(source.nbytes for _, source in pairs)

        size, span = self._between_events(copy, free)
        if follow:
            self.device.follow(span[1])
        return size, span

    def copy_chunks(
        self,
        wanted: tuple[Any, Ints],
        sources: tuple[tuple[Any, Any], int],
        targets: tuple[tuple[Any, Any], int],
        free: Any = None,
    ) -> tuple[int, tuple[Any, Any]]:
        """Start copying chunks of an adjacency (`copy_runs`); the bytes, and the events around. free: as in `carry`."""
        return self._between_events(lambda: copy_runs(self.device, self._stream, wanted, sources, targets), free)

    def _between_events(self, copy: Callable[[], int], free: Any) -> tuple[int, tuple[Any, Any]]:
        """Start what `copy` does once the targets may be written; what it returns, and the events around."""
        self.device.behind(self._stream, free)
        began = self.device.event(self._stream)
        size = copy()
        return size, (began, self.device.event(self._stream))


class LinkReader(Link):
    """Brings chunks of adjacencies whose arrays are page-locked in host memory; `arrays`: direction -> arrays."""

    def __init__(self, device: Device, arrays: Mapping[str, Arrays]) -> None:
        super().__init__(device)
        self._arrays = dict(arrays)
        self._mapped: dict[str, tuple[Any, Any]] = {}

    def fetch(self, adjacency: Any, chunks: Ints, first_edge: int, neighbors: Any, weights: Any) -> CopyHandle:
        """Start copying `chunks` (ascending) to where edge `first_edge` is item 0 of `neighbors` and `weights`."""
        held = self._arrays[adjacency.direction], 0
        size, span = self.copy_chunks((adjacency, chunks), held, ((neighbors, weights), first_edge), self.free)
        return CopyHandle(self.device, TransferStats(size, span, chunks=len(chunks)))

    def host_arrays(self, adjacency: Any, with_weights: bool) -> Arrays:
        """The whole adjacency's arrays, as the host reads them."""
        neighbors, weights = self._arrays[adjacency.direction]
        return neighbors, weights if with_weights else None

    def in_place(self, adjacency: Any, with_weights: bool) -> tuple[Any, Any]:
        """The whole adjacency's arrays in host memory, as kernels of the device read them over the link."""
        known = self._mapped.get(adjacency.direction)
        if known is None:
            neighbors, weights = self._arrays[adjacency.direction]
            known = self.device.mapped(neighbors), None if weights is None else self.device.mapped(weights)
            self._mapped[adjacency.direction] = known
        return known[0], known[1] if with_weights else None


def copy_runs(
    device: Device, stream: Any, wanted: tuple[Any, Ints], sources: tuple[Any, int], targets: tuple[Any, int]
) -> int:
    """Start copying chunks of an adjacency, a copy for each run of neighboring ones and each array; returns the bytes.

    wanted: the adjacency and its chunks, ascending. sources, targets: (neighbors, weights) arrays, None for no weights,
    and the edge that is item 0 of them.
    """
    (adjacency, chunks), (arrays, first_source), (places, first_target) = wanted, sources, targets
    size, step = 0, adjacency.chunk_edges
    for run in np.split(chunks, np.flatnonzero(np.diff(chunks) != 1) + 1) if len(chunks) else []:
        e0, e1 = int(run[0]) * step, min((int(run[-1]) + 1) * step, adjacency.edges)
        for target, source in zip(places, arrays, strict=True):
            if target is not None and source is not None:
                part = source[e0 - first_source : e1 - first_source]
                device.copy_in(target[e0 - first_target : e1 - first_target], part, stream)
                size += part.nbytes
    return size
