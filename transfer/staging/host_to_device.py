"""The link: copies from page-locked host memory to a device with memory of its own, and reading in place over it.

`result` of a copy does not wait for it but lets the device's next kernels wait. `PinnedReader` is the edge source of a
device whose plain edges are all in host memory. Refuses edges that are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.read.pending_read import ReadRecord
from penstock.transfer.devices.device import Device, DeviceArray, Event
from penstock.transfer.staging.edge_source import LinkSpan, PayloadRange
from penstock.transfer.staging.in_flight import NOTHING_READ, Arrays, EdgeRequest, Transfer
from penstock.transfer.staging.page_locked_runs import PageLockedRuns, consecutive
from penstock.transfer.values.cost import LINK
from penstock.transfer.values.residency import Bools
from penstock.transfer.values.task import AdjacencyArrays, Demand, Ints
from penstock.transfer.values.view import View


class Link:
    """A stream of copies to a device; every copy has an event before and after it.

    free: the event after which targets of what is fetched may be written; None: after all kernels launched so far.
    locked: which chunks of the host's memory are page-locked together, None where all of an array is.
    """

    def __init__(self, device: Device, locked: PageLockedRuns | None = None) -> None:
        self.device, self.locked = device, locked
        self.free: Event = None
        self._stream = device.stream()

    @contextmanager
    def freed(self, event: Event) -> Iterator[None]:
        """Let what is fetched meanwhile be written after the event, whatever was launched behind it."""
        before, self.free = self.free, event
        try:
            yield
        finally:
            self.free = before

    def after(self) -> Event:
        """Return the event after which the targets of what is fetched now may be written."""
        return self.device.event(None) if self.free is None else self.free

    def copy_async(self, pairs: list[tuple[DeviceArray, NDArray[Any]]], free: Event = None) -> tuple[int, LinkSpan]:
        """Start copying (target, source) arrays; the bytes, and the events around.

        free: the event after which the targets may be written, None: when every kernel launched so far is done.
        """

        def copy() -> int:
            for target, source in pairs:
                self.device.copy_in(target, source, self._stream)
            return sum(source.nbytes for _, source in pairs)

        return self._between_events(copy, free)

    def copy_chunks(
        self, wanted: tuple[AdjacencyArrays, Ints], source: tuple[Arrays, int], target: tuple[Arrays, int], free: Event
    ) -> tuple[int, LinkSpan]:
        """Start copying chunks of an adjacency, ascending: a copy for each run of neighbors locked as one, and array.

        source, target: arrays, None for no weights, and the edge that is item 0 of them. Returns the bytes, and the
        events around. free: as in `copy_async`.
        """
        return self._between_events(lambda: self._copy_runs(wanted, source, target), free)

    def copy_piece(
        self, request: EdgeRequest, chunks: Ints, source: PayloadRange, target: DeviceArray, free: Event
    ) -> tuple[int, LinkSpan]:
        """Start copying the payloads of chunks, ascending, to a partition's piece.

        Returns the bytes, and the events around. free: as in `copy_async`.
        """
        table, number = request.pieces, request.first
        assert table is not None, "the request is of packed edges"
        pairs = []
        for run in consecutive(chunks):
            first, last = int(run[0]), int(run[-1]) + 1
            pairs.append((target[table.neighbors(number, first, last)], source(first, last, False)))
            if request.with_weights:
                pairs.append((target[table.weights(number, first, last)], source(first, last, True)))
        return self.copy_async(pairs, free)

    def _copy_runs(
        self, wanted: tuple[AdjacencyArrays, Ints], source: tuple[Arrays, int], target: tuple[Arrays, int]
    ) -> int:
        (adjacency, chunks), (arrays, first_source), (places, first_target) = wanted, source, target
        size, step, weighted = 0, adjacency.chunk_edges, places[1] is not None and arrays[1] is not None
        direction = adjacency.direction
        runs = consecutive(chunks) if self.locked is None else self.locked.copies(direction, chunks, weighted)
        for run in runs:
            e0, e1 = int(run[0]) * step, min((int(run[-1]) + 1) * step, adjacency.edges)
            for place, array in zip(places, arrays, strict=True):
                if place is not None and array is not None:
                    part = array[e0 - first_source : e1 - first_source]
                    self.device.copy_in(place[e0 - first_target : e1 - first_target], part, self._stream)
                    size += part.nbytes
        return size

    def _between_events(self, copy: Callable[[], int], free: Event) -> tuple[int, LinkSpan]:
        """Start what `copy` does once the targets may be written; what it returns, and the events around."""
        self.device.behind(self._stream, free)
        began = self.device.event(self._stream)
        size = copy()
        return size, (began, self.device.event(self._stream))


class PinnedMemory(Link):
    """A link from page-locked host memory that has every edge, in one form or the other; its owner releases it."""

    staged = False
    cache = None

    def started(self, request: EdgeRequest, chunks: Ints, copies: tuple[int, LinkSpan]) -> PinnedCopy:
        """Note in the request's record that copies of chunks have started: the bytes, and the events around."""
        record, (size, span) = request.record, copies
        record.bytes_link += size
        record.chunks_read += len(chunks)
        record.spans += ((LINK, *span),)
        return PinnedCopy(self.device, span[1])

    def residency(self, adjacency: AdjacencyArrays, demand: Demand, absent: Bools, present: Bools) -> None:
        """Return None: nothing is staged."""

    def close(self) -> None:
        """Do nothing: the owner of the memory releases it."""

    def complete(self, adjacency: AdjacencyArrays, with_weights: bool) -> Bools:
        """Return that every chunk is in host memory, bool[chunks]."""
        return np.ones(-(-adjacency.edges // adjacency.chunk_edges), dtype=bool)

    def lend(self, held: Transfer, event: Event) -> None:
        """Release it: what it shows stays."""
        held.release()


class PinnedReader(PinnedMemory):
    """Edges of adjacencies whose arrays are page-locked in host memory; `arrays`: direction -> arrays."""

    def __init__(self, device: Device, arrays: Mapping[str, Arrays], locked: PageLockedRuns | None = None) -> None:
        super().__init__(device, locked)
        self._arrays = dict(arrays)
        self._mapped: dict[str, Arrays] = {}

    def fetch(self, request: EdgeRequest, chunks: Ints, arrays: Arrays) -> PinnedCopy:
        """Start copying chunks."""
        held = self._arrays[request.adjacency.direction]
        copies = self.copy_chunks((request.adjacency, chunks), (held, 0), (arrays, request.e0), self.free)
        return self.started(request, chunks, copies)

    def pinned(self, adjacency: AdjacencyArrays, with_weights: bool) -> Arrays:
        """Return the arrays of a whole adjacency as the host reads them."""
        neighbors, weights = self._arrays[adjacency.direction]
        return neighbors, weights if with_weights else None

    def hold(self, request: EdgeRequest) -> Transfer:
        """Return the edges as the host reads them."""
        return request.transfer(_part(self._arrays[request.adjacency.direction], request))

    def payloads(self, request: EdgeRequest, held: View) -> PayloadRange:
        """Refuse: these edges are plain."""
        raise RuntimeError(f"partitions {request.first}..{request.last} are plain, and are wanted packed")

    def in_place(self, request: EdgeRequest) -> InPlace:
        """Return the edges as kernels of the device read them over the link."""
        key = request.adjacency.direction
        if key not in self._mapped:
            neighbors, weights = self._arrays[key]
            mapped = None if weights is None else self.device.mapped(weights)
            self._mapped[key] = self.device.mapped(neighbors), mapped
        return InPlace(request.view(_part(self._mapped[key], request)), self.device)


class PinnedCopy:
    """Copies under way; the host does not wait for them."""

    def __init__(self, device: Device, end: Event) -> None:
        self._device, self.copied = device, end

    @property
    def done(self) -> bool:
        """Whether the copies are complete."""
        return self._device.done(self.copied)

    def result(self) -> ReadRecord:
        """Order the device's kernels behind the copies."""
        self._device.follow(self.copied)
        return NOTHING_READ

    def cancel(self) -> None:
        """Wait until nothing is written any more: a copy that has started cannot be stopped."""
        self._device.wait(self.copied)


class InPlace(Transfer):
    """A view that kernels read over the link; a link that is modelled is busy with it from `view` on.

    A kernel and its reading take as long as the longer of the two: `release` waits until both are over.
    """

    def __init__(self, view: View, device: Device) -> None:
        super().__init__(view)
        self._device = device
        self._until: Event = None

    def view(self) -> View:
        """Let the link begin."""
        record = self._view.record
        span = self._device.reading(record.bytes_link)
        if span is not None:
            self._until = span[1]
            record.spans += ((LINK, *span),)
        return self._view

    def release(self) -> None:
        """Wait until the link is through; more than once does no harm."""
        until, self._until = self._until, None
        if until is not None:
            self._device.wait(until)


def _part(arrays: Arrays, request: EdgeRequest) -> Arrays:
    """Cut a request's edges out of the arrays of the whole adjacency."""
    neighbors, weights = arrays
    edges = slice(request.e0, request.e1)
    return neighbors[edges], weights[edges] if request.with_weights and weights is not None else None
