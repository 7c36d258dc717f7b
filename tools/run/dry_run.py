"""The dry run: what a job would take of memory, bytes and seconds (`engine` computes it), said before it runs.

It checks all that a run checks before it starts, and reads few edges (`search_depth.py`). Of several ranks there is a
line for each number of them: they divide the host's memory, threads and disk (`options_of_rank`), as those that
`--devices` starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import BudgetError
from penstock.tools.base.output import Console, pairs, seconds, table
from penstock.tools.run.execute_job import of_all_ranks
from penstock.tools.run.job import Job, JobStep
from penstock.tools.run.past_runs import load_now, past_runs, run_ahead
from penstock.tools.run.rank_devices import options_of_rank
from penstock.tools.run.rates import UsedRates, rates_for
from penstock.tools.run.run_directory import check_folder

if TYPE_CHECKING:
    from penstock.engine.planning.forecast import Forecast, Sweep
    from penstock.engine.planning.known_runs import Expected, KnownRuns, PastRun
    from penstock.engine.program.program import Program
    from penstock.engine.resources.memory_plan import Memory
    from penstock.storage.format.graph import Graph

PHASES = "runs as several programs, one after another; the sweeps are those of the first"
OTHER = "after runs of another machine"
SEARCH = "how many iterations it takes, and which edges each of them walks, only the run can tell"


def forecast_job(job: Job, console: Console) -> None:
    """Say what a job would take. Raises InputError for what the run would refuse, RunError for damaged edges."""
    from penstock.engine.resources.config import Config
    from penstock.engine.session import Session
    from penstock.storage.base.timeline import Timeline

    opened = cache(job.opened)
    programs = [step.make(opened) for step in job.steps]
    graph = opened()
    config = Config.of(**job.execution.options)
    used = rates_for(graph, config, console.note, job.execution.rates, measure=False)
    job = job.kept()
    check_folder(job)
    job.check(made=False)
    timeline, keeps = Timeline() if job.traced else None, job.checkpointing.folder is not None
    counts = job.ranks or ((len(job.execution.devices),) if job.execution.devices else ())
    every = [(count, forecast_ranks(job, programs, graph, used, count)) for count in counts]
    with Session(graph, timeline=timeline, **job.execution.forecast_options(1), **used.options()) as session:
        session.prepare(*programs)
        each = list(zip(job.steps, programs, strict=True))
        told = [(step, session.forecast(program, checkpoints=keeps)) for step, program in each]
        past, load = past_runs(session.device, used.rates, config.thread_count), load_now(config.thread_count)
        awaited = [
            _awaited(run_ahead(step, program, session, found.held, load), past, found, graph, program)
            for (step, found), program in zip(told, programs, strict=True)
        ]
        headings = [step.heading(program, graph, job.graph) for step, program in each]
    shared = [
        [(count, found[at], _expected_of_ranks(found[at], alone, will)) for count, found in every]
        for at, ((_, alone), will) in enumerate(zip(told, awaited, strict=True))
    ]
    facts = {
        "command": "run",
        "dry_run": True,
        "job": job.source,
        "graph": job.graph,
        "programs": [
            _facts(step, found) | {"expected": _expected_facts(will), "ranks": [rank_facts(*one) for one in ranks]}
            for (step, found), will, ranks in zip(told, awaited, shared, strict=True)
        ],
        "whole_job": _whole(awaited),
        "output": job.table.path,
        "rates": used.facts(),
    }
    lines = [
        line
        for heading, (step, found), will, ranks in zip(headings, told, awaited, shared, strict=True)
        for line in (f"{heading} (dry run)", *_lines(step, found, will), *rank_lines(ranks))
    ]
    rates = "built-in ones: `penstock calibrate` measures this machine"
    if used.calibration is not None:
        rates = f"measured {used.calibration.date} ({used.path})"
    table = [] if job.table.path is None else [f"would write all answers: {job.table.path}"]
    console.answer(facts, [*lines, *table, *_whole_line(_whole(awaited)), f"rates: {rates}"])


def _awaited(run: PastRun, past: KnownRuns, found: Forecast, graph: Graph, program: Program) -> Expected | None:
    """What is expected of a run; the graph is searched only where its depth tells something."""
    from penstock.engine.planning.search_depth import depth_for

    return past.expected(replace(run, depth=depth_for(graph, program)) if past.asks_depth(run) else run, found)


def _whole(each: Sequence[Expected | None]) -> dict[str, float] | None:
    """Seconds of a job from the command to the prompt, by part; None where those of a program are not known."""
    known = [will for will in each if will is not None and will.besides]
    if not each or len(known) < len(each):
        return None
    parts = {
        "iterations": sum(will.seconds for will in known),
        "compiling": sum(will.compiling for will in known),
        "besides": max(will.besides for will in known),
    }
    return {"seconds": sum(parts.values()), **parts}


def _whole_line(whole: dict[str, float] | None) -> list[str]:
    """For people."""
    if whole is None:
        return []
    compiling = f", compiling {seconds(whole['compiling'])}" if whole["compiling"] else ""
    rest = f"start, index and end {seconds(whole['besides'])}{compiling}"
    return [f"whole job: about {seconds(whole['seconds'])}: iterations {seconds(whole['iterations'])}, {rest}"]


def _facts(step: JobStep, found: Forecast) -> dict[str, Any]:
    facts = asdict(found) | {"program": step.program, "parameters": step.parameters}
    memories = {"host": found.host, "placement": found.placement}
    facts |= {name: asdict(held) | {"total": held.total} for name, held in memories.items() if held is not None}
    return facts | _sweep_facts(found) | {"most_seconds": found.most_seconds, "output": step.wanted.path}


def _sweep_facts(found: Forecast) -> dict[str, Any]:
    sweeps = {"first": found.first, "later": found.later}
    return {
        name: asdict(sweep) | {"seconds": sweep.seconds, "limited_by": sweep.limit} for name, sweep in sweeps.items()
    }


def _expected_facts(will: Expected | None) -> dict[str, Any] | None:
    return None if will is None else asdict(will) | {"error": will.error}


def _lines(step: JobStep, found: Forecast, will: Expected | None = None) -> list[str]:
    ways = " or ".join({"push": "pushing", "pull": "pulling"}[way] for way in found.directions)
    how = f"{ways}, in partitions of {format_bytes(found.partition_bytes)}" if ways else "reading no edges"
    rows: list[tuple[str, object]] = [
        ("runs on", f"{found.device}, {how}"),
        *_memory("host memory", found.host),
        *([] if found.placement is None else _memory("device memory", found.placement)),
        ("windows", _windows(found)),
        ("before", _loading(found)),
        ("first sweep", _sweep(found.first)),
        ("later sweeps", _sweep(found.later)),
        ("in all", _in_all(found)),
        *([] if will is None else _expected(will)),
        ("note", PHASES if found.phases else None),
        ("would write", step.wanted.path),
    ]
    return pairs(rows, indent="  ")


def _memory(name: str, memory: Memory) -> list[tuple[str, object]]:
    parts = " + ".join(f"{name} {format_bytes(size)}" for name, size in memory.parts.items() if size)
    stays = "all edges stay there" if memory.whole else "not all edges stay there"
    return [(name, f"{format_bytes(memory.total)} of {format_bytes(memory.budget)}; {stays}"), ("", f"= {parts}")]


def _loading(found: Forecast) -> str | None:
    read, brought = found.loading
    parts = [
        *([f"reads {format_bytes(read)} from disk"] if read else []),
        *([f"brings {format_bytes(brought)} to the device"] if brought else []),
    ]
    return " and ".join(parts) or None


def _windows(found: Forecast) -> str | None:
    """How often edges are read, and where values of vertices are that memory has no room for; None without any."""
    if not (found.value_file or found.device_room):
        return None
    way = {"push": "pushing", "pull": "pulling"}[found.direction]
    again = ", each of which reads its own edges" if found.windows > 1 else ""
    if found.edge_reads > 1:
        again = f", for which edges are read {found.edge_reads:,} times (once where converted with --windows)"
    kept = f"memory has room for {format_bytes(found.value_room)} of their values"
    if found.value_file:
        folders = " and ".join(map(str, found.value_folders))
        each = " in each rank" if found.ranks > 1 else ""
        kept += f", and a file in {folders} for all ({format_bytes(found.value_file)}{each})"
    if found.device_room:
        kept = f"the device has room for {format_bytes(found.device_room)} of their values and rows, host {kept}"
    return f"{found.windows:,} of vertices when {way}{again}; {kept}"


def _sweep(sweep: Sweep) -> str:
    values = "over it" if sweep.link_bytes else "from and to their file"
    moved = [
        f"{format_bytes(sweep.disk_bytes)} from disk" if sweep.disk_bytes else "nothing from disk",
        *([f"{format_bytes(sweep.link_bytes)} over the link"] if sweep.link_bytes else []),
        *([f"{format_bytes(sweep.value_bytes)} of values {values}"] if sweep.value_bytes else []),
        *([f"{format_bytes(sweep.file_bytes)} of them from and to their file"] if sweep.file_bytes else []),
        *([f"{sweep.value_tasks:,} views and pages"] if sweep.value_tasks else []),
    ]
    routes = ", ".join(f"{count:,} {route}" for route, count in sorted(sweep.routes.items()))
    limit = f" ({sweep.limit})" if sweep.seconds else ""
    return f"{seconds(sweep.seconds)}{limit}, {' and '.join(moved)}; partitions: {routes or 'none'}"


def _in_all(found: Forecast) -> str:
    if found.most_seconds is not None:
        return f"at most {found.most_iterations:,} sweeps, {seconds(found.most_seconds)}; compiling is not counted"
    bound = "" if found.most_iterations is None else f", {found.most_iterations:,} iterations at most"
    return f"unknown{bound}: {SEARCH}"


def _expected(will: Expected) -> list[tuple[str, object]]:
    """What is expected, of what that is learnt, and by how much the last forecasts were wrong."""
    alone = f", {seconds(will.alone_seconds)} alone" if will.seconds > will.alone_seconds else ""
    busy = f"beside a load of {will.load:.1f} on {will.cores} cores{alone}"
    number = f"{will.sweeps:,.0f}" if will.sweeps >= 100 else f"{will.sweeps:.3g}"
    walked = f"edges of {number} sweep{'s' * (number != '1')} in {will.iterations:,.0f} iterations"
    learnt = f"no past run is like it: {'seconds of a sweep are those of the rates' if will.by_rates else OTHER}"
    if will.runs:
        learnt = f"from {will.runs:,} past run{'s' * (will.runs != 1)} like it"
    if will.error is not None:
        learnt += f"; forecasts were within {will.error:.0%} over the last {len(will.errors):,}"
    return [("expected", f"about {seconds(will.seconds)} for {walked}, {busy}"), ("", learnt)]


HEADS = ("ranks", "memory a rank", "edges", "first sweep", "later sweeps", "limit", "exchange", "expected")


def forecast_ranks(
    job: Job, programs: Sequence[Program], graph: Graph, used: UsedRates, ranks: int
) -> list[Forecast | BudgetError]:
    """What each program would take of one of so many ranks, or why its memory does not suffice.

    Raises InputError for what ranks refuse.
    """
    from penstock.engine.planning.rank_forecast import PaperRanks, rates_of_rank
    from penstock.engine.resources.config import Config
    from penstock.engine.session import Session
    from penstock.transfer.values.rates import Rates

    options = job.execution.forecast_options(ranks) | used.options()
    if ranks > 1:
        whole = used.rates or Rates.host(Config.of(**job.execution.options).thread_count)
        devices = _devices(job, ranks)
        asked = options_of_rank(job.execution.forecast_options(ranks), devices, 0)
        options = asked | {"rates": rates_of_rank(whole, ranks)}
    keeps = job.checkpointing.folder is not None
    with Session(graph, ranks=PaperRanks(ranks), **options) as session:
        session.prepare(*programs)
        found: list[Forecast | BudgetError] = []
        for program in programs:
            try:
                found.append(session.forecast(program, checkpoints=keeps))
            except BudgetError as error:
                found.append(of_all_ranks(error, ranks))
        return found


def _devices(job: Job, ranks: int) -> tuple[str, ...]:
    """Those that the job names for so many ranks, else so many of its first."""
    from penstock.transfer.devices import cuda

    named = job.execution.devices or (str(job.execution.options.get("device", "auto")),)
    if len(named) == ranks:
        return named
    first = named[0] if named[0] != "auto" else "cuda:0" if cuda.count() else "cpu"
    return (first,) * ranks


def _exchange_share(sweep: Sweep) -> float:
    return sweep.exchange / sweep.seconds if sweep.seconds else 0.0


def _expected_of_ranks(found: Forecast | BudgetError, alone: Forecast, will: Expected | None) -> float | None:
    """Seconds that ranks take, if a sweep is to one process's as the rates say; None where that is not known."""
    if isinstance(found, BudgetError) or will is None or not alone.later.seconds:
        return None
    return will.seconds * found.later.seconds / alone.later.seconds


def rank_facts(ranks: int, found: Forecast | BudgetError, expected: float | None) -> dict[str, Any]:
    """For machines."""
    if isinstance(found, BudgetError):
        return {"ranks": ranks, "fits": False, "refusal": str(found)}
    host = asdict(found.host) | {"total": found.host.total}
    values = {name: getattr(found, name) for name in ("most_seconds", "windows", "value_room", "value_file")}
    share = {"exchange_share": _exchange_share(found.later), "expected_seconds": expected}
    return {"ranks": ranks, "fits": True, "host": host, **share, **values, **_sweep_facts(found)}


def rank_lines(each: Sequence[tuple[int, Forecast | BudgetError, float | None]]) -> list[str]:
    """For people: a table, and why some numbers of ranks do not fit; nothing without any."""
    refused = [f"{ranks} ranks do not fit: {one}" for ranks, one, _ in each if isinstance(one, BudgetError)]
    rows = [_row(ranks, one, expected) for ranks, one, expected in each if not isinstance(one, BudgetError)]
    return [f"  {line}" for line in [*(table(HEADS, rows) if rows else []), *refused]]


def _row(ranks: int, found: Forecast, expected: float | None) -> tuple[object, ...]:
    memory = f"{format_bytes(found.host.total)} of {format_bytes(found.host.budget)}"
    later, windows = found.later, f", {found.windows} windows" if found.value_room else ""
    return (
        ranks,
        memory,
        ("stay" if found.host.whole else "stream") + windows,
        seconds(found.first.seconds),
        seconds(later.seconds),
        later.limit if later.seconds else "none",
        f"{_exchange_share(later):.1%}",
        "unknown" if expected is None else seconds(expected),
    )
