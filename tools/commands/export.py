"""`penstock export`: a graph file in, its edges out as a table."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.budget import format_bytes, peak_resident_bytes
from penstock.storage.tables.formats import EDGES
from penstock.tools.base.graph_making import edgeless
from penstock.tools.base.options import (
    ANY,
    STRIPES,
    THREADS,
    TableOutput,
    lasting_console_options,
    option,
    option_group,
    table_output,
)
from penstock.tools.base.output import NAME, Console, StandardOutput, pairs, seconds
from penstock.tools.base.progress import compiling_shown, progress

if TYPE_CHECKING:
    from penstock.storage.format.graph import Graph


writing = table_output(EDGES, help="Format of the output; by its name by default (-: csv).")
exporting = option_group(
    "exporting",
    dict,
    option(
        "--both-directions",
        is_flag=True,
        help="Of an undirected graph write each edge from both its ends; by default each edge is written once.",
    ),
    THREADS,
    STRIPES,
)


@click.command(name="export", short_help="Write the edges of a graph file as a table.")
@click.argument("graph", type=ANY, metavar="GRAPH.h5")
@click.argument("output", type=ANY, metavar="OUTPUT")
@writing
@exporting
@lasting_console_options
def command(graph: Path, output: Path, writing: TableOutput, exporting: dict[str, Any], console: Console) -> None:
    """Write the edges of a graph file as a table: source, target and, if there are weights, weight.

    The name of OUTPUT says its format (edges.csv.gz; --format has the others); - is standard output. Ids
    are those of the input. An undirected graph has each edge once. .npz is a sparse matrix of scipy in
    coordinates, (source, target), for ids that are numbers. Vertices without an edge are not in the table.

    Memory holds a few chunks of edges, 4.1 bytes a vertex, and the ids of the input if they are not 0, 1, 2 ...

    \b
    Examples:
      penstock export web.h5 edges.parquet
      penstock export roads.h5 roads.csv.gz --both-directions
      penstock export web.h5 matrix.npz
      penstock export web.h5 - --format tsv | head
    """
    from penstock.storage.access.edge_files import (
        ExportOptions,
        entries_to_read,
        export_edges,
        exported_size,
        stream_edges,
    )
    from penstock.storage.format.graph import Graph
    from penstock.tools.run.answer_room import check_sizes

    began = time.perf_counter()
    both_directions = exporting["both_directions"]
    writing = replace(writing, output=output)
    output, format = writing.to(EDGES, [graph])
    to_stdout = output == NAME
    opened = Graph.open(graph, stripes=exporting["stripes"])
    if not to_stdout:
        size = exported_size(opened, format, both_directions=both_directions)
        check_sizes({output: size}, console.note)
    total = entries_to_read(opened, format)
    with progress(console) as update, compiling_shown(update):
        options = ExportOptions(
            both_directions,
            exporting["threads"],
            lambda read: update("writing edges", read, total, "edges"),
            writing.style,
        )
        if to_stdout:
            stream_edges(opened, StandardOutput(), options, format)
            return
        edges = export_edges(opened, output, options, format=format, force=writing.force)
    facts = {
        "command": "export",
        "graph": graph,
        "output": output,
        "format": format,
        "edges": edges,
        "directed": opened.directed,
        "both_directions": both_directions,
        "without_edges": opened.without_edges,
        "bytes": output.stat().st_size,
        "seconds": time.perf_counter() - began,
        "peak_memory_bytes": peak_resident_bytes(),
    }
    console.answer(facts, _lines(opened, facts))


def _lines(graph: Graph, facts: dict[str, Any]) -> list[str]:
    """The same for people."""
    kind = "directed"
    if not graph.directed:
        kind = "undirected, each from both its ends" if facts["both_directions"] else "undirected, each once"
    left_out = edgeless(graph.without_edges)
    rows = [
        ("edges", f"{facts['edges']:,} ({kind})"),
        ("weights", graph.weight_dtype),
        ("no edge", None if left_out is None else f"{left_out}, which are not in the table"),
        ("size", format_bytes(facts["bytes"])),
        ("time", seconds(facts["seconds"])),
        ("peak memory", format_bytes(facts["peak_memory_bytes"])),
    ]
    return [str(facts["output"]), *pairs(rows, indent="  ")]
