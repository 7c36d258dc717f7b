"""Progress shows on a terminal only, with amounts, rate and unit; elsewhere it costs nothing, or is lines of a log."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from penstock.storage.base.stage_clock import compiling
from penstock.storage.companion import process
from penstock.storage.companion.claims import Claims
from penstock.tools import cli
from penstock.tools.base import log
from penstock.tools.base.output import Console, amounts
from penstock.tools.base.progress import COMPILING, LogLines, ProgressBars, compiling_shown, progress
from support.clocks import MovedClock
from support.graphs import on_disk, skewed
from support.oracles import EdgeList
from support.terminal import on_a_terminal

SHOWN = """
import time
from penstock.tools.base.output import Console
from penstock.tools.base.progress import progress
with progress(Console(quiet={quiet})) as update:
    for done in range(11):
        update("reading", done << 20, 10 << 20, "bytes")
        time.sleep(0.03)
    update("writing", 5e6, None, "edges")
    time.sleep(0.2)
"""


WAITING = """
import time
from penstock.tools.base.progress import waiting
with waiting("pagerank on g.h5", quiet={quiet}):
    time.sleep(0.3)
"""


COMPILED = """
import time
from penstock.storage.base.stage_clock import compiling
from penstock.tools.base.progress import waiting
with waiting("penstock convert", quiet=False), compiling("pack"):
    time.sleep(0.6)
"""


NOTED = """
import logging
import time
from penstock.tools.base import log
from penstock.tools.base.output import Console
from penstock.tools.base.progress import progress
log.show()
with progress(Console()) as update:
    update("reading", 1, 10, "parts")
    time.sleep(0.2)
    Console().note("a note of a command")
    logging.getLogger("penstock.storage").warning("a log line")
    time.sleep(0.2)
"""


def shown_of(script: str = SHOWN, *, quiet: bool) -> str:
    return on_a_terminal([sys.executable, "-c", script.format(quiet=quiet)], columns=120)


def test_a_terminal_shows_amount_and_stage() -> None:
    shown = shown_of(quiet=False)
    assert "reading" in shown
    assert "of 10.0 MiB" in shown
    assert "MiB/s" in shown
    assert "5.0 M edges" in shown


def test_a_run_shows_that_it_goes_on() -> None:
    assert "pagerank on g.h5" in shown_of(WAITING, quiet=False)
    assert shown_of(WAITING, quiet=True) == ""


def test_a_step_that_waits_names_the_kernel_that_is_compiled() -> None:
    shown = on_a_terminal([sys.executable, "-c", COMPILED], columns=120)
    assert "penstock convert" in shown
    assert "compiling kernels, once on this machine: pack, number 1" in shown


def test_notes_and_log_lines_come_above_the_bar() -> None:
    """Each has a line of its own: the bar's is cleared before, and drawn again after."""
    shown = on_a_terminal([sys.executable, "-c", NOTED], columns=120)
    for line in ("a note of a command", "penstock: a log line"):
        before, found, after = shown.partition(line)
        assert found
        assert before.endswith("\r\x1b[2K")
        assert after.startswith("\r\n")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((1 << 30, 2 << 30, None, "bytes"), "1.0 GiB of 2.0 GiB"),
        ((1.5e6, 67.1e6, 2e7, "edges"), "1.5 M of 67.1 M edges, 20.0 M/s"),
        ((5, None, 1.0, "iterations"), "5 iterations, 1/s"),
    ],
)
def test_amounts_are_written_in_their_unit(
    arguments: tuple[float, float | None, float | None, str], expected: str
) -> None:
    assert amounts(*arguments) == expected


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
