"""Edges that come from disk to a device behind a link, by way of page-locked host memory.

A fetch has two legs: a partition is brought to the host (into its place in the host cache, or into a slab), and what
was wanted of it is then copied over the link; the host's slab goes back once the copy has passed. Refuses a fetch of
several partitions unless they lie one after another in the cache: a slab holds one. There are no callbacks: the second
leg starts when the launching thread next asks whether the first is over, or for the result, while the disk is busy with
what was fetched after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from penstock.storage.base.errors import RunError
from penstock.storage.read.pending_read import ReadRecord
from penstock.transfer.devices.device import Device, Event
from penstock.transfer.staging.edge_source import PayloadRange
from penstock.transfer.staging.fetch import fetch
from penstock.transfer.staging.host_to_device import InPlace, Link
from penstock.transfer.staging.in_flight import NOTHING_READ, Arrays, EdgeRequest, Transfer
from penstock.transfer.staging.packed_reader import in_piece
from penstock.transfer.staging.page_locked_runs import PageLockedRuns, PageLocks
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.staging import Staging
from penstock.transfer.values.cost import LINK
from penstock.transfer.values.residency import Bools, Residency
from penstock.transfer.values.task import AdjacencyArrays, Demand, Ints
from penstock.transfer.values.view import View


class StagedReader(Link):
    """Edges by way of host memory; `host`: what it stages them in."""

    staged = True

    def __init__(
        self,
        device: Device,
        host: Staging,
        adjacencies: Iterable[AdjacencyArrays],
        locked: PageLocks | None = None,
    ) -> None:
        super().__init__(device, locked if isinstance(locked, PageLockedRuns) else None)
        self._locks = locked
        self.host, self.cache = host, host.cache
        self.lent = LentSlabs(device)
        self._hosts = {
            a.direction: PartitionDirectory(a, "out" if a.direction == "out" else "in", host) for a in adjacencies
        }

    def fetch(self, request: EdgeRequest, chunks: Ints, arrays: Arrays) -> _StagedCopy | None:
        """Start bringing chunks to the host; None while every slab of the host is in use."""
        host = self._hosts[request.adjacency.direction]
        step = host.table.partition_edges
        number, last = (int(chunk) * request.adjacency.chunk_edges // step for chunk in (chunks[0], chunks[-1]))
        if number != last and not host.is_cached(number, last):
            raise RuntimeError(f"chunks {chunks[0]}..{chunks[-1]} are of several partitions in several places")
        transfer = self.lent.fetch(host.request(number, last, chunks, request.with_weights, request.record), host)
        return None if transfer is None else _StagedCopy(self, transfer, request, chunks, arrays)

    def residency(self, adjacency: AdjacencyArrays, demand: Demand, absent: Bools, present: Bools) -> Residency:
        """Return what the host must read from disk for what the device lacks, once its cache has chosen."""
        if self.cache is None or not self.cache.whole:
            self.settle()  # what the device still reads of the host keeps its place until then
        host = self._hosts[adjacency.direction]
        edges = np.where(host.partitions_of(absent), host.table.lengths, 0)
        lacking = replace(demand, active_edges=edges, wanted_chunks=absent.astype(np.uint8), whole=False)
        return host.residency(lacking, present)

    def settle(self) -> None:
        """Wait until the device reads nothing of the host that may now lose its place."""
        self.lent.settle()

    def close(self) -> None:
        """Take back what was lent, and let the host's cache drop what it had kept in place."""
        self.settle()
        self.host.close()

    def complete(self, adjacency: AdjacencyArrays, with_weights: bool) -> Bools:
        """Return which chunks the host's cache holds, bool[chunks]."""
        return self._hosts[adjacency.direction].held(with_weights)

    def pinned(self, adjacency: AdjacencyArrays, with_weights: bool) -> None:
        """Return None: host memory does not hold every edge."""

    def hold(self, request: EdgeRequest) -> Transfer | None:
        """Start bringing a request to the host; None while every slab of it is in use."""
        host = self._hosts[request.adjacency.direction]
        wanted = host.request(request.first, request.last, request.chunks, request.with_weights, request.record)
        return self.lent.fetch(wanted, host)

    def in_place(self, request: EdgeRequest) -> InPlace | None:
        """The same, in arrays by which kernels of the device read them."""
        host = self.hold(request)
        if host is None:
            return None
        neighbors, weights = host.arrays
        mapped = None if weights is None else self.device.mapped(weights)
        return _StagedInPlace(request, (self.device.mapped(neighbors), mapped), self, host)

    def payloads(self, request: EdgeRequest, held: View) -> PayloadRange:
        """Return where the payloads of a partition are in the piece that `hold` brought, which is page-locked now."""
        self.lock(request, request.chunks)
        return in_piece(request, held.neighbors)

    def lend(self, held: Transfer, event: Event) -> None:
        """Release what `hold` returned when the device has passed the event."""
        self.lent.lend(held, event)

    def lock(self, request: EdgeRequest, chunks: Ints) -> None:
        """Page-lock chunks that have arrived in the host's memory, where that is not done from the start."""
        if self._locks is not None:
            self._locks.lock(request.adjacency.direction, chunks, request.with_weights)


class LentSlabs:
    """Partitions in host memory that copies or kernels of the device still read, oldest first."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lent: deque[tuple[Event, Transfer]] = deque()

    def fetch(self, request: EdgeRequest, host: PartitionDirectory) -> Transfer | None:
        """Start bringing a request to host memory; None while every slab of the host is in use."""
        while self._lent and self._device.done(self._lent[0][0]):
            self._lent.popleft()[1].release()
        transfer = fetch(request, host)
        while transfer is None and self._lent:
            self._take_back()
            transfer = fetch(request, host)
        return transfer

    def lend(self, transfer: Transfer, event: Event) -> None:
        """Release the transfer when the device has passed the event."""
        self._lent.append((event, transfer))

    def settle(self) -> None:
        """Wait until the device reads nothing of the host any more: what is stored there may then move."""
        while self._lent:
            self._take_back()

    def _take_back(self) -> None:
        event, transfer = self._lent.popleft()
        self._device.wait(event)
        transfer.release()


class _StagedCopy:
    """One fetch of two legs; its targets may be written when the kernels launched before it are done."""

    def __init__(
        self, reader: StagedReader, host: Transfer, request: EdgeRequest, chunks: Ints, arrays: Arrays
    ) -> None:
        self._reader, self._host, self._request, self._chunks, self._arrays = reader, host, request, chunks, arrays
        self._free = reader.after()
        self._end: Event = None
        self._error: RunError | None = None

    @property
    def copied(self) -> Event:
        """The device's event after the second leg, None before that has started."""
        return self._end

    @property
    def done(self) -> bool:
        """Whether the first leg is over; the second then starts, so that it runs while kernels are at other work."""
        if self._end is None and self._error is None and self._host.ready():
            try:
                self._copy()
            except RunError as error:
                self._error = error
        return self._end is not None or self._error is not None

    def result(self) -> ReadRecord:
        """Wait for the host's chunks, start the copy, and order the device's kernels behind it."""
        if self._error is not None:
            raise self._error
        self._copy()
        self._reader.device.follow(self._end)
        return NOTHING_READ

    def _copy(self) -> None:
        """Wait for the host's chunks, which note in the record what was read, and start the copy."""
        if self._end is None:
            view, request, reader = self._host.view(), self._request, self._reader
            reader.lock(request, self._chunks)
            if request.pieces is None:
                held, target = ((view.neighbors, view.weights), view.e0), (self._arrays, request.e0)
                size, span = reader.copy_chunks((request.adjacency, self._chunks), held, target, self._free)
            else:
                size, span = reader.copy_piece(
                    request, self._chunks, in_piece(request, view.neighbors), self._arrays[0], self._free
                )
            self._end = span[1]
            reader.lent.lend(self._host, self._end)
            request.record.bytes_link += size
            request.record.spans += ((LINK, *span),)

    def cancel(self) -> None:
        """Drop the first leg; wait for the second if it has started."""
        if self._end is None:
            self._host.release()
        else:
            self._reader.device.wait(self._end)


class _StagedInPlace(InPlace):
    """A view of host memory that kernels read over the link; it stays there until they have done."""

    def __init__(self, request: EdgeRequest, arrays: Arrays, reader: StagedReader, host: Transfer) -> None:
        super().__init__(request.view(arrays), reader.device)
        self._request, self._reader = request, reader
        self._host: Transfer | None = host
        self._shown = False

    def ready(self) -> bool:
        """Return whether `view` would not wait."""
        return self._host is None or self._host.ready()

    def view(self) -> View:
        """Wait for the host's chunks, and let the link begin."""
        assert self._host is not None, "a transfer is shown before it is released"
        self._host.view()
        self._reader.lock(self._request, self._request.chunks)
        self._shown = True
        return super().view()

    def release(self) -> None:
        """Give the host's transfer back: after the kernels launched so far, if they could have seen it."""
        super().release()
        host, self._host = self._host, None
        if host is not None and self._shown:
            self._reader.lent.lend(host, self._device.event(None))
        elif host is not None:
            host.release()
