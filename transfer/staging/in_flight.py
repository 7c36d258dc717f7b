"""One task in flight, from its start until its view is released.

A transfer holds what its task needs (a slab, a pending read or copy) and returns it exactly once, whatever happened.
Two pipelines on one cache share what is being read into the same place: neither decodes into it twice, nor cancels what
the other waits for; every user of a failed read gets its error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from penstock.storage.format.packed_layout import PieceTable
from penstock.storage.read.partition_cache import PartitionCache
from penstock.storage.read.pending_read import ReadRecord
from penstock.transfer.devices.device import DeviceArray
from penstock.transfer.staging.slab_pool import Slab
from penstock.transfer.values.task import Ints, TaskRecord
from penstock.transfer.values.view import Payloads, View

if TYPE_CHECKING:
    from penstock.storage.format.graph import Adjacency

Arrays = tuple[DeviceArray, DeviceArray | None]
"""Neighbors and weights, weights None where none are wanted."""
PayloadRange = Callable[[int, int, bool], DeviceArray]
"""payloads(first, last, of_weights): the words of chunks [first, last) of neighbors, or of weights."""
NOTHING_READ = ReadRecord()


@dataclass(frozen=True, slots=True)
class EdgeRequest:
    """What is wanted of consecutive partitions first..last (inclusive) of an adjacency: `chunks`, ascending.

    The partitions hold edges [e0, e1) of rows [v0, v1), and have places in the cache one after another if `cached`.
    record: takes what is moved for them. pieces: given where what is wanted is packed; the arrays that it goes to are
    then one partition's piece, and no weights apart. payloads: given where kernels unpack that piece.
    """

    adjacency: Adjacency
    first: int
    last: int
    e0: int
    e1: int
    v0: int
    v1: int
    cached: bool
    chunks: Ints
    with_weights: bool
    record: TaskRecord
    pieces: PieceTable | None = None
    payloads: Payloads | None = None

    def view(self, arrays: Arrays) -> View:
        """Return the view of its edges in these arrays."""
        return View(self.e0, self.e1, self.v0, self.v1, *arrays, self.record, payloads=self.payloads)

    def in_piece(self, piece: DeviceArray) -> PayloadRange:
        """Return where in the piece of its first partition payloads are."""
        table, number = self.pieces, self.first
        assert table is not None, "the request is of packed edges"

        def payloads(first: int, last: int, of_weights: bool) -> DeviceArray:
            where = table.weights if of_weights else table.neighbors
            return piece[where(number, first, last)]

        return payloads

    def transfer(
        self,
        arrays: Arrays,
        copy: CopyHandle | None = None,
        slab: Slab | None = None,
        joined: Sequence[Transfer] = (),
        *,
        advances: bool = False,
    ) -> Transfer:
        """Return the transfer of its edges to these arrays."""
        return Transfer(self.view(arrays), copy, slab, joined, advances=advances, with_weights=self.with_weights)


def all_or_none(started: Iterable[Transfer | None]) -> list[Transfer] | None:
    """Return transfers, each started when it is asked for; None, and no one goes on, where one finds no room."""
    found: list[Transfer] = []
    for transfer in started:
        if transfer is None:
            for other in found:
                other.release()
            return None
        found.append(transfer)
    return found


class CopyHandle(Protocol):
    """Edges on their way into arrays, as an edge source gives it for a fetch."""

    def result(self) -> ReadRecord:
        """Wait until kernels launched from now on find the edges; what was read from disk. Raises what went wrong."""

    @property
    def done(self) -> bool:
        """Whether `result` would not wait; asking starts the copy that has to follow a read that is over."""

    def cancel(self) -> None:
        """Drop what has not started, wait for what has: the arrays are not written afterwards."""


class Transfer:
    """A view whose edges may still be on their way.

    copy: what brings them, None where they are there. slab: the buffer that they lie in. joined: other transfers that
    fill a part of the same place. advances: whether asking for readiness may still start a next step. is_ready: what
    `ready` returned last. with_weights: whether the weights are on their way too. slab_free: the device's event after
    which its slab may be written again, None: after all kernels launched until then.
    """

    def __init__(
        self,
        view: View,
        copy: CopyHandle | None = None,
        slab: Slab | None = None,
        joined: Sequence[Transfer] = (),
        *,
        advances: bool = False,
        with_weights: bool = False,
    ) -> None:
        self.advances, self.with_weights = advances, with_weights
        self._view = view
        self._copy = copy
        self._slab = slab
        self._joined = tuple(joined)
        self.is_ready = False
        self._users = 1
        for other in self._joined:
            other._users += 1
        self._landed = copy is None
        self._released = False
        self._error: BaseException | None = None
        self._read = NOTHING_READ
        self.slab_free: Any = None
        self._place: tuple[PartitionCache, str, Ints, list[int]] | None = None

    def fill(self, cache: PartitionCache, direction: str, chunks: Ints, entries: list[int]) -> None:
        """Register as filling these cache entries: the chunks are marked when they arrive."""
        self._place = (cache, direction, chunks, entries)
        for entry in entries:
            cache.flights.setdefault(entry, []).append(self)

    @property
    def chunks(self) -> Ints:
        """The chunks with which it fills cache entries."""
        assert self._place is not None
        return self._place[2]

    @property
    def arrays(self) -> Arrays:
        """Where the edges will be: the view's neighbors and weights; not to be read before `view`."""
        return self._view.neighbors, self._view.weights

    @property
    def ends(self) -> list[Any]:
        """The device's events after the copies that bring its edges; not to be read before `view`."""
        copies = [one._copy for one in (self, *self._joined)]
        ends = [getattr(copy, "copied", None) for copy in copies]  # what is read from disk has no copy over a link
        return [end for end in ends if end is not None]

    def ready(self) -> bool:
        """Return whether `view` would not wait; asking may start what follows a read that is over."""
        if not self.is_ready and self._arrived() and all(other._arrived() for other in self._joined):
            self.is_ready, self.advances = True, False
        return self.is_ready

    def begin(self) -> None:
        """Start what may run on the device while kernels are at work on another view."""

    def _arrived(self) -> bool:
        return self._landed or self._error is not None or (self._copy is not None and self._copy.done)

    def view(self) -> View:
        """Wait for the edges, complete the record, and return the view; raises what went wrong."""
        if self._copy is not None or self._joined:
            record, began = self._view.record, time.perf_counter()
            for other in self._joined:
                other.land()
            read = self.land()
            record.bytes_disk += read.bytes
            record.disk_seconds += read.read_seconds
            record.decode_seconds += read.decode_seconds
            record.wait_seconds = time.perf_counter() - began
        return self._view

    def land(self) -> ReadRecord:
        """Wait for what this transfer itself brings, and mark it in the cache; the error goes to every user."""
        if self._error is not None:
            raise self._error
        if not self._landed and self._copy is not None:
            try:
                self._read = self._copy.result()
            except BaseException as error:
                self._error = error
                self._leave()
                raise
            self._landed = True
            if self._place is not None:
                cache, direction, chunks, _ = self._place
                cache.mark(direction, chunks, self.with_weights)
                self._leave()
        return self._read

    def release(self) -> None:
        """Give everything back, cancelling what has not arrived; more than once does no harm."""
        if self._released:
            return
        self._released = True
        try:
            for other in self._joined:
                other.drop()
            self.drop()
        finally:
            if self._slab is not None:
                self._slab.pool.give(self._slab, self.slab_free)

    def drop(self) -> None:
        """Be one user less; the last one cancels what has not landed."""
        self._users -= 1
        if self._users == 0 and not self._landed and self._copy is not None:
            self._copy.cancel()
            self._leave()

    def _leave(self) -> None:
        if self._place is None:
            return
        cache, _, _, entries = self._place
        for entry in entries:
            flights = cache.flights.get(entry, [])
            if self in flights:
                flights.remove(self)
            if not flights:
                cache.flights.pop(entry, None)
