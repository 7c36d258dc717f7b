"""The check of arrays given from Python: of CSR sorted rows, of edges and rows ids that exist and weights that fit.

An unsorted row is an error that names it: sorting it here would move weights that the caller may address by position.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit_later
from penstock.storage.encoding.codec import checksum
from penstock.storage.encoding.edge_keys import edge_keys, sources_of_keys, spans_of, targets_of_keys
from penstock.storage.format.degrees import ListFacts
from penstock.storage.format.index import Index, from_chunks
from penstock.storage.format.schema import LIST_BLOCK, LIST_VERTICES, narrow_weights, vertex_dtype

Csr = tuple[NDArray[np.int64], NDArray[Any], NDArray[Any] | None]
"""Offsets, neighbors and weights of an adjacency in memory."""


@jit_later
def _first_unsorted(offsets: Any, neighbors: Any) -> int:
    """Return the first row whose neighbors do not ascend, -1 if all do."""
    for v in range(len(offsets) - 1):
        for e in range(offsets[v] + 1, offsets[v + 1]):
            if neighbors[e] < neighbors[e - 1]:
                return v
    return -1


@jit_later
def self_loops(offsets: Any, neighbors: Any) -> int:
    """Count edges from a vertex to itself."""
    loops = 0
    for v in range(len(offsets) - 1):
        for e in range(offsets[v], offsets[v + 1]):
            loops += neighbors[e] == v
    return loops


def checked_rows(offsets: ArrayLike, neighbors: ArrayLike, weights: ArrayLike | None, name: str) -> Csr:
    """Return CSR arrays in our dtypes, copied only where they have others: narrow weights."""
    raw, ids = np.asarray(offsets), np.asarray(neighbors)
    if raw.ndim != 1 or len(raw) == 0 or raw.dtype.kind not in "iu":
        raise InputError(f"{name}: offsets must be vertices + 1 integers, not {raw.dtype}")
    if ids.ndim != 1 or (ids.dtype.kind not in "iu" and len(ids)):
        raise InputError(f"{name}: neighbors must be integers in one dimension")
    starts = np.ascontiguousarray(raw, np.int64)
    if starts[0] != 0 or starts[-1] != len(ids) or (np.diff(starts) < 0).any():
        raise InputError(
            f"{name}: offsets must rise from 0 to the number of neighbors, {len(ids)}; "
            f"they go from {starts[0]} to {starts[-1]}"
        )
    vertices = len(starts) - 1
    if len(ids) and not (ids.min() >= 0 and ids.max() < vertices):
        raise InputError(f"{name}: neighbors must be ids from 0 to {vertices - 1}")
    ids = np.ascontiguousarray(ids, vertex_dtype(vertices))
    row = _first_unsorted(starts, ids)
    if row >= 0:
        raise InputError(
            f"{name}: row {row} is not sorted by neighbor; sort it with its weights (scipy: matrix.sort_indices())"
        )
    return starts, ids, _checked_weights(weights, len(ids), name)


def ordered_ties(starts: NDArray[np.int64], neighbors: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Return the weights of sorted rows with those of parallel edges ascending, as a file has them."""
    parallel = neighbors[1:] == neighbors[:-1]
    inner = starts[(starts > 0) & (starts < len(neighbors))]
    parallel[inner - 1] = False
    if not (parallel & (weights[1:] < weights[:-1])).any():
        return weights
    runs = np.concatenate([[0], np.cumsum(~parallel)])
    return weights[np.lexsort((weights, runs))]


def checked_list(
    sources: ArrayLike, targets: ArrayLike, weights: ArrayLike | None, vertices: int | None
) -> tuple[NDArray[np.uint64], NDArray[Any] | None, int]:
    """Return the keys of edges in their order, their weights in an allowed dtype, and how many vertices there are."""
    ends = np.asarray(sources), np.asarray(targets)
    if ends[0].ndim != 1 or ends[0].shape != ends[1].shape:
        raise InputError(f"sources have shape {ends[0].shape} and targets {ends[1].shape}; give one of each an edge")
    if len(ends[0]) and any(part.dtype.kind not in "iu" for part in ends):
        raise InputError(f"sources and targets must be integers, not {ends[0].dtype} and {ends[1].dtype}")
    low = min((int(part.min()) for part in ends if len(part)), default=0)
    high = max((int(part.max()) for part in ends if len(part)), default=-1)
    count = high + 1 if vertices is None else vertices
    if low < 0 or high >= count or count > LIST_VERTICES:
        raise InputError(
            f"vertices from {low} to {high} of {count}: a list holds those from 0 to one less than their number, "
            "which is 2^32 at most; larger graphs have to be sorted: leave the layout out"
        )
    return edge_keys(*ends), _checked_weights(weights, len(ends[0]), "edges"), count


def facts_of(keys: NDArray[np.uint64], vertices: int, *, directed: bool) -> ListFacts:
    """Return spans of blocks, degrees and self-loops of a list."""
    spans, loops = spans_of(keys, LIST_BLOCK)
    ends = sources_of_keys(keys), targets_of_keys(keys)
    counts = [np.bincount(part, minlength=vertices) for part in ends]
    if directed:
        return ListFacts(spans, {"out": _index_of(counts[0]), "in": _index_of(counts[1])}, loops)
    both = counts[0] + counts[1] - np.bincount(ends[0][ends[0] == ends[1]], minlength=vertices)
    return ListFacts(spans, {"out": _index_of(both)}, loops)


def _index_of(degrees: NDArray[np.int64]) -> Index:
    return from_chunks(len(degrees), max(1, len(degrees)), lambda _: degrees, 1)


def array_identity(first: NDArray[Any], rest: int, weights: NDArray[Any] | None) -> str:
    """Return a fingerprint of a graph, 32 hexadecimal digits; rest: a digest of what is in no array given."""
    return f"{checksum(first):016x}{rest ^ (0 if weights is None else checksum(weights)):016x}"


def range_of(weights: NDArray[Any] | None) -> tuple[float, float, float] | None:
    """Return the smallest, mean and largest weight, None without weights, zeros without edges."""
    if weights is None:
        return None
    if len(weights) == 0:
        return (0.0, 0.0, 0.0)
    with np.errstate(over="ignore"):  # the mean of weights near the largest float is infinite then
        mean = float(weights.mean(dtype=np.float64))
    return float(weights.min()), mean, float(weights.max())


def _checked_weights(weights: ArrayLike | None, edges: int, name: str) -> NDArray[Any] | None:
    if weights is None:
        return None
    values = np.ascontiguousarray(weights)
    if values.shape != (edges,) or values.dtype.kind not in "biuf":
        raise InputError(f"{name}: {edges} edges need one numeric weight each, not {values.shape}")
    return narrow_weights(values, name)
