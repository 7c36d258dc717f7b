"""Trusses: what is left when edges of too few triangles are taken away, again and again.

Every edge of a k-truss is in at least k - 2 triangles of it (Cohen, 2008). Direction is ignored, parallel edges count
once and self-loops not at all, as for `triangles`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count
from penstock.engine.program.program import Field, Program


class Trussness(Program):
    """`truss` (int64): the largest k of a k-truss that the vertex is in, 0 without neighbors.

    k: 0, or the only truss that is wanted; others get 0. keeps: whether a run leaves its edges in `left`, each as a
    number (`VertexBitmap`).
    """

    truss = Field(np.int64)
    combine = "sum"
    along = "both"
    peels = True

    def __init__(self, k: Count = 0) -> None:
        self.k, self.keeps = k, False
        self.left: NDArray[np.uint64] | None = None

    def corner():  # type: ignore[no-untyped-def,misc]
        """What the edge opposite each corner of a triangle gets."""
        return 1

    def vertex(incoming):  # type: ignore[no-untyped-def]
        """The largest k."""
        return incoming
