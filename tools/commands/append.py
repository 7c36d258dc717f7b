"""`penstock append`: more edges for a graph file."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from penstock.storage.base.budget import default_host_memory, format_bytes, peak_resident_bytes
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
    THREADS,
    lasting_console_options,
    option,
    option_group,
    stripe_option,
)
from penstock.tools.base.output import Console, pairs, seconds
from penstock.tools.base.progress import compiling_shown, progress
from penstock.tools.commands.convert import reading


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

    A graph made by convert --layout list, with numbers as ids, is not written again: the new edges are in a file
    beside it. Sorted rows are converted once more together with the new edges, which takes as long as converting
    all inputs and as much space beside the old file.

    \b
    Examples:
      penstock append web.h5 today.txt.gz
      penstock append payments.h5 part-*.parquet --columns payer,payee,amount
    """
    keep_read(graph, inputs)
    from penstock.storage.convert.append import append_opened
    from penstock.storage.ingest.open_source import open_source

    began = time.perf_counter()
    memory = adding.pop("host_memory") or default_host_memory()
    form = adding.pop("format")
    options = replace(_like(graph, adding["stripes"], reading), host_memory=memory, threads=adding["threads"])
    options = replace(options, scratch=adding["scratch"] or graph.parent)
    with progress(console) as update, compiling_shown(update):
        adding |= {"host_memory": memory, "progress": watching(update, console.note)}
        report = append_opened(lambda: open_source(inputs, form, options), graph, console.note, **adding)
    took, peak = time.perf_counter() - began, peak_resident_bytes()
    facts = {
        "command": "append",
        "graph": graph,
        "vertices": report.vertices,
        "edges": report.edges,
        "input_bytes": report.input_bytes,
        "output_bytes": report.output_bytes,
        "stage_seconds": report.seconds,
        "seconds": took,
        "peak_memory_bytes": peak,
    }
    rows = [
        ("vertices", f"{report.vertices:,}"),
        ("edges", f"{report.edges:,}"),
        ("size", size_of(report.output_bytes, report.edges)),
        ("time", seconds(took)),
        ("peak memory", format_bytes(peak)),
    ]
    console.answer(facts, [f"{graph}", *pairs(rows, indent="  ")])


def _like(path: Path, stripes: tuple[Path, ...], reading: IngestOptions) -> IngestOptions:
    """How to read what is added, as far as nothing is said: with weights and names if the graph has them."""
    from penstock.storage.format.frames import StringIdFrames
    from penstock.storage.format.graph import Graph

    graph = Graph.open(path, stripes=stripes)
    weighted = graph.weight_dtype is not None and len(reading.columns or (0, 1, 2)) == 3
    return replace(
        reading,
        weights=True if weighted and reading.weights is None else reading.weights,
        string_ids=isinstance(graph.original, StringIdFrames) or reading.string_ids,
        sides=graph.left is not None,
    )
