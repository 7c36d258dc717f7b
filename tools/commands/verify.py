"""`penstock verify`: whether a graph file is whole, and everything that is wrong with it if not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import RunError
from penstock.tools.base.options import ANY, STRIPES, THREADS, lasting_console_options, option, option_group
from penstock.tools.base.output import Console, counted, seconds
from penstock.tools.base.progress import compiling_shown, progress

if TYPE_CHECKING:
    from penstock.storage.read.verify import VerifyResult


@click.command(name="verify", short_help="Read a whole graph file and check everything in it.")
@click.argument("graph", type=ANY, metavar="GRAPH.h5")
@option_group(
    "reading",
    dict,
    THREADS,
    option("--direct-io", is_flag=True, help="Read past the page cache: what the disk holds, not what memory does."),
    STRIPES,
)
@lasting_console_options
def command(graph: Path, reading: dict[str, Any], console: Console) -> None:
    """Read a whole graph file and check everything in it.

    Every checksum; that every frame decodes; that rows are sorted, ids in range, weights finite and in the range that
    the header states, and degrees those of the edges; that out- and in-adjacency hold the same edges; that
    original ids are distinct; that no shard is missing; that properties are those of these vertices. All problems
    are listed, each with its place.

    Exit code 0: whole. 1: damaged. 2: not a graph file.

    \b
    Examples:
      penstock verify web.h5
      penstock verify web.h5 --direct-io --json
    """
    from penstock.storage.format.frames import WAY_OUT
    from penstock.storage.read.verify import verify

    with progress(console) as update, compiling_shown(update):
        verdict = verify(graph, progress=lambda array, done, total: update("verify", done, total, "bytes"), **reading)
    console.answer(_facts(verdict), _lines(verdict))
    if not verdict.whole:
        listed = "without --quiet they are listed; " if console.quiet else ""
        raise RunError(f"{graph} is damaged: {counted(verdict.count, 'problem')}; {listed}{WAY_OUT}")


def _facts(verdict: VerifyResult) -> dict[str, Any]:
    return {
        "command": "verify",
        "path": verdict.path,
        "whole": verdict.whole,
        "chunks": verdict.chunks,
        "bytes": verdict.bytes,
        "seconds": verdict.seconds,
        "problem_count": verdict.count,
        "problems": [{"place": problem.place, "what": problem.what} for problem in verdict.problems],
    }


def _lines(verdict: VerifyResult) -> list[str]:
    rate = format_bytes(verdict.bytes / verdict.seconds) if verdict.seconds else "0 B"
    read = f"{verdict.chunks:,} chunks, {format_bytes(verdict.bytes)} in {seconds(verdict.seconds)} ({rate}/s)"
    if verdict.whole:
        return [f"{verdict.path} is whole: {read}"]
    lines = [p.what if p.place in p.what else f"{p.place}: {p.what}" for p in verdict.problems]
    if verdict.count > len(verdict.problems):
        lines.append(f"… and {verdict.count - len(verdict.problems):,} more")
    return [*lines, f"read {read}"]
