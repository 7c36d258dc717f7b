"""Neighborhoods sampled on a GPU: what it keeps of the edges, and the hops of a batch, which then comes to the host.

The GPU keeps the row index, a place for every vertex and the first edges; the others it reads in place, from
page-locked host memory, for a batch reads few edges of each row. NextDoor (Jangda et al., EuroSys 2021) and DGL
sample on GPUs likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.driver import blocks_for, use
from penstock.engine.kernels.cuda.walks import NOWHERE, begin_hop, draw_edges, forget_places, mark_first, number_found
from penstock.engine.kernels.walk_steps import key_of
from penstock.engine.queries.chunked_edges import ChunkedEdges
from penstock.engine.queries.neighborhood import Neighborhood
from penstock.engine.queries.walk_memory import ROUNDING
from penstock.engine.resources.config import Config
from penstock.engine.resources.requirements_types import index_bytes
from penstock.storage.base.budget import format_bytes, too_small
from penstock.storage.base.errors import RunError
from penstock.storage.format.graph import Adjacency
from penstock.transfer.devices.device import Device


class DeviceSamples:
    """Samples neighborhoods of one adjacency on a device.

    edges: those of the host, which has all that the device does not keep. Raises BudgetError where neither has room.
    """

    def __init__(self, device: Device, rows: Adjacency, edges: ChunkedEdges, config: Config) -> None:
        use(device)
        self._device = device
        width = rows.neighbor_dtype.itemsize
        fixed = index_bytes(rows) + NOWHERE.itemsize * rows.vertices + ROUNDING
        room = (device.memory_bytes - fixed) * 3 // 4  # the rest is for batches
        if room < 0:
            why = f"row index and places of vertices take {format_bytes(fixed)}"
            raise too_small("--device-memory", device.memory_bytes, why, fixed)
        if config.device_edge_memory is not None:
            room = min(room, config.device_edge_memory)
        count = min(rows.edges, room // width)
        if count < rows.edges and edges.kept is None:
            why = f"edges take {format_bytes(rows.edges * width)}, and --host-memory does not hold them either"
            raise too_small("--device-edge-memory", room, why, rows.edges * width, ", or a larger --host-memory")
        bases, offsets, shift = rows.index(config.thread_count).arrays()
        self._index = device.to_device(bases), device.to_device(offsets), np.uint64(shift)
        self._places = device.to_device(np.full(rows.vertices, NOWHERE, np.int32))
        self._kept = device.array(count, rows.neighbor_dtype)
        for e0, piece in edges.first(count):
            device.copy_in(self._kept[e0 : e0 + len(piece)], piece, None)
            device.finish()
        self._rest = device.array(0, rows.neighbor_dtype)
        if count < rows.edges and edges.kept is not None:
            device.register(edges.kept[count:])
            self._rest = device.mapped(edges.kept[count:])

    def grow(self, one: Neighborhood, fanouts: Sequence[int], *, replace: bool) -> None:
        """Let a neighborhood grow by all its hops. Raises RunError where the device has no room for it."""
        use(self._device)
        try:
            self._grow(one, fanouts, replace=replace)
        except BaseException:
            self._device.copy_in(self._places, np.full(len(self._places), NOWHERE, np.int32), None)
            self._device.finish()
            raise

    def _grow(self, one: Neighborhood, fanouts: Sequence[int], *, replace: bool) -> None:
        device, places, first = self._device, self._places, 0
        nodes = device.to_device(one.known)
        for hop, fanout in enumerate(fanouts):
            counts = device.array(one.nodes_per_hop[-1], np.int64)
            again, blocks = np.bool_(replace and fanout > 0), blocks_for(len(counts))
            begin_hop(blocks, nodes, np.int64(first), self._index, np.int64(fanout), again, places, counts)
            ends = device.running_sums(counts)
            drawn = self._last(ends)
            if len(nodes) + drawn >= NOWHERE:
                raise RunError(f"a hop draws {drawn:,} edges for one batch; give fewer seeds, or smaller fan-outs")
            block = device.array(3 * drawn, np.int64)
            rows, cols, edges = (block[part * drawn : (part + 1) * drawn] for part in range(3))
            found, marks = device.array(drawn, np.int64), device.array(drawn, np.int64)
            given = nodes, np.int64(first), self._index, self._kept, self._rest
            draw_edges(blocks, *given, ends, key_of(one.seed, hop), again, places, edges, cols, found)
            blocks = blocks_for(drawn)
            mark_first(blocks, found, nodes, places, marks)
            ranks = device.running_sums(marks)
            joined = device.array(len(nodes) + self._last(ranks), np.int64)
            number_found(blocks, found, nodes, places, ranks, joined[len(nodes) :], rows)
            device.copy_within(joined[: len(nodes)], nodes, None)
            one.nodes_per_hop.append(len(joined) - len(nodes))
            one.parts.append(tuple(device.to_host(block).reshape(3, drawn)))
            first, nodes = len(nodes), joined
        forget_places(blocks_for(len(nodes)), nodes, places)
        one.known = device.to_host(nodes)

    def _last(self, sums: Any) -> int:
        """The sum of all."""
        return int(self._device.to_host(sums[-1:])[0]) if len(sums) else 0
