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
from penstock.storage.base.atomic import check_target, scratch_folder, write_text
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
    keep_inputs,
    lasting_console_options,
    option,
    option_group,
)
from penstock.tools.base.output import Console, plain
from penstock.tools.base.progress import progress

if TYPE_CHECKING:
    from penstock.storage.format.graph import Graph
    from penstock.tools.bench.routes.trials import Outcome, TrialPlan
    from penstock.tools.run.rates import Note
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


@dataclass(frozen=True)
class GeneratedGraph:
    """Which graph is generated, if no file is named."""

    scale: int | None
    kind: str
    edge_factor: int
    folder: Path | None

    def open(self, path: Path | None, stack: ExitStack, console: Console) -> tuple[str, Graph]:
        """Its name, and the graph on disk. Raises click.UsageError where none or two are named."""
        from penstock.storage.format.graph import Graph
        from penstock.tools.bench.system import generated, source_of

        if path is not None and self.scale is None:
            return str(path), Graph.open(path)
        if path is None and self.scale is not None:
            source = source_of(self.kind, self.scale, self.edge_factor)
            return source.name, generated(source, stack.enter_context(scratch_folder(self.folder)), console)
        raise click.UsageError("name one graph: a file GRAPH.h5, or --scale to generate one")


material = option_group(
    "material",
    GeneratedGraph,
    option("--scale", type=click.IntRange(0, 40), help="Generate a graph of 2^SCALE vertices, weights 1..63."),
    option("--kind", type=click.Choice(["rmat", "web", "grid"]), default="rmat", help="What --scale generates."),
    option("--edge-factor", type=click.IntRange(1), default=16, help="Edges per vertex of it (a grid has two)."),
    option("--folder", type=FOLDER, help="Where the generated graph's file lies meanwhile."),
)


@dataclass(frozen=True)
class RouteDevice:
    """Where the runs happen: options of a session, the edges that may be on the device, and what is known of it.

    rates: a file of measured rates, None for those of this machine, measured first if need be and if `measure`.
    """

    options: dict[str, Any]
    edge_memory: Portion
    rates: Path | None
    measure: bool

    @property
    def on_disk(self) -> bool:
        """Whether the edges stay on disk: a ceiling on host memory was given."""
        return "host_memory" in self.options


def _place(
    device_edge_memory: Portion, rates: Path | None, no_calibrate: bool, link_rate: int | None, **given: Any
) -> RouteDevice:
    if link_rate is not None and given["device"] != "emulated":
        raise click.UsageError(f"--link-rate slows --device emulated, and the device is {given['device']}")
    options = {name: value for name, value in given.items() if value is not None}
    options["tuning"] = {} if link_rate is None else {"link_rate": link_rate}
    return RouteDevice(options, device_edge_memory, rates, not no_calibrate)


place = option_group(
    "place",
    _place,
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


@dataclass(frozen=True)
class RouteTrials:
    """What is run on each configuration, and how often; only: texts, of which a row's name has one, none for all."""

    programs: tuple[str, ...]
    only: tuple[str, ...]
    sources: tuple[int, ...]
    sweeps: int
    ablation: bool
    effort: TrialPlan


def _work(repeat: int, visits: int, patience: float, programs: tuple[str, ...], **given: Any) -> RouteTrials:
    from penstock.tools.bench.routes.matrix import PROGRAMS
    from penstock.tools.bench.routes.trials import TrialPlan

    return RouteTrials(programs=programs or PROGRAMS, effort=TrialPlan(repeat, min(visits, repeat), patience), **given)


work = option_group(
    "work",
    _work,
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


@dataclass(frozen=True)
class RouteFiles:
    """The files to write, if any: a picture, and what --json says."""

    plot: Path | None
    output: Path | None
    force: bool

    def check(self, graph: Path | None) -> None:
        """Refuse, before anything is measured, what could not be drawn or written; graph: the file that is read."""
        for path in (self.output, self.plot):
            if graph is not None and path is not None:
                keep_inputs(path, [graph])
        if self.output is not None:
            check_target(self.output, force=self.force)
        if self.plot is not None:
            from penstock.tools.base.plots import check

            check(self.plot, force=self.force)

    def write(self, outcomes: list[Outcome], title: str, facts: dict[str, Any]) -> None:
        """Write and draw the figures of all programs."""
        if self.output is not None:
            write_text(self.output, json.dumps(plain(facts), allow_nan=False) + "\n", force=self.force)
        if self.plot is not None:
            from penstock.tools.bench.routes.report import draw_routes

            draw_routes(outcomes, title, self.plot, force=self.force)


writing = option_group(
    "files",
    RouteFiles,
    option("--plot", type=OUTPUT, metavar="FILE.png", help=f"Draw it: .png, .svg or .pdf ({installing('plot')})."),
    option("-o", "--output", type=OUTPUT, metavar="FILE.json", help="Write to a file what --json says."),
    FORCE,
)


@click.command(name="routes")
@click.argument("graph", type=ANY, metavar="[GRAPH.h5]", required=False)
@material
@work
@place
@writing
@lasting_console_options
def command(
    graph: Path | None,
    material: GeneratedGraph,
    work: RouteTrials,
    place: RouteDevice,
    files: RouteFiles,
    console: Console,
) -> None:
    """Compare every route to the device, and auto without each of its parts.

    One table for each program: each single route, auto with both cost models, auto without task combination,
    priority, residency, packed edges or local rounds. All answers must agree. Moved/edges: bytes over the link over
    those of all edges, plain. Of link: the rate over the link, of the measured one. Passes: bytes of partitions
    that were copied whole, and followed: of rows that cel sent along, over the bytes of all edges.

    \b
    Examples:
      penstock bench routes web.h5 --device-edge-memory 25% --plot routes.png
      penstock bench routes --scale 25 --device-edge-memory 3% --program bfs --program sssp --json
      penstock bench routes --scale 24 --kind web --host-memory 2GiB
      penstock bench routes --scale 18 --device emulated --link-rate 200MB --ablation --row HyTGraph --row +
      penstock bench routes web.h5 --program levels --program reachability --device emulated --link-rate 200MB
    """
    from penstock.tools.bench.routes.report import facts, lines
    from penstock.tools.bench.system import in_memory

    files.check(graph)
    with ExitStack() as stack:
        name, opened = material.open(graph, stack, console)
        if not place.on_disk:
            opened = in_memory(opened)
        here = _here(place, opened, console.note)
        with progress(console) as update:
            steps = count(1)
            outcomes = _outcomes(work, place, here, opened, lambda doing: update(doing, next(steps), None, "steps"))
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
        "repeat": work.effort.repeat,
        "programs": [facts(outcome) for outcome in outcomes],
        "plot": files.plot,
    }
    stuck = [reason for outcome in outcomes if (reason := outcome.stuck) is not None]
    if len(stuck) == len(outcomes):
        raise InputError("; ".join(stuck))
    console.answer(told, [title, *(line for outcome in outcomes for line in ("", *lines(outcome)))])
    files.write(outcomes, title, told)
    _complain(outcomes, stuck)


def _complain(outcomes: list[Outcome], stuck: list[str]) -> None:
    """Raise RunError for rows that went wrong, InputError for programs without a row that could run."""
    failed = [(outcome.case.name, row) for outcome in outcomes for row in outcome.rows if row.failed]
    if failed:
        raise RunError("; ".join(f"{case}, {row.name.strip()}: {row.problem}" for case, row in failed))
    if stuck:
        raise InputError("; ".join(stuck))


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

    def budget(self, place: RouteDevice, edge_bytes: int) -> int | None:
        """Bytes of edges that may be on the device, of so many in all; None without a link."""
        return None if self.kind == "host" else place.edge_memory(edge_bytes)


def _here(place: RouteDevice, graph: Graph, note: Note) -> Here:
    """The device that the options name. Raises InputError where it is not here."""
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.device_resources import device_of
    from penstock.tools.run.rates import rates_for

    config = Config.of(**place.options)
    device, threads = device_of(config), config.thread_count
    name, kind = f"CPU, {threads} threads" if device.reads_host else device.name, device.kind
    builtin = device.rates(threads) if device.measurable else None
    device.close()
    if kind == "emulated":
        return Here(name, kind, builtin, "told")
    used = rates_for(graph, config, note, place.rates, measure=place.measure)
    return Here(name, kind, used.rates or builtin, used.facts()["source"])


def _outcomes(
    work: RouteTrials, place: RouteDevice, here: Here, graph: Graph, update: Callable[[str], None]
) -> list[Outcome]:
    """Measure every program."""
    from penstock.tools.bench.routes.matrix import case_of, chosen, configurations, pick_source
    from penstock.tools.bench.routes.trials import Outcome, measure

    sources = work.sources or (pick_source(graph),)
    outcomes = []
    for name in work.programs:
        case = case_of(name, sources, work.sweeps)
        edge_bytes = case.edge_bytes(graph)
        budget = here.budget(place, edge_bytes)
        options = place.options | {"device_edge_memory": budget, "rates": here.rates}
        every = configurations(here.kind, case, ablation=work.ablation)
        compared = chosen(every, work.only)
        rows, reached = measure(case, graph, compared, options, work.effort, update)
        outcomes.append(Outcome(case, rows, edge_bytes, budget, here.link_rate, reached))
    return outcomes
