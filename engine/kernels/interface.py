"""What the kernels of every device share with their callers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class EdgeView(NamedTuple):
    """Edges [e0, e1) of one adjacency whose rows are in [v0, v1), as kernels take them.

    neighbors[i] and weights[i] belong to edge e0 + i; weights of a run without weights: one item that nothing reads.
    e0, e1: int64; v0, v1: uint64.
    """

    neighbors: Any
    weights: Any
    e0: Any
    e1: Any
    v0: Any
    v1: Any


class VertexArrays(NamedTuple):
    """What a kernel over edges reads and writes of the vertices from `base` (uint64) on, besides their fields.

    sent: what each sends, one item if that is nothing. target: where messages are combined. touched, summary: bitmap of
    the vertices whose target changed, and its second level, which a GPU's has not (there: `touched` once more).
    """

    sent: Any
    target: Any
    touched: Any
    summary: Any
    base: Any


@dataclass
class ReadyRows:
    """Where rows may lie that are taken, and what was: arrays of the host.

    chunks: uint8, nonzero where the walk has passed and the edges can be had again. sizes: edges of a partition, of a
    chunk, of a 128-byte line. table: int64[partitions * 3], filled with what was taken (vertices, edges, lines).
    """

    chunks: NDArray[np.uint8]
    sizes: tuple[int, int, int]
    table: NDArray[np.int64]
