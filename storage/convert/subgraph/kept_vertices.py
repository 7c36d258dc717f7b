"""Ids and properties of the vertices that stay.

They keep the ids of the input, whatever their new numbers are; the rows of a table beside the graph become one beside
the part.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import flush, writing
from penstock.storage.convert.subgraph.vertex_bitmap import STEP, VertexBitmap
from penstock.storage.convert.vertex_properties import beside, forgetting
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.frames import StringIdFrames
from penstock.storage.format.graph import Graph
from penstock.storage.tables.properties import PROPERTIES, open_properties, property_facts, property_path


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


@contextmanager
def kept_properties(graph: Graph, chosen: VertexBitmap, target: Path, *, force: bool) -> Iterator[dict[str, Any]]:
    """Write the properties of the members, for a part that is written in the block; give what its file says of them.

    Raises InputError where they cannot be read or written; RunError where the disk is full or failed.
    """
    place = property_path(target)
    if not graph.properties:
        with forgetting(target, force=force):
            yield {}
        return
    identity = os.urandom(16).hex()
    with beside(target, identity, force=force) as hidden:
        known = open_properties(graph.path, graph.provenance, graph.vertices)
        with writing(place):
            known.write_rows(hidden, _by_original_id(graph, chosen), identity)
            flush(hidden)
        yield {PROPERTIES: property_facts(identity, known.types)}


def _by_original_id(graph: Graph, chosen: VertexBitmap) -> NDArray[np.bool_]:
    """Which rows of a table of all vertices, by ascending original id, are of members."""
    parts = [chosen.mask(first, min(first + STEP, graph.vertices)) for first in range(0, graph.vertices, STEP)]
    mask = np.concatenate([np.empty(0, np.bool_), *parts])
    if not graph.reordered:
        return mask
    ids = graph.original_ids()
    return mask if ids is None else mask[np.argsort(ids, kind="stable")]
