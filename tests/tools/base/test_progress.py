"""Progress shows on a terminal only, with amounts, rate and unit; elsewhere it costs nothing."""

import sys

import pytest
from penstock.tools.base.output import Console, amounts
from penstock.tools.base.progress import progress
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
from penstock.storage.clocks.compile_times import compiling
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


def test_quiet_shows_nothing_even_there() -> None:
    assert shown_of(quiet=True) == ""


def test_without_a_terminal_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(Console()) as update:
        update("reading", 1, 2, "bytes")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


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
