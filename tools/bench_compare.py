"""Owns `penstock bench compare`: Penstock beside networkit, igraph, scipy and networkx, on one machine in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click
from penstock.storage.base.atomic import scratch_folder
from penstock.storage.base.budget import cores
from penstock.storage.base.errors import InputError
from penstock.tools.options import ANY, FOLDER, THREADS, option, speaking, taking
from penstock.tools.output import Speaker
from penstock.tools.progress import progress

if TYPE_CHECKING:
    from penstock.tools.peers import ProgramSystem

Update = Callable[[str], None]
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass(frozen=True)
class Generated:
    """The R-MAT graph that is compared on where no file is named; `folder`: where its text is written."""

    scale: int
    edge_factor: int
    folder: Path | None


@dataclass(frozen=True)
class Work:
    """What is compared, and how often it is run."""

    programs: tuple[str, ...]
    systems: tuple[str, ...]
    repeat: int
    patience: float
    threads: int | None
    clock: str

    def among(self, installed: Iterable[str]) -> list[str]:
        """The peers that take part. Raises InputError for one that is asked for and is not installed."""
        there = list(installed)
        for name in self.systems:
            if name not in there:
                raise InputError(
                    f"--system {name} cannot be compared with here; there are {', '.join(there) or 'none'}"
                )
        return [name for name in there if not self.systems or name in self.systems]


generated = taking(
    "generated",
    Generated,
    option("--scale", type=int, default=20, help="R-MAT with 2^SCALE vertices, if no graph is named."),
    option("--edge-factor", type=int, default=16, help="Its edges per vertex."),
    option("--folder", type=FOLDER, help="Where the temporary folder for its text is made."),
)
work = taking(
    "work",
    Work,
    option("--program", "programs", multiple=True, help="Only this program (repeatable); with GRAPH.h5."),
    option("--system", "systems", multiple=True, help="Only this peer (repeatable); by default all installed."),
    option("--repeat", type=click.IntRange(1), default=3, help="Runs; medians."),
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
@speaking
def command(graph: Path | None, work: Work, generated: Generated, speaker: Speaker) -> None:
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
    with progress(quiet=speaker.silent) as update:
        steps = count(1)

        def step(doing: str) -> None:
            update(doing, next(steps), None, "steps")

        facts, lines = _from_text(generated, work, step) if graph is None else _programs(graph, work, step)
    told = {"command": "bench compare", "cores": cores(), "repeat": work.repeat}
    speaker.answer(told | facts, lines)


Facts = tuple[dict[str, object], list[str]]


def _from_text(generated: Generated, work: Work, update: Update) -> Facts:
    """The tasks on a generated graph."""
    from penstock.storage.base.budget import default_host_memory
    from penstock.storage.ingest.synthetic import rmat
    from penstock.tools import compare as comparison
    from penstock.tools.contender import Penstock
    from penstock.tools.peers import installed

    if work.programs or work.threads or work.clock != "wall":
        raise InputError(
            "--program, --threads and --clock are for a graph file; name one (penstock bench compare GRAPH.h5 ...)"
        )
    peers = {peer.name: peer for peer in installed()}
    asked = [peers[name] for name in work.among(peers)]
    with scratch_folder(generated.folder) as scratch:
        update("making the graph")
        material = comparison.prepare(rmat(generated.scale, generated.edge_factor, weights=(1, 63)), scratch)
        systems = [Penstock(scratch, default_host_memory()), *asked]
        found = comparison.compare(systems, material, work.repeat, update)
    facts = {
        "vertices": material.vertices,
        "edges": material.edges,
        "seconds": found.seconds,
        "wrong": sorted(map(list, found.wrong)),
    }
    title = f"R-MAT scale {generated.scale}: {material.vertices:,} vertices, {material.edges:,} edges, {cores()} cores"
    return facts, [title, *comparison.lines(found, [system.name for system in systems])]


def _programs(path: Path, work: Work, update: Update) -> Facts:
    """The programs on a graph file."""
    from penstock.storage.format.graph import Graph
    from penstock.tools import compare as comparison
    from penstock.tools.catalogue import QUESTIONS, Edges, Penstock
    from penstock.tools.peer_programs import installed

    unknown = set(work.programs) - QUESTIONS.keys()
    if unknown:
        raise InputError(f"--program {min(unknown)!r} is not compared; there are {', '.join(QUESTIONS)}")
    peers = installed(work.threads)
    asked = [peers[name] for name in work.among(peers)]
    update("reading the graph")
    edges = Edges.of(Graph.open(path))
    names = [name for name in QUESTIONS if not work.programs or name in work.programs]
    makers: list[Callable[[], ProgramSystem]] = [partial(Penstock, edges, threads=work.threads)]
    makers += [partial(make, edges) for make in asked]
    found = comparison.Comparison(agree=lambda task, mine, other: QUESTIONS[task].agree(edges, mine, other))
    effort = comparison.Effort(work.repeat, work.patience, CLOCKS[work.clock])
    systems = comparison.compare_programs(found, makers, names, effort, update)
    facts = {
        "graph": path,
        "vertices": edges.vertices,
        "edges": len(edges.sources),
        "directed": edges.directed,
        "clock": work.clock,
        "threads": work.threads,
        "seconds": found.seconds,
        "wrong": sorted(map(list, found.wrong)),
        "failed": {f"{system}: {task}": why for (task, system), why in found.failed.items()},
    }
    kind = "directed" if edges.directed else "undirected"
    title = f"{path.name}: {edges.vertices:,} vertices, {len(edges.sources):,} {kind} edges, {cores()} cores"
    title += f", {work.clock} seconds"
    failed = [f"{system} failed at {task}: {why}" for (task, system), why in found.failed.items()]
    return facts, [title, *comparison.lines(found, systems, names), *failed]
