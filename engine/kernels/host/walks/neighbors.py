"""A kernel that draws edges of the rows of some vertices, with or without replacement, from their lengths alone."""

from __future__ import annotations

import numpy as np
from penstock.engine.kernels.host.device_functions import ONE, row_start
from penstock.engine.kernels.host.jit import loop_kernel
from penstock.engine.kernels.host.walks.steps import draw


@loop_kernel("draw_edges", grain=256)
def draw_edges(first, last, index, vertices, ends, key, replace, edges):  # type: ignore[no-untyped-def]
    """Draw ends[i] - ends[i - 1] edges of the row of vertices[i]: all of them where it has as many.

    key: seed and hop, uint64; a draw is a function of these, the vertex and its number. edges: int64, filled. Without
    replacement by Floyd's method (Bentley and Floyd, CACM 1987), whose look through what is drawn is quadratic.
    """
    seed, hop = key
    for i in range(first, last):
        v = np.uint64(vertices[i])
        start, end = row_start(index, v), row_start(index, v + ONE)
        low = ends[i - 1] if i > 0 else 0
        count, degree = ends[i] - low, end - start
        for k in range(count):
            if replace:
                edges[low + k] = start + np.int64(draw(seed, v, hop, np.uint64(k)) * degree)
                continue
            if count == degree:
                edges[low + k] = start + k
                continue
            limit = degree - count + k
            found = start + np.int64(draw(seed, v, hop, np.uint64(k)) * (limit + 1))
            for before in range(low, low + k):
                if edges[before] == found:
                    found = start + limit
                    break
            edges[low + k] = found
