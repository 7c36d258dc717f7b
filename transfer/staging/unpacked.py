"""Views of packed partitions, for kernels that see plain edges: their pieces are unpacked into a slab.

Pieces are brought to the device, or are there, or are read in host memory. A slab is taken when unpacking begins: when
the view is asked for, or before, while kernels are at work on another view, if a slab is free. The host waits where it
would run further ahead (`DevicePacking.pace`). What is malformed is flagged by the device and reported by
`Unpacker.check`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.devices.device import DeviceArray, Event, UnpackRequest
from penstock.transfer.staging.fetch import fetch
from penstock.transfer.staging.in_flight import EdgeRequest, PayloadRange, Transfer, all_or_none
from penstock.transfer.staging.page_locks import consecutive
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.slab_pool import Slab
from penstock.transfer.values.cost import LINK, UNPACK
from penstock.transfer.values.task import Demand, Task
from penstock.transfer.values.view import View

Piece = tuple[EdgeRequest, Transfer]
"""The request for one partition, and the transfer that brings its piece to the device, or holds it in host memory."""


def fetch_packed(task: Task, demand: Demand, directory: PartitionDirectory) -> Unpacked | None:
    """Start bringing the pieces of a task's partitions to the device; None while there is no buffer for them."""
    request, places = directory.task_request(task, demand), directory.staging.places
    absent = np.count_nonzero(directory.starts[request.first : request.last + 1] < 0)
    if absent > places.free:
        return None
    pieces = _started(request, demand, directory, lambda part: fetch(part, directory))
    return None if pieces is None else Unpacked(request, pieces, demand, directory)


def read_blocks(task: Task, demand: Demand, directory: PartitionDirectory) -> UnpackedInPlace | None:
    """Bring the pieces of a task's partitions to host memory, from where kernels unpack their wanted blocks of 256.

    It is zero-copy of packed edges: what crosses the link are the payloads of these blocks, fewer bytes than the lines
    of long rows. None while the host has no room for the pieces.
    """
    request = directory.task_request(task, demand)
    request.record.bytes_link = directory.block_bytes(request, demand)
    pieces = _started(request, demand, directory, directory.staging.packed_link.hold)
    return None if pieces is None else UnpackedInPlace(request, pieces, demand, directory)


def _started(
    request: EdgeRequest,
    demand: Demand,
    directory: PartitionDirectory,
    start: Callable[[EdgeRequest], Transfer | None],
) -> list[Piece] | None:
    """Start a transfer for each partition of a request; None, and nothing is started, where one finds no room.

    Notes in the request's record what will be unpacked.
    """
    parts = [request]
    if request.first != request.last:
        numbers = range(request.first, request.last + 1)
        wanted = ((number, number, directory.wanted(demand, number, number)) for number in numbers)
        parts = [directory.request(*part, demand.with_weights, request.record) for part in wanted]
    parts = [part for part in parts if len(part.chunks)]
    transfers = all_or_none(map(start, parts))
    if transfers is None:
        return None
    request.record.bytes_unpacked = directory.unpacked_bytes(request, demand)
    return list(zip(parts, transfers, strict=True))


def sample_neighbors(directory: PartitionDirectory, number: int, count: int) -> NDArray[Any]:
    """Return up to `count` neighbors from the middle of a partition that the device holds, in host memory."""
    device, table, pieces = directory.staging.device, directory.table, directory.pieces
    arrays, middle = directory.cached_arrays(number, 1, False), int(table.lengths[number]) // 2
    if pieces is None:
        return device.to_host(arrays[0][middle : middle + count])
    packing, layout = directory.staging.unpacking, pieces.layout
    assert packing is not None, "packed edges are staged with what unpacks them"
    chunk = (int(table.e0[number]) + middle) // layout.chunk_edges
    first, last = chunk * layout.chunk_edges, min((chunk + 1) * layout.chunk_edges, layout.edges)
    plain = device.array(last - first, directory.adjacency.neighbor_dtype)
    try:
        words = arrays[0][pieces.neighbors(number, chunk, chunk + 1)]
        packing.unpacker.unpack(unpack_request(directory, words, (chunk, chunk + 1), plain, first), packing.stream)
        device.follow(device.event(packing.stream))
        return device.to_host(plain[:count])
    finally:
        device.free(plain)


def unpack_request(
    directory: PartitionDirectory,
    words: DeviceArray,
    chunks: tuple[int, int],
    out: DeviceArray,
    first_edge: int,
    marks: DeviceArray | None = None,
    *,
    values: bool = False,
    in_place: bool = False,
) -> UnpackRequest:
    """Return what unpacks chunks [chunks[0], chunks[1]) of neighbors or of weights, whose payloads `words` are.

    out: its item 0 is edge `first_edge`. marks, in_place: as in `UnpackRequest`.
    """
    table, packing = directory.pieces, directory.staging.unpacking
    assert table is not None, "the directory is of packed partitions"
    assert packing is not None, "packed edges are staged with what unpacks them"
    starts = table.layout.weights if values else table.layout.neighbors
    assert starts is not None, "a layout for weights has them"
    return UnpackRequest(
        words=words,
        first_word=int(starts[chunks[0]]),
        starts=packing.starts(directory.key, weights=values),
        first_chunk=chunks[0],
        last_chunk=chunks[1],
        chunk_edges=table.layout.chunk_edges,
        edges=table.layout.edges,
        out=out,
        first_edge=first_edge,
        limit=0 if values else packing.vertices,
        values=values,
        marks=marks,
        in_place=in_place,
    )


class Unpacked(Transfer):
    """A task whose pieces are on their way to the device; `view` unpacks them."""

    in_place = False

    def __init__(
        self, request: EdgeRequest, pieces: list[Piece], demand: Demand, directory: PartitionDirectory
    ) -> None:
        unpacking = directory.staging.unpacking
        assert unpacking is not None, "packed edges are staged with what unpacks them"
        self._request, self._pieces, self._directory = request, pieces, directory
        self._marks = None if demand.whole else demand.block_marks
        self._unpacking, self._slabs = unpacking, directory.staging.slabs
        self._plain: Slab | None = None
        self._end: Event = None
        self._released = False
        self.is_ready = False
        self.advances = any(transfer.advances for _, transfer in pieces)

    def ready(self) -> bool:
        """Return whether `view` would not wait for a copy; asking may start what follows a read that is over."""
        if not self.is_ready:
            found = [transfer.ready() for _, transfer in self._pieces]
            self.is_ready = all(found)
            self.advances = self.advances and not self.is_ready
        return self.is_ready

    def begin(self) -> None:
        """Start unpacking, if everything has arrived and a slab is free; this view must be shown next then."""
        if self._plain is None and self._slabs.free and self.ready():
            self._start()

    def view(self) -> View:
        """Start unpacking behind the copies, if that has not begun, and order kernels behind it."""
        began = time.perf_counter()
        if self._plain is None:
            self._start()
        slab, request = self._plain, self._request
        assert slab is not None, "it was taken when unpacking began"
        request.record.wait_seconds = time.perf_counter() - began
        self._unpacking.device.follow(self._end)
        edges = request.e1 - request.e0
        return request.view((slab.neighbors[:edges], None if slab.weights is None else slab.weights[:edges]))

    def _start(self) -> None:
        """Unpack into a slab, behind the copies; the buffers of the pieces are free after that."""
        device, stream = self._unpacking.device, self._unpacking.stream
        views = [(part, transfer.view()) for part, transfer in self._pieces]
        slab = self._plain = self._slabs.take(self._request.with_weights)
        assert slab is not None, "a slab is free when the view before has been released"
        for event in (slab.free, *(event for _, transfer in self._pieces for event in transfer.ends)):
            if event is not None:
                device.behind(stream, event)
        first = device.event(stream)
        for part, view in views:
            payloads = self._payloads(part, view)
            for run in [part.chunks] if self._marks is not None else consecutive(part.chunks):
                self._unpack(payloads, (int(run[0]), int(run[-1]) + 1), slab)
        self._end = self._noted(first, device.event(stream))
        self._release_pieces(self._end)

    def _payloads(self, part: EdgeRequest, view: View) -> PayloadRange:
        """Where the device reads the payloads of one partition."""
        return part.in_piece(view.neighbors)

    def _noted(self, first: Event, last: Event) -> Event:
        """Note the events around the unpacking in the record, and return the last."""
        self._request.record.spans += ((UNPACK, first, last),)
        return last

    def _unpack(self, payloads: PayloadRange, chunks: tuple[int, int], slab: Slab) -> None:
        """Unpack chunks: all of them, or marked blocks; of a chunk that is not here, none is marked."""
        e0, table = self._request.e0, self._directory.pieces
        unpacker, stream = self._unpacking.unpacker, self._unpacking.stream
        neighbors = payloads(*chunks, False)
        unpacker.unpack(self._wanted(neighbors, chunks, slab.neighbors), stream)
        if slab.weights is None:
            return
        weights = payloads(*chunks, True)
        assert table is not None, "the directory is of packed partitions"
        if not table.layout.raw_weights:
            unpacker.unpack(self._wanted(weights, chunks, slab.weights, values=True), stream)
            return
        first, last = (min(chunk * table.layout.chunk_edges, table.layout.edges) for chunk in chunks)
        self._unpacking.device.copy_within(slab.weights[first - e0 : last - e0], weights, stream)

    def _wanted(
        self, words: DeviceArray, chunks: tuple[int, int], out: DeviceArray, *, values: bool = False
    ) -> UnpackRequest:
        what = self._directory, words, chunks, out, self._request.e0, self._marks
        return unpack_request(*what, values=values, in_place=self.in_place)

    def _release_pieces(self, free: Event = None) -> None:
        """Give the buffers of the pieces back; free: the event after which they are unpacked, None: they are not."""
        pieces, self._pieces = self._pieces, []
        for _, transfer in pieces:
            transfer.slab_free = free
            transfer.release()

    def release(self) -> None:
        """Give the slab back, and what was not unpacked; more than once does no harm."""
        if self._released:
            return
        self._released = True
        self._release_pieces()
        slab, self._plain = self._plain, None
        if slab is not None:
            launched = self._unpacking.device.launched()
            slab.pool.give(slab, launched)
            self._unpacking.pace(launched)


class UnpackedInPlace(Unpacked):
    """A task whose pieces are in page-locked host memory; `view` unpacks their wanted blocks over the link."""

    in_place = True

    def _payloads(self, part: EdgeRequest, view: View) -> PayloadRange:
        host, device = self._directory.staging.packed_link.payloads(part, view), self._unpacking.device

        def payloads(first: int, last: int, of_weights: bool) -> DeviceArray:
            return device.mapped(host(first, last, of_weights))

        return payloads

    def _noted(self, first: Event, last: Event) -> Event:
        """Unpacking takes as long as the link does, which a device that models its link says itself."""
        record = self._request.record
        span = self._unpacking.device.reading(record.bytes_link) or (first, last)
        record.spans += ((LINK, *span),)
        return span[1]

    def _release_pieces(self, free: Event = None) -> None:
        """Give the pieces back to the host: after they are unpacked, or at once."""
        pieces, self._pieces = self._pieces, []
        for _, transfer in pieces:
            if free is None:
                transfer.release()
            else:
                self._directory.staging.packed_link.lend(transfer, free)
