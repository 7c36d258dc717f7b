"""`penstock extract`: a graph file in, a part of it out as a graph file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
from penstock.storage.base.atomic import check_target, keep_inputs
from penstock.storage.base.budget import default_host_memory, format_bytes, peak_resident_bytes
from penstock.storage.base.errors import InputError
from penstock.tools.base.graph_making import edgeless, size_of
from penstock.tools.base.options import (
    ANY,
    FORCE,
    HOST_MEMORY,
    OUTPUT,
    STRIPES,
    THREADS,
    VERTEX,
    Titled,
    is_graph_name,
    lasting_console_options,
    option,
    option_group,
)
from penstock.tools.base.output import Console, pairs, seconds
from penstock.tools.base.progress import compiling_shown, progress

choosing = option_group(
    "chosen",
    dict,
    option("--around", type=VERTEX, multiple=True, help="Vertices within --hops edges of this one. Repeatable."),
    option("--hops", type=click.IntRange(0), default=1, help="How far --around goes."),
    option(
        "--along",
        type=click.Choice(["out", "in", "both"]),
        default="out",
        help="Which way --around goes: with the edges, against them, or either.",
    ),
    option(
        "--component-of", type=VERTEX, help="The connected component of this vertex; directions of edges do not count."
    ),
    option("--largest-component", is_flag=True, help="The connected component of most vertices."),
    option("--strong", is_flag=True, help="With --component-of, --largest-component: strongly connected components."),
    option("--core", type=click.IntRange(0), help="The k-core: every vertex has so many neighbors in it."),
    option("--truss", type=click.IntRange(2), help="The k-truss: every edge is in k - 2 triangles of it."),
    option("--vertices", type=ANY, help="Vertices listed in this file, an id a line."),
    option("--skip-missing", is_flag=True, help="Pass over ids in --vertices that the graph does not have."),
    option("--degrees", help="Vertices whose degree, in and out together, is in a range: 10.. or 2..5."),
    option("--weights", help="Edges whose weight is in a range: 0.5..2 or ..5."),
    option("--where", help="Edges of which a condition holds: \"amount >= 100 and kind = 'wire'\"."),
    title="Conditions",
)

taking = option_group(
    "taking",
    dict,
    option("--drop-isolated", is_flag=True, help="Leave out vertices to which no edge is left."),
    option("--dry-run", is_flag=True, help="Count what would stay, and write nothing."),
    HOST_MEMORY,
    THREADS,
    option("--device", default="auto", help="What decides which vertices stay: cpu or cuda:0."),
    FORCE,
    STRIPES,
)


@click.command(cls=Titled, name="extract", short_help="Write a part of a graph as a graph file of its own.")
@click.argument("graph", type=ANY, metavar="GRAPH.h5")
@click.argument("output", type=OUTPUT, metavar="[OUTPUT.h5]", required=False)
@choosing
@taking
@lasting_console_options
def command(graph: Path, output: Path | None, chosen: dict[str, Any], taking: dict[str, Any], console: Console) -> None:
    """Write a part of a graph as a graph file of its own: chosen vertices, and the edges between them.

    A vertex stays if all conditions hold; each is judged on the whole graph. Vertices keep their ids,
    so that answers on the part name them as answers on the whole do. Direction, weights and layout stay.
    Edges are read once and written as they come, within --host-memory.

    \b
    Examples:
      penstock extract web.h5 near.h5 --around 42 --hops 2 --along both
      penstock extract web.h5 main.h5 --largest-component
      penstock extract web.h5 dense.h5 --core 20
      penstock extract web.h5 denser.h5 --truss 20
      penstock extract users.h5 some.h5 --vertices ids.txt --skip-missing
      penstock extract roads.h5 short.h5 --weights ..500 --drop-isolated
      penstock extract payments.h5 large.h5 --where "amount >= 100 and kind = 'wire' and day < 2026-01-01"
      penstock extract web.h5 --degrees 100.. --dry-run
    """
    dry_run, device, stripes = (taking.pop(name) for name in ("dry_run", "device", "stripes"))
    if output is not None:
        if not is_graph_name(output):
            raise InputError(f"{output} does not end in .h5, and is the graph file to write; name it {output.stem}.h5")
        keep_inputs(output, [graph, *([chosen["vertices"]] if chosen["vertices"] else [])])
        check_target(output, force=taking["force"])
    elif not dry_run:
        raise InputError("no output is given: name the graph file to write, or count only, with --dry-run")
    from penstock.engine.queries.selection import Conditions, bounds_of
    from penstock.engine.subgraph import chosen_vertices
    from penstock.storage.convert.subgraph.extract import ExtractOptions, count_extracted, extract_to_file
    from penstock.storage.format.graph import Graph

    began = time.perf_counter()
    bounds = {name: bounds_of(chosen[name], f"--{name}") for name in ("degrees", "weights")}
    conditions = Conditions(**chosen | bounds | {"around": chosen["around"] or None})
    opened = Graph.open(graph, stripes=stripes)
    taking["host_memory"] = taking["host_memory"] or default_host_memory()
    with progress(console) as update, compiling_shown(update):
        update("choosing vertices", 0, None, "vertices")
        limits = {name: taking[name] for name in ("host_memory", "threads")}
        found = chosen_vertices(opened, conditions, device=device, **limits)
        options = ExtractOptions(
            where=conditions.on_edges(opened),
            conditions=conditions.given,
            watch=update.convert,
            **taking,
        )
        if dry_run or output is None:
            report, made = count_extracted(opened, found, options), None
        else:
            report, made = extract_to_file(opened, found, output, options), Graph.open(output)
    facts = {
        "command": "extract",
        "graph": graph,
        "output": None if made is None else output,
        "conditions": conditions.given,
        "vertices": report.vertices,
        "of_vertices": opened.vertices,
        "edges": report.edges,
        "input_edges": report.input_edges,
        "of_edges": opened.input_edges,
        "directed": opened.directed,
        "without_edges": None if made is None else made.without_edges,
        "output_bytes": report.output_bytes,
        "seconds": time.perf_counter() - began,
        "peak_memory_bytes": peak_resident_bytes(),
    }
    console.answer(facts, _lines(facts))


def _lines(facts: dict[str, Any]) -> list[str]:
    """The same for people."""
    kind = "directed" if facts["directed"] else "undirected"
    rows = [
        ("vertices", f"{facts['vertices']:,} of {facts['of_vertices']:,}"),
        ("no edge", edgeless(facts["without_edges"])),
        ("edges", f"{facts['input_edges']:,} of {facts['of_edges']:,} ({kind})"),
        ("size", size_of(facts["output_bytes"], facts["edges"]) if facts["output"] else None),
        ("time", seconds(facts["seconds"])),
        ("peak memory", format_bytes(facts["peak_memory_bytes"])),
    ]
    return [str(facts["output"] or "nothing is written"), *pairs(rows, indent="  ")]
