"""`penstock similarity`: a graph file in, pairs of vertices and how similar they are out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
from penstock.storage.base.budget import format_bytes, peak_resident_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.tables.formats import PAIRS, endings_of
from penstock.tools.base.options import (
    ANY,
    DEVICE_MEMORY,
    FILE,
    HOST_MEMORY,
    OUTPUT,
    STRIPES,
    THREADS,
    VERTEX,
    TableOutput,
    Titled,
    console_options,
    engine_option,
    flags_of,
    option,
    option_group,
    table_output,
)
from penstock.tools.base.output import Console, pairs, seconds, table

MEASURES = ("jaccard", "overlap", "cosine", "common")
SHOWN = 10


comparing = option_group(
    "comparing",
    dict,
    option("--pairs", type=FILE, help="File of pairs of ids, one on each line, with a comma or blanks between."),
    option("--k", type=click.IntRange(1, 10_000), help="Instead: for each vertex the k most similar ones."),
    option("--by", type=click.Choice(MEASURES), default="jaccard", help="By which score; jaccard if not given."),
    option("--missing-only", is_flag=True, help="With --k: leave out pairs that an edge joins (link prediction)."),
    option(
        "--source", type=VERTEX, multiple=True, help="With --k: for this vertex alone; repeatable. By default for all."
    ),
    title="Pairs",
)
writing = table_output(
    PAIRS,
    option("--output", type=OUTPUT, help=f"File for the table: {endings_of(PAIRS)}."),
    help="Format of the output; by its name by default.",
    title="Output",
)
showing = option_group(
    "top",
    lambda top: top,
    option(
        "--top", type=click.IntRange(0), help=f"Show so many pairs of the largest scores ({SHOWN} without --output)."
    ),
    title="Output",
)
using = option_group(
    "using",
    dict,
    option("--where", metavar="CONDITION", help='Along the edges of which this holds: "amount >= 100".'),
    HOST_MEMORY,
    THREADS,
    engine_option("device", default="cpu", help="Where neighbors are counted: cpu, or for --pairs cuda:0."),
    DEVICE_MEMORY,
    STRIPES,
    title="Memory and threads",
)


@click.command(name="similarity", cls=Titled, short_help="Compare vertices by the neighbors that they share.")
@click.argument("graph", type=ANY, metavar="GRAPH.h5")
@comparing
@writing
@showing
@using
@console_options
def command(
    graph: Path,
    comparing: dict[str, Any],
    writing: TableOutput,
    top: int | None,
    using: dict[str, Any],
    console: Console,
) -> None:
    """Compare pairs of vertices by the neighbors that they share: common, jaccard, overlap and cosine.

    Of an undirected graph the neighbors count, of a directed one those that edges lead to; self-loops are left out.
    jaccard is the share of common neighbors among those of either vertex, overlap among those of the vertex that has
    fewer, cosine over the root of the product of both numbers.

    With --k only vertices that share a neighbor are looked at, and of equal scores the smallest ids come first.

    A graph that does not fit --host-memory is read part by part: pairs in runs of their vertices, for --k all rows
    once for every part.

    \b
    Examples:
      penstock similarity web.h5 --pairs pairs.csv --output scores.csv --device cuda:0
      penstock similarity friends.h5 --k 10 --missing-only --output links.parquet
      penstock similarity web.h5 --k 20 --by cosine --source 42
      penstock similarity web.h5 --k 5 --host-memory 800MiB --output similar.csv.gz
    """
    from penstock.engine.queries.similarity import check_request, similarity
    from penstock.storage.format.graph import Graph
    from penstock.tools.base.vertex_files import read_pairs

    began = time.perf_counter()
    file, comparing["sources"] = comparing.pop("pairs"), comparing.pop("source") or None
    using["device"] = "cpu" if using["device"] == "auto" else using["device"]
    check_request(file, device=using["device"], device_memory=using["device_memory"], **comparing)
    if writing.output is not None:  # what cannot be written is refused before anything is read
        writing.to(PAIRS, [graph] if file is None else [graph, file])
    elif writing.format is not None or writing.force or writing.style:
        options = ", ".join(("--format", "--force", *filter(None, [flags_of(writing.style)])))
        raise InputError(f"{options} are for --output FILE; give it, or leave them out")
    opened = Graph.open(graph, stripes=using.pop("stripes"))
    found = similarity(opened, None if file is None else read_pairs(file, opened), **comparing, **using)
    compared = time.perf_counter() - began
    if writing.output is not None:
        found.write(
            writing.output, force=writing.force, format=writing.format, threads=using["threads"], **writing.style
        )
    shown = (SHOWN if writing.output is None else 0) if top is None else top
    best = found.best(comparing["by"], shown)  # of equal scores in the order of the table
    rows = zip(*(part.tolist() for part in best.values()), strict=True)
    facts = {
        "command": "similarity",
        "graph": graph,
        "output": writing.output,
        "pairs": len(found),
        "k": comparing["k"],
        "by": comparing["by"],
        "missing_only": comparing["missing_only"],
        "sharing": int((found.common > 0).sum()),
        "top": [dict(zip(best, row, strict=True)) for row in rows],
        "compare_seconds": compared,
        "seconds": time.perf_counter() - began,
        "peak_memory_bytes": peak_resident_bytes(),
    }
    console.answer(facts, _lines(facts))


def _lines(facts: dict[str, Any]) -> list[str]:
    """The same for people."""
    rows = [
        ("pairs", f"{facts['pairs']:,}, {facts['sharing']:,} of them share a neighbor"),
        ("time", f"{seconds(facts['compare_seconds'])} (with writing {seconds(facts['seconds'])})"),
        ("peak memory", format_bytes(facts["peak_memory_bytes"])),
        ("written", facts["output"]),
    ]
    top = facts["top"]
    cells = [[f"{value:.8g}" if isinstance(value, float) else str(value) for value in row.values()] for row in top]
    shown = table(list(top[0]), cells) if top else []
    return [str(facts["graph"]), *pairs(rows, indent="  "), *(f"  {line}" for line in shown)]
