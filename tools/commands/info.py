"""`penstock info`: what a graph file holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import printable
from penstock.storage.format.schema import CHANGES, LIST_BLOCK, WITHOUT_EDGES
from penstock.tools.base import plots
from penstock.tools.base.graph_making import UNNAMED, edgeless, size_of
from penstock.tools.base.options import ANY, FORCE, OUTPUT, STRIPES, console_options, option, option_group
from penstock.tools.base.output import Console, counted, pairs, short

if TYPE_CHECKING:
    from penstock.storage.format.frames import EdgeColumn
    from penstock.storage.format.graph import Adjacency, Graph
    from penstock.storage.format.index import Index
    from penstock.tools.report.figures import DegreeCounts

PERCENTILES = (50, 90, 99, 99.9)
ROWS = SMALL_DEGREES = 1 << 16
"""Rows that are counted together, and degrees that have a counter each."""


@click.command(name="info", short_help="Say what a graph file holds.")
@click.argument("graph", type=ANY, metavar="GRAPH.h5")
@option_group(
    "wanted",
    dict,
    option("--degrees", is_flag=True, help="Degree statistics, too (reads all degrees)."),
    option(
        "--assortativity",
        metavar="degree|PROPERTY",
        help="Whether edges join vertices alike: correlation of their degrees, or of a property of vertices (reads all "
        "edges; 24 bytes a vertex).",
    ),
    option("--plot", type=OUTPUT, help="Draw how many vertices have each degree, and at least it: .png, .svg or .pdf."),
    FORCE,
    STRIPES,
)
@console_options
def command(graph: Path, wanted: dict[str, Any], console: Console) -> None:
    """Say what a graph file holds: vertices, edges, adjacencies, size, where it came from.

    \b
    Examples:
      penstock info web.h5
      penstock info web.h5 --degrees
      penstock info web.h5 --plot degrees.png
      penstock info web.h5 --assortativity degree
      penstock info web.h5 --json
    """
    from penstock.storage.format.graph import Graph

    plot, property, force = wanted["plot"], wanted["assortativity"], wanted["force"]
    if plot is not None:
        plots.check(plot, force=force)
    opened = Graph.open(graph, stripes=wanted["stripes"])
    facts = describe(opened)
    if wanted["degrees"] or plot is not None:
        found = distributions_of(opened)
        facts["degrees"] = {direction: degree_statistics(counts) for direction, counts in found.items()}
        if plot is not None:
            from penstock.tools.report.figures import degree_figure

            title = f"{printable(graph.name)}: {opened.vertices:,} vertices, {opened.input_edges:,} edges"
            plots.save(degree_figure(found, title, directed=opened.directed), plot, force=force)
            facts["plot"] = plot
    if property is not None:
        facts["assortativity"] = {"of": property, "value": _assortativity(opened, property)}
    console.answer(facts, _lines(facts))


def _assortativity(graph: Graph, name: str) -> float | None:
    """Of degrees, or of a property that is a number. Raises InputError, RunError."""
    from penstock.storage.read.assortativity import assortativity, degree_assortativity

    if name == "degree":
        return degree_assortativity(graph)
    from penstock.engine.state.result_columns import property_numbers

    values = property_numbers(graph, name)
    return assortativity(graph, values, values)


def describe(graph: Graph) -> dict[str, Any]:
    """Everything the manifest says, for machines."""
    return {
        "command": "info",
        "path": graph.path,
        "vertices": graph.vertices,
        "layout": graph.layout,
        "edges": graph.edges,
        "input_edges": graph.input_edges,
        "directed": graph.directed,
        "vertex_dtype": graph.vertex_dtype,
        "weight_dtype": graph.weight_dtype,
        "edge_properties": [_describe_column(column) for column in graph.out.columns],
        "without_edges": graph.without_edges,
        "renumbered": graph.original is not None,
        "sources": graph.left,
        "files": list(graph.files),
        "file_bytes": graph.file_bytes,
        "bytes_per_edge": graph.file_bytes / graph.edges if graph.edges else None,
        "adjacencies": [_describe_adjacency(a) for a in graph.adjacencies],
        "provenance": graph.provenance,
        "hints": hints(graph),
    }


def _describe_adjacency(adjacency: Adjacency) -> dict[str, Any]:
    return {
        "direction": adjacency.direction,
        "edges": adjacency.edges,
        "chunks": adjacency.chunks,
        "encoding": adjacency.encoding,
        "neighbor_bytes": int(adjacency.chunk_bytes(False).sum()),
        "bytes": int(adjacency.chunk_bytes(True).sum()),
        "windows": len(adjacency.windows),
        "window_vertices": adjacency.window_vertices,
        "window_bytes": sum(stored_bytes(window) for window in adjacency.windows),
    }


def _describe_column(column: EdgeColumn) -> dict[str, Any]:
    """A column beside edges: type, dtype, least and greatest value (None: there is none), bytes of one direction."""
    found, frames = column.property, column.frames
    numbers, null = found.numbers(column.bounds.whole())
    known = numbers if null is None else numbers[~null]
    extent = [found.shown(known.min()), found.shown(known.max())] if len(known) else [None, None]
    return {
        "name": found.name,
        "type": found.type,
        "dtype": frames.kind,
        "nulls": bool(found.nulls),
        "least": extent[0],
        "greatest": extent[1],
        "strings": len(found.values) if found.type == "string" else None,
        "bytes": int(frames.lengths.sum()),
    }


def stored_bytes(adjacency: Adjacency) -> int:
    """Bytes of the edges and degrees of an adjacency in a file."""
    arrays = adjacency.neighbors, adjacency.weights, adjacency.degrees, *(one.frames for one in adjacency.columns)
    return sum(int(frames.lengths.sum()) for frames in arrays if frames is not None)


def hints(graph: Graph) -> list[str]:
    """What the reader of this graph may want to know before running something on it."""
    found = []
    if graph.layout == "list":
        found.append("edges are in the order of the input: 'penstock convert GRAPH.h5 SORTED.h5' sorts them into rows")
    elif graph.into is None:
        found.append(
            "no in-adjacency: programs push along out-edges; convert with --direction both to let "
            "BFS and PageRank pull as well"
        )
    if graph.weight_dtype is None:
        found.append("no weights: sssp, pagerank and others count each edge as 1; convert with --weights to keep them")
    options = graph.provenance.get("options")
    if graph.without_edges and isinstance(options, dict) and options.get("renumber") is False:
        found.append(f"{UNNAMED}: {graph.vertices - graph.without_edges:,} vertices have an edge")
    if graph.vertices == 0:
        found.append("no vertices: every answer is empty")
    elif graph.edges == 0:
        found.append("no edges: every vertex is on its own")
    return found


def distributions_of(graph: Graph) -> dict[str, DegreeCounts]:
    """The degrees that vertices have, ascending, and how many have each, by direction, as far as the graph knows.

    Raises RunError, InputError.
    """
    known = ("out", "in") if graph.into is not graph.out else ("out",)
    found = ((direction, graph.degree_index(direction)) for direction in known)
    return {direction: _counts(index) for direction, index in found if index is not None}


def degree_statistics(found: DegreeCounts) -> dict[str, Any]:
    """Mean, percentiles, maximum and how many rows are empty."""
    degrees, counts = found
    total = int(counts.sum())
    if total == 0:
        return {"mean": 0.0, "max": 0, "empty": 0, "percentiles": {}}
    below = np.cumsum(counts)
    return {
        "mean": int(counts @ degrees) / total,
        "max": int(degrees[-1]),
        "empty": int(counts[0]) if degrees[0] == 0 else 0,
        "percentiles": {f"{p:g}": int(degrees[np.searchsorted(below, p / 100 * total)]) for p in PERCENTILES},
    }


def _counts(index: Index) -> DegreeCounts:
    """The degrees of rows, and how many rows have each; large ones, of which there are few, are counted apart."""
    small, large = np.zeros(SMALL_DEGREES, np.int64), [np.empty(0, np.int64)]
    for first in range(0, index.vertices, ROWS):
        found = index.degrees(first, min(index.vertices, first + ROWS)).astype(np.int64)
        small += np.bincount(found[found < SMALL_DEGREES], minlength=SMALL_DEGREES)
        large.append(found[found >= SMALL_DEGREES])
    above, their = np.unique(np.concatenate(large), return_counts=True)
    degrees = np.flatnonzero(small)
    return np.concatenate([degrees, above]), np.concatenate([small[degrees], their])


def _lines(facts: dict[str, Any]) -> list[str]:
    kind, left = "directed" if facts["directed"] else "undirected", facts["sources"]
    stored = "" if facts["input_edges"] == facts["edges"] else f"; {facts['edges']:,} stored"
    rows: list[tuple[str, object]] = [
        ("vertices", f"{facts['vertices']:,} ({facts['vertex_dtype']})"),
        ("no edge", edgeless(facts["without_edges"])),
        ("edges", f"{facts['input_edges']:,} ({kind}{stored})"),
        ("layout", f"list, in blocks of {LIST_BLOCK} edges" if facts["layout"] == "list" else None),
        ("weights", facts["weight_dtype"] or "none"),
        *((f"property {one['name']}", _column_line(one)) for one in facts["edge_properties"]),
        ("ids", "renumbered; results are in original ids" if facts["renumbered"] else None),
        ("bipartite", None if left is None else f"{left:,} sources, {facts['vertices'] - left:,} targets"),
        ("size", size_of(facts["file_bytes"], facts["edges"])),
    ]
    rows += [(f"{a['direction']}-edges", _adjacency_line(a)) for a in facts["adjacencies"]]
    for direction, found in facts.get("degrees", {}).items():
        rows.append((f"{direction}-degrees", _degree_line(found)))
    if "assortativity" in facts:
        of, value = facts["assortativity"]["of"], facts["assortativity"]["value"]
        rows.append(("assortativity", f"of {of}: " + ("not defined" if value is None else f"{value:.6f}")))
    rows.append(("plot", facts.get("plot")))
    if len(facts["files"]) > 1:
        rows.append(("stripes", ", ".join(str(file.parent) for file in facts["files"][1:])))
    for name, value in facts["provenance"].items():
        if name not in (WITHOUT_EDGES, CHANGES):
            told = ", ".join(f"{key}={item}" for key, item in value.items()) if isinstance(value, dict) else value
            rows.append((name, short(told, 120)))
    return [
        str(facts["path"]),
        *pairs(rows, indent="  "),
        *(f"  hint: {hint}" for hint in facts["hints"]),
    ]


def _adjacency_line(found: dict[str, Any]) -> str:
    encoding, chunks = found["encoding"], counted(found["chunks"], "chunk")
    each = f", {found['neighbor_bytes'] / found['edges']:.2f} per neighbor" if found["edges"] else ""
    windows = f"; {counted(found['windows'], 'window')}, {format_bytes(found['window_bytes'])}" * bool(found["windows"])
    return f"{encoding}, {chunks}, {format_bytes(found['bytes'])}{each}{windows}"


def _column_line(found: dict[str, Any]) -> str:
    extent = "" if found["least"] is None else f", {found['least']} to {found['greatest']}"
    strings = "" if found["strings"] is None else f", {counted(found['strings'], 'value')}"
    nulls = ", some null" * found["nulls"]
    return f"{found['type']} ({found['dtype']}){strings}{extent}{nulls}, {format_bytes(found['bytes'])}"


def _degree_line(found: dict[str, Any]) -> str:
    parts = [f"mean {found['mean']:.2f}", f"max {found['max']:,}", f"zero {found['empty']:,}"]
    parts += [f"p{p} {degree:,}" for p, degree in found["percentiles"].items()]
    return ", ".join(parts)
