"""The command line: `python tests/benchmarks SUITE... [options]` (README.md)."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import alternate, history
from benchmarks.history import Figure, Record, Verdict
from benchmarks.runner import Choices, Runner, checkout, commit_of, machine

SUITES = {
    "cpu": ("measure", "programs on the cores, in memory and on disk; conversion; peers; the command line"),
    "gpu": ("measure", "programs on the GPU, resident and with 1 GiB of edges; levels of grids"),
    "convert": ("convert", "generate and convert, by format and options"),
    "disk": ("disk", "programs on a graph that host memory does not hold, direct reads"),
    "jobs": ("jobs", "whole jobs from command to prompt, by stage, with a cold page cache"),
    "peers": ("peers.suite", "beside GAP in memory, beside ACGraph, Blaze and GridGraph from disk"),
    "phases": ("phases", "launches of a sweep and the pauses between them; levels by blocks"),
    "busy": ("busy", "programs on the cores beside 1, 2 and 4 busy processes, against the fair share of the machine"),
    "forecasts": ("forecasts", "what --dry-run expects of runs over what they take"),
    "ranks": ("ranks", "sweeps of ranks with even and uneven shares, with and without moving bounds between them"),
    "device": ("measure", "rates of copies, calibration, first runs"),
}
PEERS = ("gap", "acgraph", "blaze", "gridgraph")
HISTORY = Path(__file__).parent / "history"


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line: 0, 1 if something is slower or an answer is wrong, 2 on misuse."""
    arguments = list(sys.argv[1:] if words is None else words)
    if arguments == [alternate.WORD]:
        return alternate.serve(run)
    parser = _parser()
    given = parser.parse_args(arguments)
    choices = _choices(parser, given)
    began = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    name = given.machine or machine()
    commit = given.commit or commit_of(checkout())
    if not commit and (given.record is not None or given.compare):
        parser.error("the measured checkout has no git history: name its commit with --commit")
    told = {"date": began, "machine": name, "command": " ".join(_measuring(arguments))}
    if given.plot is not None:
        return _plot(parser, given)
    if given.alternate is not None:
        return _alternate(given, choices, told | {"commit": commit or "here"})
    if not given.suites:
        return _compare(_recorded(name, given.commit), given.against, [])
    runner = Runner(choices)
    run(runner, given.suites)
    records = [Record.of(figure, commit=commit, **told) for figure in runner.figures]
    _print(f"{name}, {commit or 'unknown commit'}", runner.figures)
    verdict = _compare(records, given.against, runner.wrong) if given.compare else _print_wrong(runner.wrong)
    if given.record is not None:
        history.append(Path(given.record or HISTORY / f"{name}.jsonl"), records)
    return verdict


def run(runner: Runner, suites: Iterable[str]) -> None:
    """Measure the suites."""
    for suite in suites:
        runner.suite = suite
        getattr(importlib.import_module(f"benchmarks.{SUITES[suite][0]}"), suite)(runner)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python tests/benchmarks",
        description="Measure Penstock, record the figures, and compare them with recorded ones or another checkout.",
        epilog="suites: " + "; ".join(f"{name}: {text}" for name, (_, text) in SUITES.items()),
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    add = parser.add_argument
    add("--repeats", type=int, default=5, help="values of each figure (5)")
    add(
        "--scale",
        type=int,
        help="2^SCALE vertices (busy, cpu 20, jobs, peers 22, phases 24, others 25; jobs on a GPU 28)",
    )
    add("--side", type=int, default=1500, help="vertices of a grid's side (1500)")
    add("--only", action="append", default=[], metavar="TEXT", help="only figures whose name contains it; repeatable")
    sizes = {"action": "append", "default": [], "metavar": "SIZE"}
    add("--memory", "--device-edge-memory", **sizes, help="edges on the GPU: 1GiB, 25%%, resident")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="an option of sessions: route=filter")
    add("--hubs", action="store_true", help="renumber the R-MAT of the GPU by falling degree")
    add("--delta", action="append", default=[], type=float, help="gpu: SSSP with this bucket too; repeatable")
    add("--blocks", action="append", default=[], type=int, help="phases: blocks of a multiprocessor; repeatable")
    add("--share", type=float, default=0.25, help="disk, busy: share of the edges that host memory holds (0.25)")
    add(
        "--graph",
        help="busy, disk, jobs, peers, ranks: a graph file instead of R-MAT; jobs: made there if there is none",
    )
    add("--device", default="cpu", help="jobs: where programs compute (cpu); ranks: of each (cpu,cpu)")
    add("--peer", action="append", default=[], metavar="NAME=FOLDER", help="peers: a program that is built there")
    add("--busy", type=int, default=0, help="forecasts, peers: so many busy loops beside it (0)")
    add("--folder", help="where temporary files go")
    add("--check", action="store_true", help="gpu: compare the answers with those of the cores")
    add("--details", action="store_true", help="say what the first iterations of each run did")
    add("--record", nargs="?", const="", metavar="FILE", help="append the figures to FILE, or to the history")
    add("--compare", action="store_true", help="with the last record of this machine; without suites, of the history")
    add("--against", metavar="REV", help="compare with the records of this commit")
    add("--alternate", metavar="PATH", help="measure this checkout and the one at PATH in turn")
    add("--plot", metavar="FILE", help="draw the history over commits: a page of .svg, .pdf or .png")
    add("--commit", help="the commit that records name, where git does not tell it")
    add("--machine", help="the machine that records name")
    return parser


def _choices(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Choices:
    unknown = [name for name in given.suites if name not in SUITES]
    if unknown:
        parser.error(f"there is no suite {unknown[0]!r}; there are {', '.join(SUITES)}")
    if not given.suites and (given.alternate or given.record is not None or not (given.compare or given.plot)):
        parser.error(f"name a suite: {', '.join(SUITES)}; only --compare and --plot work without, on the history")
    if given.plot and (given.alternate or given.compare or given.record is not None):
        parser.error("--plot draws the history, and goes with suites, --only and --machine alone")
    if given.against and not (given.compare or given.alternate):
        parser.error("--against is for --compare, or names the other commit of --alternate")
    if given.alternate and (given.compare or not all(Path(given.alternate, f).is_dir() for f in alternate.FLOORS)):
        parser.error("--alternate needs the path of another checkout, and no --compare")
    if given.repeats < history.LEAST_COUNT and (given.record is not None or given.compare or given.alternate):
        parser.error(f"medians that are recorded or compared need --repeats of at least {history.LEAST_COUNT}")
    return Choices(
        repeats=max(1, given.repeats),
        scale=given.scale,
        side=given.side,
        memory=tuple(given.memory),
        blocks=tuple(given.blocks),
        deltas=tuple(given.delta),
        share=given.share,
        hubs=given.hubs,
        check=given.check,
        details=given.details,
        graph=given.graph,
        device=given.device,
        folder=given.folder,
        busy=given.busy,
        peers=_peers(parser, given.peer),
        only=tuple(given.only),
        given=dict(_option(parser, text) for text in given.set),
    )


def _peers(parser: argparse.ArgumentParser, texts: Iterable[str]) -> dict[str, str]:
    """The folders of the programs beside which Penstock is measured, by name."""
    found = dict(text.partition("=")[::2] for text in texts)
    for name, folder in found.items():
        if name not in PEERS or not Path(folder).is_dir():
            parser.error(f"--peer {name}={folder}: give one of {', '.join(PEERS)}, and the folder of its programs")
    return found


def _option(parser: argparse.ArgumentParser, text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        parser.error(f"--set {text!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _measuring(arguments: Sequence[str]) -> list[str]:
    """The arguments that say what is measured and how, for the records."""
    apart, kept, skip = {"--commit": 1, "--machine": 1, "--against": 1, "--alternate": 1, "--compare": 0}, [], 0
    for number, word in enumerate(arguments):
        if skip:
            skip -= 1
        elif word == "--record":
            following = arguments[number + 1 : number + 2]
            skip = int(bool(following) and not following[0].startswith("-"))
        elif word in apart:
            skip = apart[word]
        elif word.partition("=")[0] not in {*apart, "--record"}:
            kept.append(word)
    return kept


def _recorded(name: str, commit: str | None) -> list[Record]:
    """The last records of a machine by figure, of one commit or of the newest one."""
    records = [record for record in history.read(HISTORY) if record.machine == name]
    newest = commit or (records[-1].commit if records else None)
    return list({record.key: record for record in records if record.commit == newest}.values())


def _compare(records: Sequence[Record], against: str | None, wrong: Sequence[str]) -> int:
    """Print the verdicts on records, those that are slower last; 1 if there are such."""
    known = history.read(HISTORY)
    verdicts = [history.compared(history.before(known, record, against), record) for record in records]
    return _print_verdicts(verdicts, wrong)


def _plot(parser: argparse.ArgumentParser, given: argparse.Namespace) -> int:
    """Draw what the history has of the suites, figures and machine that are named, or of all."""
    records = [
        record
        for record in history.read(HISTORY)
        if (not given.suites or record.suite in given.suites)
        and (not given.only or any(text in record.figure for text in given.only))
        and given.machine in (None, record.machine)
    ]
    try:
        figures = importlib.import_module("benchmarks.plot").plot(records, Path(given.plot))
    except (ValueError, OSError) as error:
        parser.error(f"--plot {given.plot}: {error}")
    print(f"{given.plot}: {figures} figures")
    return 0


def _alternate(given: argparse.Namespace, choices: Choices, told: dict[str, str]) -> int:
    other = Path(given.alternate)
    commit = given.against or commit_of(other) or "other"
    mine, its = alternate.alternate(
        checkout(), other, given.suites, choices, lambda text: print(text, file=sys.stderr, flush=True)
    )
    new = [Record.of(figure, **told) for figure in mine]
    old = [Record.of(figure, **(told | {"commit": commit})) for figure in its]
    if given.record is not None:
        history.append(Path(given.record or HISTORY / f"{told['machine']}.jsonl"), [*old, *new])
    return _print_verdicts([history.compared(*pair) for pair in zip(old, new, strict=True)], [])


def _print(title: str, figures: Sequence[Figure]) -> None:
    rows = [
        (figure.name, figure.unit, f"{figure.median:.4g}", f"{figure.spread:.2g}", len(figure.values))
        for figure in figures
    ]
    print("", title, *history.table(("figure", "unit", "median", "spread", "n"), rows), sep="\n")


def _print_verdicts(verdicts: Sequence[Verdict], wrong: Sequence[str]) -> int:
    rows = []
    for verdict in verdicts:
        old, new, ratio = verdict.old, verdict.new, verdict.ratio
        before = ("", "", "") if old is None else (old.commit, f"{old.value:.4g}", f"{old.spread:.2g}")
        after = (new.commit, f"{new.value:.4g}", f"{new.spread:.2g}")
        rows.append((new.figure, new.unit, *before, *after, "" if ratio is None else f"{ratio:.3f}", verdict.word))
    heads = ("figure", "unit", "before", "median", "spread", "after", "median", "spread", "ratio", "verdict")
    print("", *history.table(heads, rows), sep="\n")
    slower = [verdict.new.figure for verdict in verdicts if verdict.word == "slower"]
    print(f"slower: {'; '.join(slower)}" if slower else "nothing is slower")
    return int(bool(_print_wrong(wrong) or slower))


def _print_wrong(wrong: Sequence[str]) -> int:
    """Say which answers are wrong; 1 if there are such."""
    if wrong:
        print(f"WRONG: {'; '.join(wrong)}")
    return int(bool(wrong))
