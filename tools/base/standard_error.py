"""Lines on stderr: where progress bars are drawn, above them, so that no line is written into a bar.

Everything that a command says there goes through `write_line`: notes, log lines, what becomes of a signal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import click

Write = Callable[[str], None]


class _Present:
    """What writes lines where bars are drawn, if they are."""

    above: Write | None = None


@contextmanager
def lines_above(write: Write) -> Iterator[None]:
    """Let `write` write the lines of this process within the block; any thread may call it."""
    before, _Present.above = _Present.above, write
    try:
        yield
    finally:
        _Present.above = before


def leave_terminal() -> None:
    """Give a terminal its cursor back where bars are drawn, for a process that ends without their end."""
    if _Present.above is not None:
        with suppress(OSError):
            os.write(2, b"\r\x1b[2K\x1b[?25h")


def write_line(text: str) -> None:
    """Write a line on stderr, above the bars if there are some; any thread may call it."""
    if _Present.above is None:
        click.echo(text, err=True)
    else:
        _Present.above(text)
