"""The options that say how a program runs, in groups."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
from penstock.storage.base.errors import InputError
from penstock.tools.base.find_program import parse_setting
from penstock.tools.base.options import (
    FILE,
    FOLDER,
    OUTPUT,
    RUN_OPTIONS,
    STRIPES,
    VERTEX,
    option,
    option_group,
)


def given_parameters(settings: tuple[str, ...] | dict[str, Any] = (), **named: Any) -> dict[str, Any]:
    """Parameters of a program that were given, by name; a file of weights or values by its path.

    settings: NAME=VALUE texts, or values by name; named: values of the options of these names.
    """
    given = {name: value for name, value in named.items() if value is not None}
    for name in ("source", "target"):
        vertices = given.pop(name, ())
        if vertices:
            given[name] = vertices[0] if len(vertices) == 1 else list(vertices)
    return given | (settings if isinstance(settings, dict) else dict(parse_setting(text) for text in settings))


parameters = option_group(
    "parameters",
    given_parameters,
    option("--source", type=VERTEX, multiple=True, help="Id of the first vertex; repeatable for most programs."),
    option(
        "--target",
        type=VERTEX,
        multiple=True,
        help="bfs, sssp, widest: end when the way to this vertex is known, and show the path; repeatable.",
    ),
    option(
        "--cutoff",
        type=float,
        help="bfs, sssp, distances: the largest distance of the answer; widest: the smallest width.",
    ),
    option("--delta", type=float, help="sssp: width of a bucket of distances."),
    option("--damping", type=float, help="pagerank and its like: share that follows edges (0.85)."),
    option("--alpha", type=float, help="katz: what a step counts (0.1); elsewhere another name of --damping."),
    option(
        "--tol",
        type=float,
        help="Stop at this L1 change (pagerank: 1e-6); heat, neural: largest; circuit: residual; louvain, leiden: gain "
        "of modularity. 0: never.",
    ),
    option("--max-iter", type=click.IntRange(0), help="Most iterations (pagerank: 100, cdlp: 10)."),
    option(
        "--k",
        type=click.IntRange(0),
        help="kcore: of which core; trussness: the only one that is wanted; betweenness, closeness, harmonic: sampled "
        "sources; diameter: most searches.",
    ),
    option("--resolution", type=float, help="louvain, leiden: above 1 for smaller communities (1)."),
    option("--seed", type=click.IntRange(0), help="louvain, leiden: another order of moves (0); fastrp: its hashes."),
    option(
        "--weight/--no-weight",
        default=None,
        help="Whether edges count by their weights. By default they do where the graph has weights; else 1 each.",
    ),
    option(
        "--parents/--no-parents",
        default=None,
        help="Whether the answer has the vertex before on a path: of bfs by default, of sssp and widest with --target.",
    ),
    option("--personalization", type=FILE, help="pagerank: ids, and weights, to restart from, in lines."),
    option("--initial", type=FILE, help="heat: ids, and first temperatures, in lines."),
    option("--fixed", type=FILE, help="heat, circuit: ids, and temperatures or potentials that are held, in lines."),
    option("--inputs", type=FILE, help="neural: ids, and activations that are held, in lines."),
    option("--time-step", type=float, help="heat: time of an iteration (half of the stable bound)."),
    option(
        "--from",
        "earlier",
        metavar="ANSWER.h5",
        help="sssp, wcc, pagerank, louvain: begin from an answer of a run before the graph was changed.",
    ),
    option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other parameter."),
    title="Parameters of the program",
)


ALL, AUTO = "all", "auto"
"""Instead of names: all GPUs of this host; these, and its cores where they make it faster."""
_DEVICE = re.compile(r"cpu|emulated|cuda(:\d+)?")


def names_of(text: str) -> tuple[str, ...]:
    """The devices that `--devices` names, or ALL or AUTO alone. Raises InputError for anything else."""
    names = tuple(part.strip() for part in text.split(","))
    for name in names:
        if name in (ALL, AUTO):
            if len(names) > 1:
                raise InputError(f"--devices {text}: {name} stands alone")
        elif _DEVICE.fullmatch(name) is None:
            raise InputError(
                f"--devices {text}: {name!r} is no device; name one for each rank, as in cuda:0,cuda:1 or cuda:0,cpu "
                "or cpu,cpu, or say all (every GPU here) or auto"
            )
    return tuple("cuda:0" if name == "cuda" else name for name in names)


@dataclass(frozen=True)
class Execution:
    """What of the graph is run on, which rates to use, and the options of the engine that were given, by name.

    stripes: where its shards are. where: a condition on its edges; weight_column: what beside them is their weight.
    rates: a file of them; None for those of this machine, which is measured first if need be and if `measure`. devices:
    of each rank of this host, or what stands for them; none: it is one process, or ranks find their devices themselves.
    """

    stripes: tuple[Path, ...] = ()
    where: str | None = None
    weight_column: str | None = None
    rates: Path | None = None
    measure: bool = True
    options: dict[str, Any] = field(default_factory=dict)
    devices: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        stripes: tuple[Path, ...],
        where: str | None,
        weight_column: str | None,
        rates: Path | None,
        no_calibrate: bool,
        devices: str | None,
        **given: Any,
    ) -> Execution:
        """Of the options' values; `no_repartition` refuses `repartition`. Raises InputError for no device."""
        refused = {name.removeprefix("no_"): False for name, value in given.items() if name[:3] == "no_" and value}
        options = {name: value for name, value in given.items() if value is not None and name[:3] != "no_"} | refused
        named = () if devices is None else names_of(devices)
        if named and options.get("device", "auto") not in ("auto", named[0]):
            raise InputError(f"--device {options['device']} and --devices {devices}: give one of them")
        if named and named[0] not in (ALL, AUTO):
            options["device"], named = named[0], named if len(named) > 1 else ()
        return cls(stripes, where, weight_column, rates, not no_calibrate, options, named)

    def forecast_options(self, ranks: int) -> dict[str, Any]:
        """The options of the engine for a forecast of so many ranks: shares are of another number of them, or count."""
        shares = self.options.get("shares")
        kept = shares is None or (ranks > 1 and len(shares.split(",")) == ranks)
        return {name: value for name, value in self.options.items() if kept or name != "shares"}

    def on(self, devices: tuple[str, ...]) -> Execution:
        """The same with these devices instead of `all` or `auto`: one for each rank, or the one of this process."""
        return replace(self, options=self.options | {"device": devices[0]}, devices=devices if len(devices) > 1 else ())


execution = option_group(
    "execution",
    Execution.of,
    option(
        "--where",
        metavar="CONDITION",
        help="Run on the edges of which this holds: \"amount >= 100 and kind = 'wire' and day < 2026-01-01\", of "
        "columns that convert --edge-properties kept. Those that stay are written to --scratch first.",
    ),
    option(
        "--weight-column",
        metavar="NAME",
        help="The column of --edge-properties that is the weight; --weight NAME is the same.",
    ),
    *RUN_OPTIONS,
    option(
        "--devices",
        metavar="DEVICE,DEVICE...",
        help="Start a rank for each on this host (cuda:0,cuda:1 or cuda:0,cpu or cpu,cpu): they share the edges, "
        "memory and threads. all: every GPU here; auto: these, and the cores where they make it faster.",
    ),
    option("--rates", type=FILE, help="This machine's rates; by default those that penstock calibrate stored."),
    option("--no-calibrate", is_flag=True, help="Never measure the machine first, also where no rates are stored."),
    STRIPES,
    title="Execution",
)


MOST_RANKS = 1 << 16
"""More than any machine has."""


watching = option_group(
    "watching",
    dict,
    option(
        "--metrics", type=OUTPUT, help="Write a JSON line for every iteration, as it goes; penstock report reads it."
    ),
    option("--trace", type=OUTPUT, help="Write what ran when, for ui.perfetto.dev or chrome://tracing."),
    title="Metrics and trace",
)


def rank_counts(text: str) -> tuple[int, ...]:
    """Numbers of ranks, `1,2,4`. Raises InputError for anything else."""
    counts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and 0 < int(part) <= MOST_RANKS for part in counts):
        raise InputError(f"--ranks {text}: give numbers from 1 to {MOST_RANKS:,} with commas between, as in 1,2,4")
    return tuple(int(part) for part in counts)


def _kept(dry_run: bool, ranks: str | None, **given: Any) -> dict[str, Any]:
    """Of the options' values. Raises InputError for numbers of ranks without a dry run, or that are none."""
    if ranks is not None and not dry_run:
        raise InputError(
            f"--ranks {ranks} is of a forecast: add --dry-run, or name a device for each rank that is to run, as "
            "in --devices cpu,cpu"
        )
    return {**given, "dry_run": dry_run, "ranks": () if ranks is None else rank_counts(ranks)}


keeping = option_group(
    "keeping",
    _kept,
    option("--run-dir", type=FOLDER, help="Keep answer, metrics, log and all that repeats the run in this folder."),
    option("--force", is_flag=True, help="Replace existing outputs."),
    option(
        "--dry-run",
        is_flag=True,
        help="Say what the run would take of memory and time, and read no edges (but those that --where selects).",
    ),
    option("--ranks", metavar="N,N...", help="With --dry-run: say it for so many CPU ranks on this host, too."),
    title="Run directory and forecast",
)
