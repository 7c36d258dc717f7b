"""The story of a job: its programs on one graph, in one session, so that they share what was read and compiled.

programs -> graph -> rates -> run directory -> session -> each program: run, write the answer -> print
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.storage.base.budget import peak_resident_bytes
from penstock.tools.base.output import Console
from penstock.tools.run.checkpointing import Followed, ending_at_signals
from penstock.tools.run.job import Job, JobStep
from penstock.tools.run.live_table import LiveTable, iterations
from penstock.tools.run.metrics import Metrics, open_metrics
from penstock.tools.run.rates import UsedRates, rates_for
from penstock.tools.run.result_summary import ResultSummary
from penstock.tools.run.run_directory import Record, check_folder, open_record
from penstock.tools.run.trace import open_trace

if TYPE_CHECKING:
    from penstock.engine.checkpoint.checkpoint import Checkpoints
    from penstock.engine.program.program import Program
    from penstock.engine.session import Session


@dataclass(frozen=True)
class JobContext:
    """What the programs of a job run on, and where that is told."""

    session: Session
    record: Record
    metrics: Metrics
    seen: LiveTable
    checkpoints: Checkpoints | None
    note: Callable[[str], None]


def execute(job: Job, console: Console) -> None:
    """Run a job and say what came of it. Raises InputError for what cannot run, RunError for a run that failed."""
    from penstock.engine.session import Session
    from penstock.storage.format.graph import Graph

    programs = [step.make() for step in job.steps]
    graph = Graph.open(job.graph, stripes=job.execution.stripes)
    used = rates_for(graph, job.execution.options, console.note, job.execution.rates, measure=job.execution.measure)
    kept, told = job.kept(), []
    check_folder(job)
    kept.check(made=False)
    with ExitStack() as stack:
        record = stack.enter_context(open_record(job))
        kept.check()
        seen = stack.enter_context(iterations(quiet=console.silent))
        facts = {"programs": [step.title for step in job.steps], "graph": job.graph}
        begun = partial(getattr, record, "begun")
        timeline = stack.enter_context(open_trace(kept.watching.trace, force=job.force, facts=facts, begun=begun))
        metrics = stack.enter_context(open_metrics(record.placed(kept.watching.metrics), force=job.force))
        checkpoints = kept.checkpointing.open()
        stack.enter_context(checkpoints or nullcontext())
        session = stack.enter_context(Session(graph, timeline=timeline, **job.execution.options, **used.options()))
        record.describe(job, session, used)
        session.prepare(*programs)
        context = JobContext(session, record, metrics, seen, checkpoints, console.note)
        for step, program in zip(kept.steps, programs, strict=True):
            told.append((step, _run(step, program, context, force=job.force)))
            record.tell(programs=[_facts(*one) for one in told])
    _tell(kept, told, used, console)


def _run(step: JobStep, program: Program, context: JobContext, *, force: bool) -> ResultSummary:
    """Run one program and write its answer."""
    began = time.perf_counter()
    session, metrics = context.session, context.metrics
    context.seen.begin(type(program).__name__, session, session.graph.edges * program.max_iter)
    metrics.begin(session, {"program": step.program, "parameters": step.parameters.given})
    steps = session.steps(program, context.checkpoints)
    followed = Followed(ending_at_signals(steps, context.checkpoints, context.note))
    for record in followed:
        context.record.begin()
        metrics.note(record)
        context.seen.note(record)
    context.record.begin()
    context.seen.end()
    result = followed.result
    summary = ResultSummary(result, time.perf_counter() - began, peak_resident_bytes())
    metrics.end(summary.facts())
    if step.wanted.path is not None:
        result.write(step.wanted.path, force=force, format=step.wanted.format)
    if context.checkpoints is not None:
        context.checkpoints.clear()
    return summary


def _tell(job: Job, told: list[tuple[JobStep, ResultSummary]], used: UsedRates, console: Console) -> None:
    facts: dict[str, Any] = {"command": "run"}
    each = [_facts(step, summary) | {"rates": used.facts()} for step, summary in told]
    facts |= each[0] if job.source is None else {"job": job.source, "programs": each}
    lines = []
    for step, summary in told:
        result = summary.result
        lines += [step.heading(result.program, result.graph, job.graph), *summary.lines(step.wanted)]
    console.answer(facts, lines)


def _facts(step: JobStep, summary: ResultSummary) -> dict[str, Any]:
    """What is said of one program."""
    known = {"program": step.program, "parameters": step.parameters.given, **summary.facts()}
    return known | {"top": summary.top(step.wanted.top), "output": step.wanted.path}
