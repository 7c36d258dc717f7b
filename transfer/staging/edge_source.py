"""Sources of edges that a device does not hold: `EdgeSource` of one that reads host memory, `LinkSource` of others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.read.partition_cache import PartitionCache
from penstock.storage.read.pending_read import PayloadTarget, SlabTarget
from penstock.transfer.devices.device import DeviceArray, Event
from penstock.transfer.staging.in_flight import Arrays, CopyHandle, EdgeRequest, PayloadRange, Transfer
from penstock.transfer.values.residency import Bools, Residency
from penstock.transfer.values.task import Demand, Ints, TaskRecord
from penstock.transfer.values.view import View

if TYPE_CHECKING:
    from penstock.storage.format.graph import Adjacency
    from penstock.storage.read.reader import Reader


class EdgeSource:
    """What brings edges to where a device's kernels read them.

    This one serves a device that reads host memory: edges are read from disk or, without a reader, all in memory.
    """

    def __init__(self, reader: Reader | None = None) -> None:
        self._reader = reader

    @property
    def staged(self) -> bool:
        """Whether edges come from disk by way of host memory that does not hold all of them."""
        return False

    @property
    def cache(self) -> PartitionCache | None:
        """The cache in host memory by way of which edges come, None where there is none."""
        return None

    def fetch(self, request: EdgeRequest, chunks: Ints, arrays: Arrays) -> CopyHandle | None:
        """Start bringing chunks of a request to arrays whose item 0 is its first edge, and note them in its record.

        Returns None while there is no room on the way. Raises RuntimeError for a graph that is in memory.
        """
        if self._reader is None:
            raise RuntimeError(f"{len(chunks)} chunks of a graph in memory are to be read")
        if request.pieces is None:
            handle = self._reader.fetch(request.adjacency, chunks, request.e0, *arrays)
        else:
            handle = self._reader.fetch_payloads(request.adjacency, chunks, *_targets(request, arrays[0]))
        request.record.chunks_read += len(chunks)
        return handle

    def freed(self, event: Event) -> AbstractContextManager[None]:
        """Let the targets of what is fetched meanwhile be written after the event.

        Without it, and for None, they are written after all kernels launched so far; here these are done.
        """
        return nullcontext()

    def residency(self, adjacency: Adjacency, demand: Demand, absent: Bools, present: Bools) -> Residency | None:
        """Return what a demand reads from disk into host memory, whose cache selects what it keeps; None: nothing.

        absent: chunks of the demand that the device lacks, bool[chunks]. present: partitions of which it holds some,
        bool[p].
        """
        return None

    def close(self) -> None:
        """Return what was lent, and drop what was kept in place; a reader is closed by its owner."""


class LinkSource(EdgeSource, ABC):
    """The source of a device behind a link: the same, and host memory from which rows are gathered or read in place."""

    @abstractmethod
    def complete(self, adjacency: Adjacency, with_weights: bool) -> Bools:
        """Return which chunks are in host memory for as long as a walk lasts, bool[chunks]."""

    @abstractmethod
    def pinned(self, adjacency: Adjacency, with_weights: bool) -> Arrays | None:
        """Return the arrays of a whole adjacency in page-locked host memory, None where edges are staged."""

    @abstractmethod
    def hold(self, request: EdgeRequest) -> Transfer | None:
        """Start bringing a request to host memory, where it stays until release; None while there is no room."""

    @abstractmethod
    def in_place(self, request: EdgeRequest) -> Transfer | None:
        """The same, in arrays by which kernels of the device read host memory over the link."""

    @abstractmethod
    def payloads(self, request: EdgeRequest, held: View) -> PayloadRange:
        """Return where the payloads of a partition are in host memory that kernels read; held: the view of `hold`."""

    @abstractmethod
    def lend(self, held: Transfer, event: Event = None) -> None:
        """Release what `hold` returned when the device has passed the event, None: the kernels launched so far."""

    @abstractmethod
    def after(self) -> Event:
        """Return the event after which the targets of what is fetched now may be written."""

    @abstractmethod
    def copy_async(
        self, record: TaskRecord, pairs: list[tuple[DeviceArray, NDArray[Any]]], free: Event = None
    ) -> Event:
        """Start copying (target, source) arrays to the device; the event behind them. The record notes what it takes.

        free: the event after which the targets may be written, None: when every kernel launched so far is done.
        """


def _targets(request: EdgeRequest, piece: NDArray[Any]) -> tuple[PayloadTarget, PayloadTarget | SlabTarget | None]:
    """Return where in a partition's piece the payloads of its neighbors go, and its weights where they are wanted."""
    table, number = request.pieces, request.first
    assert table is not None, "the request is of packed edges"
    first, last = int(table.firsts[number]), int(table.firsts[number + 1])
    layout, place = table.layout, table.neighbors(number, first, last)
    neighbors = PayloadTarget(piece[place], int(layout.neighbors[first]), layout.neighbors)
    if not request.with_weights:
        return neighbors, None
    words = piece[table.weights(number, first, last)]
    assert layout.weights is not None, "a layout for weights has them"
    if not layout.raw_weights:
        return neighbors, PayloadTarget(words, int(layout.weights[first]), layout.weights)
    dtype = np.dtype(request.adjacency.weight_dtype)
    return neighbors, SlabTarget(words.view(dtype), request.e0)
