"""Owns `penstock run`: a program, a graph, an answer, and what it took."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
from penstock.storage.atomic import check_target, replacing
from penstock.storage.budget import format_bytes, peak_resident_bytes
from penstock.tools.answers import Answer
from penstock.tools.options import (
    ANY,
    FILE,
    SIZE,
    THREADS,
    VERTEX,
    host_memory_option,
    option,
    speaking,
    stripe_option,
    taking,
)
from penstock.tools.output import Speaker, pairs, plain, seconds, table
from penstock.tools.programs import find_program, make_program, parse_setting, read_weights
from penstock.tools.progress import Update, progress
from penstock.tools.rates import Choice, rates_for

if TYPE_CHECKING:
    from penstock.engine.program import Program
    from penstock.engine.result import Result
    from penstock.engine.trace import IterationRecord
    from penstock.storage.graph import Graph

UNBOUNDED = 1 << 60
"""Edges that no bounded run walks."""


def _parameters(settings: tuple[str, ...], **named: Any) -> dict[str, Any]:
    """Parameters of the program that were given, by name."""
    given = {name: value for name, value in named.items() if value is not None}
    sources = given.pop("source", ())
    if sources:
        given["source"] = sources[0] if len(sources) == 1 else list(sources)
    if "personalization" in given:
        given["personalization"] = read_weights(given["personalization"])
    return given | dict(parse_setting(text) for text in settings)


parameters = taking(
    "parameters",
    _parameters,
    option("--source", type=VERTEX, multiple=True, help="Id of the first vertex; repeatable for most programs."),
    option("--delta", type=float, help="sssp: width of a bucket of distances."),
    option("--damping", type=float, help="pagerank and its like: share that follows edges (0.85)."),
    option("--alpha", type=float, help="katz: what a step counts (0.1); elsewhere another name of --damping."),
    option("--tol", type=float, help="Stop at this L1 change (pagerank: 1e-6); 0: never."),
    option("--max-iter", type=click.IntRange(0), help="Most iterations (pagerank: 100, cdlp: 10)."),
    option("--k", type=click.IntRange(0), help="kcore: of which core; betweenness: so many sampled sources."),
    option("--weight", is_flag=True, default=None, help="katz, hits: edges count by their weights."),
    option("--personalization", type=FILE, help="pagerank: ids, and weights, to restart from, in lines."),
    option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other parameter."),
)


@dataclass(frozen=True)
class Execution:
    """Where the graph's shards are, whose rates to use, and the options of the engine that were given, by name."""

    stripes: tuple[Path, ...]
    rates: Choice
    options: dict[str, Any]


def _execution(stripes: tuple[Path, ...], rates: Path | None, no_calibrate: bool, **given: Any) -> Execution:
    choice = Choice(rates, measure=not no_calibrate)
    return Execution(stripes, choice, {name: value for name, value in given.items() if value is not None})


execution = taking(
    "execution",
    _execution,
    host_memory_option(),
    option("--direct-io", is_flag=True, help="Read past the page cache, where possible."),
    option(
        "--direction",
        type=click.Choice(["auto", "push", "pull"]),
        default="auto",
        help="Along out-edges, against in-edges, or whichever is cheaper now.",
    ),
    option(
        "--mode",
        type=click.Choice(["auto", "sync", "async"]),
        default="auto",
        help="Updates seen in the next iteration (sync) or at once (async).",
    ),
    option("--partition-bytes", type=SIZE, help="Edges decided on at once (32MiB)."),
    THREADS,
    option("--devices", type=click.IntRange(1), default=1, help="Host devices, for tests."),
    option("--device", default="auto", help="cpu, cuda:N, or auto: the first GPU if there is one."),
    option("--device-memory", type=SIZE, help="Most memory to take on the GPU (nine tenths of what is free)."),
    option("--device-edge-memory", type=SIZE, help="Most of it for edges, staged ones included (the rest of it)."),
    option(
        "--route",
        type=click.Choice(["auto", "resident", "filter", "compaction", "zero-copy", "cel", "cel-structural"]),
        default="auto",
        help="How edges reach the GPU; auto decides for every partition. cel: searches only.",
    ),
    option("--rates", type=FILE, help="This machine's rates; by default those that penstock calibrate stored."),
    option("--no-calibrate", is_flag=True, help="Never measure the machine first, also where no rates are stored."),
    stripe_option("Where a shard is now. Repeatable."),
)


@dataclass(frozen=True)
class Wanted:
    """What to do with the result."""

    top: int
    path: Path | None
    force: bool
    log: Path | None
    format: str | None

    def check(self) -> None:
        """Refuse, before the run, what could not be written."""
        for path in (self.path, self.log):
            if path is not None:
                check_target(path, force=self.force)
        if self.path is not None:
            from penstock.storage.tables import writer_for

            writer_for(self.path, self.format)


wanting = taking(
    "wanted",
    Wanted,
    option("--top", type=click.IntRange(0), default=0, help="Show the K largest values."),
    option("-o", "--output", "path", type=ANY, help="Write all values: .csv, .parquet, .h5 or .npy."),
    option("--force", is_flag=True, help="Replace an existing output."),
    option("--iterations-log", "log", type=ANY, help="Write a JSON line for every iteration."),
    option("--format", type=click.Choice(["graphalytics"]), help="Of the output: `id value` lines, as LDBC has them."),
)


@click.command(name="run", short_help="Run a graph algorithm.")
@click.argument("program")
@click.argument("graph", type=ANY, metavar="GRAPH.h5")
@parameters
@wanting
@execution
@speaking
def command(
    program: str,
    graph: Path,
    parameters: dict[str, Any],
    wanted: Wanted,
    execution: Execution,
    speaker: Speaker,
) -> None:
    """Run a graph algorithm.

    PROGRAM is one of those below, or your own: path/to/file.py:ClassName or package.module:ClassName.
    Vertices are named by the ids of the input. Other parameters of a program go by --set.

    \b
    paths       bfs sssp reachability widest betweenness
    rank        pagerank personalized_pagerank katz hits php adsorption
    components  wcc scc cdlp
    structure   degrees coreness kcore triangles lcc mis coloring
    ratings     cf

    \b
    Examples:
      penstock run bfs web.h5 --source 42 --output levels.csv
      penstock run sssp roads.h5 --source 7 --top 5
      penstock run pagerank web.h5 --top 10 --output ranks.parquet --host-memory 1GiB
      penstock run pagerank web.h5 --tol 0 --max-iter 10 --direct-io --json
      penstock run wcc web.h5
      penstock run betweenness web.h5 --k 64 --top 10
      penstock run cdlp web.h5 --format graphalytics --output labels.txt
      penstock run my_program.py:MyProgram web.h5 --set depth=3
    """
    from penstock.storage.graph import Graph

    wanted.check()
    made = make_program(program, find_program(program), parameters)
    opened = Graph.open(graph, stripes=execution.stripes)
    used = rates_for(opened, execution.options, execution.rates, speaker.note)
    with progress(quiet=speaker.silent) as show:
        outcome = execute(made, opened, execution.options | used.options(), show)
    if wanted.path is not None:
        outcome.result.write(wanted.path, force=wanted.force, format=wanted.format)
    if wanted.log is not None:
        _write_log(outcome.result, wanted.log, force=wanted.force)
    facts = {"command": "run", "program": program, "parameters": parameters, **outcome.facts()}
    facts |= {"top": outcome.answer.top(wanted.top), "output": wanted.path, "rates": used.facts()}
    title = " ".join([program, *(f"{name}={_short(v)}" for name, v in parameters.items())])
    speaker.answer(facts, [f"{title} on {graph}", *outcome.lines(wanted)])


@dataclass(frozen=True)
class Outcome:
    """A run's result with what the command line adds to it."""

    result: Result
    answer: Answer
    total_seconds: float
    peak_memory_bytes: int

    def facts(self) -> dict[str, Any]:
        """For machines."""
        graph = self.result.graph
        return {
            "graph": graph.path,
            "vertices": graph.vertices,
            "edges": graph.edges,
            "graph_bytes": graph.file_bytes,
            "seconds": self.result.seconds,
            "total_seconds": self.total_seconds,
            "iterations": self.result.iterations,
            "converged": self.result.converged,
            "bytes_read": self.result.bytes_read,
            "prediction": {route: asdict(found) for route, found in self.result.prediction.items()},
            "peak_memory_bytes": self.peak_memory_bytes,
            "fields": self.answer.summary(),
        }

    def lines(self, wanted: Wanted) -> list[str]:
        """For people."""
        result = self.result
        size = result.graph.file_bytes
        read = format_bytes(result.bytes_read)
        if size and result.bytes_read:
            read += f" ({result.bytes_read / size:.2f} x the graph's {format_bytes(size)})"
        ended = "" if result.converged else ", stopped before it converged"
        rows: list[tuple[str, object]] = [
            *self.answer.lines(),
            ("iterations", f"{result.iterations:,}{ended}"),
            ("time", f"{seconds(result.seconds)} (with loading {seconds(self.total_seconds)})"),
            ("read from disk", read),
            ("peak memory", format_bytes(self.peak_memory_bytes)),
            ("written", wanted.path),
        ]
        top = self.answer.top(wanted.top)
        shown = table(list(top[0]), [[_cell(v) for v in row.values()] for row in top]) if top else []
        return [*pairs(rows, indent="  "), *(f"  {line}" for line in shown)]


def execute(program: Program, graph: Graph, execution: dict[str, Any], show: Update) -> Outcome:
    """Run a program on an open graph in a session of its own, showing the edges walked so far."""
    from penstock.engine.session import Session

    began = time.perf_counter()
    name = type(program).__name__
    show(f"{name}, preparing", 0, None, "edges")
    with Session(graph, **execution) as session:
        result = _watched(name, session.steps(program), graph.edges * program.max_iter, show)
    return outcome_of(result, time.perf_counter() - began)


def _watched(name: str, steps: Generator[IterationRecord, None, Result], most: int, show: Update) -> Result:
    """Follow a run to its end; `most`: edges that it may walk, for the time left where the iterations are bounded."""
    walked, total = 0, most if most < UNBOUNDED else None
    while True:
        try:
            record = next(steps)
        except StopIteration as end:
            return cast("Result", end.value)
        walked += record.edges
        show(name, walked, total, "edges")


def outcome_of(result: Result, total_seconds: float) -> Outcome:
    """A result, ready to be spoken of."""
    answer = Answer(result.fields, {name: result.reached(name) for name in result.fields}, result.top)
    return Outcome(result, answer, total_seconds, peak_resident_bytes())


def _write_log(result: Result, path: Path, *, force: bool) -> None:
    with replacing(path, force=force) as partial, partial.open("w", encoding="utf-8") as file:
        for record in result.records:
            file.write(json.dumps(plain(record.summary())) + "\n")


def _cell(value: Any) -> str:
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:37] + "..."
