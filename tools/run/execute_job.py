"""A job is executed: its programs on one graph, in one session, so that they share what was read and compiled.

programs -> graph -> rates -> run directory -> session -> each program: run, write the answer and sum it up -> print
"""

from __future__ import annotations

import time
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from penstock.storage.base.atomic import temporary_place, written_at
from penstock.storage.base.budget import core_seconds, peak_resident_bytes
from penstock.storage.base.errors import BudgetError
from penstock.storage.base.freed_memory import give_back_freed_memory
from penstock.storage.base.places import file_size
from penstock.storage.base.stage_clock import installed, stage
from penstock.storage.base.threads import ThreadPool
from penstock.tools.base import process
from penstock.tools.base.json_record import to_json
from penstock.tools.base.output import Console, StandardOutput
from penstock.tools.base.progress import progress
from penstock.tools.run.account import Account, JobClock
from penstock.tools.run.answer_room import check_answer_room
from penstock.tools.run.checkpointing import Followed, ending_at_signals, told_what_lacks
from penstock.tools.run.job import Job, JobStep
from penstock.tools.run.live_table import LiveTable, stages_shown
from penstock.tools.run.metrics import Metrics, open_metrics
from penstock.tools.run.past_runs import ended, keep_run, run_ahead
from penstock.tools.run.rates import UsedRates, rates_for
from penstock.tools.run.result_summary import ResultSummary
from penstock.tools.run.run_directory import Record, check_folder, open_record
from penstock.tools.run.trace import open_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.engine.checkpoint.checkpoint import Checkpoints
    from penstock.engine.planning.known_runs import PastRun
    from penstock.engine.program.program import Program
    from penstock.engine.resources.config import Config
    from penstock.engine.session import Session
    from penstock.engine.state.answer_table import AnswerTable
    from penstock.engine.state.joined_answers import JoinedAnswers
    from penstock.storage.format.graph import Graph
    from penstock.tools.base.joined_ranks import Joined
    from penstock.tools.run.answer_options import AnswerOptions


@dataclass(frozen=True)
class JobContext:
    """A job, the session in which its programs run, and what reports on it.

    job: with its outputs in the run directory, if it has one. record: what that keeps. seen: the lines on the terminal.
    clock: of the job. ended: runs from which forecasts learn. joined: all answers, if they are to be one table.
    """

    job: Job
    session: Session
    record: Record
    metrics: Metrics | None
    seen: LiveTable
    checkpoints: Checkpoints | None
    console: Console
    clock: JobClock
    ended: list[PastRun]
    joined: JoinedAnswers | None = None


Facts = dict[str, Any]


def execute(job: Job, console: Console, began: float | None = None, ranks: Joined | None = None) -> None:
    """Run a job and print its answers. Raises InputError for what cannot run, RunError for a run that failed.

    began: when the wall time of the job begins, by time.perf_counter; by default now. ranks: the processes that run it
    together with this one.
    """
    clock = JobClock(began, "imports")
    with installed(clock):
        if ranks is not None and ranks.communicator.rank:
            job, console = job.followed(), Console(quiet=True, log_every=0)
        try:
            _execute(job, console, clock, ranks)
        except BudgetError as error:
            raise error if ranks is None else of_all_ranks(error, len(ranks.mates)) from None
        if ranks is not None:
            ranks.communicator.wait()  # rank 0 writes: the others do not end before it


def of_all_ranks(error: BudgetError, local: int) -> BudgetError:
    """The same error in terms of the budget of a host, which so many ranks divide."""
    if error.option != "--host-memory" or local == 1:
        return error
    return BudgetError(
        error.option, f"in each of {local} ranks, which divide it, {error.reason}", error.least_mib * local,
        error.otherwise, local,
    )  # fmt: skip


def _execute(job: Job, console: Console, clock: JobClock, ranks: Joined | None) -> None:
    from penstock.engine.kernels.ahead.announce import expect_run
    from penstock.engine.resources.config import Config
    from penstock.transfer.devices.named import expected_kernels

    communicator = None if ranks is None else ranks.communicator
    opened = cache(partial(job.opened, communicator))
    programs = [step.make(opened) for step in job.steps]
    clock.turn_to("other")
    with ExitStack() as stack:
        show = stack.enter_context(progress(console))
        stack.enter_context(stages_shown(show, clock))
        with stage("opening"):
            graph = opened()
            options = job.execution.options
            config = Config.of(**options)
            if config.kernels != "reference":  # a companion imports the compiler if a program has not run before
                expect_run(programs[0], graph, expected_kernels(config.device, config.kernels))
            from penstock.engine.session import Session  # while the companion starts

            used = _rates(job, graph, config, console, ranks)
        placed = job.kept()
        finished: list[tuple[Facts, list[str], Account]] = []
        check_folder(job)
        placed.check(made=False)
        record = stack.enter_context(open_record(job))
        placed.check()  # again: the run directory, if any, exists now
        check_answers(placed, programs, graph, config, console.note)
        seen = LiveTable(show)
        facts: Facts = {"programs": [step.title for step in job.steps], "graph": job.graph}
        begun = partial(getattr, record, "begun")  # called later: has an iteration run?
        tracing = communicator if job.traced else None
        timeline = stack.enter_context(open_trace(placed.trace, tracing, force=job.force, facts=facts, begun=begun))
        told = record.placed(placed.metrics)
        metrics = None
        if told is not None:
            metrics = stack.enter_context(open_metrics(told, force=job.force, clock=clock))
        checkpoints = placed.checkpointing.open()
        stack.enter_context(checkpoints or nullcontext())
        with stage("opening"):
            session = stack.enter_context(
                Session(graph, timeline=timeline, ranks=communicator, **options, **used.options())
            )
        stack.callback(clock.turn_to, "closing")
        record.describe(job, session, used)
        session.prepare(*programs, begins=True)
        process.resume_search()
        joined = None
        if placed.table.path is not None:
            from penstock.engine.state.joined_answers import JoinedAnswers

            folder = temporary_place() if placed.table.printed else written_at(placed.table.path).parent
            joined = JoinedAnswers(graph, folder, placed.table.joined)
        context = JobContext(placed, session, record, metrics, seen, checkpoints, console, clock, [], joined)
        for step, program in zip(placed.steps, programs, strict=True):
            finished.append(_run(step, program, context, last=step is placed.steps[-1]))
            record.tell(programs=[told for told, _, _ in finished])
        if joined is not None:
            _write(joined, placed.table, context, config.thread_count)
    clock.turn_to("other")
    whole = clock.account()
    for run in context.ended:
        keep_run(run, session.device, whole.stages if len(programs) == 1 else {})
    facts = {"command": "run"}
    rates = {"rates": used.facts()}
    if placed.source is None:
        facts |= finished[0][0] | rates | to_json(whole)
    else:
        programs_told = [told | rates | to_json(account) for told, _, account in finished]
        facts |= {"job": placed.source, "programs": programs_told, "output": placed.table.path, **to_json(whole)}
    lines = [line for _, lines, _ in finished for line in lines]
    if placed.table.path is not None:
        lines.append(f"all answers: {'standard output' if placed.table.printed else placed.table.path}")
    console.answer(facts, [*lines, whole.line()])


def check_answers(
    job: Job, programs: Sequence[Program], graph: Graph, config: Config, note: Callable[[str], None]
) -> None:
    """Refuse, before the run, answers that have no such field or that a disk has no room for. Raises InputError."""
    from penstock.engine.program.precision import formed

    steps, table = list(zip(job.steps, programs, strict=True)), job.table
    asked = [one for one in steps if table.path or one[0].wanted.path or one[0].wanted.by or one[0].wanted.join]
    answers = [(step, formed(program, graph, config.mode, config.precision)) for step, program in asked]
    for step, program in answers:
        step.wanted.check_fields(program, graph)
    written: list[tuple[AnswerOptions, list[Program]]] = [(step.wanted, [program]) for step, program in answers]
    if table.path is not None:
        from penstock.engine.state.joined_answers import check_columns, column_names

        check_columns(
            ((step.title, column_names(program, step.wanted.prefix or "")) for step, program in answers), table.joined
        )
        written.append((table, [program for _, program in answers]))
    check_answer_room(written, graph, note)


def _rates(job: Job, graph: Graph, config: Config, console: Console, ranks: Joined | None) -> UsedRates:
    """The rates of this machine; of ranks the first measures them, if need be, while the others wait."""
    rates, measure = job.execution.rates, job.execution.measure
    if ranks is None:
        return rates_for(graph, config, console.note, rates, measure=measure)
    first = ranks.communicator.rank == 0
    if not first:
        ranks.communicator.wait()
    used = rates_for(graph, config, console.note, rates, measure=measure and first)
    if first:
        ranks.communicator.wait()
    return used


def _run(step: JobStep, program: Program, context: JobContext, *, last: bool) -> tuple[Facts, list[str], Account]:
    """Run one program, write its answer, and sum it up meanwhile; after the last one edges need no memory.

    Returns what is said of it to machines and to people, and the account of its part of the wall time.
    """
    began, before, waited = time.perf_counter(), context.clock.account(), core_seconds()
    session, metrics = context.session, context.metrics
    context.seen.begin(program, session)
    if metrics is not None:
        metrics.begin(session, {"program": step.program, "parameters": step.parameters})
    steps = session.steps(program, context.checkpoints)
    followed = Followed(ending_at_signals(steps, context.checkpoints, context.console.note))
    read = session.bytes_read
    going = stage("iterations", poll=lambda: max(0, session.bytes_read - read))
    with told_what_lacks(context.checkpoints), going as meter:
        for record in followed:
            meter.bytes += record.bytes_disk
            context.record.begin()  # an earlier run's record goes only now, after an iteration
            if metrics is not None:
                metrics.note(record)
            context.seen.note(record)
    context.record.begin()  # also without an iteration
    context.seen.end()
    wanted, threads = step.wanted, session.config.thread_count
    seconds, spare = time.perf_counter() - began, session.spare_bytes
    held = session.holdings
    if context.checkpoints is None and not followed.result.ranks:
        taken = context.clock.account().since(before).stages.get("iterations", 0.0)
        ahead = run_ahead(step, program, session, held)
        context.ended.extend(filter(None, [ended(ahead, followed.result.records, taken, waited)]))
    if last:
        spare += 0 if held is None else held.host // 2  # where edges were; the other half is for writing the answer
        with stage("closing"):
            session.close()
            give_back_freed_memory()
    result = replace(followed.result, prefix=wanted.prefix or "")
    if context.joined is not None:
        with stage("writing"):
            context.joined.add(result)
    result = result.with_properties(*wanted.joined)
    summary = ResultSummary(result, seconds, peak_resident_bytes(), wanted.top, threads, spare)
    result_facts, told, lines = _written(step, summary, context)
    if metrics is not None:
        metrics.end(result_facts, followed.result.ranks)
    if context.checkpoints is not None:
        kept = context.checkpoints.finish()
        if kept:
            context.console.note(kept)
    return told, lines, context.clock.account().since(before).without("closing")


def _written(step: JobStep, summary: ResultSummary, context: JobContext) -> tuple[Facts, Facts, list[str]]:
    """Write the answer of a program, if it has an output, while it is summed up; return what `_told` does."""
    wanted, result, threads = step.wanted, summary.result, summary.threads
    if wanted.path is None:
        return _told(step, summary, context)
    with ThreadPool(1, "summary") as pool:
        summing = pool.submit(_told, step, summary, context)
        _write(result, wanted, context, threads)
        with stage("summary"):
            return summing.result()


def _write(answer: AnswerTable, wanted: AnswerOptions, context: JobContext, threads: int | None) -> None:
    """Write an answer to a file, whole or not at all, or to standard output."""
    assert wanted.path is not None
    if wanted.printed:
        with stage("writing") as meter:
            file = StandardOutput()
            answer.write_to(file, format=wanted.format or "csv", threads=threads, **wanted.style)
            file.flush()
            meter.bytes = file.tell()
        return
    with stage("writing", answer.bytes_to_write(wanted.path, wanted.format)) as meter:
        how: Any = {"threads": threads, "written": partial(setattr, meter, "bytes"), **wanted.style}
        answer.write(wanted.path, force=context.job.replaces(wanted.path), format=wanted.format, **how)
        meter.bytes = file_size(wanted.path) or 0


def _told(step: JobStep, summary: ResultSummary, context: JobContext) -> tuple[Facts, Facts, list[str]]:
    """Compute what is said of a program, only what somebody reads: to the metrics, to JSON, to people."""
    kept = context.console.as_json or context.record.files is not None
    result, whole, lines = {}, {}, []
    with stage("summary"):
        if kept or context.metrics is not None:
            result = summary.facts()
        if kept:
            whole = {"program": step.program, "parameters": step.parameters, **result}
            whole |= {"top": summary.top(step.wanted), "output": step.wanted.path}
        if not context.console.silent:
            program, graph = summary.result.program, summary.result.graph
            lines = [step.heading(program, graph, context.job.graph), *summary.lines(step.wanted)]
    return result, whole, lines
