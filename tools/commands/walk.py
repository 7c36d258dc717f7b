"""`penstock walk`: a graph file in, random walks out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.budget import format_bytes, peak_resident_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.tables.formats import WALKS
from penstock.tools.base.options import (
    ANY,
    DEVICE_MEMORY,
    FILE,
    FOLDER,
    HOST_MEMORY,
    STRIPES,
    THREADS,
    VERTEX,
    TableOutput,
    Titled,
    engine_option,
    lasting_console_options,
    option,
    option_group,
    table_output,
)
from penstock.tools.base.output import NAME, Console, StandardOutput, pairs, seconds
from penstock.tools.base.progress import compiling_shown, progress

if TYPE_CHECKING:
    from penstock.engine.program.vertex_ids import VertexReferences
    from penstock.engine.queries.walk_run import WalkProgress
    from penstock.engine.queries.walks import Walks
    from penstock.storage.format.graph import Graph


walking = option_group(
    "walking",
    dict,
    option("--length", type=click.IntRange(1), default=80, help="Steps of a walk, which has one vertex more."),
    option("--walks-per-vertex", type=click.IntRange(1), default=10, help="Walks from each source."),
    option("--source", type=VERTEX, multiple=True, help="Id of a vertex at which walks begin; repeatable."),
    option("--sources", type=FILE, help="File of such ids, one on each line. By default walks begin at every vertex."),
    option("--seed", type=click.IntRange(0), default=0, help="Seed of the random numbers."),
    option("--p", type=float, default=1.0, help="Return parameter of node2vec: small values go back often."),
    option("--q", type=float, default=1.0, help="In-out parameter of node2vec: small values go away."),
    option("--restart", type=float, default=0.0, help="Probability that a step goes back to the source."),
    option(
        "--dead-ends",
        type=click.Choice(("end", "restart")),
        default="end",
        help="What a walk does at a vertex without out-edges.",
    ),
    option("--where", metavar="CONDITION", help='Walk on the edges of which this holds: "amount >= 100".'),
    option("--time", metavar="COLUMN", help="Of edges: use those that are not later than --until, each as likely."),
    option("--until", multiple=True, help="The latest --time: one for all, or one for each --source, in their order."),
    option("--no-weight", is_flag=True, help="Choose each edge with the same probability, whatever its weight."),
    title="Walks",
)
writing = table_output(
    WALKS,
    option("--output", type=ANY, required=True, help="File for the walks; - is standard output."),
    help="Format of the output; by its name by default (-: txt).",
    title="Output",
)
using = option_group(
    "using",
    dict,
    HOST_MEMORY,
    THREADS,
    engine_option("device", default="cpu", help="Where walkers advance: cpu, cuda:N, or auto: a GPU if there is one."),
    DEVICE_MEMORY,
    engine_option("device_edge_memory", help="Most memory for edges on the GPU; by default what walkers leave."),
    engine_option("direct_io"),
    option("--scratch", type=FOLDER, help="Folder for steps on their way, where the graph does not fit in memory."),
    STRIPES,
    title="Memory and threads",
)


@click.command(name="walk", cls=Titled, short_help="Write random walks over a graph.")
@click.argument("graph", type=ANY, metavar="GRAPH.h5")
@walking
@writing
@using
@lasting_console_options
def command(
    graph: Path, walking: dict[str, Any], writing: TableOutput, using: dict[str, Any], console: Console
) -> None:
    """Write random walks along the edges of a graph file: the corpus of DeepWalk or node2vec.

    Edges are chosen in proportion to their weights, where there are any. --p and --q choose as node2vec does. A walk
    in a vertex without out-edges ends, or restarts. Walks are the same for every --device, budget and --threads.

    The output ends in .txt (a line for each walk, ids between spaces, as word2vec reads), .parquet or .feather (a
    list for each walk), .csv (a column for each step) or .npy (a matrix, -1 behind ends); .txt and .csv also with .gz.

    A graph that does not fit --host-memory is read in sweeps: all walkers of a partition advance together. Their steps
    wait in --scratch, 8 bytes each. A GPU keeps the walks that are under way, and as many rows as fit --device-memory;
    partitions of the others are copied to it sweep by sweep, or read in place where few walkers are left.

    \b
    Examples:
      penstock walk web.h5 --output walks.txt
      penstock walk web.h5 --length 40 --walks-per-vertex 1 --p 0.5 --q 2 --output walks.parquet
      penstock walk roads.h5 --source 0 --restart 0.15 --output near.csv
      penstock walk pay.h5 --source 7 --until 2026-03-01 --source 9 --until 2026-04-01 --time day --output past.txt
      penstock walk web.h5 --host-memory 200MiB --scratch /tmp --output walks.npy
      penstock walk web.h5 --device cuda:0 --device-memory 4GiB --output walks.npy
    """
    from penstock.engine.queries.walks import walk
    from penstock.storage.base.freed_memory import keep_no_large_blocks
    from penstock.storage.format.graph import Graph
    from penstock.storage.tables.columns import WriteOptions
    from penstock.storage.tables.walk_files import stream_walks

    began = time.perf_counter()
    keep_no_large_blocks()
    output, format = writing.to(WALKS, [graph], printed="txt")
    to_stdout = output == NAME
    opened = Graph.open(graph, stripes=using.pop("stripes"))
    sources = _sources(walking.pop("source"), walking.pop("sources"), opened)
    using["scratch"] = using["scratch"] or (None if to_stdout else output.absolute().parent)
    walking["until"] = list(walking["until"]) or None
    walks = walk(opened, sources=sources, weight=not walking.pop("no_weight"), **walking, **using)
    with progress(console) as update, compiling_shown(update):
        total = walks.count * walks.length

        def report(state: WalkProgress) -> None:
            update("walking", state.steps, total, "steps")

        if to_stdout:
            options = WriteOptions(using["threads"], style=writing.style)
            stream_walks(walks.written(report), StandardOutput(), format, options)
            return
        walks.save(output, format=format, force=writing.force, report=report, **writing.style)
    facts = _facts(walks, graph, output, format) | {
        "seconds": time.perf_counter() - began,
        "peak_memory_bytes": peak_resident_bytes(),
    }
    console.answer(facts, _lines(facts))


def _sources(
    source: tuple[int | str, ...], file: Path | None, graph: Graph
) -> list[int | str] | VertexReferences | None:
    """The sources, of --source and --sources. Raises InputError where both are given."""
    if source and file is not None:
        raise InputError("--source and --sources are both given; give one of them")
    if file is None:
        return list(source) or None
    from penstock.tools.base.vertex_files import read_sources

    return read_sources(file, graph)


def _facts(walks: Walks, graph: Path, output: Path, format: str) -> dict[str, Any]:
    done = walks.progress
    return {
        "command": "walk",
        "graph": graph,
        "output": output,
        "format": format,
        "walks": walks.count,
        "length": walks.length,
        "seed": walks.options.seed,
        "weighted": walks.weighted,
        "steps": done.steps if done else 0,
        "sweeps": done.sweeps if done else 0,
        "bytes_read": done.bytes_read if done else 0,
        "bytes_copied": done.bytes_copied if done else 0,
        "reads_in_place": done.in_place if done else 0,
        "scratch_bytes": done.log_bytes if done else 0,
        "walk_seconds": done.seconds if done else 0.0,
        "bytes": output.stat().st_size,
    }


def _lines(facts: dict[str, Any]) -> list[str]:
    """The same for people."""
    rate = facts["steps"] / facts["walk_seconds"] if facts["walk_seconds"] else 0
    swept = None
    if facts["sweeps"]:
        copied = f", {format_bytes(facts['bytes_copied'])} copied to the device" if facts["bytes_copied"] else ""
        swept = f"{facts['sweeps']:,}, {format_bytes(facts['bytes_read'])} read{copied}"
    rows = [
        ("walks", f"{facts['walks']:,} of {facts['length']} steps, {'weighted' if facts['weighted'] else 'uniform'}"),
        ("steps", f"{facts['steps']:,}, {rate / 1e6:.1f} M/s"),
        ("sweeps", swept),
        ("scratch", format_bytes(facts["scratch_bytes"]) if facts["scratch_bytes"] else None),
        ("size", format_bytes(facts["bytes"])),
        ("time", seconds(facts["seconds"])),
        ("peak memory", format_bytes(facts["peak_memory_bytes"])),
    ]
    return [str(facts["output"]), *pairs(rows, indent="  ")]
