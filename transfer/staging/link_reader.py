"""The source of a device behind a link: page-locked host memory that has every edge, or gets what is wanted from disk.

A fetch has two legs: what is wanted is brought to the host (into its place in the host's cache, or into a slab), and is
then copied over the link; a slab of the host goes back once the copy has passed. Where host memory has every edge, the
copy starts at once. Refuses a fetch of several partitions unless they are one after another in the host's cache: a slab
holds one. There are no callbacks: the second leg starts when the launching thread next asks whether the first is over,
or for the result, while the disk is busy with what was fetched after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import RunError
from penstock.storage.read.partition_cache import PartitionCache
from penstock.storage.read.pending_read import ReadRecord
from penstock.transfer.devices.device import Device, DeviceArray, Event
from penstock.transfer.staging.edge_source import LinkSource
from penstock.transfer.staging.fetch import fetch
from penstock.transfer.staging.in_flight import NOTHING_READ, Arrays, EdgeRequest, PayloadRange, Transfer
from penstock.transfer.staging.page_locks import PageLocks, consecutive
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.staging import Staging
from penstock.transfer.values.cost import LINK
from penstock.transfer.values.residency import Bools, Residency
from penstock.transfer.values.task import Demand, Ints, TaskRecord
from penstock.transfer.values.view import View

if TYPE_CHECKING:
    from penstock.storage.format.graph import Adjacency


class LinkReader(LinkSource):
    """Edges by way of host memory.

    arrays: of a graph in memory, by direction, all page-locked: neighbors and weights or, if `packed`, the words of
    their payloads. host: of a graph on disk, what its edges are staged in. locks: given where the host's cache keeps
    all of them, page-locks what has arrived; an adjacency that is complete is then read as one of a graph in memory.
    """

    def __init__(
        self,
        device: Device,
        arrays: Mapping[str, Arrays] | None = None,
        *,
        host: Staging | None = None,
        adjacencies: Iterable[Adjacency] = (),
        locks: PageLocks | None = None,
        packed: bool = False,
    ) -> None:
        self.device, self.host, self._locks = device, host, locks
        self._packed = packed if host is None else bool(host.cache.tables)
        self.free: Event = None
        self._stream = device.stream()
        self._arrays = dict(arrays or {})
        self._mapped: dict[tuple[str, bool], Arrays] = {}
        self._complete: set[tuple[str, bool]] = set()
        self._lent: deque[tuple[Event, Transfer]] = deque()
        self._hosts: dict[str, PartitionDirectory] = {}
        if host is not None:
            self._hosts = {
                a.direction: PartitionDirectory(a, "out" if a.direction == "out" else "in", host) for a in adjacencies
            }

    @property
    def cache(self) -> PartitionCache | None:
        """The cache in host memory, None where there is none."""
        return None if self.host is None else self.host.cache

    @property
    def staged(self) -> bool:
        """Whether edges may still come from disk."""
        if self.host is None or self._locks is None:
            return self.host is not None
        cache = self._locks.cache
        return not all(cache.complete(direction, cache.with_weights) for direction in self._hosts)

    def _has_all(self, direction: str, with_weights: bool) -> bool:
        """Whether host memory has every edge of an adjacency, page-locked."""
        key = direction, with_weights
        if self._locks is not None and key not in self._complete and self._locks.cache.complete(*key):
            self._locks.lock_all(*key)
            self._complete.add(key)
        return self.host is None or key in self._complete

    def _held(self, request: EdgeRequest) -> Arrays:
        """Where host memory that has every edge has those of a request: packed ones in a piece, or all payloads."""
        direction, cache = request.adjacency.direction, self.cache
        if cache is not None and self._packed:
            return cache.arrays(direction, request.first, 1, False)
        return self._arrays[direction] if self._packed else _part(self._whole(direction), request)

    def _whole(self, direction: str) -> Arrays:
        """The arrays of a whole adjacency."""
        if direction not in self._arrays:
            assert self.cache is not None, "edges that have been loaded are in a cache"
            self._arrays[direction] = self.cache.adjacency(direction)
        return self._arrays[direction]

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

    def copy_async(
        self, record: TaskRecord, pairs: list[tuple[DeviceArray, NDArray[Any]]], free: Event = None
    ) -> Event:
        """Start copying (target, source) arrays; the event behind them. The record notes the bytes and the events.

        free: the event after which the targets may be written, None: when every kernel launched so far is done.
        """
        self.device.behind(self._stream, free)
        began = self.device.event(self._stream)
        for target, source in pairs:
            self.device.copy_in(target, source, self._stream)
            record.bytes_link += source.nbytes
        ended = self.device.event(self._stream)
        record.spans += ((LINK, began, ended),)
        return ended

    def copies(self, request: EdgeRequest, held: View, arrays: Arrays) -> Iterator[tuple[DeviceArray, NDArray[Any]]]:
        """Yield what is copied of a request's chunks, from what host memory holds of it to its arrays.

        Packed, payloads go to a partition's piece; else there is a copy for each run of neighbors locked as one, and
        array.
        """
        if self._packed:
            origin, target = self.payloads(request, held), request.in_piece(arrays[0])
            for run in consecutive(request.chunks):
                for of_weights in (False, True)[: 1 + request.with_weights]:
                    where = int(run[0]), int(run[-1]) + 1, of_weights
                    yield target(*where), origin(*where)
            return
        self.lock(request)
        adjacency, pairs = request.adjacency, zip(arrays, (held.neighbors, held.weights), strict=True)
        kinds: list[tuple[Any, Any]] = [pair for pair in pairs if pair[0] is not None and pair[1] is not None]
        direction, step, weighted = adjacency.direction, adjacency.chunk_edges, len(kinds) == 2
        chunks = request.chunks
        runs = consecutive(chunks) if self._locks is None else self._locks.copies(direction, chunks, weighted)
        for run in runs:
            e0, e1 = int(run[0]) * step, min((int(run[-1]) + 1) * step, adjacency.edges)
            for target, source in kinds:
                yield target[e0 - request.e0 : e1 - request.e0], source[e0 - held.e0 : e1 - held.e0]

    def fetch(self, request: EdgeRequest, chunks: Ints, arrays: Arrays) -> _LinkCopy | None:
        """Start bringing chunks to the device, by way of the host; None while every slab of the host is in use."""
        adjacency = request.adjacency
        if self._has_all(adjacency.direction, request.with_weights):
            request.record.chunks_read += len(chunks)
            return _LinkCopy(self, request.transfer(self._held(request)), request, chunks, arrays, here=True)
        host = self._hosts[adjacency.direction]
        step = host.table.partition_edges
        number, last = (int(chunk) * adjacency.chunk_edges // step for chunk in (chunks[0], chunks[-1]))
        if number != last and not host.is_cached(number, last):
            raise RuntimeError(f"chunks {chunks[0]}..{chunks[-1]} are of several partitions in several places")
        transfer = self._staged(host.request(number, last, chunks, request.with_weights, request.record), host)
        return None if transfer is None else _LinkCopy(self, transfer, request, chunks, arrays)

    def _staged(self, request: EdgeRequest, host: PartitionDirectory) -> Transfer | None:
        """Start bringing a request from disk to host memory; None while every slab of the host is in use."""
        while self._lent and self.device.done(self._lent[0][0]):
            self._lent.popleft()[1].release()
        transfer = fetch(request, host)
        while transfer is None and self._lent:
            self._take_back()
            transfer = fetch(request, host)
        return transfer

    def lend(self, held: Transfer, event: Event = None) -> None:
        """Release what `hold` returned when the device has passed the event, None: the kernels launched so far.

        What host memory keeps for good is released at once.
        """
        if self.host is None or self.host.cache.whole:
            held.release()
        else:
            self._lent.append((self.device.event(None) if event is None else event, held))

    def settle(self) -> None:
        """Wait until the device reads nothing of the host that may now lose its place."""
        while self._lent:
            self._take_back()

    def _take_back(self) -> None:
        event, transfer = self._lent.popleft()
        self.device.wait(event)
        transfer.release()

    def residency(self, adjacency: Adjacency, demand: Demand, absent: Bools, present: Bools) -> Residency | None:
        """Return what the host must read from disk for what the device lacks, once its cache has chosen.

        None: nothing, ever again.
        """
        if self._has_all(adjacency.direction, demand.with_weights):
            return None
        self.settle()
        host = self._hosts[adjacency.direction]
        edges = np.where(host.partitions_of(absent), host.table.lengths, 0)
        lacking = replace(demand, active_edges=edges, wanted_chunks=absent.astype(np.uint8), whole=False)
        return host.residency(lacking, present)

    def close(self) -> None:
        """Take back what was lent, and let the host's cache drop what it had kept in place."""
        self.settle()
        if self.host is not None:
            self.host.close()

    def complete(self, adjacency: Adjacency, with_weights: bool) -> Bools:
        """Return which chunks are in host memory, bool[chunks]."""
        if self._has_all(adjacency.direction, with_weights):
            return np.ones(-(-adjacency.edges // adjacency.chunk_edges), dtype=bool)
        return self._hosts[adjacency.direction].held(with_weights)

    def pinned(self, adjacency: Adjacency, with_weights: bool) -> Arrays | None:
        """Return the plain arrays of a whole adjacency in page-locked memory, None while edges are missing."""
        if self._packed or not self._has_all(adjacency.direction, with_weights):
            return None
        neighbors, weights = self._whole(adjacency.direction)
        return neighbors, weights if with_weights else None

    def hold(self, request: EdgeRequest) -> Transfer | None:
        """Start bringing a request to the host; None while every slab of it is in use."""
        if self._has_all(request.adjacency.direction, request.with_weights):
            return request.transfer(self._held(request))
        host = self._hosts[request.adjacency.direction]
        wanted = host.request(request.first, request.last, request.chunks, request.with_weights, request.record)
        return self._staged(wanted, host)

    def in_place(self, request: EdgeRequest) -> InPlace | None:
        """The same, in arrays by which kernels of the device read plain edges over the link."""
        host = self.hold(request)
        if host is None:
            return None
        key = request.adjacency.direction, request.with_weights
        if not self._has_all(*key):
            return InPlace(request, self._as_mapped(*host.arrays), host, self)
        if key not in self._mapped:
            neighbors, weights = self._whole(key[0])
            self._mapped[key] = self._as_mapped(neighbors, weights if key[1] else None)
        return InPlace(request, _part(self._mapped[key], request), host, self)

    def _as_mapped(self, neighbors: NDArray[Any], weights: NDArray[Any] | None) -> Arrays:
        return self.device.mapped(neighbors), None if weights is None else self.device.mapped(weights)

    def payloads(self, request: EdgeRequest, held: View) -> PayloadRange:
        """Return where the payloads of a partition are in what `hold` brought, which is page-locked now."""
        if self.host is not None:
            self.lock(request)
            return request.in_piece(held.neighbors)
        assert request.pieces is not None, "the request is of packed edges"
        layout = request.pieces.layout

        def payloads(first: int, last: int, of_weights: bool) -> NDArray[Any]:
            words, starts = (held.weights, layout.weights) if of_weights else (held.neighbors, layout.neighbors)
            assert words is not None, "payloads of weights are there where they are wanted"
            assert starts is not None, "a layout for weights has them"
            return np.asarray(words[int(starts[first]) : int(starts[last])])

        return payloads

    def lock(self, request: EdgeRequest) -> None:
        """Page-lock chunks that have arrived in the host's memory, where that is not done from the start."""
        key = request.adjacency.direction, request.with_weights
        if self._locks is not None and key not in self._complete:
            self._locks.lock(key[0], request.chunks, key[1])


class _LinkCopy:
    """One fetch; its targets may be written when the kernels launched before it are done.

    host: the first leg, over where it is `here`. copied: the device's event after the second leg, None before that has
    started.
    """

    def __init__(
        self,
        link: LinkReader,
        host: Transfer,
        request: EdgeRequest,
        chunks: Ints,
        arrays: Arrays,
        *,
        here: bool = False,
    ) -> None:
        self._link, self._host, self._arrays, self._here = link, host, arrays, here
        self._request = request if chunks is request.chunks else replace(request, chunks=chunks)
        self._free = link.free if here else link.after()
        self.copied: Event = None
        self._error: RunError | None = None
        if here:
            self._copy()

    @property
    def done(self) -> bool:
        """Whether the first leg is over; the second then starts, so that it runs while kernels are at other work."""
        if self._here:
            return self._link.device.done(self.copied)
        if self.copied is None and self._error is None and self._host.ready():
            try:
                self._copy()
            except RunError as error:
                self._error = error
        return self.copied is not None or self._error is not None

    def result(self) -> ReadRecord:
        """Wait for the host's chunks, start the copy, and order the device's kernels behind it."""
        if self._error is not None:
            raise self._error
        self._copy()
        self._link.device.follow(self.copied)
        return NOTHING_READ

    def _copy(self) -> None:
        """Wait for the host's chunks, which note in the record what was read, and start the copy."""
        if self.copied is None:
            held = self._host.view()
            copies = list(self._link.copies(self._request, held, self._arrays))
            self.copied = self._link.copy_async(self._request.record, copies, self._free)
            self._link.lend(self._host, self.copied)

    def cancel(self) -> None:
        """Drop the first leg; wait for the second if it has started: a copy cannot be stopped."""
        if self.copied is None:
            self._host.release()
        else:
            self._link.device.wait(self.copied)


class InPlace(Transfer):
    """A view of host memory that kernels read over the link; it stays there until they have done.

    A link that is modelled is busy with it from `view` on: a kernel and its reading take as long as the longer of the
    two, and `release` waits until both are over.
    """

    def __init__(self, request: EdgeRequest, arrays: Arrays, host: Transfer, link: LinkReader) -> None:
        super().__init__(request.view(arrays))
        self._request, self._host, self._link = request, host, link
        self._until: Event = None
        self._shown = False

    def ready(self) -> bool:
        """Return whether `view` would not wait."""
        return self._host.ready()

    def view(self) -> View:
        """Wait for the host's chunks, and let the link begin."""
        self._host.view()
        self._link.lock(self._request)
        self._shown, record = True, self._view.record
        span = self._link.device.reading(record.bytes_link)
        if span is not None:
            self._until = span[1]
            record.spans += ((LINK, *span),)
        return self._view

    def release(self) -> None:
        """Wait until the link is through, and give the host's transfer back; more than once does no harm.

        It goes after the kernels launched so far, if they could have seen it.
        """
        if self._released:
            return
        self._released = True
        if self._until is not None:
            self._link.device.wait(self._until)
        if self._shown:
            self._link.lend(self._host)
        else:
            self._host.release()


def _part(arrays: Arrays, request: EdgeRequest) -> Arrays:
    """Cut a request's edges out of the arrays of the whole adjacency."""
    neighbors, weights = arrays
    edges = slice(request.e0, request.e1)
    return neighbors[edges], weights[edges] if request.with_weights and weights is not None else None
