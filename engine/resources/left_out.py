"""Chunks that a rank never reads, noted as held, so that its edges are one resident view once its own are in memory.

Where bounds between ranks move, what the rank gets is to be read; what it has read and loses stays in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from penstock.storage.read.partition_records import needed

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.resources.ownership import Ownership
    from penstock.engine.resources.requirements_types import MemoryRequest
    from penstock.storage.read.partition_cache import HostCache


class LeftOut:
    """Which chunks of a cache with a place for every partition are noted as held, and are not there."""

    def __init__(self, cache: HostCache, needs: MemoryRequest) -> None:
        self._cache, self._needs = cache, needs
        self._chunks = {
            one.direction: np.zeros(-(-one.edges // one.chunk_edges), np.bool_) for one in needs.adjacencies
        }

    def own(self, ownership: Ownership) -> None:
        """Note what this rank does not read with these bounds, and no longer what it does."""
        cache, weighted = self._cache, self._needs.weighted
        for one in self._needs.adjacencies:
            (first, last), each, noted = ownership.read(one.index()), one.chunk_edges, self._chunks[one.direction]
            others = np.ones(len(noted), dtype=np.bool_)
            others[first // each : -(-last // each)] = False
            absent = (cache.held(one.direction) & needed(weighted)) != needed(weighted)
            cache.unmark(one.direction, np.flatnonzero(noted & ~others), weighted)
            cache.mark(one.direction, np.flatnonzero(others & absent), weighted)
            noted[:] = others & (noted | absent)

    @property
    def edges(self) -> int:
        """Edges of the chunks that are in memory, or will be."""
        return sum(
            int(_lengths(self._chunks[one.direction], one.edges, one.chunk_edges).sum())
            for one in self._needs.adjacencies
        )


def _lengths(left_out: NDArray[np.bool_], edges: int, chunk_edges: int) -> NDArray[np.int64]:
    """Edges of the chunks that are not left out, int64."""
    starts = np.flatnonzero(~left_out) * chunk_edges
    return np.minimum(starts + chunk_edges, edges) - starts
