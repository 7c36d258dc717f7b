"""Compares the answer of another program with Penstock's, vertex by vertex."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNREACHED = np.uint32(2**32 - 1)
RANKS = {"pagerank10": 0.05, "pagerank": 1e-4}
"""The L1 distance that two answers may have. GAP's ten sweeps use ranks of the same sweep, ours of the last one."""
DEPENDENCIES = 1e-3
"""How far two scores, whose largest is 1, may be apart: GAP adds up float32."""


def difference(
    algorithm: str, theirs: NDArray[Any], ours: Mapping[str, NDArray[Any]], source: int, *, parents: bool = True
) -> str:
    """What differs, in words; empty where the answers are the same. parents: a search answers with these, or levels."""
    if algorithm == "bfs":
        levels = levels_of(theirs, source) if parents else theirs
        return _unequal(levels.astype(np.uint32), ours["level"])
    if algorithm == "sssp":
        distance = np.where(theirs >= np.iinfo(np.int32).max // 2, np.inf, theirs)
        mine = ours["distance"].astype(np.float64)
        reached = np.isfinite(distance)
        return _unequal(distance[reached], mine[reached]) or _unequal(reached, mine < UNREACHED)
    if algorithm == "cc":
        return _unequal(smallest_members(theirs), ours["component"])
    if algorithm in RANKS:
        apart = float(np.abs(theirs / theirs.sum(dtype=np.float64) - ours["rank"] / ours["rank"].sum()).sum())
        return "" if apart <= RANKS[algorithm] else f"L1 distance {apart:g}"
    if algorithm == "betweenness":
        theirs[source] = 0  # GAP counts a source, Brandes does not
        apart = float(np.abs(theirs / theirs.max() - ours["betweenness"] / ours["betweenness"].max()).max())
        return "" if apart <= DEPENDENCIES else f"scores {apart:g} apart"
    return _unequal(theirs, np.array([ours["triangles"].sum() // 3]))


def levels_of(parents: NDArray[Any], source: int) -> NDArray[np.uint32]:
    """Levels of a tree of parents; vertices without one (negative or the largest number) are unreached."""
    parent = parents.astype(np.int64)
    parent[(parents < 0) | (parents == UNREACHED)] = -1
    level = np.full(len(parent), UNREACHED, dtype=np.uint32)
    level[source] = 0
    waiting = np.flatnonzero(parent >= 0)
    waiting = waiting[waiting != source]
    depth = 0
    while len(waiting):
        reached = level[parent[waiting]] == depth
        if not reached.any():
            raise RuntimeError(f"{len(waiting)} vertices have parents that do not lead to the source")
        depth += 1
        level[waiting[reached]] = depth
        waiting = waiting[~reached]
    return level


def smallest_members(labels: NDArray[Any]) -> NDArray[np.int64]:
    """For every vertex the smallest one with the same label."""
    first = np.full(int(labels.max()) + 1, len(labels), dtype=np.int64)
    np.minimum.at(first, labels, np.arange(len(labels)))
    return first[labels]


def _unequal(theirs: NDArray[Any], ours: NDArray[Any]) -> str:
    count = int(np.count_nonzero(theirs != ours))
    return f"{count} of {len(ours)} differ" if count else ""
