"""What stays of a graph: edges between some vertices, in new ids, chunk by chunk, in order; and these vertices.

New ids are in the order of the old ones, so that rows stay sorted. Chunks that no chosen vertex has a row in are not
read. Vertices keep the ids of the input, whatever their new numbers are, and their rows of a table beside the graph.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import flush, writing
from penstock.storage.base.jit import jit
from penstock.storage.convert.sort.sort_groups import SortedRows
from penstock.storage.convert.subgraph.chosen_vertices import STEP, VertexBitmap, is_member, rank_of
from penstock.storage.convert.subgraph.edge_filter import EdgeFilter
from penstock.storage.convert.vertex_properties import beside, forgetting
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.frames import StringIdFrames
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.schema import vertex_dtype
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.tables.edge_pieces import ListPieces
from penstock.storage.tables.properties import PROPERTIES, open_properties, property_facts, property_path


class Bounds(NamedTuple):
    """Least and greatest value of what is kept, both included."""

    low: float
    high: float

    def hold(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which values are within them."""
        return np.asarray((values >= self.low) & (values <= self.high))


KeptPiece = tuple[SortedRows | None, int, int]
"""What is kept of a chunk: rows (None: nothing is), how many self-loops, and how many entries the chunk has."""


def piece_bytes(rows: Adjacency, members: int) -> int:
    """About what one chunk takes while it is read and filtered, of which so many vertices stay."""
    return rows.chunk_edges * (3 * rows.stored_edge_bytes + 2 * vertex_dtype(members).itemsize + 9)


def kept_rows(
    adjacency: Adjacency, chosen: VertexBitmap, where: EdgeFilter | None, chunk: int, *, columns: bool = True
) -> KeptPiece:
    """What is kept of a chunk: edges between chosen vertices, of which a condition holds. Raises RunError.

    columns: whether those beside edges are, too.

    The index of the adjacency must have been read.
    """
    index = adjacency.index()
    first = chunk * adjacency.chunk_edges
    last = min(first + adjacency.chunk_edges, adjacency.edges)
    v0, v1 = index.row_of(first), index.row_of(last - 1) + 1
    new = chosen.below(v0)
    degrees = np.zeros(chosen.below(v1) - new, np.uint32)
    allowed = np.empty(0, np.bool_)
    if len(degrees) and where is not None:
        allowed = where.holds(adjacency, first, last)
    if len(degrees) == 0 or (len(allowed) and not allowed.any()):
        return None, 0, last - first
    starts = np.clip(index.starts(v0, v1 + 1), first, last) - first
    targets, weights = adjacency.edges_in(first, last)
    if chosen.edges is not None:
        joined = chosen.joined(np.repeat(np.arange(v0, v1), np.diff(starts)), targets)
        allowed = allowed & joined if len(allowed) else joined
    kept = np.empty(len(targets), vertex_dtype(len(chosen)))
    places = np.empty(len(targets), np.int32)
    count, loops = keep_edges(starts, v0, targets, allowed, chosen.words, chosen.before, degrees, kept, places)
    here = places[:count]
    values = None if weights is None else weights[here]
    beside = tuple(one.frames.part(first, last)[here] for one in adjacency.columns if columns)
    return SortedRows(new, degrees, kept[:count].copy(), values, columns=beside), loops, last - first


@jit
def keep_edges(
    starts: NDArray[np.int64],
    first: int,
    targets: NDArray[Any],
    allowed: NDArray[np.bool_],
    words: NDArray[np.uint64],
    before: NDArray[np.int64],
    degrees: NDArray[np.uint32],
    kept: NDArray[Any],
    places: NDArray[np.int32],
) -> tuple[int, int]:
    """Write the new ids of the targets that stay, where they were, and the lengths of the rows that stay.

    Row ``first + i`` is ``targets[starts[i]:starts[i + 1]]``; ``allowed`` says which edges may stay, (0,): all. Returns
    how many edges and how many self-loops stay.
    """
    count = 0
    loops = 0
    row = -1
    for i in range(len(starts) - 1):
        vertex = np.int64(first + i)
        if not is_member(words, vertex):
            continue
        row += 1
        begin = count
        for e in range(starts[i], starts[i + 1]):
            target = np.int64(targets[e])
            if (len(allowed) == 0 or allowed[e]) and is_member(words, target):
                kept[count] = rank_of(words, before, target)
                places[count] = e
                count += 1
                if target == vertex:
                    loops += 1
        degrees[row] = count - begin
    return count, loops


def kept_batches(graph: Graph, chosen: VertexBitmap, where: EdgeFilter | None) -> Iterator[EdgeBatch]:
    """Yield the edges of a list that stay, a chunk at a time, in new ids. Raises RunError where it cannot be read."""
    pieces, kind = ListPieces(graph.out, both=False), vertex_dtype(len(chosen))
    for number in range(pieces.count):
        sources, targets, values = pieces.read(number)
        stays = chosen.holds(sources) & chosen.holds(targets)
        if where is not None and values is not None:
            stays &= where.holds_of_weights(values)
        ends = [chosen.ranks(part[stays]).astype(kind) for part in (sources, targets)]
        yield EdgeBatch(ends[0], ends[1], None if values is None else values[stays])


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
