"""`penstock run`: a program and a graph, or a job file, become a job, which is executed or only forecast."""

from __future__ import annotations

from dataclasses import replace
from inspect import Parameter, signature
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import Any

import click
from click.core import ParameterSource
from penstock.engine.programs.catalogue import CATALOGUE, ProgramInfo
from penstock.engine.programs.table import grouped, info_of
from penstock.storage.base.errors import InputError
from penstock.tools.base.find_program import completed, find_program, option_of
from penstock.tools.base.joined_ranks import Joined, join
from penstock.tools.base.options import ANY, Titled, lasting_console_options, option_group
from penstock.tools.base.output import Console, beside_a_table
from penstock.tools.base.process import process_start
from penstock.tools.run import job_file
from penstock.tools.run.answer_options import tabling, wanting
from penstock.tools.run.job import JOB_GROUPS, Job, JobStep
from penstock.tools.run.job_file import JobFile, key_of
from penstock.tools.run.rank_devices import all_gpus, auto_devices, host_ranks, options_of_rank
from penstock.tools.run.run_options import ALL, AUTO, parameters

_HELP = """Run a graph algorithm, or the programs of a job file.

PROGRAM is one of those below, or your own: path/to/file.py:ClassName or package.module:ClassName.
Vertices are named by the ids of the input (from 0 where it counts from 1: convert says so). Other parameters
of a program go by --set.

Edges count by their weights where the graph has some and the program has a meaning for them ({weighted}); the first
line of the answer says so, and --no-weight counts each edge as 1. A graph must have weights for {needed}.

\b
{programs}

`penstock run PROGRAM --help` describes one of them.

JOB.toml names a graph, options as here without their dashes, and programs that run one after another and share
what was read. Options given beside it override its own, but for those of a program; --output beside it is one table
of all answers.

\b
Examples:
  penstock run bfs web.h5 --source 42 --output levels.csv
  penstock run sssp roads.h5 --source 7 --top 5
  penstock run sssp roads.h5 --source 7 --target 42
  penstock run hits web.h5 --top 10 --by authority
  penstock run pagerank social.h5 --top 10 --join name,country --output ranks.parquet
  penstock run pagerank web.h5 --output - --quiet | sort -t, -k2gr | head
  penstock run distances roads.h5 --source 7 --source 42 --output distances.parquet
  penstock run pagerank web.h5 --top 10 --output ranks.parquet --host-memory 1GiB
  penstock run pagerank web.h5 --tol 0 --max-iter 10 --direct-io --json
  penstock run pagerank roads.h5 --no-weight
  penstock run sssp payments.h5 --source ann --weight fee --where "amount >= 100 and kind = 'wire'"
  penstock run betweenness web.h5 --k 64 --top 10
  penstock run harmonic web.h5 --k 64 --top 10
  penstock run leiden web.h5 --resolution 1.5 --output communities.csv
  penstock run msf roads.h5 --output forest.csv
  penstock run cdlp web.h5 --format graphalytics --output labels.txt
  penstock run heat plate.h5 --initial first.csv --fixed edge.csv --time-step 0.1 --tol 0 --max-iter 500
  penstock run circuit grid.h5 --fixed sources.csv --output potentials.csv
  penstock run neural net.h5 --inputs image.csv --set function=tanh --precision single
  penstock run my_program.py:MyProgram web.h5 --set depth=3
  penstock run wcc web.h5 --dry-run
  penstock run wcc web.h5 --dry-run --ranks 1,2,4
  penstock run pagerank web.h5 --devices cuda:0,cuda:1
  penstock run nightly.toml --output features.parquet
  penstock run wcc web.h5 --run-dir components
  penstock run components/job.toml --run-dir again
"""


def _help() -> str:
    """The help of the command, with the programs by group."""
    groups = {group: " ".join(info.name for info in members) for group, members in grouped().items()}
    listed = [
        f"{group if at == 0 else '':<12}{line}"
        for group, names in groups.items()
        for at, line in enumerate(wrap(names, 66))
    ]
    weighted = " ".join(info.name for info in CATALOGUE if info.weighted)
    needed = ", ".join(info.name for info in CATALOGUE if info.needs_weights)
    return _HELP.format(programs="\n".join(listed), weighted=weighted, needed=needed)


class _RunCommand(Titled):
    """The command whose help is a page of a program where one is named before `--help`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; a program among them is what help is about."""
        ctx.meta[__name__] = next((info for info in map(info_of, args) if info is not None), None)
        for at, (one, following) in enumerate(pairwise(args)):
            if one == "--weight" and following.isidentifier() and info_of(following) is None:  # else it is a flag
                args[at] = "--weight-column"
        return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the page of the program, or the help of the command."""
        info: ProgramInfo | None = ctx.meta[__name__]
        if info is None:
            super().format_help(ctx, formatter)
            return
        formatter.write_usage(f"{ctx.command_path} {info.name}", "GRAPH.h5 [OPTIONS]")
        counts = "Edges count by their weights where the graph has some; --no-weight: each counts 1."
        with formatter.indentation():
            for applies, text in (
                (True, info.line),
                (True, f"Answer: {info.answer}".replace("`", "")),
                (info.weighted, counts),
                (info.needs_weights, "The graph must have weights."),
                (info.aliases, f"Other libraries call it {', '.join(info.aliases)}."),
            ):
                if applies:
                    formatter.write_paragraph()
                    formatter.write_text(text)
        rows = _parameters_of(info.name)
        if rows:
            with formatter.section("Parameters"):
                formatter.write_dl(rows)
        with formatter.section("Example"):
            needed = [option for option, told in rows if told.startswith("required")]
            given = [f"{option} {value}" for option, value in _EXAMPLES.items() if option in needed]
            line = " ".join([ctx.command_path, info.name, "graph.h5", *given, f"--output {info.name}.csv"])
            # not write_text: a command that is wrapped cannot be copied
            formatter.write(f"{'':{formatter.current_indent}}{line}\n")
        formatter.write_paragraph()
        formatter.write_text("penstock run --help has the options that all programs take.")


_EXAMPLES = {"--source": "42", "--k": "10", "--fixed": "fixed.csv", "--inputs": "inputs.csv"}
"""Values of parameters that programs need."""


def _parameters_of(name: str) -> list[tuple[str, str]]:
    """The parameters of a program as they are given here, each with its default and what it is."""
    from penstock.engine.api import limited_from_outside

    kind = find_program(name)
    described = {str(option.name): option.help or "" for option in parameters.options}
    taken = {each.name: each.default for each in signature(kind).parameters.values()}
    if limited_from_outside(kind):
        taken["max_iter"] = None
    rows = []
    for one, default in taken.items():
        needed = "required" if default is Parameter.empty else "" if default is None else f"default {default}"
        rows.append((option_of(one), "; ".join(part for part in (needed, described.get(one, "").rstrip(".")) if part)))
    return rows


@click.command(name="run", cls=_RunCommand, help=_help(), short_help="Run a graph algorithm, or a job file.")
@click.argument("program", metavar="PROGRAM | JOB.toml", shell_complete=completed)
@click.argument("graph", type=ANY, required=False, metavar="GRAPH.h5")
@parameters
@wanting
@option_group("given", dict, *(option for group in JOB_GROUPS for option in group.options))
@lasting_console_options
def command(program: str, graph: Path | None, given: dict[str, Any], console: Console, **asked: Any) -> None:
    """Run a graph algorithm, or the programs of a job file."""
    context = click.get_current_context()
    if program.endswith(job_file.ENDING):
        job = _from_file(Path(program), graph, given, context)
    elif graph is None:
        raise click.UsageError(f"Missing argument 'GRAPH.h5': on which graph is {program} to run?", context)
    else:
        step = JobStep(program, asked["parameters"], asked["wanted"])
        job = Job.of(graph, [step], given)
    if job.prints:
        console = beside_a_table(console)
    job, ranks = _ranks(job, context, console)
    if job.dry_run:
        from penstock.tools.run.dry_run import forecast_job

        forecast_job(job, console)
    else:
        from penstock.tools.run.execute_job import execute

        execute(job, console, process_start() if context.find_root().obj else None, ranks)


def _ranks(job: Job, context: click.Context, console: Console) -> tuple[Job, Joined | None]:
    """The job as this process runs it, and the ranks that it is one of.

    Where --devices asks for ranks, start them, and end with their code. Raises InputError for what ranks cannot do.
    """
    joined, execution = join(), job.execution
    if joined is not None:
        if job.dry_run:
            raise InputError("--dry-run runs in one process: leave mpiexec out, and say --ranks or --devices")
        ranks = host_ranks(joined, execution.devices, str(execution.options.get("device", AUTO)))
        options = options_of_rank(execution.options, *ranks)
        return replace(job, execution=replace(execution, options=options)), joined
    if execution.devices in ((ALL,), (AUTO,)):
        execution = execution.on(all_gpus() if execution.devices == (ALL,) else auto_devices(job, console.note))
        job = replace(job, execution=execution)
    if job.dry_run or not execution.devices:
        return job, None
    if not context.find_root().obj:
        raise InputError("--devices starts processes with this command line: run it as a command of its own")
    from penstock.tools.run.launch_ranks import launch

    return context.exit(launch(execution.devices, quiet=console.silent))


def _from_file(path: Path, graph: Path | None, given: dict[str, Any], context: click.Context) -> Job:
    """The job of a file, with the options that were said beside it; given: those, or defaults. Raises InputError."""
    of_table = {str(option.name): context.params[str(option.name)] for option in tabling.options}
    for group in (parameters, wanting):
        for option in group.options:
            if option.name not in of_table and _is_said(context, str(option.name)):
                key = key_of(option)
                raise InputError(f"--{key} belongs to a program: write {key} = ... below its [[programs]] in {path}")
    file: JobFile = job_file.read(path)
    if given["run_dir"] is None and file.options.get("run_dir") is None:
        file = file.beside()
    place = graph or file.graph
    if place is None:
        raise InputError(f'{path} names no graph: write graph = "..." at its top, or name one after the file')
    in_file = {name: value for name, value in file.options.items() if not _is_said(context, name)}
    return Job.of(place, file.steps, given | of_table | in_file, path)


def _is_said(context: click.Context, name: str) -> bool:
    """Whether the option of this name was given on the command line."""
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE
