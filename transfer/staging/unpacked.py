"""Views of packed partitions: their pieces are brought to the device, or are there, and are unpacked into a slab.

Kernels see plain edges. A slab is taken when its view is asked for, so two slabs suffice for unpacking one view while
kernels work on the one before; the host waits where it would run further ahead. Refuses nothing: what is malformed is
flagged by the device and reported by `Unpacker.check`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.devices.device import DeviceArray
from penstock.transfer.devices.unpacking import UnpackRequest
from penstock.transfer.staging.fetch import fetch
from penstock.transfer.staging.in_flight import EdgeRequest, Transfer
from penstock.transfer.staging.page_locked_runs import consecutive
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.slab_pool import Slab
from penstock.transfer.values.cost import UNPACK
from penstock.transfer.values.task import Demand, Ints, Task
from penstock.transfer.values.view import View

Piece = tuple[int, Ints, Transfer]
"""A partition, its wanted chunks, and the transfer that brings its piece."""


def fetch_packed(task: Task, demand: Demand, directory: PartitionDirectory) -> Unpacked | None:
    """Start bringing the pieces of a task's partitions to the device; None while there is no buffer for them."""
    pieces: list[Piece] = []
    request, places = directory.task_request(task, demand), directory.staging.places
    absent = np.count_nonzero(directory.starts[request.first : request.last + 1] < 0)
    if absent > places.free:
        return None
    for number in range(request.first, request.last + 1):
        chunks = directory.wanted(demand, number, number)
        if not len(chunks):
            continue
        transfer = fetch(directory.request(number, number, chunks, demand.with_weights, request.record), directory)
        if transfer is None:
            for _, _, other in pieces:
                other.release()
            return None
        pieces.append((number, chunks, transfer))
    return Unpacked(request, pieces, None if demand.whole else demand.block_marks, directory)


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
        request = unpack_request(directory, number, arrays[0], (chunk, chunk + 1), plain, first)
        packing.unpacker.unpack(request, packing.stream)
        device.follow(device.event(packing.stream))
        return device.to_host(plain[:count])
    finally:
        device.free(plain)


def unpack_request(
    directory: PartitionDirectory,
    number: int,
    piece: DeviceArray,
    chunks: tuple[int, int],
    out: DeviceArray,
    first_edge: int,
    marks: DeviceArray | None = None,
    *,
    values: bool = False,
) -> UnpackRequest:
    """Return what unpacks chunks [chunks[0], chunks[1]) of a partition's piece, of neighbors or of weights.

    out: its item 0 is edge `first_edge`. marks: as in `UnpackRequest`.
    """
    table, packing = directory.pieces, directory.staging.unpacking
    assert table is not None, "the directory is of packed partitions"
    assert packing is not None, "packed edges are staged with what unpacks them"
    layout = table.layout
    starts, where = (layout.weights, table.weights) if values else (layout.neighbors, table.neighbors)
    assert starts is not None, "a layout for weights has them"
    return UnpackRequest(
        words=piece[where(number, *chunks)],
        first_word=int(starts[chunks[0]]),
        starts=packing.starts(directory.key, weights=values),
        first_chunk=chunks[0],
        last_chunk=chunks[1],
        chunk_edges=layout.chunk_edges,
        edges=layout.edges,
        out=out,
        first_edge=first_edge,
        limit=0 if values else packing.vertices,
        values=values,
        marks=marks,
    )


class Unpacked(Transfer):
    """A task whose pieces are on their way to the device; `view` unpacks them."""

    def __init__(
        self, request: EdgeRequest, pieces: list[Piece], marks: DeviceArray | None, directory: PartitionDirectory
    ) -> None:
        self._request, self._pieces, self._marks, self._directory = request, pieces, marks, directory
        self._staging = directory.staging
        self._plain: Slab | None = None
        self._released = False
        self.is_ready = False
        self.advances = any(transfer.advances for _, _, transfer in pieces)

    def ready(self) -> bool:
        """Return whether `view` would not wait for a copy; asking may start what follows a read that is over."""
        if not self.is_ready:
            found = [transfer.ready() for _, _, transfer in self._pieces]
            self.is_ready = all(found)
            self.advances = self.advances and not self.is_ready
        return self.is_ready

    def view(self) -> View:
        """Start unpacking behind the copies, and order kernels behind that; the buffers of the pieces are free then."""
        began = time.perf_counter()
        device, packing, request = self._staging.device, self._staging.unpacking, self._request
        assert packing is not None, "packed edges are staged with what unpacks them"
        views = [(number, chunks, transfer.view()) for number, chunks, transfer in self._pieces]
        slab = self._plain = self._staging.slabs.take(request.with_weights)
        assert slab is not None, "a slab is free when the view before has been released"
        if slab.free is not None:
            device.wait(slab.free)
        request.record.wait_seconds = time.perf_counter() - began
        for _, _, transfer in self._pieces:
            for event in transfer.ends:
                device.behind(packing.stream, event)
        first = device.event(packing.stream)
        for number, chunks, view in views:
            for run in [chunks] if self._marks is not None else consecutive(chunks):
                self._unpack(number, run, view.neighbors, slab)
        last = device.event(packing.stream)
        request.record.spans += ((UNPACK, first, last),)
        device.follow(last)
        self._release_pieces()
        edges = request.e1 - request.e0
        weights = None if slab.weights is None else slab.weights[:edges]
        return request.view((slab.neighbors[:edges], weights))

    def _unpack(self, number: int, chunks: Ints, piece: DeviceArray, slab: Slab) -> None:
        """Unpack chunks: consecutive ones, or those between them too, of which no block is marked."""
        request, directory = self._request, self._directory
        packing, table, marks = self._staging.unpacking, directory.pieces, self._marks
        assert packing is not None, "packed edges are staged with what unpacks them"
        assert table is not None, "the directory is of packed partitions"
        part, (first, last) = (number, piece), (int(chunks[0]), int(chunks[-1]) + 1)
        neighbors = unpack_request(directory, *part, (first, last), slab.neighbors, request.e0, marks)
        packing.unpacker.unpack(neighbors, packing.stream)
        if slab.weights is None:
            return
        if not table.layout.raw_weights:
            weights = unpack_request(directory, *part, (first, last), slab.weights, request.e0, marks, values=True)
            packing.unpacker.unpack(weights, packing.stream)
            return
        e0, e1 = first * table.layout.chunk_edges, min(last * table.layout.chunk_edges, table.layout.edges)
        target = slab.weights[e0 - request.e0 : e1 - request.e0]
        self._staging.device.copy_within(target, piece[table.weights(number, first, last)], packing.stream)

    def _release_pieces(self) -> None:
        pieces, self._pieces = self._pieces, []
        for _, _, transfer in pieces:
            transfer.release()

    def release(self) -> None:
        """Give the slab back, and what was not unpacked; more than once does no harm."""
        if self._released:
            return
        self._released = True
        self._release_pieces()
        slab, self._plain = self._plain, None
        if slab is not None:
            slab.pool.give(slab, self._staging.device.launched())
