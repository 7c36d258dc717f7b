"""Owns the short way of edges that lie row by row in the input: no spill, and no sort where rows are sorted.

Pieces of whole rows are read, checked and handed on side by side, in order. A piece whose rows are not sorted, or
whose parallel edges must be joined or ordered by weight, is sorted as a group of the spill is (sort_groups.py). A row
too long for a piece is spilled alone. Refuses sources whose rows come in any order.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.storage.base.threads import ordered_map, weighed_map
from penstock.storage.convert.sort.run import KeyRange, KeyRun, pack_keys
from penstock.storage.convert.sort.sort_groups import Ordering, SortedRows, Sorter, make_rows, sort_group
from penstock.storage.convert.sort.weights import WeightExtent, narrow
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.core.source import RowPiece
from penstock.storage.ingest.formats.csr import CsrSource, sources_of

RISING, TIED, MIXED = 2, 1, 0


def weight_range(source: CsrSource, pool: Executor, in_flight: int) -> WeightExtent | None:
    """The range of all weights, read for it alone: their dtype must be known before the first is written.

    None without weights.

    Raises:
        InputError: a weight is not finite.
    """
    if not source.weighted:
        return None
    extent = WeightExtent()
    for part in ordered_map(pool, lambda weights: narrow(weights, source.name)[1], source.weights(), in_flight):
        extent = extent.joined(part)
    return extent


@dataclass(frozen=True, slots=True)
class CsrPassthrough:
    """The rows of a source in its own order, with or without self-loops."""

    source: CsrSource
    sorter: Sorter
    ordering: Ordering
    drop_loops: bool

    def rows(self) -> Iterator[SortedRows]:
        """Yield all rows that have edges, ascending, each sorted."""
        plan = self.sorter.plan
        pieces = self.source.pieces(plan.group_edges)
        for row, part in groupby(pieces, key=lambda piece: -1 if piece.whole else piece.first):
            if row < 0:
                for rows in weighed_map(self.sorter.pool, self._sorted, part, plan.weight, plan.held_edges):
                    if len(rows.neighbors):
                        yield rows
            else:
                yield from self._long_row(row, part)

    def _long_row(self, vertex: int, pieces: Iterator[RowPiece]) -> Iterator[SortedRows]:
        """Spill one vertex's row, which is longer than a piece, and sort it by ranges of neighbors."""
        base = vertex if self.ordering.wide else 0
        low = (vertex - base) << self.ordering.target_bits
        span = KeyRange(low, low + self.ordering.vertices - 1, base)
        runs = ordered_map(self.sorter.pool, partial(self._packed, span=span), pieces, self.sorter.plan.workers + 1)
        yield from self.sorter.rows_of_runs(runs, span, self.ordering)

    def _packed(self, piece: RowPiece, span: KeyRange) -> KeyRun:
        _, neighbors, weights = self._loaded(piece)
        moved = None if weights is None else weights.astype(self.ordering.working)
        shift = self.sorter.key_shift(span)
        return pack_keys(neighbors | np.uint64(span.low), moved, span.low, shift, self.sorter.buckets)

    def _loaded(self, piece: RowPiece) -> tuple[RowPiece, NDArray[Any], NDArray[Any] | None]:
        """A piece, perhaps with fewer edges, and its neighbors and weights."""
        neighbors, weights = self.source.load(piece)
        return without_loops(piece, neighbors, weights) if self.drop_loops else (piece, neighbors, weights)

    def _sorted(self, piece: RowPiece) -> SortedRows:
        ordering = self.ordering
        piece, neighbors, weights = self._loaded(piece)
        order = order_of(piece.offsets, neighbors)
        plain = ordering.rule is None and weights is None
        if len(neighbors) == 0 or order == RISING or (order == TIED and plain):
            return self._as_they_are(piece, neighbors, weights)
        base = piece.first if ordering.wide else 0
        keys = np.empty(len(neighbors), np.uint64)
        fill_keys(piece.offsets, piece.first - base, ordering.target_bits, neighbors, keys)
        first, last = (int(key) >> ordering.target_bits << ordering.target_bits for key in (keys[0], keys[-1]))
        span = KeyRange(first, last + ordering.vertices - 1, base)
        moved = np.empty(0, np.uint32) if weights is None else weights.astype(ordering.working)
        return make_rows(*sort_group(keys, moved, span, ordering), base, ordering)

    def _as_they_are(self, piece: RowPiece, neighbors: NDArray[Any], weights: NDArray[Any] | None) -> SortedRows:
        ordering = self.ordering
        neighbors = neighbors.astype(ordering.vertex_dtype, copy=False)
        if weights is not None:
            weights = weights.astype(ordering.weight_dtype, copy=False)
        reverse = None
        if ordering.reverse:
            reverse = EdgeBatch(neighbors, sources_of(piece, neighbors.dtype), weights)
        return SortedRows(piece.first, np.diff(piece.offsets).astype(np.uint32), neighbors, weights, reverse)


def without_loops(
    piece: RowPiece, neighbors: NDArray[Any], weights: NDArray[Any] | None
) -> tuple[RowPiece, NDArray[Any], NDArray[Any] | None]:
    """A piece and its arrays without edges from a vertex to itself."""
    keep = sources_of(piece, neighbors.dtype) != neighbors
    kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)])
    offsets = kept[piece.offsets - piece.offsets[0]]
    return replace(piece, offsets=offsets), neighbors[keep], None if weights is None else weights[keep]


@jit
def order_of(offsets: NDArray[np.int64], neighbors: NDArray[Any]) -> int:
    """RISING if neighbors rise in every row, TIED if some are repeated there, MIXED if one falls."""
    begin = offsets[0]
    order = RISING
    for row in range(len(offsets) - 1):
        for at in range(offsets[row] - begin + 1, offsets[row + 1] - begin):
            if neighbors[at] < neighbors[at - 1]:
                return MIXED
            if neighbors[at] == neighbors[at - 1]:
                order = TIED
    return order


@jit
def fill_keys(
    offsets: NDArray[np.int64], first: int, target_bits: int, neighbors: NDArray[Any], keys: NDArray[np.uint64]
) -> None:
    """Write each edge's key (run.py), sources counted from ``first``."""
    begin = offsets[0]
    for row in range(len(offsets) - 1):
        source = np.uint64(first + row) << np.uint64(target_bits)
        for at in range(offsets[row] - begin, offsets[row + 1] - begin):
            keys[at] = source | np.uint64(neighbors[at])
