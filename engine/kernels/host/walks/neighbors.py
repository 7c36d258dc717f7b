"""Kernels that draw edges of the rows of some vertices, with or without replacement: all alike, or by their weights."""

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


@loop_kernel("draw_by_weight", grain=64)
def draw_by_weight(  # type: ignore[no-untyped-def]
    first, last, index, vertices, ends, key, replace, e0, weights, keys, edges
):
    """Go on drawing edges by weight, from those of a window: weights[0] is that of edge e0; windows rise.

    Every edge gets exponentially distributed keys whose rates are its weight, and the smallest ones are drawn
    (Efraimidis and Spirakis, IPL 2006): without replacement one key, with it one for each draw. keys: the smallest ones
    so far, of ends[i] - ends[i - 1] draws for vertices[i]; infinite at first. edges: those that have them; -1 at first.
    A key is a function of seed, hop, edge and draw.
    """
    seed, hop = key
    for i in range(first, last):
        v = np.uint64(vertices[i])
        start, end = row_start(index, v), row_start(index, v + ONE)
        low = ends[i - 1] if i > 0 else 0
        count, worst = ends[i] - low, low
        for k in range(low, low + count):
            if keys[k] > keys[worst]:
                worst = k
        for edge in range(max(start, e0), min(end, e0 + len(weights))):
            weight = np.float64(weights[edge - e0])
            if not weight > 0.0:
                continue
            for k in range(count if replace else 1):
                found = -np.log1p(-draw(seed, np.uint64(edge), hop, np.uint64(k))) / weight
                place = low + k if replace else worst
                if count > 0 and found < keys[place]:
                    keys[place], edges[place] = found, edge
                    if not replace:
                        for other in range(low, low + count):
                            if keys[other] > keys[worst]:
                                worst = other
