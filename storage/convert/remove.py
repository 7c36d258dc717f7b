"""Edges are removed from rows that stay in their files (`penstock remove`): the new manifest says which are gone.

Vertices stay, also those whose edges are all removed, so that results name the same vertices as before.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from penstock.storage.access.vertex_lookup import few_internal_ids
from penstock.storage.base.errors import InputError
from penstock.storage.convert.added_edges import EDGE_BYTES, given_ends, read_up_to
from penstock.storage.convert.sort.options import ConvertOptions, ConvertReport
from penstock.storage.convert.sort.workspace import Progress, ignore
from penstock.storage.convert.splice_edges import Change, RowEntries, can_splice
from penstock.storage.encoding.edge_keys import edge_keys
from penstock.storage.format.file_set import opened_alone
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import WITHOUT_EDGES
from penstock.storage.ingest.core.edges import EdgeBatch
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
    """Remove all edges with the ends of a source's from a graph file; see `convert_files.remove`.

    vertices: of which all edges are removed; they stay as vertices without edges. Others, and what is returned and
    raised: as for `append`; InputError also where the graph has no such edge or vertex.
    """
    began = time.perf_counter()
    with opened_alone(graph, stripes) as opened:
        held, read = Graph.of_opened(opened), list[EdgeBatch]()
        if not can_splice(opened):
            raise InputError(_unsuited(held))
        if not read_up_to(host_memory // EDGE_BYTES, source, source.batches(), read, progress):
            raise InputError(f"{source.name} has more edges than fit --host-memory; raise it, or convert what stays")
        given = given_ends(held, source, read, strange=False)
        assert given is not None, "there is no new vertex"
        ends = RowEntries(given[0]).joined(_edges_of(held, few_internal_ids(held, vertices)))
        if not len(ends):
            raise InputError(f"no edge of {held.path} is named; give a file that has edges, or a vertex that has some")
        keys = ends.keys if held.directed else np.minimum(ends.keys, ends.reversed.keys)
        ends = RowEntries(np.unique(keys))
        change = Change(opened, held, source, threads, began)
        counts = change.rows["out"].have(ends)
        if not counts.all():
            first = ends.taken(np.argmin(counts, keepdims=True))
            names = held.original_ids_of(np.concatenate([first.rows, first.neighbors]))
            more = int(np.count_nonzero(counts == 0)) - 1
            raise InputError(
                f"{held.path} has no edge {names[0]} {names[1]}{f', nor {more:,} more of these' if more else ''}; "
                f"nothing was removed: take out of {source.name} what the graph does not have"
            )
        for one in change.rows.values():
            one.remove(one.entries(ends))
        removed, header = int(counts.sum()), opened.header
        options = ConvertOptions(threads=threads, host_memory=host_memory)
        told = {name: value for name, value in header.provenance.items() if name != WITHOUT_EDGES}
        header = replace(header, input_edges=max(0, header.input_edges - removed), provenance=told)
        new = None if held.original is None else np.empty(0, held.id_dtype)
        return change.write(header, new, removed, options.workers)


def _unsuited(graph: Graph) -> str:
    """Say why edges of a graph cannot be removed, and what can be done."""
    why = "is a copy of another graph file; 'penstock extract' makes one of its own"
    if graph.layout == "list":
        why = "is a list; 'penstock convert' sorts it into rows"
    elif graph.edge_properties:
        why = "keeps columns beside its edges; 'penstock extract --where' leaves edges out"
    return f"edges cannot be removed from {graph.path}: it {why}"


def _edges_of(graph: Graph, vertices: Sequence[int]) -> RowEntries:
    """The ends of all edges of some vertices; both directions are read, or all edges where only one is stored."""
    chosen = np.zeros(graph.vertices if vertices else 0, np.bool_)
    chosen[list(vertices)] = True
    found = [np.empty(0, np.uint64)]
    pieces = EdgePieces(graph.out, once=not graph.directed) if vertices else None
    for number in range(0 if pieces is None else pieces.count):
        assert pieces is not None, "no vertex has no pieces"
        sources, targets, _ = pieces.read(number)
        here = chosen[sources] | chosen[targets]
        found.append(edge_keys(sources[here], targets[here]))
    return RowEntries(np.concatenate(found))
