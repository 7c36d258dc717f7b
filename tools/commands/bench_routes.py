"""`penstock bench routes`: every way to bring the edges, in one table for each program."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click
from penstock.storage.base.budget import cores
from penstock.storage.base.errors import InputError, RunError
from penstock.tools.base.options import ANY, lasting_console_options
from penstock.tools.base.output import Console
from penstock.tools.base.progress import progress
from penstock.tools.bench.routes.options import (
    GeneratedGraph,
    RouteDevice,
    RouteFiles,
    RouteTrials,
    material,
    place,
    work,
    writing,
)

if TYPE_CHECKING:
    from penstock.storage.format.graph import Graph
    from penstock.tools.bench.routes.trials import Outcome
    from penstock.tools.run.rates import Note
    from penstock.transfer.values.rates import Rates


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

    device = device_of(Config.of(**place.options))
    threads = place.options.get("threads", cores())
    name, kind = f"CPU, {threads} threads" if device.reads_host else device.name, device.kind
    builtin = device.rates(threads) if device.measurable else None
    device.close()
    if kind == "emulated":
        return Here(name, kind, builtin, "told")
    used = rates_for(graph, place.options, note, place.rates, measure=place.measure)
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
