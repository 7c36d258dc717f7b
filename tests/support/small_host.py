"""A host whose memory keeps only so many partitions, however small the graph; a device that keeps so much packed.

Owns what takes the place of the engine's divisions of budgets, which on a graph of a few hundred edges would depend on
every overhead. Graphs must have chunks of CHUNK edges where the host's memory is divided so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from penstock.engine import Graph
from penstock.engine.resources import device_memory_plan, host_resources
from penstock.transfer.planning.host_budget import HostBudget

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
    for owner in (host_resources, device_memory_plan):
        patch.setattr(owner, "divide_host_memory", divide)
    patch.setattr(device_memory_plan, "plan_packed", lambda *_: None)
