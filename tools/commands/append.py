"""`penstock append`, `remove` and `compact`: a graph file gets more edges or fewer, and is written in one again."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.budget import default_host_memory, format_bytes, peak_resident_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Place
from penstock.storage.ingest.core.formats import FORMATS
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.tables.folders import keep_read
from penstock.tools.base.graph_making import size_of, watching
from penstock.tools.base.options import (
    ANY,
    FOLDER,
    HOST_MEMORY,
    PLACE,
    STRIPES,
    THREADS,
    lasting_console_options,
    option,
    option_group,
    stripe_option,
)
from penstock.tools.base.output import Console, pairs, seconds
from penstock.tools.base.progress import compiling_shown, progress
from penstock.tools.commands.convert import reading

if TYPE_CHECKING:
    from penstock.storage.convert.sort.options import ConvertReport

SIZES = ("vertices", "edges", "input_bytes", "output_bytes", "stage_seconds", "seconds", "peak_memory_bytes")
"""What is said of a graph that was written."""


@click.command(name="append", short_help="Add edges to a graph file.")
@click.argument("graph", type=ANY, metavar="GRAPH.h5")
@click.argument("inputs", nargs=-1, required=True, type=PLACE, metavar="INPUT...")
@option_group(
    "adding",
    dict,
    option("--format", type=click.Choice(list(FORMATS)), help="Format of the input; detected by default."),
    HOST_MEMORY,
    option("--scratch", type=FOLDER, help="Folder for temporary data; beside the graph if none."),
    THREADS,
    stripe_option("Folder to which shards of a striped graph were moved, and in which new ones are made. Repeatable."),
)
@reading
@lasting_console_options
def command(
    graph: Path, inputs: tuple[Place, ...], adding: dict[str, Any], reading: IngestOptions, console: Console
) -> None:
    """Add edges to a graph file.

    Whole or not at all: a kill at any moment leaves the old graph or the new one. New ids make the graph larger; it
    keeps the options it was made with, and takes weights and names from the input if it has them.

    A copy of a graph is added to where its shards were copied with it; the original's are neither written beside nor
    removed.

    Sorted rows, and lists with numbers as ids, are not written again: the graph file names the old one, which gets
    another name beside it, and has the new edges. New ids come behind the others. Rows are converted once more, as all
    inputs together, where more than one in 16 of their edges (and 65,536) was added since the last time, with sums of
    parallel edges, and for a new source of a bipartite graph. 'penstock compact' does so at any time.

    \b
    Examples:
      penstock append web.h5 today.txt.gz
      penstock append payments.h5 part-*.parquet --columns payer,payee,amount
    """
    keep_read(graph, inputs)
    from penstock.storage.convert.append import append_opened, read_as
    from penstock.storage.ingest.open_source import open_source

    began = time.perf_counter()
    memory = adding.pop("host_memory") or default_host_memory()
    form = adding.pop("format")
    options = replace(read_as(graph, adding["stripes"], reading), host_memory=memory, threads=adding["threads"])
    options = replace(options, scratch=adding["scratch"] or graph.parent)
    with progress(console) as update, compiling_shown(update):
        adding |= {"host_memory": memory, "progress": watching(update, console.note)}
        report = append_opened(lambda: open_source(inputs, form, options), graph, console.note, **adding)
    _say(console, "append", graph, report, began)


@click.command(name="remove", short_help="Remove edges from a graph file.")
@click.argument("graph", type=ANY, metavar="GRAPH.h5")
@click.argument("inputs", nargs=-1, type=PLACE, metavar="[EDGES...]")
@option_group(
    "removing",
    dict,
    option("--vertex", "vertices", multiple=True, metavar="ID", help="Remove all edges of a vertex. Repeatable."),
    option("--format", type=click.Choice(list(FORMATS)), help="Format of the edges; detected by default."),
    HOST_MEMORY,
    THREADS,
    STRIPES,
)
@reading
@lasting_console_options
def remove(
    graph: Path, inputs: tuple[Place, ...], removing: dict[str, Any], reading: IngestOptions, console: Console
) -> None:
    """Remove edges from a graph file.

    Whole or not at all: an edge that the graph does not have is refused, and a kill at any moment leaves the old graph
    or the new one. Of each pair in EDGES all edges from the first to the second are removed, whatever their weights; of
    an undirected graph the order does not matter. Vertices stay, also those without edges.

    What remains is not written again: the graph file names the old one, and says which of its edges are gone.

    \b
    Examples:
      penstock remove web.h5 gone.txt
      penstock remove web.h5 --vertex 17 --vertex 99
    """
    keep_read(graph, inputs)
    from penstock.storage.convert.append import read_as
    from penstock.storage.convert.convert_again import NoEdges
    from penstock.storage.convert.remove import remove as removed
    from penstock.storage.ingest.open_source import open_source

    began = time.perf_counter()
    memory = removing.pop("host_memory") or default_host_memory()
    form = removing.pop("format")
    if not inputs and not removing["vertices"]:
        raise InputError("nothing says which edges go; name a file of EDGES, or --vertex")
    options = replace(read_as(graph, removing["stripes"], reading), host_memory=memory, threads=removing["threads"])
    options = replace(options, weights=False, scratch=graph.parent)
    with progress(console) as update, compiling_shown(update):
        removing |= {"host_memory": memory, "progress": watching(update, console.note)}
        report = removed(open_source(inputs, form, options) if inputs else NoEdges(), graph, **removing)
    _say(console, "remove", graph, report, began)


@click.command(name="compact", short_help="Write a changed graph file in one again.")
@click.argument("graph", type=ANY, metavar="GRAPH.h5")
@option_group(
    "writing",
    dict,
    HOST_MEMORY,
    option("--scratch", type=FOLDER, help="Folder for temporary data; beside the graph if none."),
    THREADS,
    STRIPES,
)
@lasting_console_options
def compact(graph: Path, writing: dict[str, Any], console: Console) -> None:
    """Write a graph file that edges were added to, or removed from, in one again.

    It takes as long as converting its edges, and as much space beside the old file. All vertices stay, also those
    without edges. A graph file that has all of its edges, as one that was converted, is left as it is.

    \b
    Examples:
      penstock compact web.h5
    """
    from penstock.storage.convert import append

    began = time.perf_counter()
    writing["host_memory"] = writing["host_memory"] or default_host_memory()
    with progress(console) as update, compiling_shown(update):
        report = append.compact(graph, progress=watching(update, console.note), **writing)
    if report is None:
        facts = {"command": "compact", "graph": graph, "changed": False} | dict.fromkeys(SIZES)
        console.answer(facts, [f"{graph} has all of its edges"])
    else:
        _say(console, "compact", graph, report, began, changed=True)


def _say(console: Console, command: str, graph: Path, report: ConvertReport, began: float, **more: Any) -> None:
    """Say what the graph file holds now."""
    took, peak = time.perf_counter() - began, peak_resident_bytes()
    facts = {
        "command": command,
        "graph": graph,
        "vertices": report.vertices,
        "edges": report.edges,
        "input_bytes": report.input_bytes,
        "output_bytes": report.output_bytes,
        "stage_seconds": report.seconds,
        "seconds": took,
        "peak_memory_bytes": peak,
    } | more
    rows = [
        ("vertices", f"{report.vertices:,}"),
        ("edges", f"{report.edges:,}"),
        ("size", size_of(report.output_bytes, report.edges)),
        ("time", seconds(took)),
        ("peak memory", format_bytes(peak)),
    ]
    console.answer(facts, [f"{graph}", *pairs(rows, indent="  ")])
