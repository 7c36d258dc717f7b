"""Edges are added to rows that stay in their files: read, numbered, cleaned as the options say, and given their places.

`splice_edges.py` finds the places, and writes the new manifest.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.access.vertex_lookup import few_internal_ids, vertices_of_ids
from penstock.storage.base.errors import InputError
from penstock.storage.convert.convert_again import other_weights, told_of
from penstock.storage.convert.sort.groups import check_density
from penstock.storage.convert.sort.options import ConvertOptions, ConvertProgress, ConvertReport
from penstock.storage.convert.sort.weights import narrow
from penstock.storage.convert.sort.workspace import Progress
from penstock.storage.convert.splice_edges import Change, RowEntries, SplicedRows, can_splice
from penstock.storage.encoding.edge_keys import edge_keys
from penstock.storage.encoding.string_array import StringArray, distinct
from penstock.storage.format.adjacency_writer import WeightStats
from penstock.storage.format.frames import OpenedGraph
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import LIST_VERTICES, RISING, WITHOUT_EDGES
from penstock.storage.ingest.core.edges import EdgeBatch, joined
from penstock.storage.ingest.core.source import Source

SHARE, LEAST = 16, 1 << 16
"""Rows are converted once more where more than one in so many edges, and more than so many, were added."""

EDGE_BYTES = 128
"""Memory that an added edge takes while its place is found."""


def read_up_to(most: int, source: Source, batches: Iterable[EdgeBatch], read: list[EdgeBatch], watch: Progress) -> bool:
    """Move batches to `read`; return whether all have come, with at most so many edges and lone vertices."""
    held = 0
    for batch in batches:
        read.append(batch)
        held += len(batch) + (0 if batch.lone is None else len(batch.lone))
        if held > most:
            return False
        watch(ConvertProgress("read", source.bytes_done, source.total_bytes, held))
    return True


def append_beside(
    source: Source,
    batches: Iterable[EdgeBatch],
    read: list[EdgeBatch],
    graph: Graph,
    opened: OpenedGraph,
    options: ConvertOptions,
    watch: Progress,
) -> ConvertReport | None:
    """Add the batches of a source to rows that stay in their files. Raises as `append`.

    Returns None, and nothing was written, where that does not do it: `append_rows` does then, with those that are in
    `read` and the others.
    """
    began, told, header = time.perf_counter(), told_of(graph), opened.header
    rule = told.get("dedupe") or ("first" if told.get("symmetrize") else None)
    weighted = graph.weight_dtype is not None
    if not can_splice(opened) or (rule not in (None, "first") and weighted):
        return None
    room = max(LEAST, graph.edges // SHARE) - (0 if graph.out.splice is None else len(graph.out.splice.at))
    if not read_up_to(min(room, options.host_memory // EDGE_BYTES), source, batches, read, watch):
        return None
    for batch in read:
        if len(batch) and (batch.weights is None) == weighted:
            raise InputError(other_weights(graph, source.name, weighted=batch.weights is not None))
    values = joined(read, np.float64 if weighted else None)[2]
    weights = values if values is None else narrow(values, source.name)[0].astype(graph.weight_dtype)
    given = given_ends(graph, source, read)
    if given is None or not (values is None or weights is None or np.array_equal(weights, values)):
        return None
    keys, vertices, new = given
    if header.window_vertices and -(-vertices // header.window_vertices) > header.windows:
        return None
    edges = RowEntries(keys, weights)
    change = Change(opened, graph, source, options.threads, began)
    fresh = _fresh(edges, change.rows["out"], told, rule, directed=graph.directed)
    for one in change.rows.values():
        one.add(one.entries(fresh), change.turn)
    provenance = header.provenance | _note_of(graph, new)
    if graph.without_edges == 0:
        met = np.unique(np.concatenate([fresh.rows, fresh.neighbors])) >= graph.vertices
        provenance[WITHOUT_EDGES] = vertices - graph.vertices - int(np.count_nonzero(met))
    else:
        provenance.pop(WITHOUT_EDGES, None)
    header = replace(
        header,
        vertices=vertices,
        input_edges=header.input_edges + len(edges),
        weight_range=_joined_range(graph, fresh.weights),
        provenance=provenance,
    )
    return change.write(header, new, 0, options.workers)


def _fresh(
    edges: RowEntries, out: SplicedRows, told: dict[str, Any], rule: str | None, *, directed: bool
) -> RowEntries:
    """The edges that are added: without self-loops, or those there are already, where the options say so."""
    if told.get("drop_self_loops"):
        edges = edges.taken(edges.rows != edges.neighbors)
    if rule is None:
        return edges
    ends = edges.keys if directed else np.minimum(edges.keys, edges.reversed.keys)
    edges = edges.taken(np.unique(ends, return_index=True)[1]).sorted()
    return edges.taken(out.have(edges) == 0)


def _joined_range(graph: Graph, weights: NDArray[Any] | None) -> tuple[float, float, float] | None:
    """Least, mean and greatest weight of a graph and others."""
    if graph.weight_range is None or weights is None or not len(weights):
        return graph.weight_range
    stats = WeightStats()
    if graph.edges:
        stats.low, mean, stats.high = graph.weight_range
        stats.total, stats.count = mean * graph.edges, graph.edges
    stats.append(weights)
    return stats.value


def _note_of(graph: Graph, new: NDArray[Any] | None) -> dict[str, Any]:
    """What the provenance says of ids of new vertices that do not rise, or that are stored now."""
    if new is None or not len(new):
        return {}
    known: dict[str, Any] = {"options": told_of(graph) | {"renumber": True}}
    count = graph.vertices
    rises = graph.reordered is False and (not count or new[0] > graph.original_ids_in(count - 1, count)[0])
    return known if rises or graph.reordered is None else known | {RISING: graph.rising}


Given = tuple[NDArray[np.uint64], int, NDArray[Any] | None]
"""Keys of edges between vertices of a graph and new ones behind these; how many vertices there are then; the ids of the
new ones, in the dtype that holds all ids, None: ids are vertices."""


def given_ends(graph: Graph, source: Source, batches: Sequence[EdgeBatch], *, strange: bool = True) -> Given | None:
    """Return the edges of a source's batches; None where vertices would have to move for new ones.

    strange: whether there may be ids that the graph does not have. Raises InputError for one otherwise.
    """
    given, count, left = _ids_given(batches, graph.left is not None), graph.vertices, graph.left
    edges, known = len(given[0]), source.known_vertices or 0
    sides = {"": ((0, count), np.concatenate(given))}
    if left is not None:
        sides = {"source:": ((0, left), given[0]), "target:": ((left, count), given[1])}
    found = []
    for side, (span, named) in sides.items():
        ids, numbers = distinct(named) if named.dtype.kind == "T" else np.unique(named, return_inverse=True)
        vertices = vertices_of_ids(graph, ids, span)
        new = ids[vertices < 0]
        if len(new) and not strange:
            few_internal_ids(graph, [f"{side}{new[0]}"])
        if len(new) and side == "source:":
            return None
        vertices[vertices < 0] = count + np.arange(len(new))
        found.append(vertices[numbers])
    ends, total, kind = np.concatenate(found), count + len(new), graph.id_dtype
    if kind.kind != "T" and len(new) and int(new[-1]) >= 1 << 32:
        kind = np.dtype(np.uint64)
    names: NDArray[Any] | None = new.astype(kind)
    if graph.original is None:
        by_id = max(count, known, int(ids[-1]) + 1 if len(ids) else 0)
        if by_id <= total or known > count or told_of(graph).get("renumber") is False:
            check_density(by_id, graph.edges + edges, source.name)
            ends, total, names = np.concatenate(given[:2]).astype(np.int64), by_id, None
    return (edge_keys(ends[:edges], ends[edges : 2 * edges]), total, names) if total < LIST_VERTICES else None


def _ids_given(batches: Sequence[EdgeBatch], sided: bool) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The ids of the sources, of the targets and of other vertices that batches name."""
    if not any(batch.names for batch in batches):
        sources, targets, _ = joined(batches, None)
        return sources, targets, np.concatenate([sources[:0], *(one.lone for one in batches if one.lone is not None)])
    pieces = []
    for batch in batches:
        assert batch.names is not None, "all batches have names, or none has"
        names = batch.names.names
        if sided:  # before each is a byte that says which side it is on
            names = StringArray(
                np.delete(names.text, names.ends - names.lengths), names.ends - np.arange(1, 1 + len(names))
            )
        texts = names.strings()
        pieces.append((texts[batch.sources], texts[batch.targets], texts[:0] if sided else texts))
    sources, targets, others = (np.concatenate(part) for part in zip(*pieces, strict=True))
    return sources, targets, others
