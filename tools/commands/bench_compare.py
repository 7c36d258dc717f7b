"""`penstock bench compare`: Penstock beside networkit, igraph, scipy and networkx, in one run."""

from __future__ import annotations

import time
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.atomic import scratch_folder
from penstock.storage.base.budget import cores
from penstock.storage.base.errors import InputError
from penstock.tools.base.options import ANY, FOLDER, THREADS, lasting_console_options, option, option_group
from penstock.tools.base.output import Console
from penstock.tools.base.progress import progress

if TYPE_CHECKING:
    from penstock.tools.bench.compare import Comparison, Update
    from penstock.tools.bench.system import System

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


generated = option_group(
    "generated",
    dict,
    option("--scale", type=int, default=20, help="R-MAT with 2^SCALE vertices, if no graph is named."),
    option("--edge-factor", type=int, default=16, help="Its edges per vertex."),
    option("--folder", type=FOLDER, help="Where the temporary folder for its text is made."),
)
work = option_group(
    "work",
    dict,
    option("--program", "programs", multiple=True, help="Only this program (repeatable); with GRAPH.h5."),
    option("--system", "systems", multiple=True, help="Only this peer (repeatable); by default all installed."),
    option("--repeat", type=click.IntRange(1), default=3, help="Timed runs of each task; the median is shown."),
    option("--patience", type=float, default=10.0, help="Seconds beyond which a first run is not repeated."),
    THREADS,
    option(
        "--clock", type=click.Choice(CLOCKS), default="wall", help="cpu: seconds of all threads, on a busy machine."
    ),
)


@click.command(name="compare")
@click.argument("graph", type=ANY, metavar="[GRAPH.h5]", required=False)
@work
@generated
@lasting_console_options
def command(graph: Path | None, work: dict[str, Any], generated: dict[str, Any], console: Console) -> None:
    """Compare with networkit, igraph, scipy and networkx, whichever is installed, in memory.

    On a graph file: every program of the catalogue but cf, on the graph without parallel edges and self-loops, weights
    being made up where it has none; networkx takes part. Without: five tasks on a generated graph, from the text on;
    Penstock is ready when its graph file is written and opened.

    All must give the same answers, or are shown as wrong. Each task runs once untimed, then --repeat times. A dash: the
    system does not have it, or answers another question.

    \b
    Examples:
      penstock bench compare
      penstock bench compare --scale 22 --repeat 5 --system networkit --system scipy --json
      penstock bench compare web.h5
      penstock bench compare roads.h5 --program hits --program scc --patience 2
      penstock bench compare web.h5 --system igraph --threads 1 --clock cpu
    """
    with progress(console) as update:
        steps = count(1)

        def step(doing: str) -> None:
            update(doing, next(steps), None, "steps")

        facts, lines = _from_text(generated, work, step) if graph is None else _programs(graph, work, step)
    told = {"command": "bench compare", "cores": cores(), "repeat": work["repeat"]}
    console.answer(told | facts, lines)


Found = tuple[dict[str, object], list[str]]


def _from_text(generated: dict[str, Any], work: dict[str, Any], update: Update) -> Found:
    """FROM_TEXT on an R-MAT graph, whose text is written to a folder."""
    from penstock.storage.ingest.synthetic import rmat
    from penstock.tools.bench.compare import READY, Penstock, Timing, compare_from_text
    from penstock.tools.bench.queries import FROM_TEXT

    if work["programs"] or work["threads"] or work["clock"] != "wall":
        raise InputError(
            "--program, --threads and --clock are for a graph file; name one (penstock bench compare GRAPH.h5 ...)"
        )
    systems = [Penstock(), *_among(work["systems"], (peer for peer in _peers() if hasattr(peer, "read")))]
    with scratch_folder(generated["folder"]) as scratch:
        update("making the graph")
        source = rmat(generated["scale"], generated["edge_factor"], weights=(1, 63))
        found = compare_from_text(source, scratch, systems, Timing(work["repeat"]), update)
    size = f"{found.edges.vertices:,} vertices, {len(found.edges.sources):,} edges, {cores()} cores"
    title = f"R-MAT scale {generated['scale']}: {size}"
    return _facts(found), [title, *found.lines([system.name for system in systems], [READY, *FROM_TEXT])]


def _programs(path: Path, work: dict[str, Any], update: Update) -> Found:
    """The programs on a graph file."""
    from penstock.storage.format.graph import Graph
    from penstock.tools.bench.compare import Penstock, Timing, compare_on
    from penstock.tools.bench.queries import QUERIES
    from penstock.tools.bench.system import SimpleEdges

    programs, threads, clock = work["programs"], work["threads"], work["clock"]
    unknown = set(programs) - QUERIES.keys()
    if unknown:
        raise InputError(f"--program {min(unknown)!r} is not compared; there are {', '.join(QUERIES)}")
    systems = [Penstock(threads=threads), *_among(work["systems"], _peers(threads))]
    names = [name for name in QUERIES if not programs or name in programs]
    update("reading the graph")
    edges = SimpleEdges.of(Graph.open(path))
    found = compare_on(edges, systems, names, Timing(work["repeat"], work["patience"], CLOCKS[clock]), update)
    kind = "directed" if edges.directed else "undirected"
    size = f"{edges.vertices:,} vertices, {len(edges.sources):,} {kind} edges"
    title = f"{path.name}: {size}, {cores()} cores, {clock} seconds"
    facts = {"graph": path, "directed": edges.directed, "clock": clock, "threads": threads}
    return facts | _facts(found), [title, *found.lines([system.name for system in systems], names)]


def _among(wanted: tuple[str, ...], known: Iterable[System]) -> list[Any]:
    """The installed peers that take part. Raises InputError for one that is asked for and is not installed."""
    there = {system.name: system for system in known if find_spec(system.name) is not None}
    for name in wanted:
        if name not in there:
            raise InputError(f"--system {name} cannot be compared with here; there are {', '.join(there) or 'none'}")
    return [system for name, system in there.items() if not wanted or name in wanted]


def _peers(threads: int | None = None) -> list[System]:
    from penstock.tools.bench.peers import Igraph, Networkit, Networkx, Scipy

    return [Scipy(), Networkit(threads), Igraph(), Networkx()]


def _facts(found: Comparison) -> dict[str, object]:
    return {
        "vertices": found.edges.vertices,
        "edges": len(found.edges.sources),
        "seconds": found.seconds,
        "wrong": sorted(map(list, found.wrong)),
        "failed": {f"{system}: {name}": why for (name, system), why in found.failed.items()},
    }
