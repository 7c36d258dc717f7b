"""The relay: chunks that come from disk to a device behind a link, by way of page-locked host memory.

Owns the two legs of one fetch: a partition is brought to the host (into its place in the host cache, or into a slab),
and what was wanted of it is then copied over the link; the host's slab goes back once the copy has passed. Refuses
more than one partition a fetch, for a slab holds one. Nobody calls back: the second leg starts when the launching
thread next asks whether the first is behind, or for the result, while the disk is busy with what was fetched after it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from penstock.storage.base.errors import RunError
from penstock.transfer.devices.device import Device
from penstock.transfer.routes.filter import WantedChunks, bring
from penstock.transfer.staging.fetch import TransferStats
from penstock.transfer.staging.host_to_device import Link
from penstock.transfer.staging.in_flight import Transfer
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.values.task import Ints, TaskRecord
from penstock.transfer.values.view import View


class LentSlabs:
    """Host memory behind a link: brings partitions there, and takes their slabs back when the device has done."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lent: deque[tuple[Any, Transfer]] = deque()

    def bring(self, wanted: WantedChunks, source: PartitionDirectory) -> Transfer | None:
        """Start bringing chunks to host memory; None while every slab of the host is in use."""
        while self._lent and self._device.done(self._lent[0][0]):
            self._lent.popleft()[1].release()
        parcel = bring(wanted, source)
        while parcel is None and self._lent:
            event, oldest = self._lent.popleft()
            self._device.wait(event)
            oldest.release()
            parcel = bring(wanted, source)
        return parcel

    def take_back(self, parcel: Transfer, event: Any) -> None:
        """Release the parcel when the device has passed the event."""
        self._lent.append((event, parcel))

    def settle(self) -> None:
        """Wait until the device reads nothing of the host any more: what lies there may then move."""
        while self._lent:
            event, parcel = self._lent.popleft()
            self._device.wait(event)
            parcel.release()


class StagedReader(Link):
    """A chunk reader with two legs; `sources`: the host's stage of each adjacency."""

    def __init__(self, device: Device, shelf: LentSlabs, sources: dict[str, PartitionDirectory]) -> None:
        super().__init__(device)
        self.shelf = shelf
        self._sources = sources

    def fetch(self, adjacency: Any, chunks: Ints, first_edge: int, neighbors: Any, weights: Any) -> _Legs | None:
        """Start bringing `chunks` (ascending, of one partition) to where edge `first_edge` is item 0."""
        source = self._sources[adjacency.direction]
        number = int(chunks[0]) * adjacency.chunk_edges // source.table.partition_edges
        if int(chunks[-1]) * adjacency.chunk_edges // source.table.partition_edges != number:
            raise RuntimeError(f"chunks {chunks[0]}..{chunks[-1]} are of more than one partition")
        record = TaskRecord("filter", source.direction, (number,))
        parcel = self.shelf.bring(WantedChunks(number, number, chunks, weights is not None, record), source)
        if parcel is None:
            return None
        return _Legs(self, parcel, (adjacency, chunks, first_edge), (neighbors, weights))


class _Legs:
    """One fetch under way; its targets may be written when the kernels launched before it are done."""

    def __init__(
        self, relay: StagedReader, parcel: Transfer, wanted: tuple[Any, Ints, int], targets: tuple[Any, Any]
    ) -> None:
        self._relay, self._parcel, self._wanted, self._targets = relay, parcel, wanted, targets
        self._free = relay.after()
        self._carried: TransferStats | None = None
        self._error: RunError | None = None

    @property
    def done(self) -> bool:
        """Whether the first leg is behind; the second then starts, so that it runs while kernels are at other work."""
        if self._carried is None and self._error is None and self._parcel.ready():
            try:
                self._carry()
            except RunError as error:
                self._error = error
        return self._carried is not None or self._error is not None

    def result(self) -> TransferStats:
        """Wait for the host's chunks, start the copy, and order the device's kernels behind it."""
        if self._error is not None:
            raise self._error
        carried = self._carry()
        self._relay.device.follow(carried.span[1])
        return carried

    def _carry(self) -> TransferStats:
        """Wait for the host's chunks, and start the copy."""
        if self._carried is None:
            view = self._parcel.view()
            adjacency, chunks, first_edge = self._wanted
            held = (view.neighbors, view.weights), view.e0
            targets = self._targets, first_edge
            size, span = self._relay.copy_chunks((adjacency, chunks), held, targets, self._free)
            self._relay.shelf.take_back(self._parcel, span[1])
            record = view.record
            self._carried = TransferStats(
                size,
                span,
                record.bytes_disk,
                record.chunks_read,
                record.hits,
                record.disk_seconds,
                record.decode_seconds,
            )
        return self._carried

    def cancel(self) -> None:
        """Drop the first leg; wait for the second if it has started."""
        if self._carried is None:
            self._parcel.release()
        else:
            self._relay.device.wait(self._carried.span[1])


class StagedInPlace(Transfer):
    """A parcel whose view is the host's, read over the link by kernels; the host keeps it until they have done."""

    def __init__(self, shelf: LentSlabs, device: Device, host: Transfer, view: View) -> None:
        super().__init__(view)
        self._shelf, self._device = shelf, device
        self._host: Transfer | None = host
        self._shown = False

    def ready(self) -> bool:
        """Return whether `view` would not wait."""
        return self._host is None or self._host.ready()

    def view(self) -> View:
        """Wait for the host's chunks."""
        assert self._host is not None, "a parcel is shown before it is released"
        theirs, mine = self._host.view().record, self._view.record
        mine.bytes_disk, mine.chunks_read, mine.hits = theirs.bytes_disk, theirs.chunks_read, theirs.hits
        mine.disk_seconds, mine.decode_seconds = theirs.disk_seconds, theirs.decode_seconds
        mine.wait_seconds = theirs.wait_seconds
        self._shown = True
        return self._view

    def release(self) -> None:
        """Give the host's parcel back: after the kernels launched so far, if they could have seen it."""
        host, self._host = self._host, None
        if host is not None and self._shown:
            self._shelf.take_back(host, self._device.event(None))
        elif host is not None:
            host.release()
