"""The settings of planning and of the pipeline: one value, checked when made, composed once by the session.

Owns their meaning and range. Refuses unknown models and routes, and sizes below one.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.storage.base.errors import InputError

MODELS = ("measured", "published")


@dataclass(frozen=True, slots=True)
class TransferOptions:
    """How edges travel.

    `partition_edges`: edges of a partition, whole chunks. `slabs`: buffers for what the cache does not keep;
    `ahead`: tasks being read at once, in a slab or in the cache. `combine`: filter partitions that travel as one
    task, and that one slab holds. `routes`: what serves the device; `route`: force one of them, or "auto".
    `model`: "measured" or "published". `priority`: largest pending value first rather than ascending.
    `gather_threads`: CPU threads that gather for compaction. `plain_slabs`: of packed edges, buffers into which a
    device unpacks them.
    """

    partition_edges: int
    slabs: int = 3
    ahead: int = 3
    combine: int = 1
    routes: tuple[str, ...] = ("resident", "filter")
    route: str = "auto"
    model: str = "measured"
    priority: bool = False
    gather_threads: int = 1
    plain_slabs: int = 0

    def __post_init__(self) -> None:
        for name in ("partition_edges", "ahead", "combine"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.slabs < 0:
            raise InputError(f"slabs is {self.slabs}; it must be at least 0")
        if self.model not in MODELS:
            raise InputError(f"cost model {self.model!r} is not known; choose one of {', '.join(MODELS)}")
        if self.route != "auto" and self.route not in self.routes:
            served = ", ".join(("auto", *self.routes))
            raise InputError(f"route {self.route!r} does not serve this device; choose one of {served}")
