"""`penstock plan`: what sweeps over a graph that need not exist would take of so many ranks."""

from __future__ import annotations

import math
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError
from penstock.tools.base.find_program import completed, find_program, make_program
from penstock.tools.base.options import FILE, console_options
from penstock.tools.base.output import Console, seconds, table
from penstock.tools.run.run_options import rank_counts

if TYPE_CHECKING:
    from penstock.engine.planning.cluster_forecast import Machine, RankPlan

HEADS = ("ranks", "hosts", "memory a rank", "edges from", "a sweep", "limit", "exchange", "price")


@click.command(name="plan", short_help="Predict memory, time and price of a run on many ranks.")
@click.option("--vertices", type=click.FloatRange(1), help="Vertices of the graph, as in 3.5e9.")
@click.option("--edges", type=click.FloatRange(1), help="Edges that a sweep walks, as in 128e9.")
@click.option("--program", default="pagerank", show_default=True, shell_complete=completed, help="Program to predict.")
@click.option(
    "--machine", "place", type=FILE, help="TOML file of what hosts and ranks have; --write-example prints one."
)
@click.option(
    "--ranks", default="1,2,4,8", show_default=True, metavar="N,N...", help="Numbers of ranks to predict for."
)
@click.option("--sweeps", type=click.IntRange(1), default=20, show_default=True, help="Sweeps of a run, for its price.")
@click.option("--bytes-per-edge", type=click.FloatRange(0, min_open=True), default=2.3, show_default=True,
              help="Bytes of an edge as it is stored and sent, packed.")  # fmt: skip
@click.option("--windows", type=click.IntRange(0), default=0, show_default=True,
              help="Windows of the graph file (convert --windows), for ranks without room for values.")  # fmt: skip
@click.option("--write-example", is_flag=True, help="Print a machine file, and do nothing else.")
@console_options
def command(
    vertices: float | None,
    edges: float | None,
    program: str,
    place: Path | None,
    ranks: str,
    sweeps: int,
    bytes_per_edge: float,
    windows: int,
    write_example: bool,
    console: Console,
) -> None:
    """Predict memory, seconds a sweep, what limits it, and the price of a run, for a graph that need not exist.

    For programs that walk every edge in every iteration. Every rank has all of the vertex state and an equal share of
    the edges, on its device, in host memory or on disk, as far as there is room. Ranks of cores without memory for the
    state keep the values of their vertices in a file each, as a run does.

    \b
    Examples:
      penstock plan --write-example > machine.toml
      penstock plan --vertices 3.5e9 --edges 128e9 --program pagerank --machine machine.toml --ranks 16,64,256
    """
    from penstock.engine.planning.cluster_forecast import EXAMPLE, SweepWork, paper_graph, plan_ranks, plan_run

    if write_example:
        console.answer({"command": "plan", "example": EXAMPLE}, EXAMPLE.splitlines())
        return
    vertices, edges = _number("--vertices", vertices), _number("--edges", edges)
    machine, counts = _machine(place), rank_counts(ranks)
    made = make_program(program, find_program(program), {})
    work = SweepWork.of(made, int(vertices), edges, bytes_per_edge)
    plans = [plan_ranks(work, machine, count) for count in counts]
    for at, one in enumerate(plans):
        if one.lacking is not None and not machine.device_memory:
            graph = paper_graph(int(vertices), int(edges), bytes_per_edge, windows)
            plans[at] = plan_run(made, graph, machine, one.ranks)
    refused = [f"{one.ranks} ranks do not fit: {one.lacking}" for one in plans if one.lacking is not None]
    lines = [f"{program} on {vertices:,.0f} vertices and {edges:,.0f} edges; prices of {sweeps:,} sweeps"]
    rows = [_row(one, sweeps) for one in plans if one.lacking is None]
    lines += [*(table(HEADS, rows) if rows else []), *refused, *(_windows(one) for one in plans if one.windows)]
    facts = {
        "command": "plan",
        "program": program,
        "vertices": int(vertices),
        "edges": edges,
        "bytes_per_edge": bytes_per_edge,
        "sweeps": sweeps,
        "machine": asdict(machine),
        "ranks": [_facts(one, sweeps) for one in plans],
    }
    console.answer(facts, lines)


def _number(option: str, value: float | None) -> float:
    """A number that was given. Raises InputError."""
    if value is None or not math.isfinite(value):
        raise InputError(f"{option} is {'missing' if value is None else value}: give a number, as in {option} 3.5e9")
    return value


def _machine(place: Path | None) -> Machine:
    """The machine of a file. Raises InputError."""
    from penstock.engine.planning.cluster_forecast import Machine
    from penstock.storage.ingest.bytes.file import open_text

    if place is None:
        raise InputError("--machine is missing: `penstock plan --write-example > machine.toml` writes one to change")
    with open_text(place, "--write-example prints such a file") as file:
        text = file.read()
    try:
        content = tomllib.loads(text)
    except ValueError as error:
        raise InputError(f"{place} is no TOML: {error}; --write-example prints such a file") from error
    return Machine.of(content, place)


def _facts(one: RankPlan, sweeps: int) -> dict[str, object]:
    """For machines; nothing is predicted of what does not fit."""
    if one.lacking is not None:
        return {"ranks": one.ranks, "hosts": one.hosts, "memory": one.memory, "fits": False, "lacking": one.lacking}
    price = None if one.price is None else one.price * sweeps
    derived = {"seconds": one.seconds, "limited_by": one.limit, "exchange_share": one.exchange / one.seconds}
    return asdict(one) | derived | {"fits": True, "price": price}


def _windows(one: RankPlan) -> str:
    again = f"edges are read {one.edge_reads:,} times; " if one.edge_reads > 1 else ""
    moved = f"{format_bytes(one.value_bytes)} of them are read and written in {seconds(one.value_seconds)} of a sweep"
    ranks, files = ("1 rank", "a file") if one.ranks == 1 else (f"{one.ranks:,} ranks", "a file of each")
    return f"{ranks}: {one.windows:,} windows of vertices, whose values are in {files}: {again}{moved}"


def _row(one: RankPlan, sweeps: int) -> tuple[object, ...]:
    whole = sum(one.places.values())
    places = ", ".join(f"{name} {part / whole:.0%}" for name, part in one.places.items() if part)
    return (
        f"{one.ranks:,}",
        f"{one.hosts:,}",
        format_bytes(int(one.memory)),
        places,
        seconds(one.seconds),
        one.limit,
        f"{one.exchange / one.seconds:.1%}",
        "unknown" if one.price is None else f"{one.price * sweeps:,.2f}",
    )
