"""Edges on disk that host memory has room for: what is wanted is read once, page-locked, and stays.

While an adjacency lacks chunks its edges are staged (`StagedReader`); once it is complete the device reads it as if it
had always been in host memory (`PinnedReader`). So a search reads what its frontiers touch, and the first sweep reads
while kernels are at work on what has arrived. Edges are loaded plain or packed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray
from penstock.storage.read.packed_cache import PackedCache
from penstock.storage.read.partition_cache import HostCache
from penstock.transfer.devices.device import Device, DeviceArray, Event
from penstock.transfer.staging.edge_source import LinkSource, LinkSpan, PayloadRange
from penstock.transfer.staging.host_to_device import PinnedReader
from penstock.transfer.staging.in_flight import Arrays, CopyHandle, EdgeRequest, Transfer
from penstock.transfer.staging.packed_reader import PiecesReader
from penstock.transfer.staging.page_locked_runs import PageLockedRuns, PageLocks
from penstock.transfer.staging.staged_reader import StagedReader
from penstock.transfer.staging.staging import Staging
from penstock.transfer.values.residency import Bools, Residency
from penstock.transfer.values.task import AdjacencyArrays, Demand, Ints
from penstock.transfer.values.view import View


class LoadingReader:
    """Edges that a host with a place for every partition loads when they are first wanted.

    host: what they are loaded into; its cache is `whole`, each adjacency, or each piece, with pages of its own.
    """

    def __init__(self, device: Device, host: Staging, adjacencies: Sequence[AdjacencyArrays], locks: PageLocks) -> None:
        assert host.cache is not None, "a host that loads keeps what it has loaded"
        assert host.cache.whole, "there is a place for every partition"
        self._cache, self._locks = host.cache, locks
        self._directions = [adjacency.direction for adjacency in adjacencies]
        self._pinned: LinkSource
        if isinstance(host.cache, PackedCache):
            self._pinned = PiecesReader(device, host.cache)
        else:
            arrays = {direction: host.cache.adjacency(direction) for direction in self._directions}
            self._pinned = PinnedReader(device, arrays, locks if isinstance(locks, PageLockedRuns) else None)
        self._staged = StagedReader(device, host, adjacencies, locks)
        self._complete: set[tuple[str, bool]] = set()

    @property
    def cache(self) -> HostCache | PackedCache:
        """The cache in host memory."""
        return self._cache

    @property
    def staged(self) -> bool:
        """Whether edges may still come from disk."""
        weighted = self._cache.with_weights
        return not all(self._cache.complete(direction, weighted) for direction in self._directions)

    def _of(self, adjacency: AdjacencyArrays, with_weights: bool) -> LinkSource:
        """Return what brings edges of an adjacency now."""
        return self._pinned if self._is_complete(adjacency, with_weights) else self._staged

    def _is_complete(self, adjacency: AdjacencyArrays, with_weights: bool) -> bool:
        key = adjacency.direction, with_weights
        if key not in self._complete and self._cache.complete(*key):
            self._locks.lock_all(*key)
            self._complete.add(key)
        return key in self._complete

    def fetch(self, request: EdgeRequest, chunks: Ints, arrays: Arrays) -> CopyHandle | None:
        """Start bringing chunks of a request to the device, from disk where the host lacks them."""
        return self._of(request.adjacency, request.with_weights).fetch(request, chunks, arrays)

    @contextmanager
    def freed(self, event: Event) -> Iterator[None]:
        """Let what is fetched meanwhile be written after the event."""
        with self._staged.freed(event), self._pinned.freed(event):
            yield

    def residency(self, adjacency: AdjacencyArrays, demand: Demand, absent: Bools, present: Bools) -> Residency | None:
        """Return what the host must read from disk for what the device lacks; None: nothing, ever again."""
        return self._of(adjacency, demand.with_weights).residency(adjacency, demand, absent, present)

    def close(self) -> None:
        """Take back what was lent."""
        self._staged.close()
        self._pinned.close()

    def complete(self, adjacency: AdjacencyArrays, with_weights: bool) -> Bools:
        """Return which chunks are in host memory, bool[chunks]."""
        return self._of(adjacency, with_weights).complete(adjacency, with_weights)

    def pinned(self, adjacency: AdjacencyArrays, with_weights: bool) -> Arrays | None:
        """Return the arrays of a whole adjacency in page-locked memory, None while chunks are missing."""
        return self._of(adjacency, with_weights).pinned(adjacency, with_weights)

    def hold(self, request: EdgeRequest) -> Transfer | None:
        """Start bringing a request to the host, where it stays."""
        return self._of(request.adjacency, request.with_weights).hold(request)

    def in_place(self, request: EdgeRequest) -> Transfer | None:
        """The same, in arrays by which kernels of the device read them."""
        return self._of(request.adjacency, request.with_weights).in_place(request)

    def payloads(self, request: EdgeRequest, held: View) -> PayloadRange:
        """Return where the payloads of a partition are in host memory, page-locked."""
        return self._staged.payloads(request, held)

    def lend(self, held: Transfer, event: Event) -> None:
        """Release what `hold` returned when the device has passed the event."""
        self._staged.lend(held, event)

    def after(self) -> Event:
        """Return the event after which the targets of what is fetched now may be written."""
        return self._staged.after()

    def copy_async(self, pairs: list[tuple[DeviceArray, NDArray[Any]]], free: Event = None) -> tuple[int, LinkSpan]:
        """Start copying (target, source) arrays; the bytes, and the events around."""
        return self._staged.copy_async(pairs, free)
