"""Kernels between the steps of walks as they are found and the walks in order."""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.host.jit import kernel


@kernel("collect_steps")
def collect_steps(width, step, found, gained, cells, vertices):  # type: ignore[no-untyped-def]
    """Write the steps that walkers of a block have gained as records, a cell of the block's walks and the vertex.

    width: cells of a walk. step: of each walker, with these; gained: set to 0. Return how many records there are.
    """
    count = 0
    for row in range(len(gained)):
        size = gained[row]
        if size > 0:
            cell = row * width + np.int64(step[row]) - size + 1
            for k in range(size):
                cells[count] = np.uint32(cell + k)
                vertices[count] = found[row, k]
                count += 1
            gained[row] = 0
    return count


@kernel("place_steps")
def place_steps(cells, vertices, walks):  # type: ignore[no-untyped-def]
    """Write the vertex of every record into its cell of the walks."""
    for k in range(len(cells)):
        walks[np.uint64(cells[k])] = vertices[k]
