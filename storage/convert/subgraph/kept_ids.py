"""The ids of the input of the vertices that stay: they keep them, whatever their new numbers are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.convert.subgraph.vertex_bitmap import STEP, VertexBitmap
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.frames import StringIdFrames
from penstock.storage.format.graph import Graph


def kept_ids(graph: Graph, chosen: VertexBitmap) -> Iterator[NDArray[Any] | StringArray]:
    """Yield the ids of the members, range by range; strings of a file as they are there.

    Nothing where ids are the internal ones and all stay, or nothing stays. Raises RunError where they cannot be read.
    """
    if len(chosen) == 0 or (graph.original is None and len(chosen) == graph.vertices):
        return
    names = graph.original.names() if isinstance(graph.original, StringIdFrames) else None
    for first in range(0, graph.vertices, STEP):
        last = min(first + STEP, graph.vertices)
        members = np.flatnonzero(chosen.mask(first, last))
        if len(members):
            yield graph.original_ids_in(first, last)[members] if names is None else names.taken(first + members)


def all_kept_ids(graph: Graph, chosen: VertexBitmap) -> NDArray[Any] | StringArray | None:
    """The same in one array; None for nothing."""
    parts = list(kept_ids(graph, chosen))
    if not parts:
        return None
    if isinstance(parts[0], StringArray):
        names = [part for part in parts if isinstance(part, StringArray)]
        lengths = np.concatenate([part.lengths for part in names])
        return StringArray(np.concatenate([part.text for part in names]), np.cumsum(lengths, dtype=np.int64))
    return np.concatenate([part for part in parts if not isinstance(part, StringArray)])
