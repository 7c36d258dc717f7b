"""`penstock bench routes`: every way to bring the edges, in one table for each program.

What could not be run, drawn or written is refused before the measurement.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.atomic import check_target, keep_inputs, scratch_folder, write_text
from penstock.storage.base.budget import parse_bytes
from penstock.storage.base.errors import InputError, RunError, installing
from penstock.tools.base.options import (
    ANY,
    DEVICE_MEMORY,
    FILE,
    FOLDER,
    FORCE,
    OUTPUT,
    PARTITION_BYTES,
    SIZE,
    THREADS,
    ParsedType,
    engine_option,
    lasting_console_options,
    option,
    option_group,
)
from penstock.tools.base.output import Console, plain
from penstock.tools.base.progress import progress

if TYPE_CHECKING:
    from penstock.engine.resources.config import Config
    from penstock.storage.format.graph import Graph
    from penstock.tools.bench.routes.trials import Outcome
    from penstock.tools.run.rates import UsedRates
    from penstock.transfer.values.rates import Rates


CASES = ("bfs", "sssp", "pagerank", "wcc", "residual", "levels", "labels", "reachability", "widest")


Portion = Callable[[int], int]
"""How many bytes are meant, of a whole of so many."""


def read_portion(text: str) -> Portion:
    """Read a number of bytes, 1GiB, or a share, 25%. Raises InputError."""
    if not text.endswith("%"):
        size = parse_bytes(text)
        return lambda whole: size
    try:
        share = float(text[:-1]) / 100
    except ValueError:
        raise InputError(f"{text!r} is no share; write for instance 25%") from None
    if not 0 < share < float("inf"):
        raise InputError(f"{text!r} must be above 0 %")
    return lambda whole: int(share * whole)


generating = option_group(
    "generated",
    dict,
    option("--scale", type=click.IntRange(0, 40), help="Generate a graph of 2^SCALE vertices, weights 1..63."),
    option("--kind", type=click.Choice(["rmat", "web", "grid"]), default="rmat", help="What --scale generates."),
    option("--edge-factor", type=click.IntRange(1), default=16, help="Edges per vertex of it (a grid has two)."),
    option("--folder", type=FOLDER, help="Where the generated graph's file lies meanwhile."),
)


place = option_group(
    "place",
    dict,
    engine_option(
        "device",
        help="cpu, cuda:N, auto (the first GPU if there is one), or emulated: the CPU behind a link, for trying out.",
    ),
    engine_option(
        "device_edge_memory",
        type=ParsedType("size or %", read_portion),
        default="25%",
        help="Most edges on the device, staged ones included; % of the edges that the program reads.",
    ),
    DEVICE_MEMORY,
    option(
        "--link-rate",
        type=SIZE,
        help="Bytes per second over the link of --device emulated, e.g. 200MB; lines read in place travel whole.",
    ),
    engine_option("host_memory", help="Leave the edges on disk, and take at most so much host memory: 4GiB."),
    engine_option("direct_io", default=None),
    PARTITION_BYTES,
    THREADS,
    option("--rates", type=FILE, help="Use these rates, of `penstock calibrate`, not those stored for this machine."),
    option("--no-calibrate", is_flag=True, help="Where none are stored, do not measure any: use built-in ones."),
)


work = option_group(
    "work",
    dict,
    option(
        "--program",
        "programs",
        type=click.Choice(CASES),
        multiple=True,
        help=(
            "Repeatable; bfs, sssp, pagerank and wcc by default. residual: PageRank by residual push, tolerance 0.01. "
            "levels, labels: BFS and components by asynchronous pushes, as the papers have them."
        ),
    ),
    option(
        "--source",
        "sources",
        type=click.IntRange(0),
        multiple=True,
        help="First vertex of what has one (bfs, sssp ...); means over several. By default one with edges.",
    ),
    option(
        "--row",
        "only",
        multiple=True,
        metavar="TEXT",
        help="Only rows with this in their name, e.g. cel, or of just this name: =auto; repeatable.",
    ),
    option("--sweeps", type=click.IntRange(1), default=10, help="pagerank: sweeps over all edges."),
    option("--repeat", type=click.IntRange(1), default=5, help="Timed runs of each row; medians are shown."),
    option("--visits", type=click.IntRange(1), default=2, help="Sessions over which they are spread, there and back."),
    option(
        "--patience",
        type=click.FloatRange(0, min_open=True),
        default=60,
        help="Seconds after which a run is given up, and a session's runs are not repeated any more.",
    ),
    option(
        "--ablation",
        is_flag=True,
        help="Also HyTGraph's own steps (hybrid, + combination, + priority), and ours beyond them.",
    ),
)


writing = option_group(
    "files",
    dict,
    option("--plot", type=OUTPUT, metavar="FILE.png", help=f"Draw it: .png, .svg or .pdf ({installing('plot')})."),
    option("-o", "--output", type=OUTPUT, metavar="FILE.json", help="Write to a file what --json says."),
    FORCE,
)


@click.command(name="routes")
@click.argument("graph", type=ANY, metavar="[GRAPH.h5]", required=False)
@generating
@work
@place
@writing
@lasting_console_options
def command(
    graph: Path | None,
    generated: dict[str, Any],
    work: dict[str, Any],
    place: dict[str, Any],
    files: dict[str, Any],
    console: Console,
) -> None:
    """Compare every route to the device, and auto without each of its parts.

    One table for each program: each single route, auto with both cost models, auto without task combination,
    priority, residency, packed edges or local rounds. All answers must agree. Moved/edges: bytes over the link over
    those of all edges, plain. Of link: the rate over the link, of the measured one. Passes: bytes of partitions that
    were copied whole; followed: edges that cel sent from them again, of all that were walked.

    \b
    Examples:
      penstock bench routes web.h5 --device-edge-memory 25% --plot routes.png
      penstock bench routes --scale 25 --device-edge-memory 3% --program bfs --program sssp --json
      penstock bench routes --scale 24 --kind web --host-memory 2GiB
      penstock bench routes --scale 18 --device emulated --link-rate 200MB --ablation --row HyTGraph --row +
      penstock bench routes web.h5 --program levels --program reachability --device emulated --link-rate 200MB
    """
    from penstock.tools.bench.routes.report import draw_routes, facts, lines
    from penstock.tools.bench.system import in_memory
    from penstock.tools.run.rates import rates_for

    link_rate, edge_memory = place.pop("link_rate"), place.pop("device_edge_memory")
    rates, measure = place.pop("rates"), not place.pop("no_calibrate")
    if link_rate is not None and place["device"] != "emulated":
        raise click.UsageError(f"--link-rate slows --device emulated, and the device is {place['device']}")
    options = {name: value for name, value in place.items() if value is not None}
    options["tuning"] = {} if link_rate is None else {"link_rate": link_rate}
    _check_files(files, graph)
    with ExitStack() as stack:
        name, opened = _opened(graph, generated, stack, console)
        if "host_memory" not in options:  # a ceiling on it leaves the edges on disk
            opened = in_memory(opened)
        here = _here(options, lambda config: rates_for(opened, config, console.note, rates, measure=measure))
        with progress(console) as update:
            steps = count(1)
            outcomes = _outcomes(
                work, options, edge_memory, here, opened, lambda doing: update(doing, next(steps), None, "steps")
            )
    title = f"{name}: {opened.vertices:,} vertices, {opened.edges:,} stored edges, {here.name}"
    told = {
        "command": "bench routes",
        "graph": name,
        "vertices": opened.vertices,
        "edges": opened.edges,
        "device": here.name,
        "kind": here.kind,
        "rates": here.source,
        "on_disk": opened.out.arrays is None,
        "link_bytes_per_second": here.link_rate,
        "repeat": work["repeat"],
        "programs": [facts(outcome) for outcome in outcomes],
        "plot": files["plot"],
    }
    stuck = [reason for outcome in outcomes if (reason := outcome.stuck) is not None]
    if len(stuck) == len(outcomes):
        raise InputError("; ".join(stuck))
    console.answer(told, [title, *(line for outcome in outcomes for line in ("", *lines(outcome)))])
    if files["output"] is not None:
        write_text(files["output"], json.dumps(plain(told), allow_nan=False) + "\n", force=files["force"])
    if files["plot"] is not None:
        draw_routes(outcomes, title, files["plot"], force=files["force"])
    failed = [(outcome.case.name, row) for outcome in outcomes for row in outcome.rows if row.failed]
    if failed:
        raise RunError("; ".join(f"{case}, {row.name.strip()}: {row.problem}" for case, row in failed))
    if stuck:
        raise InputError("; ".join(stuck))


def _check_files(files: dict[str, Any], graph: Path | None) -> None:
    """Refuse, before anything is measured, what could not be drawn or written; graph: the file that is read."""
    output, plot, force = files["output"], files["plot"], files["force"]
    for path in (output, plot):
        if graph is not None and path is not None:
            keep_inputs(path, [graph])
    if output is not None:
        check_target(output, force=force)
    if plot is not None:
        from penstock.tools.base.plots import check

        check(plot, force=force)


def _opened(path: Path | None, generated: dict[str, Any], stack: ExitStack, console: Console) -> tuple[str, Graph]:
    """The name of the graph, and the graph on disk. Raises click.UsageError where none or two are named."""
    from penstock.storage.format.graph import Graph
    from penstock.tools.bench.system import generate

    if path is not None and generated["scale"] is None:
        return str(path), Graph.open(path)
    if path is None and generated["scale"] is not None:
        folder = stack.enter_context(scratch_folder(generated.pop("folder")))
        return generate(folder, console, **generated)
    raise click.UsageError("name one graph: a file GRAPH.h5, or --scale to generate one")


@dataclass(frozen=True)
class Here:
    """The device, its rates (None: nothing is slowed), and where these come from."""

    name: str
    kind: str
    rates: Rates | None
    source: str

    @property
    def link_rate(self) -> float | None:
        """Bytes per second of a copy over the link; None without a link, or where it takes no time."""
        return None if self.kind == "host" or self.rates is None else self.rates.copy_bytes


def _here(options: dict[str, Any], rates_for: Callable[[Config], UsedRates]) -> Here:
    """The device that the options name. Raises InputError where it is not here."""
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.device_resources import device_of

    config = Config.of(**options)
    device, threads = device_of(config), config.thread_count
    name, kind = f"CPU, {threads} threads" if device.reads_host else device.name, device.kind
    builtin = device.rates(threads) if device.measurable else None
    device.close()
    if kind == "emulated":
        return Here(name, kind, builtin, "told")
    used = rates_for(config)
    return Here(name, kind, used.rates or builtin, used.facts()["source"])


def _outcomes(
    work: dict[str, Any],
    options: dict[str, Any],
    edge_memory: Portion,
    here: Here,
    graph: Graph,
    update: Callable[[str], None],
) -> list[Outcome]:
    """Measure every program; edge_memory: of its edges that may be on the device."""
    from penstock.tools.bench.routes.matrix import PROGRAMS, case_of, chosen, configurations, pick_source
    from penstock.tools.bench.routes.trials import Outcome, TrialPlan, measure

    effort = TrialPlan(work["repeat"], min(work["visits"], work["repeat"]), work["patience"])
    sources = work["sources"] or (pick_source(graph),)
    outcomes = []
    for name in work["programs"] or PROGRAMS:
        case = case_of(name, sources, work["sweeps"])
        edge_bytes = case.edge_bytes(graph)
        budget = None if here.kind == "host" else edge_memory(edge_bytes)
        given = options | {"device_edge_memory": budget, "rates": here.rates}
        compared = chosen(configurations(here.kind, case, ablation=work["ablation"]), work["only"])
        rows, reached = measure(case, graph, compared, given, effort, update)
        outcomes.append(Outcome(case, rows, edge_bytes, budget, here.link_rate, reached))
    return outcomes
