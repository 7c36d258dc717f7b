"""Given pairs: their ids are looked up, and the neighbors counted that the two vertices of each share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ids import VertexReferences, vertices_of
from penstock.engine.similarities.device_pairs import PairCounter
from penstock.engine.similarities.memory_plan import Room, runs
from penstock.engine.similarities.row_sets import ROW_BYTES, RowSets, load_rows
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph

Integers = NDArray[np.int64]


def internal_pairs(graph: Graph, pairs: Iterable[Any] | NDArray[Any] | VertexReferences) -> Integers:
    """Pairs of original ids as internal ones, int64 (n, 2). Raises InputError for no pairs, and for strangers."""
    if isinstance(pairs, VertexReferences):
        return pairs.numbers
    given = pairs if isinstance(pairs, np.ndarray) else list(pairs)
    if len(given) == 0:
        return np.empty((0, 2), np.int64)
    for at, pair in enumerate(given) if not isinstance(given, np.ndarray) else ():
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(f"pairs[{at}] is {pair!r}; write two ids, (one, other)")
    if isinstance(given, np.ndarray) and (given.ndim != 2 or given.shape[1] != 2):
        raise InputError(f"pairs have the shape {given.shape}; give two columns, (n, 2)")
    flat = given.ravel().tolist() if isinstance(given, np.ndarray) else [one for pair in given for one in pair]
    return vertices_of(graph, flat).reshape(-1, 2)


def common_of(
    graph: Graph, ends: Integers, room: Room, threads: int, counter: PairCounter
) -> tuple[NDArray[np.int64], Integers]:
    """Shared neighbors of pairs of internal ids, int64 (n,), and the sizes of both sets, int64 (n, 2).

    Rows that do not fit together are read in runs, and every run once more with each later one. Raises BudgetError.
    """
    vertices = np.unique(ends)
    held = graph.out.index().lengths_of(vertices) * graph.out.neighbor_dtype.itemsize + ROW_BYTES
    common, sizes = np.zeros(len(ends), np.int64), np.zeros((len(ends), 2), np.int64)
    if not len(ends):
        return common, sizes
    left = room.left if counter.row_bytes is None else min(room.left, counter.row_bytes)
    whole = int(held.sum()) <= left
    if not whole:
        counter.check(2 * int(held.max()))
        room.check(2 * int(held.max()), f"the longest row of {len(vertices):,} vertices, twice,")
    cut = [(0, len(vertices))] if whole else runs(held, left // 2)
    places = np.searchsorted(np.array([first for first, _ in cut]), np.searchsorted(vertices, ends), side="right") - 1
    for number, (first, last) in enumerate(cut):
        ones = load_rows(graph.out, vertices[first:last], threads)
        for side in (0, 1):
            here = places[:, side] == number
            sizes[here, side] = ones.sizes[ones.rows_of(ends[here, side])]
        for other in range(number, len(cut)):
            picked = np.flatnonzero((places.min(axis=1) == number) & (places.max(axis=1) == other))
            if len(picked):
                others = ones if other == number else load_rows(graph.out, vertices[slice(*cut[other])], threads)
                common[picked] = counter.count(ones, others, _rows(ends, picked, (ones, others), places))
    return common, sizes


def _rows(ends: Integers, picked: Integers, sets: tuple[RowSets, RowSets], places: Integers) -> Integers:
    """The rows of the picked pairs, of which one is in each of the sets, int64 (picked, 2)."""
    ones, others = sets
    turned = places[picked, 0] > places[picked, 1]
    some = np.where(turned[:, None], ends[picked, ::-1], ends[picked])
    return np.stack([ones.rows_of(some[:, 0]), others.rows_of(some[:, 1])], axis=1)
