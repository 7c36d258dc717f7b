"""Fetching a request's edges to where a device reads them: into their place of the cache, or into a slab.

Places are of plain edges, or of pieces of packed ones. Only missing chunks are brought: from disk to a host, which
needs no further copy; over a link to a device with memory of its own. Refuses more partitions than a slab holds.
"""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from penstock.transfer.staging.in_flight import EdgeRequest, Transfer
from penstock.transfer.staging.partition_directory import PartitionDirectory


def fetch(request: EdgeRequest, directory: PartitionDirectory) -> Transfer | None:
    """Start bringing a request's chunks to its device; None while there is no slab, or host memory, for them."""
    if request.cached:
        return _into_cache(request, directory)
    return _into_slab(request, directory)


def _into_cache(request: EdgeRequest, directory: PartitionDirectory) -> Transfer | None:
    first, last, with_weights = request.first, request.last, request.with_weights
    cache, source = directory.staging.cache, directory.staging.source
    entries = directory.entries(first, last)
    joined = _in_flight(cache.flights, entries, with_weights=with_weights)
    absent = directory.missing(request.chunks, with_weights)
    for other in joined:
        absent = np.setdiff1d(absent, other.chunks)
    request.record.hits += len(request.chunks) - len(absent)
    arrays, copy = directory.cached_arrays(first, last + 1 - first, with_weights), None
    if len(absent):
        copy = source.fetch(request, absent, arrays)
        if copy is None:
            return None
    transfer = request.transfer(arrays, copy, joined=joined, advances=source.staged)
    if copy is not None:
        transfer.fill(cache, directory.key, absent, entries)
    return transfer


def _in_flight(flights: dict[int, list[Transfer]], entries: list[int], *, with_weights: bool) -> list[Transfer]:
    """Return the transfers of other tasks into these cache entries.

    One without weights is waited for here when weights are wanted: its chunks are then decoded again.
    """
    found: dict[int, Transfer] = {}
    for entry in entries:
        for transfer in list(flights.get(entry, ())):
            if with_weights and not transfer.with_weights:
                transfer.land()
            else:
                found[id(transfer)] = transfer
    return list(found.values())


def _into_slab(request: EdgeRequest, directory: PartitionDirectory) -> Transfer | None:
    slabs, source, pieces = directory.staging.places, directory.staging.source, request.pieces
    items = request.e1 - request.e0 if pieces is None else int(pieces.sizes[request.first])
    if items > slabs.edges:
        raise RuntimeError(f"partitions {request.first}..{request.last} take {items} items, a slab has {slabs.edges}")
    slab = slabs.take(request.with_weights and pieces is None)
    if slab is None:
        return None
    arrays = slab.neighbors[:items], None if slab.weights is None else slab.weights[:items]
    copy = None
    try:
        with nullcontext() if slab.free is None else source.freed(slab.free):
            copy = source.fetch(request, request.chunks, arrays)
    finally:
        if copy is None:
            slabs.give(slab, slab.free)
    return None if copy is None else request.transfer(arrays, copy, slab, advances=source.staged)
