"""The source of packed edges that are all in page-locked host memory: of a graph in memory, or once they are loaded.

What travels are payloads of chunks, to a partition's piece on the device (`packed_layout.py`). Refuses to be read in
place: that takes plain edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.read.packed_cache import PackedCache
from penstock.transfer.devices.device import Device
from penstock.transfer.staging.edge_source import PayloadRange
from penstock.transfer.staging.host_to_device import PinnedCopy, PinnedMemory
from penstock.transfer.staging.in_flight import Arrays, EdgeRequest, Transfer
from penstock.transfer.values.task import AdjacencyArrays, Ints
from penstock.transfer.values.view import View


def in_piece(request: EdgeRequest, piece: NDArray[Any]) -> PayloadRange:
    """Return where in a partition's piece payloads are."""
    table, number = request.pieces, request.first
    assert table is not None, "the request is of packed edges"

    def payloads(first: int, last: int, of_weights: bool) -> NDArray[Any]:
        where = table.weights if of_weights else table.neighbors
        return piece[where(number, first, last)]

    return payloads


class PackedReader(PinnedMemory):
    """Packed edges of a graph in memory: the payloads of each adjacency, all of them page-locked.

    stores: by direction, the words of the payloads of neighbors and of weights, or None, one after another.
    """

    def __init__(self, device: Device, stores: Mapping[str, Arrays]) -> None:
        super().__init__(device)
        self._stores = dict(stores)

    def fetch(self, request: EdgeRequest, chunks: Ints, arrays: Arrays) -> PinnedCopy:
        """Start copying the payloads of chunks of one partition to its piece on the device."""
        copies = self.copy_piece(request, chunks, self.payloads(request), arrays[0], self.free)
        return self.started(request, chunks, copies)

    def payloads(self, request: EdgeRequest, held: View | None = None) -> PayloadRange:
        """Return where the payloads of a partition are."""
        assert request.pieces is not None, "the request is of packed edges"
        layout, (neighbors, weights) = request.pieces.layout, self._stores[request.adjacency.direction]

        def payloads(first: int, last: int, of_weights: bool) -> NDArray[Any]:
            words, starts = (weights, layout.weights) if of_weights else (neighbors, layout.neighbors)
            assert words is not None, "payloads of weights are there where they are wanted"
            assert starts is not None, "a layout for weights has them"
            return np.asarray(words[int(starts[first]) : int(starts[last])])

        return payloads

    def pinned(self, adjacency: AdjacencyArrays, with_weights: bool) -> None:
        """Return None: no plain edges are here."""

    def hold(self, request: EdgeRequest) -> Transfer:
        """Return all payloads of the adjacency, as the host reads them."""
        return request.transfer(self._stores[request.adjacency.direction])

    def in_place(self, request: EdgeRequest) -> Transfer:
        """Refuse: only plain edges are read in place."""
        raise RuntimeError(f"partitions {request.first}..{request.last} are packed, and are wanted plain")


class PiecesReader(PackedReader):
    """Packed edges of a graph on disk that are all in page-locked host memory; cache: of the host, complete."""

    def __init__(self, device: Device, cache: PackedCache) -> None:
        super().__init__(device, {})
        self._cache = cache

    def payloads(self, request: EdgeRequest, held: View | None = None) -> PayloadRange:
        """Return where the payloads of a partition are."""
        return in_piece(request, self._cache.piece(request.adjacency.direction, request.first))

    def hold(self, request: EdgeRequest) -> Transfer:
        """Return the piece as the host reads it."""
        return request.transfer((self._cache.piece(request.adjacency.direction, request.first), None))
