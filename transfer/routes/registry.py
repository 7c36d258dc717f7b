"""The routes by name, and which devices each serves.

A new route is one file and one line here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, cast

from penstock.transfer.routes import blocks, cel, compaction, resident, zero_copy
from penstock.transfer.routes import filter as filter_route
from penstock.transfer.staging.in_flight import Transfer
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.values.task import Demand, Task


class Route(Protocol):
    """How edges reach a device: a module with these four names."""

    @property
    def name(self) -> str:
        """Return the name under which plans know it."""

    @property
    def kinds(self) -> frozenset[str]:
        """Return the kinds of device that it serves."""

    @property
    def uses_slabs(self) -> bool:
        """Return whether it brings edges into slabs; else kernels read them where they are stored."""

    def start(self, task: Task, demand: Demand, directory: PartitionDirectory) -> Transfer | None:
        """Start bringing a task's edges; None when there is no slab for them yet."""


_ALL = (resident, filter_route, compaction, zero_copy, blocks, cel)
ROUTES: dict[str, Route] = {route.name: cast(Route, route) for route in _ALL}


PLAIN = frozenset({"compaction", "zero-copy", "cel"})
"""Routes that read plain edges in host memory."""
PACKED = frozenset({"blocks"})
"""Routes that read packed edges in host memory."""


def serving(kind: str, *, slabs: bool = True, packed: bool = False, plain: bool = True) -> tuple[str, ...]:
    """Return the names of the routes that serve a kind of device.

    slabs: whether it has any. packed: whether edges travel packed; rows are then not gathered, and read in place where
    host memory holds them `plain` as well.
    """
    names = [route.name for route in ROUTES.values() if kind in route.kinds and (slabs or not route.uses_slabs)]
    if not packed:
        return tuple(name for name in names if name not in PACKED)
    return tuple(name for name in names if name not in PLAIN or (plain and name == "zero-copy"))


def in_order(names: Collection[str]) -> list[str]:
    """Return names of routes in the order of the list, each once; what is not in it follows, by name."""
    return [name for name in ROUTES if name in names] + sorted(set(names) - set(ROUTES))
