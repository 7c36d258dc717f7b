"""Memory that all ranks of a host see: arrays pass through it a piece at a time, written once and read by every rank.

MPI moves an array between processes in small cells, for each of which both must be at work at the same time. Here
ranks meet once a piece. A rank has two halves, used in turn: who writes to one again has met the others since, after
they had read it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.ranks.communicator import bytes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

WINDOW_BYTES = 8 << 20
"""Of all ranks of a host together, so that what is written is read from the processor's cache."""
LEAST_BYTES = 1 << 16
"""Of the longest part, from which on ranks exchange it here."""
LINE = 64


def rank_bytes(size: int) -> int:
    """Bytes of the window that each of so many ranks writes to: two halves, of whole lines for each rank."""
    return 2 * size * max(LINE, WINDOW_BYTES // (2 * size * size) // LINE * LINE)


class HostWindow:
    """The window, as one rank has it.

    parts: what each rank writes to, uint8 (rank_bytes,). meet: returns once all ranks have called it; what they wrote
    before is then seen. Every method is collective.
    """

    def __init__(self, rank: int, parts: Sequence[Bytes], meet: Callable[[], None]) -> None:
        self._rank, self._meet, self._turn = rank, meet, 0
        self._halves = [(part[: len(part) // 2], part[len(part) // 2 :]) for part in parts]
        self._piece = len(parts[0]) // 2

    def gather(self, found: Sequence[NDArray[Any]]) -> None:
        """Fill found[r] with what rank r has there; what this one has is in its place."""
        places = [bytes_of(array) for array in found]
        part = places[self._rank]
        for first in range(0, max(map(len, places)), self._piece):
            here = part[first : first + self._piece]
            self._next()[self._rank][: len(here)] = here
            self._meet()
            for rank, place in self._others(places):
                there = place[first : first + self._piece]
                there[:] = self._now[rank][: len(there)]

    def exchange(self, ours: Sequence[NDArray[Any]], found: NDArray[Any]) -> None:
        """Fill found[r] with what rank r has for this one; ours: what this rank has for each, of any lengths."""
        parts, places = [bytes_of(array) for array in ours], [bytes_of(array) for array in found]
        places[self._rank][:] = parts[self._rank]
        each = self._piece // len(parts)
        for first in range(0, max(map(len, parts)), each):
            mine = self._next()[self._rank]
            for rank, part in self._others(parts):
                here = part[first : first + each]
                mine[rank * each : rank * each + len(here)] = here
            self._meet()
            for rank, place in self._others(places):
                there = place[first : first + each]
                there[:] = self._now[rank][self._rank * each :][: len(there)]

    def _next(self) -> list[Bytes]:
        """The halves of all ranks that are used now."""
        self._turn ^= 1
        return self._now

    @property
    def _now(self) -> list[Bytes]:
        return [halves[self._turn] for halves in self._halves]

    def _others(self, parts: Sequence[Bytes]) -> list[tuple[int, Bytes]]:
        return [(rank, part) for rank, part in enumerate(parts) if rank != self._rank]
