"""A flight: chunks on their way from the disk into a slab or into the cache.

Owns what happens once when they arrive, and that nobody waits for or cancels another's chunks by mistake:
two pipelines on one cache share a flight into the same place instead of decoding into it twice. Refuses to
hide a failure: every user of a failed flight gets its error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from penstock.storage.read.partition_cache import HostCache

Ints = NDArray[np.int64]


class FetchedBytes(Protocol):
    """What a ticket's result says: bytes read, seconds of reading and of decoding."""

    @property
    def bytes(self) -> int:
        """Return the bytes read from disk."""

    @property
    def read_seconds(self) -> float:
        """Return the seconds of reading, summed over reads."""

    @property
    def decode_seconds(self) -> float:
        """Return the seconds of decoding, summed over threads."""


@dataclass(frozen=True, slots=True)
class TransferStats:
    """What came over a link: bytes, and the events before and after; what was read from disk for it, or found."""

    bytes: int
    span: tuple[Any, Any]
    bytes_disk: int = 0
    chunks: int = 0
    hits: int = 0
    read_seconds: float = 0.0
    decode_seconds: float = 0.0


class ChunkTicket(Protocol):
    """What a reader gives for a fetch."""

    def result(self) -> FetchedBytes:
        """Wait for the chunks; raises what went wrong."""

    @property
    def done(self) -> bool:
        """Return whether `result` would return at once."""

    def cancel(self) -> None:
        """Drop what has not started, wait for what has: the arrays are not written afterwards."""


class ChunkReader(Protocol):
    """What transfer asks of a reader (storage/read/reader.py)."""

    def fetch(
        self, adjacency: Any, chunks: Ints, first_edge: int, neighbors: NDArray[Any], weights: NDArray[Any] | None
    ) -> ChunkTicket | None:
        """Bring chunks into arrays whose first item is edge `first_edge`; None while there is no room on the way."""


class PendingFetch:
    """One ticket and its users. `entries`: the cache entries that it fills, none for a slab."""

    def __init__(self, ticket: ChunkTicket, chunks: Ints) -> None:
        self.chunks = chunks
        self._ticket = ticket
        self._users = 1
        self._landed = False
        self._error: BaseException | None = None
        self._home: tuple[HostCache, str, bool, list[int]] | None = None

    def into(self, cache: HostCache, direction: str, with_weights: bool, entries: list[int]) -> None:
        """Register as filling these cache entries: their chunks are marked when they arrive."""
        self._home = (cache, direction, with_weights, entries)
        for entry in entries:
            cache.flights.setdefault(entry, []).append(self)

    @property
    def with_weights(self) -> bool:
        """Whether the weights are on their way too; a flight to a slab is nobody else's concern."""
        return self._home is not None and self._home[2]

    def join(self) -> None:
        """Become one more user."""
        self._users += 1

    def done(self) -> bool:
        """Return whether `land` would not wait."""
        return self._landed or self._error is not None or self._ticket.done

    def land(self) -> FetchedBytes:
        """Wait for the chunks and mark them; the error of a failed one is raised to every user."""
        if self._error is not None:
            raise self._error
        try:
            arrived = self._ticket.result()
        except BaseException as error:
            self._error = error
            self._leave()
            raise
        if not self._landed:
            self._landed = True
            if self._home is not None:
                cache, direction, with_weights, _ = self._home
                cache.mark(direction, self.chunks, with_weights)
            self._leave()
        return arrived

    def drop(self) -> None:
        """Be one user less; the last one cancels what has not landed."""
        self._users -= 1
        if self._users == 0 and not self._landed:
            self._ticket.cancel()
            self._leave()

    def _leave(self) -> None:
        if self._home is None:
            return
        cache, _, _, entries = self._home
        for entry in entries:
            flights = cache.flights.get(entry, [])
            if self in flights:
                flights.remove(self)
            if not flights:
                cache.flights.pop(entry, None)
