"""Edges are removed from rows that stay in their files (`penstock remove`): the new manifest says which are gone.

Vertices stay, also those whose edges are all removed, so that results name the same vertices as before.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from penstock.storage.access.vertex_lookup import few_internal_ids
from penstock.storage.base.errors import InputError
from penstock.storage.convert.added_edges import EDGE_BYTES, Numbering, ReadAgain, next_change, opened_alone, replaced
from penstock.storage.convert.sort.options import ConvertOptions, ConvertReport
from penstock.storage.convert.sort.workspace import Progress, ignore
from penstock.storage.convert.splice_edges import Change, RowEntries, SplicedRows, can_splice, pairs
from penstock.storage.format.frames import OpenedGraph
from penstock.storage.format.graph import Graph
from penstock.storage.format.splice import NONE
from penstock.storage.ingest.core.edges import joined
from penstock.storage.ingest.core.source import Source
from penstock.storage.tables.edge_pieces import EdgePieces


def remove(
    source: Source,
    graph: Path,
    *,
    vertices: Sequence[int | str] = (),
    stripes: tuple[Path, ...] = (),
    host_memory: int = 1 << 30,
    threads: int | None = None,
    progress: Progress = ignore,
) -> ConvertReport:
    """Remove edges from a graph file.

    Parameters
    ----------
    source : Source
        Sources and targets; all edges with these ends are removed, whatever their weights.
    graph : Path
        The graph file; of a striped graph the manifest.
    vertices : sequence of int or str
        Vertices of which all edges are removed; they stay as vertices without edges.
    stripes, host_memory, threads, progress
        As for `append`.

    Returns
    -------
    ConvertReport
        Of the whole graph.

    Raises
    ------
    InputError
        The graph has no such edge or vertex, or is one whose edges cannot be removed; it is as it was.
    DamagedError
        The graph is damaged.
    RunError
        The disk is full or failed; the graph is as it was.
    """
    began = time.perf_counter()
    with opened_alone(graph, stripes) as (target, opened):
        if not can_splice(opened):
            raise InputError(_unsuited(opened, target))
        held, again = Graph.open(target, stripes=stripes), ReadAgain(source)
        if not again.holds_all(host_memory // EDGE_BYTES, progress):
            raise InputError(f"{source.name} has more edges than fit --host-memory; raise it, or convert what stays")
        rows = {one.direction: SplicedRows(one, threads) for one in held.adjacencies}
        ends = _ends(again, held).joined(_edges_of(held, few_internal_ids(held, vertices)))
        read = time.perf_counter()
        ends = _distinct(ends, directed=held.directed)
        if not len(ends.rows):
            raise InputError(f"no edge of {target} is named; give a file that has edges, or a vertex that has some")
        counts = rows["out"].have(ends)
        if not counts.all():
            names = held.original_ids_of(np.array([side[np.argmin(counts)] for side in (ends.rows, ends.neighbors)]))
            more = int(np.count_nonzero(counts == 0)) - 1
            raise InputError(
                f"{target} has no edge {names[0]} {names[1]}{f', nor {more:,} more of these' if more else ''}; "
                f"nothing was removed: take out of {source.name} what the graph does not have"
            )
        for direction, one in rows.items():
            gone = ends.reversed if direction == "in" else ends if held.directed else ends.mirrored
            one.remove(gone.sorted())
        removed = int(counts.sum())
        change = Change(
            vertices=held.vertices,
            ids=held.original_ids(),
            input_edges=max(0, held.input_edges - removed),
            weights=held.weight_range,
            note=next_change(held, source.name, removed)[1],
        )
        found = time.perf_counter()
        options = ConvertOptions(threads=threads, host_memory=host_memory)
        return replaced(opened, target, rows, change, source, (began, read, found), options)


def _unsuited(opened: OpenedGraph, target: Path) -> str:
    """Say why edges of a graph cannot be removed, and what can be done."""
    header = opened.header
    why = {
        "is a list; 'penstock convert' sorts it into rows": header.layout == "list",
        "has windows; convert it without --windows": bool(header.window_vertices),
        "keeps columns beside its edges; 'penstock extract --where' leaves edges out": bool(header.edge_properties),
        "has two sides": header.left is not None,
    }
    other = "has ids that are strings, or is a copy of another graph file; 'penstock extract' makes one of its own"
    reason = next((text for text, so in why.items() if so), other)
    return f"edges cannot be removed from {target}: it {reason}"


def _ends(source: ReadAgain, graph: Graph) -> RowEntries:
    """The ends of a source's edges, as vertices. Raises InputError for an id that the graph does not have."""
    sources, targets, _ = joined(source.read, None)
    ids, stored = np.unique(np.concatenate([sources, targets])), graph.original_ids()
    numbering = Numbering(graph, stored, None if stored is None else np.empty(0, np.uint64), graph.vertices)
    few_internal_ids(graph, ids[~numbering.knows(ids)][:1].tolist())
    return RowEntries(numbering.vertices_of(sources), numbering.vertices_of(targets), None)


def _edges_of(graph: Graph, vertices: Sequence[int]) -> RowEntries:
    """The ends of all edges of some vertices; both directions are read, or all edges where only one is stored."""
    chosen = np.zeros(graph.vertices if vertices else 0, np.bool_)
    chosen[list(vertices)] = True
    found = RowEntries(NONE, NONE, None)
    pieces = EdgePieces(graph.out, once=not graph.directed) if vertices else None
    for number in range(0 if pieces is None else pieces.count):
        assert pieces is not None, "no vertex has no pieces"
        sources, targets, _ = pieces.read(number)
        here = chosen[sources] | chosen[targets]
        found = found.joined(RowEntries(sources[here].astype(np.int64), targets[here].astype(np.int64), None))
    return found


def _distinct(ends: RowEntries, *, directed: bool) -> RowEntries:
    """Each pair of ends once, in order; of an undirected graph the smaller vertex first."""
    low, high = ends.rows, ends.neighbors
    if not directed:
        low, high = np.minimum(low, high), np.maximum(low, high)
    return RowEntries(low, high, None).taken(np.unique(pairs(low, high), return_index=True)[1])
