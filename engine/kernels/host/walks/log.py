"""Kernels between the steps of walks as they are found and the walks in order."""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.host.jit import kernel
from penstock.engine.kernels.host.walks.steps import Found


@kernel("count_steps")
def count_steps(found):  # type: ignore[no-untyped-def]
    """Return how many vertices walkers have gained."""
    found = Found(*found)
    rows = len(found.gained) // len(found.used)
    count = 0
    for unit in range(len(found.used)):
        for row in range(unit * rows, unit * rows + found.used[unit]):
            count += found.gained[row]
    return count


@kernel("collect_steps")
def collect_steps(block, width, step, found, cells, vertices, ends):  # type: ignore[no-untyped-def]
    """Write what walkers have gained as records: a cell of the walks of their block, and the vertex.

    block: walks of one; width: cells of a walk. step: of each walker, with these. ends: filled with where the records
    of each block end.
    """
    found = Found(*found)
    rows = len(found.gained) // len(found.used)
    count, number = 0, 0
    for unit in range(len(found.used)):
        for row in range(unit * rows, unit * rows + found.used[unit]):
            size, i = found.gained[row], found.owner[row]
            if size > 0:
                while i >= (number + 1) * block:
                    ends[number] = count
                    number += 1
                cell = (i - number * block) * width + np.int64(step[i]) - size + 1
                for k in range(size):
                    cells[count] = np.uint32(cell + k)
                    vertices[count] = found.vertices[row, k]
                    count += 1
    for rest in range(number, len(ends)):
        ends[rest] = count


@kernel("place_steps")
def place_steps(cells, vertices, walks):  # type: ignore[no-untyped-def]
    """Write the vertex of every record into its cell of the walks."""
    for k in range(len(cells)):
        walks[np.uint64(cells[k])] = vertices[k]
