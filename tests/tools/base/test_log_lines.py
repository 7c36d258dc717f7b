"""Lines of a log: of the stage that began last, with its rate since the line before and the time left at that rate."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from penstock.storage.clocks.compile_times import compiling
from penstock.storage.companion import process
from penstock.storage.companion.claims import Claims
from penstock.tools import cli
from penstock.tools.base import log
from penstock.tools.base.output import Console
from penstock.tools.base.progress import COMPILING, LogLines, ProgressBars, compiling_shown, progress
from support.clocks import MovedClock
from support.graphs import on_disk, skewed
from support.oracles import EdgeList


def test_a_line_has_amount_rate_time_so_far_and_time_left() -> None:
    clock, written = MovedClock(), []
    lines = LogLines(60.0, written.append, clock)
    show = ProgressBars(None, lines)
    lines.tell()
    assert written == [], "nothing has begun"
    clock.now = 5.0
    show("reading", 0, 40 << 20, "bytes")
    clock.now = 10.0
    show("reading", 10 << 20, 40 << 20, "bytes")
    lines.tell()
    clock.now = 20.0
    lines.tell()
    show("writing", 5e6, None, "edges", "part\x1b 2")
    clock.now = 21.0
    lines.tell()
    show.drop("writing")
    lines.tell()
    assert written == [
        "reading: 10.0 MiB of 40.0 MiB, 2.0 MiB/s, 15 s left at this rate; 10 s so far",
        "reading: 10.0 MiB of 40.0 MiB; 20 s so far",
        "writing: part\\x1b 2: 5.0 M edges, 5.0 M/s; 21 s so far",
    ]


def test_compiling_is_said_with_the_kernel() -> None:
    clock, written = MovedClock(), []
    lines = LogLines(60.0, written.append, clock)
    show = ProgressBars(None, lines)
    with compiling_shown(show):
        show("reading", 1, 2, "parts")
        with compiling("decode"):
            lines.tell()
        lines.tell()
    assert written[0].startswith(f"{COMPILING}: decode, number 1: ")
    assert written[1].startswith("reading: 1 of 2 parts")


def test_compiling_counts_the_kernels_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claims, written = Claims(tmp_path), []
    monkeypatch.setattr(process._Present, "companion", SimpleNamespace(has_job=True, claims=claims))
    clock = MovedClock()
    lines = LogLines(60.0, written.append, clock)
    claims.plan(["push", "pull", "send"])
    claims.take("pull")
    with compiling_shown(ProgressBars(None, lines)), compiling("pull"):
        lines.tell()
        claims.take("push")
        clock.now = 60.0
        lines.tell()
    seconds = r"\d+(\.\d+)? m?s"
    assert re.fullmatch(rf"{COMPILING}: pull, {seconds}: 1 of 3 kernels; 0 ms so far", written[0])
    assert re.fullmatch(rf"{COMPILING}: pull, {seconds}: 2 of 3 kernels; 60 s so far", written[1])


@pytest.mark.parametrize(
    ("said", "verbose", "expected"),
    [(True, 0, "penstock: reading\n"), (True, 1, "penstock.progress: reading\n"), (False, 0, "")],
)
def test_a_line_is_on_stderr_once_and_in_the_log_file(
    said: bool, verbose: int, expected: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log.show(verbose)
    with log.to_file(tmp_path / "log.txt"):
        log.teller(said=said)("reading")
    log.show(quiet=True)
    assert capsys.readouterr().err[-len(expected) or None :] == expected
    assert (tmp_path / "log.txt").read_text().count("reading\n") == 1


@pytest.mark.parametrize(
    ("console", "terminal", "said"),
    [
        (Console(), False, True),
        (Console(), True, False),
        (Console(as_json=True), False, False),
        (Console(quiet=True), False, False),
        (Console(log_every=60.0, as_json=True), False, True),
        (Console(log_every=60.0), True, True),
        (Console(log_every=60.0, quiet=True), False, False),
        (Console(log_every=0), False, None),
    ],
)
def test_who_gets_lines(console: Console, terminal: bool, said: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setattr(log, "teller", lambda *, said: asked.append(said))
    with progress(console) as show:
        assert show.drawn == (terminal and not console.silent)
    assert asked == ([] if said is None else [said])


def test_a_run_in_a_batch_writes_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on_disk(EdgeList(200, *skewed(200, 3000, 5), None, True), tmp_path / "g.h5")
    assert cli.run_command(["run", "wcc", str(tmp_path / "g.h5"), "--log-every", "10ms"]) == 2
    assert "'10ms' is no time; give one such as 30s, 5min or 2h, or 0 for none" in capsys.readouterr().err
    assert cli.run_command(["run", "wcc", str(tmp_path / "g.h5"), "--log-every", "0.001s"]) == 0
    assert re.search(r"^penstock: WCC: .* so far$", capsys.readouterr().err, re.MULTILINE)
