"""Ranks in an order that is a hash of the original ids: the same for the same ids whatever the graph's layout.

The hash is splitmix64's finalizer (Steele, Lea, Flood, OOPSLA 2014). It is one to one, so sorted hashes tell their ids,
and where internal ids are the original ones nothing else has to be sorted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ids import original_ranks
from penstock.engine.program.vertex_ranges import MANY_ROWS, ROWS, each_range, number_places, order_by
from penstock.storage.format.graph import Graph

SHUFFLE_BYTES = 8
"""Bytes per vertex that `shuffle` allocates at most, beside what reading original ids takes."""
_FACTORS = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_STEP = np.uint64(0x9E3779B97F4A7C15)
_ONE, _OTHER = (np.uint64(factor) for factor in _FACTORS)
_BACK, _OTHER_BACK = (np.uint64(pow(factor, -1, 1 << 64)) for factor in _FACTORS)


def shuffle(graph: Graph, out: NDArray[Any], first: int = 0) -> None:
    """Set `out`, integers (vertices,), to a rank for every vertex, from `first` on: by a hash of its original id."""
    numbers, plain = _numbers(graph)

    def mixed(begin: int, end: int) -> NDArray[np.uint64]:
        part = numbers(begin, end)
        _mix(part)
        return part

    if plain:
        order: NDArray[Any] = np.empty(graph.vertices, np.uint64)
        each_range(lambda begin, end: np.copyto(order[begin:end], mixed(begin, end)), graph.vertices)
        order.sort()
    else:
        order = np.empty(graph.vertices, graph.vertex_dtype)
        order_by(mixed, order)

    number_places(out, lambda a, b: _unmixed(order[a:b]) if plain else order[a:b], first)


def fill_hashes(graph: Graph, out: NDArray[np.uint64]) -> None:
    """Set `out`, uint64 (vertices,), to the hashes by which `shuffle` ranks: all differ, and none takes an order."""
    numbers, plain = _numbers(graph)

    def fill(first: int, last: int) -> None:
        part = numbers(first, last)
        _mix(part)
        out[first:last] = part

    each_range(fill, graph.vertices, size=ROWS if plain else MANY_ROWS)


def each_hashed(graph: Graph, seed: int, take: Callable[[int, NDArray[np.uint64]], None]) -> None:
    """Call take(first, hashes) for every range of vertices: a hash of each original id, any 64-bit number as likely."""
    numbers, plain = _numbers(graph)
    start = np.array([seed % (1 << 64)], np.uint64)
    start += _STEP
    _mix(start)

    def mix(first: int, last: int) -> None:
        part = numbers(first, last)
        part *= _STEP
        part += start
        _mix(part)
        take(first, part)

    each_range(mix, graph.vertices, size=ROWS if plain else MANY_ROWS)


def hashed_again(hashes: NDArray[np.uint64], number: int) -> NDArray[np.uint64]:
    """Return other hashes of the same vertices, others for every number."""
    found = hashes + np.uint64(number * int(_STEP) % (1 << 64))
    _mix(found)
    return found


def _numbers(graph: Graph) -> tuple[Callable[[int, int], NDArray[np.uint64]], bool]:
    """What gives a number for every vertex of a range, and whether it is the internal id.

    Numbers are original ids, of strings their places in order.
    """
    if graph.original is None or graph.left is not None:
        return lambda first, last: np.arange(first, last, dtype=np.uint64), True
    if graph.id_dtype.kind == "T":
        ranks = original_ranks(graph)
        return lambda first, last: ranks[first:last].astype(np.uint64), False
    return lambda first, last: graph.original_ids_in(first, last).astype(np.uint64), False


def _mix(ids: NDArray[np.uint64]) -> None:
    """Turn numbers into their hashes."""
    ids ^= ids >> np.uint64(30)
    ids *= _ONE
    ids ^= ids >> np.uint64(27)
    ids *= _OTHER
    ids ^= ids >> np.uint64(31)


def _unmixed(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The numbers that have these hashes."""
    ids: NDArray[np.uint64] = hashes ^ (hashes >> np.uint64(31)) ^ (hashes >> np.uint64(62))
    ids *= _OTHER_BACK
    ids ^= (ids >> np.uint64(27)) ^ (ids >> np.uint64(54))
    ids *= _BACK
    ids ^= (ids >> np.uint64(30)) ^ (ids >> np.uint64(60))
    return ids
