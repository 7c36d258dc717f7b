"""Fused iterations: several iterations in one launch, or one call; their limits and their result.

Owns the two values that the loop and the kernels exchange. Decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_FRONTIERS = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class FusedLimits:
    """Where fused iterations must end: before an iteration that the loop would not push, or may not run.

    iterations: at most so many. edges: of a frontier, at most. alpha: a frontier that has grown may have at most
    1 / alpha of the `unexplored` edges, 0: no limit. before: vertices of the frontier before the first.
    per_row: a frontier may have at most so many edges for each of the vertices `unvisited` by then, 0: no
    limit; other than 0 on CPU cores only.
    limit, bucket: priorities due, and the width by which that moves (see `Loop`); 0: it does not move, since the
    scan of all pending vertices is faster on the whole device.
    """

    iterations: int
    edges: int
    alpha: int
    unexplored: int
    before: int
    limit: float
    bucket: float
    unvisited: int
    per_row: float


@dataclass(frozen=True, slots=True)
class FusedIterations:
    """The result: int64[iterations, 2], vertices and edges of every frontier; the limit at its end.

    The vertices to go on with are pending; if there was no iteration, nothing has changed.
    """

    frontiers: NDArray[np.int64]
    limit: float
