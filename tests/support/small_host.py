"""A host whose memory keeps only so many partitions, however small the graph; a device that keeps so much packed.

Owns what takes the place of the engine's divisions of budgets, which on a graph of a few hundred edges would depend on
every overhead. Graphs must have chunks of CHUNK edges where the host's memory is divided so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph
from penstock.engine.resources import memory_plan, packed_edges
from penstock.transfer.planning.device_budget import FEWEST_SLABS, DeviceBudget
from penstock.transfer.planning.host_budget import HostBudget, HostBudgetRequest

CHUNK = 32


def keeping(partition_edges: int, slabs: int, slots: int) -> Any:
    """A stand-in for `divide`: a host that keeps `slots` partitions, but not all."""

    def divide(config: Any, needs: Any, graph: Graph, partition_bytes: int) -> HostBudget:
        entries = sum(-(-a.edges // partition_edges) for a in needs.adjacencies)
        edges = min(partition_edges, max(1, partition_bytes // (4 * CHUNK)) * CHUNK)
        return HostBudget(edges, slabs, min(slots, max(0, entries - 1)), 2, False, 4)

    return divide


def small_memory(patch: pytest.MonkeyPatch, partition_edges: int, slabs: int, slots: int) -> None:
    """Let the host keep `slots` partitions."""
    dividing(patch, keeping(partition_edges, slabs, slots))


def dividing(patch: pytest.MonkeyPatch, divide: Callable[..., HostBudget]) -> None:
    """Let the host's budget be divided so, whether it computes or feeds a device, to which edges then travel plain."""
    patch.setattr(memory_plan, "divide_host_memory", divide)
    patch.setattr(memory_plan, "plan_packed", lambda *_: None)
    patch.setattr(memory_plan, "plan_packed_sweeps", lambda *_: None)


def packed_sweeps(patch: pytest.MonkeyPatch, chunks: int, share: float) -> None:
    """Let sweeps on the cores take packed edges, in partitions of so many chunks; memory keeps `share` of them."""

    def divide(budget: HostBudgetRequest, layouts: Any, work_bytes: int) -> HostBudget:
        edges = chunks * layouts[0].chunk_edges
        sizes = np.concatenate([layout.pieces(edges).sizes for layout in layouts])
        total, longest = int(sizes.sum()), 4 * int(sizes.max())
        if share == 1:
            return HostBudget(edges, 0, 0, 2, True, 0, words=total)
        return HostBudget(edges, 2, 0, 2, False, 0, words=int(share * total), piece_bytes=longest)

    patch.setattr(memory_plan, "divide_host_memory", keeping(CHUNK, 2, 0))
    patch.setattr(packed_edges, "divide_packed_sweeps", divide)


def packing(
    patch: pytest.MonkeyPatch, chunks: int, buffers: int, share: float, host: float | None = None, *, room: bool = False
) -> None:
    """Let edges travel packed, in partitions of so many chunks; the device keeps `share` of their pieces.

    host: what a host keeps of those on disk: a share, or 1 for all of them, which then stay; room: all plain ones too.
    """

    def divide(
        edge_memory: int, layouts: Any, wish: Any, edge_bytes: int, budget: HostBudgetRequest | None = None
    ) -> tuple[DeviceBudget, HostBudget | None]:
        edges = chunks * layouts[0].chunk_edges
        sizes = np.concatenate([layout.pieces(edges).sizes for layout in layouts])
        total, longest = int(sizes.sum()), 4 * int(sizes.max())
        together = wish.combine if budget is None else 1
        staged = together * (FEWEST_SLABS * edges * edge_bytes + buffers * longest)
        held = None
        if budget is not None and host == 1:
            held = HostBudget(edges, 0, 0, 2, True, 0, spare=1 << 40 if room else 0, words=total)
        elif budget is not None:
            held = HostBudget(edges, 3, 0, 2, False, 0, words=int((host or 0) * total), piece_bytes=longest)
        words = int(share * total) if wish.cached else 0
        return DeviceBudget(edges, buffers, 0, False, together, words, FEWEST_SLABS, staged), held

    def pays(*_: Any) -> bool:
        return True

    patch.setattr(packed_edges, "packing_pays", pays)
    patch.setattr(packed_edges, "divide_packed_budget", divide)
