"""The link as a reader: chunks come from page-locked host memory to the device, as they come from disk to the host.

Owns the copies of edges to a device with memory of its own, and what of host memory its kernels may read in place. It
has a disk reader's verbs, so that slabs, cache, flights and routes are the same for both; a ticket's `result` does
not wait for the copy but lets the next kernels wait for it. Refuses edges that are not in host memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.device import Device

Ints = NDArray[np.int64]
Arrays = tuple[NDArray[Any], NDArray[Any] | None]


@dataclass(frozen=True, slots=True)
class Carried:
    """What came over the link: bytes, and the seconds the link took where they are known already."""

    bytes: int
    read_seconds: float = 0.0
    decode_seconds: float = 0.0


class LinkTicket:
    """Copies under way; `result` lets kernels launched from now on start after them."""

    def __init__(self, device: Device, size: int, began: Any, ended: Any) -> None:
        self.size = size
        self.began, self.ended = began, ended
        self._device = device

    @property
    def done(self) -> bool:
        """Whether the copies are complete."""
        return self._device.done(self.ended)

    def result(self) -> Carried:
        """Order the device's kernels behind the copies; the host does not wait."""
        self._device.follow(self.ended)
        return Carried(self.size)

    def cancel(self) -> None:
        """Wait until nothing is written any more: a copy that has started cannot be stopped."""
        self._device.wait(self.ended)


class LinkReader:
    """Brings chunks of adjacencies whose arrays are page-locked in host memory; `arrays`: direction -> arrays.

    `keep_times`: keep every copy's begin and end (`intervals`), for measuring.
    """

    def __init__(self, device: Device, arrays: Mapping[str, Arrays], *, keep_times: bool = False) -> None:
        self._device = device
        self._arrays = dict(arrays)
        self._stream = device.stream()
        self._mapped: dict[str, tuple[Any, Any]] = {}
        self.times: list[tuple[Any, Any]] | None = [] if keep_times else None

    def fetch(self, adjacency: Any, chunks: Ints, first_edge: int, neighbors: Any, weights: Any) -> LinkTicket:
        """Start copying `chunks` (ascending) to where edge `first_edge` is item 0 of `neighbors` and `weights`."""
        held = self._arrays[adjacency.direction]
        device, stream, step = self._device, self._stream, adjacency.chunk_edges
        device.behind(stream)
        began = device.event(stream)
        size = 0
        for run in np.split(chunks, np.flatnonzero(np.diff(chunks) != 1) + 1) if len(chunks) else []:
            e0, e1 = int(run[0]) * step, min((int(run[-1]) + 1) * step, adjacency.edges)
            for target, source in ((neighbors, held[0]), (weights, held[1])):
                if target is not None and source is not None:
                    device.copy_in(target[e0 - first_edge : e1 - first_edge], source[e0:e1], stream)
                    size += (e1 - e0) * source.itemsize
        ended = device.event(stream)
        if self.times is not None:
            self.times.append((began, ended))
        return LinkTicket(device, size, began, ended)

    def in_place(self, adjacency: Any, with_weights: bool) -> tuple[Any, Any]:
        """The whole adjacency's arrays in host memory, as kernels of the device read them over the link."""
        known = self._mapped.get(adjacency.direction)
        if known is None:
            neighbors, weights = self._arrays[adjacency.direction]
            known = self._device.mapped(neighbors), None if weights is None else self._device.mapped(weights)
            self._mapped[adjacency.direction] = known
        return known[0], known[1] if with_weights else None
