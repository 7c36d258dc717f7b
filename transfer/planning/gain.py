"""Whether what a plan saves, over reading everything in place, is worth the host's time for it.

Kernels read any edges in page-locked host memory in one launch, wherever these are. A plan can serve a part of them
from the device, copy whole partitions, or gather rows; it takes counting what is wanted of each partition, and more
tasks. Owns that one rule, as a pure function: it is asked before anything is counted, and again of each group of
partitions among others that are read in place.
"""

from __future__ import annotations

from penstock.transfer.values.rates import TASK_SECONDS

COUNT_SECONDS = 8e-4
"""What counting a frontier's demand, and making the plan, take: the link waits for them (on an H200's host)."""


def pays(saved: float, tasks: int = 1, *, counted: bool) -> bool:
    """Return whether saving so many seconds is worth `tasks` tasks more; counted: whether demand is known already."""
    return saved >= tasks * TASK_SECONDS + (0.0 if counted else COUNT_SECONDS)
